"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  const root = document.documentElement;
  const drawn = new Set();
  const PAGE = 640;
  let paper = false;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // How many lines the legend below a chart will take: room is made for it, so that it never covers the axis.
  function legendLines(spec, width) {
    let lines = 0, used = 0;
    for (const trace of spec.data) {
      if (!trace.name || trace.showlegend === false) continue;
      const entry = 48 + 6.2 * trace.name.length;
      if (!lines || used + entry > width) { lines += 1; used = 0; }
      used += entry;
    }
    return lines;
  }

  // Words below the axis stand aslant where they would touch; the legend then begins lower.
  function slant(spec, width) {
    if ((spec.layout.xaxis || {}).type !== "category") return 0;
    const words = [...new Set(spec.data.flatMap((trace) => trace.x))].map((word) => String(word).length);
    return Math.max(...words) * 6.6 + 10 > width / words.length ? 8 + 3.2 * Math.max(...words) : 0;
  }

  // Charts are as wide as their place; on paper, as wide as a page.
  const width = (element) => paper ? PAGE : element.clientWidth;

  function layoutOf(spec, element) {
    const axis = {
      gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), tickfont: { size: 11 },
      exponentformat: "power", automargin: true,
    };
    const narrow = width(element) < 460;
    const top = 36, left = narrow ? 48 : 64, plot = narrow ? 260 : 280;
    const room = slant(spec, width(element) - left), lines = legendLines(spec, width(element));
    const named = ((spec.layout.xaxis || {}).title || {}).text;
    const bottom = (named ? 52 : 28) + room + 20 * lines;
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: css("--ink") },
      margin: { l: left, r: 12, t: top, b: bottom }, height: top + plot + bottom, hovermode: "closest",
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", xref: "container", x: 0, font: { size: 11, color: css("--soft") }, itemwidth: 30 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    };
    const layout = { ...base, ...spec.layout, ...(paper ? { width: PAGE } : { autosize: true }) };
    for (const name of ["xaxis", "yaxis"]) {
      const given = spec.layout[name] || {};
      const title = given.title ? { title: { ...given.title, font: { size: 12, color: css("--soft") } } } : {};
      const ticks = given.tickvals ? { ticktext: given.tickvals.map(tickText) } : {};
      layout[name] = { ...axis, ...given, ...title, ...ticks };
    }
    if (room) layout.xaxis.tickangle = -30;
    return layout;
  }

  function dataOf(spec) {
    return spec.data.map((trace) =>
      trace.meta === "reference" ? { ...trace, line: { ...trace.line, color: css("--soft") } } : trace);
  }

  const config = { responsive: true, displaylogo: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };

  function draw(element) {
    const spec = specs[element.id];
    const layout = layoutOf(spec, element), first = !drawn.has(element);
    drawn.add(element);
    element.style.minHeight = `${layout.height}px`;
    const done = Plotly.react(element, dataOf(spec), layout, config);
    if (first) element.on("plotly_relayout", (change) => relabel(element, change));
    return done;
  }

  // Ticks of a logarithmic axis that was zoomed, by the rule of regretless.plots.log_ticks.
  function logTicks(low, high) {
    const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
    for (const steps of [[1], [1, 2, 5], [1, 1.5, 2, 3, 4, 5, 7]]) {
      const ticks = [];
      for (let decade = first; decade <= last; decade++) for (const step of steps) ticks.push(Number(`${step}e${decade}`));
      const inside = ticks.filter((tick) => low <= tick && tick <= high);
      if (inside.length >= 3) return inside.filter((_, index) => index % Math.ceil(inside.length / 9) === 0);
    }
    const size = 10 ** Math.floor(Math.log10(high - low));
    const step = [2 * size, size, size / 2, size / 5].find((each) => Math.floor(high / each) - Math.ceil(low / each) >= 2);
    const ticks = [];
    for (let i = Math.ceil(low / step); i * step <= high; i++) ticks.push(Number((i * step).toPrecision(12)));
    return ticks;
  }

  const tickText = (value) => {
    if (value >= 0.001 && value < 10000) return String(Number(value.toPrecision(6)));
    const [mantissa, exponent] = value.toExponential(5).split("e");
    return `${Number(mantissa)}e${Number(exponent)}`;
  };

  function relabel(element, change) {
    const update = {};
    for (const name of ["xaxis", "yaxis"]) {
      const axis = element._fullLayout[name], given = specs[element.id].layout[name] || {};
      const moved = Object.keys(change).some((key) => key.startsWith(`${name}.range`) || key === `${name}.autorange`);
      if (!moved || axis.type !== "log" || !given.tickvals) continue;
      const ticks = logTicks(10 ** axis.range[0], 10 ** axis.range[1]);
      update[`${name}.tickvals`] = ticks;
      update[`${name}.ticktext`] = ticks.map(tickText);
    }
    if (Object.keys(update).length) Plotly.relayout(element, update);
  }

  const all = () => [...document.querySelectorAll(".chart")];
  window.drawAll = () => Promise.all(all().map(draw));

  function show(theme) {
    root.dataset.theme = theme;
    for (const element of drawn) draw(element);
  }

  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  const preferred = () => chosen || (dark.matches ? "dark" : "light");
  dark.addEventListener("change", () => show(preferred()));
  document.getElementById("theme").addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    show(chosen);
  });

  // On paper: light, every chart drawn at the width of a page, everything unfolded, tables of many columns in small letters.
  let folded = [];
  addEventListener("beforeprint", () => {
    paper = true;
    root.dataset.theme = "light";
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const each of folded) each.open = true;
    window.drawAll();
  });
  addEventListener("afterprint", () => {
    paper = false;
    for (const each of folded) each.open = false;
    show(preferred());
    for (const element of drawn) Plotly.Plots.resize(element);
  });
  show(preferred());

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px" });
  all().forEach((element) => near.observe(element));

  function save(table) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([table.dataset.csv], { type: "text/csv;charset=utf-8" }));
    link.download = `${table.dataset.name}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // Below each table: its CSV, and a hint where columns are hidden to the right.
  const hints = new ResizeObserver((entries) => setTimeout(() => entries.forEach(({ target }) => hint(target))));
  function hint(box) {
    const more = box.scrollWidth - box.clientWidth - box.scrollLeft > 2;
    box.classList.toggle("more", more);
    box.nextElementSibling.firstChild.textContent = more ? "more columns: scroll →" : "";
  }
  for (const box of document.querySelectorAll(".scroll")) {
    const table = box.querySelector("table"), below = document.createElement("div");
    table.classList.toggle("dense", table.rows[0].cells.length > 8);
    below.className = "below";
    below.innerHTML = '<span class="hint"></span><button type="button" title="Download this table as CSV">CSV</button>';
    below.lastChild.addEventListener("click", () => save(table));
    box.after(below);
    box.addEventListener("scroll", () => hint(box), { passive: true });
    hints.observe(box);
  }
})();
