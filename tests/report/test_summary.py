"""The report in sentences: what was run, what agrees, what does not; and for an own study, who has the lowest regret."""

import html
import re

import pytest

import invented
from regretless.report.gather import gather
from regretless.report.overview import tally
from regretless.report.summary import summary
from regretless.studies.store import Store

pytestmark = pytest.mark.xdist_group("report")


def sentences(page):
    return [html.unescape(re.sub("<.*?>", "", each)) for each in summary(page).split("</li>")[:-1]]


def test_it_says_what_was_run_what_agrees_and_what_does_not(written):
    folder, page = written
    ran, cells, claims, theorems, *rest = sentences(page)
    assert re.match(r"9 studies of the paper, \d+ cells, 4 replications \(seeds 0 to 3\) of 395 to 2,000 rounds;", ran)
    assert f"with code {page.code[0]}." in ran
    assert cells.startswith(f"{tally(page)[0]} of {tally(page)[1]} published cells are reproduced")
    assert claims.startswith(f"Of {len(page.claims)} claims in the paper's text ")
    assert theorems == "Of 3 measured statements of the theorems 2 hold."
    assert any(line.startswith("Claims that the runs contradict: ") for line in rest)
    assert "Does not hold: slope, α = 0, adaptive step." in rest
    places = set(re.findall(r'href="#(.*?)"', summary(page)))
    text = (folder / "report.html").read_text()
    assert {"claims", "overview", "theory"} < places
    assert {place for place in places if f'id="{place}"' not in text} == set(), "every link leads somewhere"


@pytest.mark.parametrize(("wild", "few"), [([4.0, 4.2], ", from 2 replications only"), ([4.0, 4.2] * 5, "")])
def test_an_own_study_names_the_lowest(tmp_path, wild, few):
    store = Store(tmp_path / "store")
    arms = {"calm": invented.own_trace(5, [value - 1.0 for value in wild]), "wild": invented.own_trace(5, wild)}
    invented.own_study(store, [("table", "t", {"": arms}), ("curves", "t", {"": arms})])
    first, second = sentences(gather(store))
    ran = "1 study, 1 cell, 3 replications (seeds 0 to 2) of 5 rounds; computed in 1 s on cpu none with code 0."
    assert first == ran
    assert re.fullmatch(
        rf"calm has the lowest mean final regret, 3.1 ± [\d.]+, before wild with 4.1 ± [\d.]+{few}\.", second
    )


def test_an_arena_names_its_champion(tmp_path):
    store = Store(tmp_path / "store")
    arms = {"good": invented.own_trace(5, [3.0, 3.2]), "bad": invented.own_trace(5, [9.0, 9.2])}
    random = [{"name": "random", "mean": 31.0, "standard_error": 1.0, "world": ""}]
    invented.own_study(store, [("arena", "t", {"sea": arms, "land": arms})], references=random)
    champion = sentences(gather(store))[1]
    assert champion.startswith("good has the lowest regret: 0.1 of random's regret over 2 worlds, 95 % interval")
    assert champion.endswith("; then bad 0.294.")
