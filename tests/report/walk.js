// Visits the pages of a test in a frame, at the width of a desk and of a phone, and tells what it saw (test_browser.py).
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const pages = JSON.parse(document.getElementById("pages").textContent);
const frame = document.getElementById("frame");
const MARKS = ".scatterlayer path, .heatmaplayer image, .hm image, .barlayer path";

const load = (text) => new Promise((done) => { frame.onload = done; frame.srcdoc = text; });
const box = (element) => element.getBoundingClientRect();
const meet = (a, b) => a.left < b.right - 1 && b.left < a.right - 1 && a.top < b.bottom - 1 && b.top < a.bottom - 1;

async function at(width, inside) {
  frame.style.width = `${width}px`;
  await pause(250);
  await inside.drawAll();
  await pause(250);
  const root = inside.document.documentElement;
  const all = (what) => [...inside.document.querySelectorAll(what)];
  const charts = all(".chart"), drawn = charts.filter((chart) => chart.querySelector("svg.main-svg"));
  const wrong = (bad) => drawn.filter(bad).map((chart) => chart.id);
  return {
    charts: charts.length, drawn: drawn.length, wide: root.scrollWidth - root.clientWidth,
    empty: wrong((chart) => !chart.querySelector(MARKS)),
    covered: wrong((chart) => {
      const bar = chart.querySelector(".modebar-group"), plot = chart.querySelector(".nsewdrag");
      return bar && plot && meet(box(bar), box(plot));
    }),
    overlaid: wrong((chart) => {
      const legend = chart.querySelector(".legend"), title = chart.querySelector(".xtitle");
      return legend && title && meet(box(legend), box(title));
    }),
    loose: wrong((chart) => Math.abs(box(chart).height - box(chart.querySelector("svg.main-svg")).height) > 8),
    unread: wrong((chart) => ["xaxis", "yaxis"].some((name) => {
      const axis = chart._fullLayout[name];
      if (!axis || axis.type !== "log") return false;
      const told = [...chart.querySelectorAll(`.${name[0]}tick text`)].map((each) => Number(each.textContent.replaceAll(",", "")));
      return told.length < 2 || told.some((value) => !(value > 0));
    })),
    unhinted: all(".scroll").filter((each) => !each.closest("details:not([open])")).filter((each) =>
      (each.scrollWidth > each.clientWidth + 2) !== each.nextElementSibling.textContent.includes("scroll")).length,
  };
}

async function tables(inside) {
  const found = [], blobs = [];
  inside.URL.createObjectURL = (blob) => { blobs.push(blob); return "blob:none"; };
  inside.HTMLAnchorElement.prototype.click = function () { found.push({ name: this.download }); };
  for (const table of inside.document.querySelectorAll("table")) {
    table.closest(".scroll").nextElementSibling.querySelector("button").click();
    const last = found[found.length - 1];
    last.shown = table.rows.length;
    last.text = await blobs[blobs.length - 1].text();
  }
  return found;
}

async function legend(inside, id, label) {
  const chart = inside.document.getElementById(id);
  const entry = [...chart.querySelectorAll(".legend .traces")].find((each) => each.textContent === label);
  for (const kind of ["mousedown", "mouseup", "click"]) {
    entry.querySelector(".legendtoggle").dispatchEvent(new inside.MouseEvent(kind, { bubbles: true }));
  }
  await pause(900);
  const group = (name) => chart._fullData.filter((trace) => trace.legendgroup === name).map((trace) => trace.visible);
  return { clicked: group(label), others: group("dfhpg") };
}

async function zoomed(inside, id, low, high) {
  const chart = inside.document.getElementById(id);
  await inside.Plotly.relayout(chart, { "yaxis.range": [Math.log10(low), Math.log10(high)] });
  await pause(100);
  return [...chart.querySelectorAll(".ytick text")].map((each) => Number(each.textContent));
}

async function printed(inside) {
  const folds = () => [...inside.document.querySelectorAll("details")].map((each) => each.open);
  const widths = () => [...new Set([...inside.document.querySelectorAll(".chart")].map((each) => Math.round(box(each.querySelector("svg.main-svg")).width - (paper ? 0 : each.clientWidth))))];
  let paper = true;
  inside.dispatchEvent(new inside.Event("beforeprint"));
  await pause(300);
  const during = { open: folds().every(Boolean), widths: widths(), theme: inside.document.documentElement.dataset.theme };
  paper = false;
  inside.dispatchEvent(new inside.Event("afterprint"));
  await pause(300);
  return { ...during, closed: !folds().some(Boolean), back: widths() };
}

(async () => {
  const told = {};
  for (const [name, page] of Object.entries(pages)) {
    const found = told[name] = {};
    await load(page.text);
    const inside = frame.contentWindow;
    inside.alert = () => inside.problems.push("a label was executed");
    try {
      const every = [...inside.document.querySelectorAll("nav a, .summary a")].map((link) => link.getAttribute("href").slice(1));
      if (!page.widths.length) throw new Error("a page that is only loaded");
      found.lost = every.filter((place) => !inside.document.getElementById(place));
      found.links = every.length;
      for (const width of page.widths) found[width] = await at(width, inside);
      found.tables = await tables(inside);
      const first = inside.document.querySelector(".chart");
      found.legend = [...first.querySelectorAll(".legendtext")].map((each) => each.textContent);
      found.images = inside.document.querySelectorAll("img").length;
      if (page.chart) {
        found.toggled = await legend(inside, page.chart, "dfhpg_0");
        found.ticks = await zoomed(inside, page.chart, 305, 335);
        found.printed = await printed(inside);
        const ground = () => inside.getComputedStyle(inside.document.body).backgroundColor, before = ground();
        inside.document.getElementById("theme").click();
        await pause(100);
        found.turned = ground() !== before;
      }
    } catch (error) { inside.problems.push(String(error && error.stack || error)); }
    found.problems = inside.problems;
  }
  frame.remove();
  document.getElementById("pages").remove();
  const said = document.createElement("pre");
  said.id = "findings";
  said.textContent = JSON.stringify(told);
  document.body.append(said);
})();
