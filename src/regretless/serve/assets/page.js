"use strict";
// The page: every text comes from the service and is set as text, never as markup.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";
let token = sessionStorage.getItem("token") || "";
let shown = null;      // the page that is shown
let learners = [];     // of the overview
let loading = false;
let again = false;
let lastNumbers = "";
let keepUntil = 0;

function make(tag, text, kind) {
  const node = document.createElement(tag);
  if (text !== undefined && text !== null) node.textContent = text;
  if (kind) node.className = kind;
  return node;
}

function draw(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function complain(text, seconds = 0) {
  // what a button caused stays for a while, also when the next figures arrive
  if (!text && Date.now() < keepUntil) return;
  keepUntil = Date.now() + 1000 * seconds;
  $("problem").textContent = text || "";
  $("problem").hidden = !text;
}

async function ask(path, method = "GET") {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { method, headers, cache: "no-store" });
  if (answer.status === 401) {
    $("entrance").hidden = false;
    $("learner").hidden = $("overview").hidden = true;
    throw new Error("an access token is needed");
  }
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({ detail: `status ${answer.status}` }));
    throw new Error(problem.detail);
  }
  return answer;
}

const data = async (path) => (await ask(path)).json();

function chosen() {
  const name = decodeURIComponent(location.hash.slice(1));
  if (learners.some((learner) => learner.name === name)) return name;
  return learners.length === 1 ? learners[0].name : null;
}

async function refresh() {
  if (loading) { again = true; return; }
  loading = true;
  try {
    let name = learners.length ? chosen() : null;
    if (name === null) {
      learners = await data("v1/overview");
      name = chosen();
    }
    if (name === null) showOverview();
    else showLearner(await data(`v1/learners/${name}/page`));
    complain("");
  } catch (error) {
    complain(error instanceof TypeError ? "the service does not answer; trying again" : error.message);
  } finally {
    loading = false;
    if (again) { again = false; setTimeout(refresh, 300); }
  }
}

function showOverview() {
  $("entrance").hidden = $("learner").hidden = $("back").hidden = $("pause").hidden = true;
  $("overview").hidden = false;
  $("title").textContent = document.title = learners.length ? "All learners" : "No learners yet";
  const counts = {};
  for (const learner of learners) counts[learner.state.level] = (counts[learner.state.level] || 0) + 1;
  const worst = ["alarm", "look", "paused", "wait", "ok"].find((level) => counts[level]) || "wait";
  const words = { alarm: "with an alarm", look: "to look at", paused: "paused", wait: "too early to tell", ok: "working" };
  setState(worst, Object.entries(words).filter(([level]) => counts[level]).map(([level, text]) => `${counts[level]} ${text}`).join(", "));
  $("overview").replaceChildren(...learners.map((learner) => {
    const link = make("a", null, "card");
    link.href = `#${encodeURIComponent(learner.name)}`;
    link.append(make("h2", learner.title), make("span", learner.state.sentence, `state ${learner.state.level}`));
    for (const tile of learner.tiles) link.append(make("span", tile.label, "soft"), make("span", tile.value, "value"));
    return link;
  }));
}

function setState(level, sentence) {
  $("state").className = `state ${level}`;
  $("state").textContent = sentence;
}

function showLearner(page) {
  shown = page;
  $("entrance").hidden = $("overview").hidden = true;
  $("learner").hidden = false;
  $("back").hidden = learners.length < 2;
  $("title").textContent = document.title = page.title;
  setState(page.state.level, page.state.sentence);
  $("pause").hidden = !page.can_pause;
  $("pause").textContent = page.paused ? "Resume: the learner decides" : `Pause: ${page.words.incumbent} decides`;
  $("fresh").textContent = page.decision ? `last decision ${page.decision.age} ago` : "";
  $("tiles").replaceChildren(...page.tiles.map((tile) => {
    const card = make("div", null, "card tile");
    card.id = `tile-${tile.id}`;
    const unknown = tile.value === "too early to tell" ? " unknown" : "";
    card.append(make("span", tile.label, "soft label"), make("span", tile.value, `value ${tile.level}${unknown}`), make("span", tile.detail, "soft detail"));
    return card;
  }));
  drawCurve(page);
  showDecision(page);
  $("events").replaceChildren(...(page.events.length ? page.events : [{ kind: "none", text: "nothing unusual so far", age: "" }]).map((event) => {
    const item = make("li", null, event.kind);
    item.append(make("span", event.text), make("time", event.age));
    return item;
  }));
  showEngineer(page.engineer);
  showPanel().catch((error) => complain(error.message));
}

async function showPanel(pressed) {
  const panel = pressed ? await (await ask(`v1/panel/${pressed}`, "POST")).json() : await data("v1/panel");
  $("extra").hidden = !panel;
  if (!panel) return;
  const text = JSON.stringify(panel);
  if ($("extra").dataset.shown === text) return;
  $("extra").dataset.shown = text;
  const buttons = make("div", null, "buttons");
  for (const { id, label, pressed: down } of panel.buttons) {
    const button = make("button", label);
    button.type = "button";
    button.id = `press-${id}`;
    button.setAttribute("aria-pressed", String(down));
    button.addEventListener("click", () => showPanel(id).catch((error) => complain(error.message)));
    buttons.append(button);
  }
  const code = make("details");
  code.open = !panel.buttons.length;
  code.append(make("summary", panel.code_title), make("pre", panel.code));
  $("extra").replaceChildren(make("h2", panel.title), make("p", panel.text, "soft"), buttons, code);
}

