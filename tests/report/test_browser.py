"""The page in a real browser: all sections at the width of a desk and of a phone, links, tables as CSV, zoom, print."""

import csv
import html
import io
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import invented
from regretless.report.gather import gather
from regretless.report.html import embedded_json
from regretless.report.page import render
from regretless.show.plots import log_ticks
from regretless.studies.store import Store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WALK = Path(__file__).with_name("walk.js")
WIDTHS = (1280, 390)
LABELS = ["<b>x</b>", "a|b", "%{y}", "<img src=x onerror=alert(1)>", "$x$", "x" * 300]

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


def hostile_page(folder):
    """A page of an own study whose names are markup."""
    played = {label: invented.own_trace(40, [10.0 + i, 12.0 + i]) for i, label in enumerate(LABELS)}
    cells = dict.fromkeys(LABELS, played)
    kinds = ("curves", "bars", "table", "heatmap")
    panels = [(kind, f"{kind} <i>", {"": played}) for kind in kinds]
    panels += [("lines", "&amp;", cells), ("arena", "<u>", cells)]
    store = Store(folder)
    random = [{"name": "random", "mean": 30.0, "standard_error": 1.0, "world": ""}]
    invented.own_study(store, panels, title="</title><script>alert(1)</script>", axis="<b>", references=random)
    return render(gather(store))


@pytest.fixture(scope="module")
def seen(written, tmp_path_factory):
    """What a browser saw of the paper's page, of an own one and of a broken one, in one visit."""
    assert CHROMIUM is not None, "CI must have Chromium: a skipped browser test proves nothing"
    folder = tmp_path_factory.mktemp("browser")
    paper = (written[0] / "report.html").read_text()
    broken = paper.replace('"use strict";', '"use strict"; nonsense();', 1)
    texts = {"paper": paper, "own": hostile_page(folder / "store"), "broken": broken}
    pages = {
        name: {"text": text.replace("<head>", "<head>" + LISTEN, 1), "widths": WIDTHS if name != "broken" else ()}
        for name, text in texts.items()
    }
    pages["paper"]["chart"] = "chart-convergence-topk"
    visit = folder / "visit.html"
    visit.write_text(
        '<!doctype html><iframe id="frame" style="border:0;height:900px"></iframe>'
        f'<script type="application/json" id="pages">{embedded_json(pages)}</script><script>{WALK.read_text()}</script>'
    )
    command = [
        CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000",
        f"--user-data-dir={folder / 'profile'}", "--virtual-time-budget=600000", "--dump-dom", visit.as_uri(),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    found = re.search(r'<pre id="findings">(.*?)</pre>', done.stdout, re.DOTALL)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found.group(1)))


@pytest.mark.parametrize("page", ["paper", "own"])
def test_every_section_works_at_both_widths(seen, page):
    found = seen[page]
    assert found["problems"] == []
    assert found["lost"] == []
    assert found["links"] >= 3
    for width in WIDTHS:
        at = found[str(width)]
        assert at["drawn"] == at["charts"] >= (27 if page == "paper" else 6)
        assert at["wide"] <= 0, "the page must not scroll sideways"
        assert at["unhinted"] == 0, "a table that scrolls says so"
        faults = {kind: at[kind] for kind in ("empty", "covered", "overlaid", "loose", "unread") if at[kind]}
        assert faults == {}, width


@pytest.mark.parametrize("page", ["paper", "own"])
def test_every_table_can_be_downloaded_as_csv(seen, page):
    tables = seen[page]["tables"]
    assert len({table["name"] for table in tables}) == len(tables) >= 3, "each has a name of its own"
    for table in tables:
        lines = list(csv.reader(io.StringIO(table["text"], newline="")))
        assert len(lines) == table["shown"], table["name"]
        assert len({len(line) for line in lines}) == 1, table["name"]


def test_a_csv_has_all_digits_and_a_column_for_each_number(seen, written):
    text = next(table["text"] for table in seen["paper"]["tables"] if table["name"] == "main_topk.csv")
    lines = {line["policy"]: line for line in csv.DictReader(io.StringIO(text, newline=""))}
    cell = written[1].studies[0].panels[0].cells[0]
    arm, verdict = cell.arms["dfhpg"], cell.verdicts["dfhpg"]
    assert float(lines["dfhpg"]["mean"]) == arm.mean
    assert float(lines["dfhpg"]["s.e."]) == arm.error
    assert float(lines["dfhpg"]["published"]) == verdict.published.mean
    assert lines["dfhpg"]["verdict"] == verdict.word
    assert float(lines["clairvoyant"]["mean"]) == cell.references()[2].mean


def test_a_click_zoom_print_and_the_dark_work(seen):
    found = seen["paper"]
    assert set(found["toggled"]["clicked"]) == {"legendonly"}, "the curve goes with its band or whiskers"
    assert len(found["toggled"]["clicked"]) == 2
    assert set(found["toggled"]["others"]) == {True}
    assert found["ticks"] == log_ticks(305.0, 335.0) == [310, 320, 330], "a zoomed axis has ticks by the same rule"
    assert found["printed"] == {"open": True, "widths": [640], "theme": "light", "closed": True, "back": [0]}
    assert found["turned"]


def test_hostile_labels_are_shown_as_they_are(seen):
    assert seen["own"]["legend"][:5] == LABELS[:5]
    assert seen["own"]["images"] == 0


def test_an_error_in_the_page_would_be_seen(seen):
    assert any("nonsense" in problem for problem in seen["broken"]["problems"])
