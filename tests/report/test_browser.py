"""The page in a real browser: no errors, every chart drawn, a click on a legend hides its curve."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

import invented
from regretless.report.gather import gather
from regretless.report.page import render
from regretless.studies.store import Store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)

pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"),
        reason="needs Chromium (apt-get install chromium); CI always runs it",
    ),
]

LISTEN = """<script>
window.problems = [];
addEventListener("error", (event) => window.problems.push(String(event.message)));
addEventListener("unhandledrejection", (event) => window.problems.push(String(event.reason)));
for (const name of ["error", "warn"]) {
  const original = console[name];
  console[name] = (...words) => { window.problems.push(words.join(" ")); original(...words); };
}
</script>"""

TELL = """  } catch (error) { window.problems.push(String(error && error.stack || error)); }
  found.problems = window.problems;
  const said = document.createElement("pre");
  said.id = "findings";
  said.textContent = JSON.stringify(found);
  document.body.append(said);
})();
</script>"""

EXERCISE = """<script>
(async () => {
  const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
  const found = {};
  const visible = (chart, name) => chart._fullData.find((trace) => trace.name === name).visible;
  try {
    await window.drawAll();
    const charts = [...document.querySelectorAll(".chart")];
    found.charts = charts.length;
    found.drawn = charts.filter((chart) => chart.querySelector("svg.main-svg")).length;
    const marks = ".scatterlayer path, .heatmaplayer image, .hm image, .barlayer path";
    found.empty = charts.filter((chart) => !chart.querySelector(marks)).map((chart) => chart.id);
    const chart = document.getElementById("chart-convergence-topk");
    const entry = [...chart.querySelectorAll(".legend .traces")].find((each) => each.textContent.includes("dfhpg_0"));
    found.before = visible(chart, "dfhpg_0");
    const pad = entry.querySelector(".legendtoggle");
    for (const kind of ["mousedown", "mouseup", "click"]) pad.dispatchEvent(new MouseEvent(kind, { bubbles: true }));
    await pause(900);
    found.after = visible(chart, "dfhpg_0");
    found.band = chart._fullData.find((trace) => trace.legendgroup === "dfhpg_0" && trace.fill === "toself").visible;
    found.others = visible(chart, "dfhpg");
    const paper = getComputedStyle(document.body).backgroundColor;
    document.getElementById("theme").click();
    await pause(200);
    found.turned = getComputedStyle(document.body).backgroundColor !== paper;
    found.ink = chart._fullLayout.font.color;
    found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""


GLANCE = """<script>
(async () => {
  const found = {};
  window.alert = () => window.problems.push("a label was executed");
  try {
    await window.drawAll();
    const charts = [...document.querySelectorAll(".chart")];
    found.charts = charts.length;
    found.drawn = charts.filter((chart) => chart.querySelector("svg.main-svg")).length;
    found.legend = [...charts[0].querySelectorAll(".legendtext")].map((each) => each.textContent);
    found.images = document.querySelectorAll("img").length;
    found.wide = document.documentElement.scrollWidth - document.documentElement.clientWidth;
"""


def look(page, folder, width, exercise=EXERCISE):
    """What the page says about itself after a visit at this width."""
    text = page.read_text()
    visit = folder / f"visit_{width}.html"
    visit.write_text(text.replace("<head>", "<head>" + LISTEN, 1).replace("</body>", exercise + TELL + "</body>", 1))
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=60000", "--dump-dom", visit.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    found = re.search(r'<pre id="findings">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_works(written, tmp_path, width):
    assert CHROMIUM is not None, "CI must have Chromium: a skipped browser test proves nothing"
    found = look(written[0] / "report.html", tmp_path, width)
    assert found["problems"] == []
    assert found["drawn"] == found["charts"] >= 19
    assert found["empty"] == []
    assert (found["before"], found["after"], found["band"], found["others"]) == (True, "legendonly", "legendonly", True)
    assert found["turned"]
    assert found["ink"] in ("#1d2430", "#e8eaee")
    assert found["wide"] <= 0, "the page must not scroll sideways"


def test_an_error_in_the_page_would_be_seen(written, tmp_path):
    broken = tmp_path / "broken.html"
    broken.write_text((written[0] / "report.html").read_text().replace('"use strict";', '"use strict"; nonsense();', 1))
    assert any("nonsense" in problem for problem in look(broken, tmp_path, 800)["problems"])


@pytest.mark.parametrize("width", [1280, 500])
def test_an_own_page_shows_hostile_labels_as_they_are(tmp_path, width):
    labels = ["<b>x</b>", "a|b", "%{y}", "<img src=x onerror=alert(1)>", "$x$", "x" * 300]
    played = {label: invented.own_trace(40, [10.0 + i, 12.0 + i]) for i, label in enumerate(labels)}
    cells = dict.fromkeys(labels, played)
    kinds = ("curves", "bars", "table", "heatmap")
    panels = [(kind, f"{kind} <i>", {"": played}) for kind in kinds] + [("lines", "&amp;", cells)]
    store = Store(tmp_path / "store")
    invented.own_study(store, panels, title="</title><script>alert(1)</script>", axis="<b>")
    page = tmp_path / "own.html"
    page.write_text(render(gather(store)))
    found = look(page, tmp_path, width, GLANCE)
    assert found["problems"] == []
    assert found["drawn"] == found["charts"] == 4
    assert found["legend"][:5] == labels[:5]
    assert found["images"] == 0
    assert found["wide"] <= 0, "the page must not scroll sideways"