function showDecision(page) {
  const decision = page.decision;
  $("known").hidden = !decision;
  if (!decision) {
    $("decided").textContent = "No decision yet.";
    for (const id of ["rows", "why", "context"]) $(id).replaceChildren();
    return;
  }
  $("decided").textContent = `Decision ${decision.id}, ${decision.age} ago, by ${decision.by}`;
  const priced = decision.rows.some((row) => row.predicted !== null);
  const head = ["chosen", ...(decision.integral ? [] : ["amount"]), ...(priced ? ["predicted"] : [])];
  const cells = (row) => [row.item, ...(decision.integral ? [] : [row.amount]), ...(priced ? [row.predicted] : [])];
  fill("rows", decision.rows.map(cells), head);
  if (decision.more) $("rows").append(rowOf([`and ${decision.more} more`], "td"));
  $("why").replaceChildren(...decision.why.map((reason) => make("li", reason)));
  fill("context", decision.context);
}

function rowOf(cells, tag) {
  const row = make("tr");
  row.append(...cells.map((cell) => make(tag, cell)));
  return row;
}

function fill(id, rows, head) {
  $(id).replaceChildren(...(head ? [rowOf(head, "th")] : []), ...rows.map((row) => rowOf(row, "td")));
}

function niceTicks(low, high) {
  const span = high - low || 1;
  const rough = span / 6;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((value) => value >= rough);
  const ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high + 1e-9 * span; value += step) ticks.push(Math.abs(value) < 1e-9 * span ? 0 : value);
  return ticks;
}

const short = (value) => (Math.abs(value) >= 1e6 ? `${+(value / 1e6).toPrecision(3)} M` : Math.abs(value) >= 1e4 ? `${+(value / 1e3).toPrecision(3)} k` : `${+value.toPrecision(3)}`).replace("-", "−");

