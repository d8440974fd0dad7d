// Visits the pages of a test in a frame, at the width of a desktop and of a phone, and reports what it saw (test_browser.py).
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const pages = JSON.parse(document.getElementById("pages").textContent);
const frame = document.getElementById("frame");
const MARKS = ".scatterlayer path, .barlayer path";

const load = (text) => new Promise((done) => { frame.onload = done; frame.srcdoc = text; });
const box = (element) => element.getBoundingClientRect();
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;

async function visit(width, inside) {
  frame.style.width = `${width}px`;
  await pause(250);
  await inside.drawAll();
  await pause(250);
  const root = inside.document.documentElement;
  const all = (selector) => [...inside.document.querySelectorAll(selector)];
  const charts = all(".chart"), drawn = charts.filter((chart) => chart.querySelector("svg.main-svg"));
  const select = (fault) => drawn.filter(fault).map((chart) => chart.id);
  return {
    heat: all(".heat td[style]").length, charts: charts.length, drawn: drawn.length, wide: root.scrollWidth - root.clientWidth,
    empty: select((chart) => !chart.querySelector(MARKS)),
    covered: select((chart) => {
      const bar = chart.querySelector(".modebar-group"), plot = chart.querySelector(".nsewdrag");
      return bar && plot && meet(box(bar), box(plot));
    }),
    overlaid: select((chart) => {
      const legend = chart.querySelector(".legend"), title = chart.querySelector(".xtitle");
      return legend && title && meet(box(legend), box(title));
    }),
    clipped: select((chart) => {
      const drawing = box(chart.querySelector("svg.main-svg"));
      return Math.abs(box(chart).height - drawing.height) > 8 || drawing.right > box(chart).right + 1;
    }),
    unread: select((chart) => ["xaxis", "yaxis"].some((name) => {
      const axis = chart._fullLayout[name];
      if (!axis || axis.type !== "log") return false;
      const values = [...chart.querySelectorAll(`.${name[0]}tick text`)].map((tick) => Number(tick.textContent.replaceAll(",", "")));
      return values.length < 2 || values.some((value) => !(value > 0));
    })),
    unhinted: all(".scroll").filter((table) => !table.closest("details:not([open])")).filter((table) =>
      (table.scrollWidth > table.clientWidth + 2) !== table.nextElementSibling.textContent.includes("scroll")).length,
  };
}

async function download(inside) {
  let blob = null;
  inside.URL.createObjectURL = (content) => { blob = content; return "blob:none"; };
  inside.HTMLAnchorElement.prototype.click = () => {};
  inside.document.querySelector(".below button").click();
  return blob.text();
}

async function zoom(inside, low, high) {
  const chart = [...inside.document.querySelectorAll(".chart")].find((each) => each._fullLayout.yaxis.type === "log");
  await inside.Plotly.relayout(chart, { "yaxis.range": [Math.log10(low), Math.log10(high)] });
  await pause(100);
  return [...chart.querySelectorAll(".ytick text")].map((tick) => Number(tick.textContent));
}

async function print(inside) {
  const folds = () => [...inside.document.querySelectorAll("details")].map((fold) => fold.open);
  inside.dispatchEvent(new inside.Event("beforeprint"));
  await pause(300);
  const widths = [...inside.document.querySelectorAll(".chart svg.main-svg")].map((drawing) => Math.round(box(drawing).width));
  const during = { open: folds().every(Boolean), widths: [...new Set(widths)], theme: inside.document.documentElement.dataset.theme };
  inside.dispatchEvent(new inside.Event("afterprint"));
  await pause(300);
  return { ...during, closed: !folds().some(Boolean) };
}

async function themes(inside) {
  const seen = {}, root = inside.document.documentElement;
  for (let i = 0; i < 2; i++) {
    inside.document.getElementById("theme").click();
    await pause(200);
    const tick = inside.document.querySelector(".chart .xtick text");
    seen[root.dataset.theme] = { ground: inside.getComputedStyle(inside.document.body).backgroundColor, text: tick.style.fill };
  }
  return seen;
}

(async () => {
  const findings = {};
  for (const [name, text] of Object.entries(pages)) {
    const seen = findings[name] = {};
    await load(text);
    const inside = frame.contentWindow;
    try {
      if (name !== "broken") {
        const places = [...inside.document.querySelectorAll("nav a, .summary a")].map((link) => link.getAttribute("href").slice(1));
        seen.broken_links = places.filter((place) => !inside.document.getElementById(place));
        for (const width of [1280, 390]) seen[width] = await visit(width, inside);
        seen.legend = [...inside.document.querySelector(".chart").querySelectorAll(".legendtext")].map((each) => each.textContent);
        seen.images = inside.document.querySelectorAll("img").length;
        seen.csv = await download(inside);
        seen.ticks = await zoom(inside, 305, 335);
        seen.printed = await print(inside);
        seen.themes = await themes(inside);
      }
    } catch (error) { inside.problems.push(String(error && error.stack || error)); }
    seen.problems = inside.problems;
  }
  frame.remove();
  document.getElementById("pages").remove();
  const report = document.createElement("pre");
  report.id = "findings";
  report.textContent = JSON.stringify(findings);
  document.body.append(report);
})();
