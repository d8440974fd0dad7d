"""The built pages: links are valid, nothing is loaded from the network, every public name is documented; a browser
agrees.
"""

import functools
import importlib
import json
import os
import re
import shutil
import subprocess
import threading
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PARTS = (
    "benchmarks errors experiments experiments.report feedback models offline oracles policies policies.dfhpg "
    "simulation stats surrogates testing"
)
PUBLIC = ("", *(f".{part}" for part in PARTS.split()))
WALK = Path(__file__).with_name("walk.html")
FORMULAS = ("algorithm", "theory", "generative", "linear-thompson", "signs", "surrogates/direct", "surrogates/ranking")

pytestmark = pytest.mark.xdist_group("pages")


class Page(HTMLParser):
    """The links and anchors of one page."""

    def __init__(self, text):
        super().__init__()
        self.links, self.loads, self.names = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.names.update(filter(None, (values.get("id"), values.get("name"))))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        elif tag in ("script", "link", "img", "source", "iframe"):
            self.loads += filter(None, (values.get("src"), values.get("href")))


@pytest.fixture(scope="module")
def pages(site):
    return {path.relative_to(site).as_posix(): Page(path.read_text()) for path in site.rglob("*.html")}


def test_every_link_is_valid(site, pages):
    broken = []
    for where, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(urljoin(f"http://site/{where}", link))
            if parts.netloc != "site" or where == "404.html":
                continue
            path = unquote(parts.path).lstrip("/") or "index.html"
            missing = (
                parts.fragment
                and path in pages
                and unquote(parts.fragment) not in pages[path].names | {"__toc", "__drawer"}
            )
            if not (site / path).exists() or missing:
                broken.append((where, link))
    assert broken == []
    assert sum(link.count("code/") for link in pages["algorithm.html"].links) > 150


def test_nothing_is_loaded_from_the_network(site, pages):
    assert [
        (where, load) for where, page in pages.items() for load in page.loads if re.match(r"(https?:)?//", load)
    ] == []
    styles = "".join(path.read_text() for path in site.rglob("*.css"))
    assert re.findall(r"url\([\"']?(?:https?:)?//", styles) == []


def test_every_public_name_is_in_the_reference(pages):
    documented = set().union(*(page.names for where, page in pages.items() if where.startswith("reference/")))
    known = {}
    for part in PUBLIC:
        module = importlib.import_module(f"regretless{part}")
        for name in getattr(module, "__all__", None) or [name for name in vars(module) if name.endswith("Error")]:
            value = getattr(module, name)
            home = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
            known.setdefault(id(value), {home}).add(f"regretless{part}.{name}")
    missing = [sorted(names) for names in known.values() if not names & documented and not _is_part(names)]
    assert missing == []
    wanted = ("live.records.Receipt.message", "Learner.decide", "Result.compare", "policies.Adaptive.build")
    assert [name for name in wanted if f"regretless.{name}" not in documented] == []


def _is_part(names):
    helpers = (".PANELS", ".BENCHMARK_NAMES", ".REGISTRY", ".register", ".QUICK", ".Callback")
    return any(name.endswith(helpers) or name in {f"regretless{part}" for part in PUBLIC} for name in names)


def test_constructors_and_tables_of_parameters_are_shown(site):
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (site / "reference/live.html").read_text()))
    assert re.search(r"Learner\( problem: Problem \| Oracle, \*, context: int", text)
    assert re.search(r"Parameters: .* store \(?Store, str or Path", text)
    assert "&gt;&gt;&gt; import numpy" in text
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", (site / "reference/policies.html").read_text()))
    assert re.search(r"EpsilonGreedy\( \*, .*epsilon: float = 0\.1", text)


LISTEN = """<script>window.problems = [];
addEventListener("error", (event) => window.problems.push(String(event.message)), true);
addEventListener("unhandledrejection", (event) => window.problems.push(String(event.reason)));
const push = (...message) => window.problems.push(message.join(" "));
for (const name of ["error", "warn"]) console[name] = push;</script>"""


class WalkHandler(SimpleHTTPRequestHandler):
    """Serve the pages with a listener for their errors, and receive what the walk reports."""

    def do_GET(self):
        path = self.translate_path(self.path)
        if self.path == "/walk.html":
            text = WALK.read_text(encoding="utf-8").replace("of PAGES)", f"of {json.dumps(self.server.pages)})")
        elif path.endswith(".html") and os.path.exists(path):
            text = Path(path).read_text(encoding="utf-8").replace("<head>", "<head>" + LISTEN, 1)
        else:
            return super().do_GET()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.done.set()

    def log_message(self, *arguments):
        pass


@pytest.mark.skipif(CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium (apt-get install chromium)")
def test_a_browser_walks_all_pages_on_a_phone(site, pages, tmp_path):
    assert CHROMIUM is not None, "CI must have Chromium: a skipped browser test proves nothing"
    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(WalkHandler, directory=site)) as server:
        server.pages = sorted(page for page in pages if not page.startswith(("code/", "404")))
        server.done, server.report = threading.Event(), None
        threading.Thread(target=server.serve_forever, daemon=True).start()
        options = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=1000,900",
            f"--user-data-dir={tmp_path}",
        ]
        browser = subprocess.Popen(
            [*options, "--remote-debugging-port=0", f"http://127.0.0.1:{server.server_port}/walk.html"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert server.done.wait(300), "the walk did not finish"
        finally:
            browser.kill()
            browser.wait()
            server.shutdown()
    report = server.report
    assert report.keys() == set(server.pages)
    for kind in ("problems", "broken", "clipped", "cut"):
        assert {page: seen[kind] for page, seen in report.items() if seen[kind]} == {}
    assert {page: seen["wide"] for page, seen in report.items() if seen["wide"] > 0} == {}, (
        "pages must not scroll sideways"
    )
    assert {page for page, seen in report.items() if seen["quoted"]} == set()
    assert [name for name in FORMULAS if report[f"{name}.html"]["math"] < 10] == []
    assert report["index.html"]["turned"]
    assert any("glossary.html" in hit for hit in report["index.html"]["hits"])