function drawCurve(page) {
  const { points, known } = page.curve;
  $("curve-title").textContent = known ? page.curve.title : "Who decided";
  const legend = [["by-learner", "the learner decided"], ["by-incumbent", `${page.words.incumbent} decided`], ["by-person", "a person decided"]];
  const people = points.some((point) => point.other > 0);
  $("legend").replaceChildren(...legend.filter(([kind]) => (kind !== "by-incumbent" || known) && (kind !== "by-person" || people)).map(([kind, text]) => {
    const entry = make("span");
    entry.append(make("i", null, kind), document.createTextNode(text));
    return entry;
  }));
  const place = $("curve");
  if (!points.length) { place.replaceChildren(make("p", `The first ${page.words.round} with a known cost begins the curve.`, "soft")); return; }
  const width = Math.max(place.clientWidth, 260), height = known ? Math.min(360, Math.max(230, width * 0.5)) : 20;
  const left = known ? 46 : 0, right = 8, top = 22, strip = 18, gap = 22;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${top + height + gap + strip + 6}`, role: "img", "aria-label": page.curve.title });
  const last = points[points.length - 1].round;
  const x = (round) => left + (width - left - right) * round / last;
  if (known) {
    const values = [0, ...points.map((point) => point.saved)], limits = points.map((point) => point.limit);
    let high = Math.max(...values), low = Math.min(...values);
    low = Math.min(low, Math.max(Math.min(...limits), -0.6 * (high - low) - 1e-12));
    const reach = high - low || 1;
    high += 0.06 * reach; low -= 0.04 * reach;
    const y = (value) => top + height * (high - value) / (high - low);
    for (const tick of niceTicks(low, high)) {
      svg.append(draw("line", { x1: left, x2: width - right, y1: y(tick), y2: y(tick), class: tick === 0 ? "zero" : "grid" }));
      svg.append(draw("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
    }
    const path = [`M${left},${y(0)}`, ...points.map((point) => `L${x(point.round).toFixed(1)},${y(point.saved).toFixed(1)}`)].join("");
    svg.append(draw("path", { d: `${path}L${x(last)},${y(0)}Z`, class: "area" }));
    const inside = points.filter((point) => point.limit >= low);
    if (inside.length) {
      const d = [`M${left},${y(Math.max(low, Math.min(0, inside[0].limit)))}`, ...inside.map((point) => `L${x(point.round).toFixed(1)},${y(point.limit).toFixed(1)}`)].join("");
      svg.append(draw("path", { d, class: "limit" }));
      svg.append(draw("text", { x: left + 6, y: top + height - 4, class: "limit-text" }, `– – ${page.curve.limit}`));
    }
    svg.append(draw("path", { d: path, class: "line" }));
    const end = points[points.length - 1].saved;
    svg.append(draw("text", { x: width - right, y: Math.max(y(end) - 9, 13), "text-anchor": "end", class: "end", id: "curve-end" }, page.curve.total));
  }
  const stripTop = known ? top + height + gap : 4;
  if (!known) svg.setAttribute("viewBox", `0 0 ${width} ${stripTop + strip + 24}`);
  let before = 0;
  for (const point of points) {
    const x0 = x(before), wide = Math.max(x(point.round) - x0, 0.5);
    const parts = [["by-learner", point.learner], ["by-person", point.other], ["by-incumbent", 1 - point.learner - point.other]];
    let from = stripTop + strip;
    for (const [kind, share] of parts) {
      if (share <= 1e-9) continue;
      from -= share * strip;
      svg.append(draw("rect", { x: x0.toFixed(2), y: from.toFixed(2), width: (wide + 0.3).toFixed(2), height: (share * strip).toFixed(2), class: kind }));
    }
    before = point.round;
  }
  const textY = known ? top + height + 15 : stripTop + strip + 16;
  svg.append(draw("text", { x: left, y: textY }, `${page.words.round} 1`), draw("text", { x: width - right, y: textY, "text-anchor": "end" }, `${last.toLocaleString("en")}`));
  place.replaceChildren(svg);
}

function showEngineer(engineer) {
  fill("figures", Object.entries(engineer.figures));
  fill("details", Object.entries(engineer.details));
  fill("weights", engineer.weights.length ? engineer.weights.map(([name, weight]) => [name, `${Math.round(100 * weight)} %`]) : [["one learner: no weights"]]);
  $("verdict").textContent = engineer.verdict;
  $("metrics").replaceChildren(...engineer.metrics.map((name) => make("li", name)));
  const place = $("residuals"), points = engineer.residuals;
  if ($("engineer").hidden) return;
  if (!points.length) { place.replaceChildren(make("p", "none are known here", "soft")); return; }
  const width = Math.max(place.clientWidth, 260), height = 220, left = 46;
  const svg = draw("svg", { viewBox: `0 0 ${width} ${height + 22}`, role: "img", "aria-label": "prediction errors" });
  const sizes = points.map(([, value]) => Math.abs(value)).sort((a, b) => a - b);
  const reach = 1.15 * (sizes[Math.floor(0.98 * (sizes.length - 1))] || 1);
  const first = points[0][0], last = points[points.length - 1][0];
  const y = (value) => height / 2 - height / 2 * Math.max(-1, Math.min(1, value / reach)) + 6;
  for (const tick of niceTicks(-reach, reach)) {
    svg.append(draw("line", { x1: left, x2: width, y1: y(tick), y2: y(tick), class: tick === 0 ? "zero" : "grid" }));
    svg.append(draw("text", { x: left - 7, y: y(tick) + 4, "text-anchor": "end" }, short(tick)));
  }
  for (const [id, value] of points) svg.append(draw("circle", { cx: left + 5 + (width - left - 10) * (id - first) / Math.max(last - first, 1), cy: y(value), r: 2.6, class: "dot" }));
  svg.append(draw("text", { x: left, y: height + 20 }, `decision ${first}`), draw("text", { x: width, y: height + 20, "text-anchor": "end" }, `${last}`));
  place.replaceChildren(svg);
}

async function follow() {
  // Server-sent events by fetch, because EventSource cannot send a token.
  for (;;) {
    try {
      const answer = await ask("v1/events");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let rest = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        rest += value;
        const messages = rest.split("\n\n");
        rest = messages.pop();
        const latest = messages.filter((message) => message.startsWith("data: ")).pop();
        if (!latest) continue;
        const numbers = JSON.parse(latest.slice(6)), name = learners.length ? chosen() : null;
        const mine = name === null ? latest : `${name}:${numbers[name]}:${numbers.extra}`;
        if (mine !== lastNumbers) { lastNumbers = mine; if (name === null) learners = []; await refresh(); }
      }
    } catch (error) {
      complain(error instanceof TypeError ? "the service does not answer; trying again" : error.message);
      if (!$("entrance").hidden) return;
    }
    await new Promise((later) => setTimeout(later, 1000));
  }
}

$("entrance").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  sessionStorage.setItem("token", token);
  $("token").value = "";
  $("entrance").hidden = true;
  lastNumbers = "";
  refresh();
  follow();
});

$("pause").addEventListener("click", async () => {
  $("pause").disabled = true;
  try {
    await ask(`v1/learners/${shown.name}/${shown.paused ? "resume" : "pause"}`, "POST");
    await refresh();
  } catch (error) {
    complain(error.message, 8);
  } finally {
    $("pause").disabled = false;
  }
});

for (const name of ["plant", "engineer"]) {
  $(`tab-${name}`).addEventListener("click", () => {
    for (const other of ["plant", "engineer"]) {
      $(other).hidden = other !== name;
      $(`tab-${other}`).setAttribute("aria-selected", String(other === name));
    }
    if (shown) showLearner(shown);
  });
}

addEventListener("hashchange", () => { learners = []; lastNumbers = ""; refresh(); });
let width = innerWidth;
addEventListener("resize", () => { if (innerWidth !== width) { width = innerWidth; if (shown && !$("learner").hidden) showLearner(shown); } });
refresh();
follow();
