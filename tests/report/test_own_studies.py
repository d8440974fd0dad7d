"""Reports of somebody's own studies and runs: any names, any labels, any numbers, and never the paper's words."""

import csv
import itertools
import json
import re

import numpy as np
import pytest

import invented
from invented import own_trace
from regretless.errors import SettingsError
from regretless.report.gather import gather
from regretless.report.overview import tally
from regretless.report.page import render
from regretless.report.writing import write_report
from regretless.studies.definitions import QUICK, Scale
from regretless.studies.store import Store

pytestmark = pytest.mark.xdist_group("report")

HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(1)>", "a|b", "back\\slash", "50 % & #1 {x} ~ ^",
    "$\\frac{1}$", "_private", "%{y}", "Zeile\neins\tzwei", "日本語 🦊", "", "x" * 500, "../../up", "*bold* `code` [x](y)",
    '"quoted\'',
)  # fmt: skip


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


def specs(text):
    return json.loads(re.search(r'id="chart-data">(.*?)</script>', text).group(1))


def arms(*names, rounds=40):
    return {name: own_trace(rounds, [10.0 + i, 12.0 + i, 11.0 + i]) for i, name in enumerate(names)}


def test_an_own_study_carries_its_own_name(store, tmp_path):
    played = arms("lazy", "half_spo", "dfhpg")
    panels = [("table", "weather", {"": played}), ("curves", "weather", {"": played})]
    invented.own_study(store, panels, title="Rain & sun")
    page = write_report(store, tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    assert "<title>Rain &amp; sun</title>" in text
    assert "<h1>Rain &amp; sun</h1>" in text
    body = text.split('id="chart-data"')[0]
    for word in ("published", "Deviations", "Configurations", "paper", "This is a short run", "Partial Feedback"):
        assert word not in re.sub(r"<style>.*?</style>", "", body, flags=re.DOTALL), word
    assert "Paired differences from dfhpg" in body
    source = (tmp_path / "report" / "reproduction.md").read_text()
    assert source.startswith("# Rain &amp; sun\n")
    assert "Deviations" not in source
    assert "| lazy | 11 ± 0.58 | 11 |" in source
    assert sorted(path.name for path in (tmp_path / "report" / "tables").iterdir()) == ["cells.csv", "mine.tex"]
    assert set(specs(text)) == {"chart-mine-weather_2"}
    assert (tmp_path / "report" / "figures" / "mine_weather_2.png").exists()
    assert not page.paper


def test_an_own_study_beside_the_papers(store):
    invented.own_study(store, [("table", "topk", {"": arms("greedy", "dfhpg")})], title="Mine")
    invented.fill(store, ["main"], QUICK)
    page = gather(store)
    assert [study.name for study in page.studies] == ["main", "mine"], "the paper's come first"
    text = render(page)
    assert "<h1>Every table and figure, run again</h1>" in text
    assert "<h2>Mine</h2>" in text
    assert 'id="deviations"' in text
    assert not page.studies[1].panels[0].cells[0].verdicts


def test_published_values_are_for_the_papers_studies_only(store):
    plan = invented.fill(store, ["main"], Scale(seeds=4))
    assert tally(gather(store))[1] > 20
    path = store.plans / f"{plan.id}.json"
    document = json.loads(path.read_text())
    document["studies"][0]["paper"] = False
    path.write_text(json.dumps(document))
    page = gather(store)
    assert tally(page) == (0, 0)
    assert "published" not in re.sub(r"<(style|script).*?</\1>", "", render(page), flags=re.DOTALL)


@pytest.mark.parametrize("kind", ["curves", "lines"])
def test_an_axis_with_both_signs_is_linear(store, kind):
    played = {"gain": own_trace(20, [-5.0, -6.0]), "loss": own_trace(20, [5.0, 6.0])}
    invented.own_study(store, [(kind, "t", {"1": played})])
    axis = specs(render(gather(store)))["chart-mine-t"]["layout"]["yaxis"]
    assert "type" not in axis
    assert axis["range"][0] < 0 < axis["range"][1]


def test_a_folder_of_a_run_is_a_store(tmp_path):
    """What ``run --out`` leaves: one study, a panel that is a table and one that is a chart of the same cell."""
    store = Store(tmp_path / "out")
    played = arms("greedy", "outsider")
    panels = [("table", "plant", {"": played}), ("curves", "plant", {"": played})]
    invented.own_study(store, panels, name="run", title="plant, bandit feedback")
    page = gather(store)
    assert [panel.kind for panel in page.studies[0].panels] == ["table", "curves"]
    assert len(page.shown()) == 1
    spec = specs(render(page))["chart-run-plant_2"]
    assert [trace["name"] for trace in spec["data"] if "name" in trace] == ["greedy", "outsider"]


def test_hostile_names_are_shown_as_they_are(store, tmp_path):
    played = {**arms(*HOSTILE), "all": own_trace(40, [1.0, 2.0, 3.0], diverged=True)}
    cells = {label: dict(list(played.items())[:3]) for label in HOSTILE}
    references = [
        {"name": label, "mean": 11.0, "standard_error": 1.0, "world": label} for label in (*HOSTILE, "random")
    ]
    panels = [
        (kind, HOSTILE[i], {"": played}) for i, kind in enumerate(("table", "curves", "bars", "heatmap", "models"))
    ]
    panels += [("lines", HOSTILE[6], cells), ("table", HOSTILE[7], cells), ("arena", HOSTILE[8], cells)]
    invented.own_study(
        store, panels, name="../../up", title=HOSTILE[1] + "half \ud800", references=references, axis=HOSTILE[5]
    )
    write_report(store, tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" in text
    for name, spec in specs(text).items():
        assert re.fullmatch(r"chart-up(-\w+)?", name), "ids are plain"
        for trace in spec["data"]:
            assert "<" not in trace.get("name", ""), "plotly reads tags"
            assert "<" not in trace.get("hovertemplate", "").replace("<extra>", "").replace("</extra>", "")
    lines = (tmp_path / "report" / "reproduction.md").read_text().splitlines()
    for head, rule in itertools.pairwise(lines):
        if rule.startswith("| ---"):
            columns = rule.count("|")
            for line in lines[lines.index(head) :]:
                if not line:
                    break
                assert len(re.findall(r"(?<!\\)\|", line)) == columns, line
    source = (tmp_path / "report" / "tables" / "up.tex").read_text()
    assert r"50 \% \& \#1 \{x\} \textasciitilde{} \textasciicircum{}" in source
    assert r"back\textbackslash{}slash" in source
    assert not list(tmp_path.parent.glob("up*")), "nothing is written outside"
    with (tmp_path / "report" / "tables" / "cells.csv").open(newline="") as file:
        assert {"a|b", "Zeile\neins\tzwei"} <= {row["policy"] for row in csv.DictReader(file)}


def test_worlds_have_their_own_reference_lines_and_no_paired_differences(store):
    lines = [("random", "small", 30.0), ("random", "large", 90.0), ("best_fixed", "small", 9.0)]
    references = [{"name": name, "mean": mean, "standard_error": 1.0, "world": world} for name, world, mean in lines]
    invented.own_study(store, [("table", "t", {"": arms("greedy", "dfhpg")})], references=references)
    panel = gather(store).studies[0].panels[0]
    assert [line.name for line in panel.references()] == ["random", "best_fixed", "random (large)"]
    assert panel.cells[0].arms["greedy"].difference is None


def test_unknown_names_have_colours_of_their_own(store):
    names = [f"policy_{i}" for i in range(12)]
    played = arms("dfhpg", "greedy", *names)
    panels = [("curves", "one", {"": played}), ("bars", "two", {"": dict(reversed(played.items()))})]
    invented.own_study(store, panels)
    drawn = specs(render(gather(store)))
    first = {t["name"]: t["line"]["color"] for t in drawn["chart-mine-one"]["data"] if "name" in t}
    second = {t["name"]: t["marker"]["color"] for t in drawn["chart-mine-two"]["data"] if t["type"] == "bar"}
    assert first == second, "a label looks the same everywhere"
    assert len(set(first.values())) == len(first) == 14


@pytest.mark.parametrize(
    ("labels", "x", "axis"),
    [
        (("10", "2", "0.5"), [0.5, 2.0, 10.0], None),
        (("calm", "2", "windy"), ["calm", "2", "windy"], "category"),
        (("2", "2.0", "3"), ["2", "2.0", "3"], "category"),
    ],
)
def test_lines_take_their_axis_from_the_labels(store, labels, x, axis):
    panels = [("lines", "t", {label: arms("greedy", "mine") for label in labels})]
    invented.own_study(store, panels, axis="wind speed")
    spec = specs(render(gather(store)))["chart-mine-t"]
    assert spec["data"][0]["x"] == x
    assert spec["layout"]["xaxis"].get("type") == axis
    assert spec["layout"]["xaxis"]["title"]["text"] == "wind speed"


def test_several_cells_in_one_chart_are_told_apart(store):
    cells = {"small": arms("greedy", "mine"), "large": arms("greedy", "mine")}
    alone = {"flow": arms("dfhpg", "linear_thompson"), "diffusion": arms("dfhpg")}
    invented.own_study(store, [("curves", "both", cells), ("models", "one", alone)])
    both, one = gather(store).studies[0].panels
    assert list(both.arms()) == ["small, greedy", "small, mine", "large, greedy", "large, mine"]
    assert list(one.arms()) == ["flow", "linear_thompson", "diffusion"]


@pytest.mark.parametrize("kind", ["table", "curves", "models", "bars", "lines", "heatmap"])
@pytest.mark.parametrize(
    ("rounds", "means", "diverged"),
    [(20, [1.0, 2.0], True), (1, [3.0], False), (20, [-5.0, -6.0], False), (20, [0.0, 0.0], False), (1, [0.0], False)],
)
def test_odd_numbers(store, tmp_path, kind, rounds, means, diverged):
    """All diverged, a single replication, a single round, negative and zero regrets: shown without an error or a warning."""
    played = {"a": own_trace(rounds, means, diverged), "b": own_trace(rounds, np.asarray(means) * 2, diverged)}
    invented.own_study(store, [(kind, "t", {"1": played, "2": played})])
    write_report(store, tmp_path / "report")
    text = (tmp_path / "report" / "report.html").read_text()
    drawn = specs(text)
    if diverged:
        assert not drawn
        assert ("2 diverged" if kind == "table" else "there is nothing to draw") in text
    elif kind != "table":
        values = [value for trace in drawn["chart-mine-t"]["data"] for value in np.ravel(trace.get("z") or trace["y"])]
        assert all(value is not None for value in values)
        log = drawn["chart-mine-t"]["layout"]["yaxis"].get("type") == "log"
        assert log == (min(means) > 0 and kind not in ("bars", "heatmap"))


def test_what_cannot_be_read_is_left_out(store):
    invented.own_study(store, [("table", "t", {"": arms("greedy")})])
    (store.plans / "other.json").write_text(json.dumps({"written": 1.0, "studies": [{"name": "x"}]}))
    (store.folder / "tuning").mkdir()
    for name, text in (("a", "{}"), ("b", "[1]"), ("c", "{"), ("d", '{"trials": []}')):
        (store.folder / "tuning" / f"{name}.json").write_text(text)
    page = gather(store)
    assert [study.name for study in page.studies] == ["mine"]
    assert page.tunings == []


def test_an_unknown_kind_is_refused_with_the_known_ones(store):
    invented.own_study(store, [("tabel", "t", {"": arms("greedy")})])
    with pytest.raises(SettingsError, match="unknown kind of panel 'tabel'; did you mean 'table'"):
        render(gather(store))
