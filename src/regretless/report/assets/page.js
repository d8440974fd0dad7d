"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  const root = document.documentElement;
  const drawn = new Set();
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  // How many lines the legend below a chart will take: room is made for it, so that it never covers the axis.
  function legendLines(spec, width) {
    let lines = 1, used = 0;
    for (const trace of spec.data) {
      if (!trace.name || trace.showlegend === false) continue;
      const entry = 48 + 6.2 * trace.name.length;
      if (used && used + entry > width) { lines += 1; used = 0; }
      used += entry;
    }
    return lines;
  }

  // Words below the axis stand aslant where they would touch; the legend then begins lower.
  function slant(spec, width) {
    if ((spec.layout.xaxis || {}).type !== "category" || spec.kind === "heatmap") return 0;
    const words = [...new Set(spec.data.flatMap((trace) => trace.x))].map((word) => String(word).length);
    return Math.max(...words) * 6.6 + 10 > width / words.length ? 12 + 3.4 * Math.max(...words) : 0;
  }

  function layoutOf(spec, element) {
    const axis = {
      gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), tickfont: { size: 11 },
      exponentformat: "power", minor: {}, automargin: true,
    };
    const narrow = element.clientWidth < 460;
    const top = 30, left = narrow ? 48 : 64, plot = narrow ? 260 : 280;
    const room = slant(spec, element.clientWidth - left), bottom = 58 + room + 20 * legendLines(spec, element.clientWidth - left);
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: css("--ink") },
      margin: { l: left, r: 12, t: top, b: bottom }, height: top + plot + bottom, hovermode: "closest",
      legend: { orientation: "h", y: -(50 + room) / plot, yanchor: "top", x: 0, font: { size: 11, color: css("--soft") }, itemwidth: 30 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    };
    const layout = { ...base, ...spec.layout };
    for (const name of ["xaxis", "yaxis"]) {
      const given = spec.layout[name] || {};
      const title = given.title ? { title: { ...given.title, font: { size: 12, color: css("--soft") } } } : {};
      layout[name] = { ...axis, ...given, ...title };
    }
    if (room) layout.xaxis.tickangle = -30;
    if (spec.kind === "heatmap") layout.margin = { l: 8, r: 8, t: 36, b: 8 };
    return layout;
  }

  function dataOf(spec) {
    return spec.data.map((trace) =>
      trace.meta === "reference" ? { ...trace, line: { ...trace.line, color: css("--soft") } } : trace);
  }

  const config = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] };

  function draw(element) {
    const spec = specs[element.id];
    const bar = spec.kind === "heatmap" ? { displayModeBar: false } : {};
    drawn.add(element);
    return Plotly.react(element, dataOf(spec), layoutOf(spec, element), { ...config, ...bar });
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
  addEventListener("beforeprint", () => { root.dataset.theme = "light"; window.drawAll(); });
  addEventListener("afterprint", () => show(preferred()));
  show(preferred());

  const near = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      if (entry.isIntersecting) { near.unobserve(entry.target); draw(entry.target); }
    }
  }, { rootMargin: "600px" });
  all().forEach((element) => near.observe(element));
})();
