"""The page and the demonstration in a real browser."""

import json
import os
import time
import urllib.request

import pytest

from regretless.serve import Service
from regretless.serve.watching import Demo, PageServer
from serve.chromium import CHROMIUM, Browser
from serve.service_files import FREE, PLANT, TOKENS, make_config, token_tables
from serve.test_page import play

pytestmark = [
    pytest.mark.xdist_group("serve_browser"),
    pytest.mark.skipif(
        CHROMIUM is None and not os.environ.get("CI"), reason="needs Chromium (apt-get install chromium)"
    ),
]
MARKUP = "</title><img src=x onerror=alert(1)><b>"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    assert CHROMIUM is not None, "CI must have Chromium: a skipped browser test proves nothing"
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A service with one learner whose names are markup."""
    words = {**PLANT["words"], "items": ["a", MARKUP, "<script>alert(2)</script>", "d"], "incumbent": "<i>foreman</i>"}
    table = {**PLANT, "title": MARKUP, "words": words}
    service = Service(make_config(tmp_path_factory.mktemp("plant"), learners={"plant": table}, templates={}))
    service.open()
    play(service.learners["plant"].learner, 150)
    service.view("plant").clock = lambda: 0.0  # ages are those at the last record
    with PageServer(service, 0, manage_learners=True) as server:
        yield service, server.url
    service.close()


@pytest.fixture(autouse=True)
def quiet(browser):
    """No error on the console, and no request that leaves the service."""
    browser.open("about:blank")
    browser.problems.clear()
    browser.requests.clear()
    browser.size(1200, 900)
    browser.scheme("light")
    yield
    origins = {"/".join(url.split("/")[:3]) for url in browser.requests} - {"about:blank"}
    assert len(origins) <= 1, origins
    assert browser.problems == []


def api(url, path):
    with urllib.request.urlopen(f"{url}{path}", timeout=30) as answer:
        return json.load(answer)


def test_figures_are_those_of_the_api_and_names_are_text(browser, plant):
    _, url = plant
    browser.open(f"{url}/")
    browser.wait("document.querySelectorAll('.tile').length === 4 && document.getElementById('curve-end')")
    page = api(url, "/v1/learners/plant/page")
    for tile in page["tiles"]:
        shown = browser.run(
            f"[...document.getElementById('tile-{tile['id']}').children].map((node) => node.textContent)"
        )
        assert shown == [tile["label"], tile["value"], tile["detail"]]
    assert browser.text("state") == page["state"]["sentence"]
    assert browser.text("curve-end") == page["curve"]["total"]
    assert browser.text("title") == MARKUP == browser.run("document.title")
    rows = browser.run("[...document.querySelectorAll('#rows tr')].slice(1).map((row) => row.children[0].textContent)")
    assert rows == [row["item"] for row in page["decision"]["rows"]]
    assert (
        browser.run("document.querySelectorAll('body script, img, #learner b, #learner i:not(#legend i)').length") == 0
    )
    assert browser.run("document.querySelectorAll('#curve .line').length") == 1


def test_pause_works_and_the_page_follows_by_itself(browser, plant):
    service, url = plant
    learner = service.learners["plant"].learner
    browser.open(f"{url}/")
    browser.wait("document.getElementById('pause').textContent.startsWith('Pause')")
    browser.click("pause")
    browser.wait("document.getElementById('state').textContent === 'paused: <i>foreman</i> decides'")
    assert learner.state.paused
    learner.resume()  # by someone else: an event brings it to the page
    browser.wait("document.getElementById('pause').textContent.startsWith('Pause')")
    made = learner.state.made
    play(learner, 2, seed=9)
    browser.wait(f"document.getElementById('decided').textContent.startsWith('Decision {made + 2},')")


def test_phone_width_and_dark_mode(browser, plant):
    _, url = plant
    browser.open(f"{url}/")
    browser.wait("document.getElementById('curve-end')")
    colours = (
        "getComputedStyle(document.body).backgroundColor + getComputedStyle(document.querySelector('.line')).stroke"
    )
    light = browser.run(colours)
    browser.scheme("dark")
    assert browser.run(colours) != light
    browser.size(390, 800)
    time.sleep(0.5)
    for tab in ("tab-engineer", "tab-plant"):
        browser.click(tab)
        assert browser.run("document.documentElement.scrollWidth") <= 390
    assert browser.run("document.querySelectorAll('#residuals circle').length") > 50


def test_a_page_with_tokens_asks_for_one(browser, tmp_path):
    names = {"plant": PLANT, "free": FREE}
    service = Service(make_config(tmp_path, learners=names, templates={}, tokens=token_tables()))
    service.open()
    with PageServer(service, 0, manage_learners=True) as server:
        browser.open(f"{server.url}/")
        browser.wait("!document.getElementById('entrance').hidden")
        assert browser.run("document.body.innerText.includes('decision')") is False
        browser.run(f"document.getElementById('token').value = {json.dumps(TOKENS['read'])}")
        browser.run("document.querySelector('#entrance button').click()")
        browser.wait("document.querySelectorAll('#overview a').length === 2")
        browser.run("location.hash = '#plant'")
        browser.wait("document.querySelectorAll('.tile').length === 4")
        browser.click("pause")
        browser.wait("document.getElementById('problem').textContent.includes('admin')")
        assert not service.learners["plant"].paused
        browser.open("about:blank")
    service.close()
    browser.problems[:] = [text for text in browser.problems if "401" not in text and "403" not in text]


def test_the_demonstration_reacts(browser, tmp_path):
    demo = Demo(tmp_path, 100_000, 200.0)
    with PageServer(demo.service, 0, manage_learners=True) as server:
        demo.start()
        browser.open(f"{server.url}/")
        browser.wait("document.getElementById('state').textContent.startsWith('working')", 120.0)
        while demo.day < 600:  # alarms compare with the errors of at least a hundred decisions
            time.sleep(0.1)
        browser.click("press-prices")
        browser.wait("document.getElementById('state').textContent.includes('costs have changed')", 60.0)
        browser.wait("document.querySelector('#events .drift')")
        browser.click("press-feedback")
        browser.wait("document.getElementById('state').textContent.includes('feedback is')", 60.0)
        browser.click("press-feedback")
        browser.click("press-solver")
        browser.wait(
            "document.getElementById('state').textContent.includes('the solver fails: the foreman decides')", 60.0
        )
        assert "rg.History.from_csv" in browser.text("extra")
        demo.days = demo.day
        browser.wait("document.querySelector('#extra details').open")
        assert "The demonstration ended" in browser.text("extra")
        browser.open("about:blank")
    demo.service.close()
