"""The page in a real browser: no errors, every chart drawn, light and dark, and no sideways scrolling on a phone."""

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from regretless.experiments.experiment import Arm, Experiment
from regretless.experiments.report import make_sections, read_page, render_page
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Cell, Panel, Study
from regretless.plots import log_ticks
from stored_results import fill_store

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WALK = Path(__file__).with_name("walk.js")
LABELS = ["<b>x</b>", "a|b", "%{y}", "<img src=x onerror=alert(1)>", "$x$", "x" * 100]
KINDS = ("table", "curves", "bars", "lines", "heatmap", "arena")

pytestmark = [
    pytest.mark.xdist_group("report"),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium (apt-get install chromium)"
    ),
]

LISTEN = """<script>
window.problems = [];
addEventListener("error", (event) => window.problems.push(String(event.message)));
addEventListener("unhandledrejection", (event) => window.problems.push(String(event.reason)));
for (const name of ["error", "warn"]) console[name] = (...message) => window.problems.push(message.join(" "));
window.alert = () => window.problems.push("a label was executed");
</script>"""


def study_page(folder, labels, title):
    """Return the page of a study with a panel of each kind."""
    experiment = Experiment("topk", [Arm(label, "greedy") for label in labels], seeds=12, horizon=60)
    harder = Experiment("topk", experiment.policies, seeds=12, horizon=60, settings={"benchmark.degree": 6})
    first, second = Cell("2", experiment), Cell(labels[-1], harder)
    several = {"lines": (first, second), "arena": (first, second)}
    panels = tuple(Panel(f"{kind} {title}", several.get(kind, (Cell("", experiment),)), kind=kind) for kind in KINDS)
    store = ResultStore(folder)
    fill_store(store, [Study("own", panels, title=title, about=title, axis=title)])
    page = read_page(store)
    return render_page(page, make_sections(page))


@pytest.fixture(scope="module")
def findings(tmp_path_factory):
    """Return what a browser reports of a page, of one whose names are markup, and of a broken one."""
    assert CHROMIUM is not None, "CI must have Chromium: a skipped browser test proves nothing"
    folder = tmp_path_factory.mktemp("browser")
    plain = study_page(folder / "plain", ["dfhpg", "adaptive", "greedy"], "Plain")
    pages = {
        "plain": plain,
        "hostile": study_page(folder / "hostile", LABELS, "</title><script>alert(1)</script>"),
        "broken": plain.replace('"use strict";', '"use strict"; nonsense();', 1),
    }
    texts = json.dumps({name: text.replace("<head>", "<head>" + LISTEN, 1) for name, text in pages.items()})
    visit = folder / "visit.html"
    visit.write_text(
        '<!doctype html><iframe id="frame" style="border:0;height:900px"></iframe>'
        f'<script type="application/json" id="pages">{texts.replace("<", chr(92) + "u003c")}</script>'
        f"<script>{WALK.read_text()}</script>"
    )
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000", "--virtual-time-budget=600000"]
    command = [CHROMIUM, *options, f"--user-data-dir={folder / 'profile'}", "--dump-dom", visit.as_uri()]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True)
    match = re.search(r'<pre id="findings">(.*?)</pre>', done.stdout, re.DOTALL)
    assert match, done.stderr[-2000:]
    return json.loads(html.unescape(match.group(1)))


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("page", ["plain", "hostile"])
def test_every_chart_is_drawn_and_fits(findings, page, width):
    seen = findings[page][str(width)]
    assert seen["drawn"] == seen["charts"] == 3, "curves, bars and lines"
    assert seen["heat"] > 4, "heat maps are coloured tables"
    assert seen["wide"] <= 0, "the page must not scroll sideways"
    assert seen["unhinted"] == 0, "a table that scrolls shows a hint"
    faults = ("empty", "covered", "overlaid", "clipped", "unread")
    assert {kind: seen[kind] for kind in faults if seen[kind]} == {}


@pytest.mark.parametrize("page", ["plain", "hostile"])
def test_the_console_is_empty_and_links_lead_somewhere(findings, page):
    assert findings[page]["problems"] == []
    assert findings[page]["broken_links"] == []


def test_hostile_labels_are_shown_as_they_are(findings):
    assert findings["hostile"]["legend"][:5] == LABELS[:5]
    assert findings["hostile"]["images"] == 0


def test_dark_print_zoom_and_download_work(findings):
    seen = findings["plain"]
    light, dark = seen["themes"]["light"], seen["themes"]["dark"]
    assert light["ground"] != dark["ground"]
    assert light["text"] != dark["text"], "charts are drawn again in the other colours"
    assert seen["ticks"] == log_ticks(305.0, 335.0) == [310, 320, 330], "a zoomed axis has ticks by the same rule"
    assert seen["printed"] == {"open": True, "widths": [640], "theme": "light", "closed": True}
    head, first, *_ = seen["csv"].splitlines()
    assert head == "policy,mean,s.e.,median"
    assert len(first.split(",")[1]) > 8, "with all digits"


def test_an_error_in_the_page_would_be_seen(findings):
    assert any("nonsense" in problem for problem in findings["broken"]["problems"])
