"use strict";
(() => {
  const specs = JSON.parse(document.getElementById("chart-data").textContent);
  const root = document.documentElement;
  const drawn = new Set();
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();

  function layoutOf(spec, element) {
    const axis = {
      gridcolor: css("--grid"), linecolor: css("--line"), zerolinecolor: css("--line"), tickfont: { size: 11 },
      exponentformat: "power", minor: {},
    };
    const narrow = element.clientWidth < 460;
    const base = {
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, -apple-system, Segoe UI, Roboto, sans-serif", size: 12, color: css("--ink") },
      margin: { l: narrow ? 48 : 64, r: 12, t: 12, b: 40 }, height: narrow ? 440 : 400, hovermode: "closest",
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0, font: { size: 11, color: css("--soft") }, itemwidth: 30 },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--soft"), activecolor: css("--ink") },
      hoverlabel: { bgcolor: css("--card"), bordercolor: css("--line"), font: { color: css("--ink") } },
    };
    const layout = { ...base, ...spec.layout };
    for (const name of ["xaxis", "yaxis"]) {
      const given = spec.layout[name] || {};
      const title = given.title ? { title: { ...given.title, font: { size: 12, color: css("--soft") } } } : {};
      layout[name] = { ...axis, ...given, ...title };
    }
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
