"""The report from invented results: every kind of panel, escaped, self-contained, and honest about what is missing."""

import csv
import io
import json
import re

import numpy as np
import pytest

from regretless.errors import SettingsError
from regretless.experiments.experiment import Arm, Experiment
from regretless.experiments.report import (
    PANELS,
    PublishedComparison,
    Table,
    Value,
    make_sections,
    read_page,
    render_page,
    to_markdown,
    write_report,
)
from regretless.experiments.report.content import row
from regretless.experiments.report.page import summarise
from regretless.experiments.store import ResultStore
from regretless.experiments.study import Cell, Panel, Scale, Study
from stored_results import fill_store

HOSTILE = "</title><script>alert(1)</script>"


def experiment(policies=("greedy", "linear_thompson", "dfhpg"), **options):
    return Experiment("topk", policies, **{"seeds": 12, "horizon": 60, **options})


def studies():
    """A study with a panel of each kind."""
    degrees = tuple(
        Cell(str(value), experiment(settings={"benchmark.degree": value}, horizon=40)) for value in (2, 4, 6)
    )
    heat = [
        Arm(f"{name}/{policy}", policy, {"surrogate": name})
        for name in ("dbb", "imle")
        for policy in ("dfhpg", "dfhpg_0")
    ]
    worlds = tuple(Cell(name, experiment(settings={"benchmark.k": k})) for name, k in (("easy", 2), ("hard", 3)))
    panels = (
        Panel("topk", (Cell("", experiment()),), kind="table"),
        Panel("curves", (Cell("", experiment()),), zoom=30, kind="curves"),
        Panel("degrees", degrees, kind="lines"),
        Panel("bars", (Cell("", experiment()),), kind="bars"),
        Panel("surrogates", (Cell("", experiment(heat)),), kind="heatmap"),
        Panel("worlds", worlds, kind="arena"),
    )
    return [Study("own", panels, title=HOSTILE, about="Everything at once.", axis="degree")]


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = ResultStore(tmp_path_factory.mktemp("store"))
    fill_store(store, studies(), command="regretless reproduce own.toml --store /secret --jobs 2")
    return store


@pytest.fixture(scope="module")
def written(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(store, folder)


def charts(folder):
    text = (folder / "report.html").read_text()
    return json.loads(re.search(r'id="chart-data">(.*?)</script>', text).group(1))


def test_every_kind_of_panel_is_shown(written):
    folder, _ = written
    assert {panel.kind for study in studies() for panel in study.panels} == set(PANELS) - {"models"}
    names = set(charts(folder))
    assert {f"chart-own_{name}" for name in ("curves", "degrees", "bars")} == names
    text = (folder / "report.html").read_text()
    assert all(f'<table id="chart-own_{name}">' in text for name in ("surrogates", "worlds")), "heat maps are tables"
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert {"own_bars.pdf", "own_bars.png", "own_surrogates.png"} <= figures
    tables = {path.name for path in (folder / "tables").iterdir()}
    assert {"own_topk.csv", "own_topk_paired.csv", "own_worlds_worlds.csv", "cells.csv"} <= tables


def test_the_page_is_self_contained_and_escaped(written):
    text = (written[0] / "report.html").read_text()
    head = text.split('id="chart-data"')[0]
    assert not re.search(r'(src|href)="(?!#|data:,)', head), "only links within the page"
    assert "Plotly" in text
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in head
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_tables_hold_all_digits_as_csv(written, store):
    folder, page = written
    lines = {
        line["policy"]: line for line in csv.DictReader(io.StringIO((folder / "tables" / "own_topk.csv").read_text()))
    }
    (view,) = page.views(page.studies[0].panels[0])
    assert float(lines["dfhpg"]["mean"]) == view.results["dfhpg"].mean()
    assert float(lines["dfhpg"]["s.e."]) == view.results["dfhpg"].standard_error()
    assert set(lines) == {"greedy", "linear_thompson", "dfhpg", "random", "best_fixed", "clairvoyant"}
    assert len({len(line) for line in lines.values()}) == 1


def test_markdown_has_the_same_numbers_and_no_places(written):
    text = (written[0] / "report.md").read_text()
    assert "Command: `regretless reproduce own.toml`." in text
    assert "/secret" not in text.split("## Environment")[0]
    assert "### Top-k" in text
    assert "**dfhpg**" in text, "the lowest of twelve replications is bold"
    assert "<script>" not in text


def test_the_lowest_mean_is_marked_with_ten_replications_only(tmp_path):
    store = ResultStore(tmp_path / "store")
    fill_store(store, [Study("few", (Panel("t", (Cell("", experiment(seeds=4)),)),))])
    text = render_page(page := read_page(store), make_sections(page))
    assert 'class="best"' not in text
    assert "Nothing is bold: the lowest mean is marked from 10 replications on." in text


def test_runs_of_other_configurations_are_not_compared_with_published_values(written):
    _, page = written
    assert page.tally() == (0, 0)
    assert "published" not in (written[0] / "tables" / "own_topk.csv").read_text()


def test_missing_results_are_named_with_the_command_that_resumes(tmp_path):
    store = ResultStore(tmp_path / "store")
    fill_store(store, [Study("some", (Panel("t", (Cell("", experiment()),)),), title="Some")], skip=("greedy",))
    page = read_page(store)
    assert len(page.missing(page.studies[0])) == 1
    assert "Not computed yet: Some (1 result). " in "".join(part.text for part in summarise(page)[-1])
    text = render_page(page, make_sections(page))
    assert "1 result not computed yet; resume with:" in text
    assert "<code>regretless reproduce test</code>" in text


def test_full_runs_replace_short_ones(tmp_path):
    store = ResultStore(tmp_path / "store")
    for seeds, horizon in ((5, None), (3, 20)):
        scale = Scale(seeds, 0, horizon)
        study = Study("one", (Panel("t", (Cell("", scale.apply(experiment(("greedy",), horizon=50))),)),))
        fill_store(store, [study], scale)
    (store.campaigns / "damaged.json").write_text("{")
    assert read_page(store).campaigns["one"].scale.seeds == 5


def test_a_store_without_campaigns_is_refused(tmp_path):
    store = ResultStore(tmp_path)
    store.create()
    with pytest.raises(SettingsError, match="run 'regretless reproduce' first"):
        read_page(store)


def test_an_unknown_kind_of_panel_is_refused(tmp_path):
    store = ResultStore(tmp_path / "store")
    fill_store(store, [Study("odd", (Panel("t", (Cell("", experiment(("greedy",))),), kind="tabel"),))])
    page = read_page(store)
    with pytest.raises(SettingsError, match="unknown kind of panel 'tabel'; did you mean 'table'"):
        make_sections(page)


@pytest.mark.parametrize(
    ("z", "second", "verdict", "reproduced"),
    [
        (1.0, None, "reproduced", True),
        (-4.0, None, "second range of seeds missing", False),
        (4.0, 2.0, "reproduced on the second range", True),
        (4.0, 3.5, "not reproduced", False),
    ],
)
def test_verdicts_on_published_values(z, second, verdict, reproduced):
    comparison = PublishedComparison(None, z, None if second is None else (1.0, 1.0), second)
    assert (comparison.verdict, comparison.reproduced) == (verdict, reproduced)


def test_labels_of_cells_are_safe_in_names_of_files(tmp_path):
    cells = tuple(Cell(label, experiment(settings={"benchmark.k": k})) for label, k in (("50/50", 2), ("../out", 3)))
    store = ResultStore(tmp_path / "store")
    fill_store(store, [Study("mine", (Panel("topk", cells),))], command="regretless reproduce mine.toml")
    write_report(store, tmp_path / "report")
    tables = {path.name for path in (tmp_path / "report" / "tables").iterdir()}
    assert {"mine_topk_50_50_paired.csv", "mine_topk_out_paired.csv"} <= tables


def test_a_table_in_markdown_and_csv_escapes_text():
    table = Table(
        "t", ("a|b", "low to high"), (row("x|y", Value("1 to 2", (1.0, 2.0))), row("z", Value("–", (None, None))))
    )
    assert table.to_markdown()[2] == r"| x\|y | 1 to 2 |"
    assert table.to_csv().splitlines() == ["a|b,low,high", "x|y,1.0,2.0", "z,,"]


def test_charts_are_thin_and_logarithmic_axes_have_ticks(written):
    drawn = charts(written[0])
    curves = drawn["chart-own_curves"]
    assert curves["layout"]["xaxis"]["range"] == [1, 30]
    assert all(len(trace["x"]) <= 480 for trace in curves["data"])
    for chart in drawn.values():
        axis = chart["layout"]["yaxis"]
        if axis.get("type") == "log":
            low, high = axis["range"]
            assert len(axis["tickvals"]) >= 2
            assert all(low <= np.log10(tick) <= high for tick in axis["tickvals"])


def test_sections_render_as_markdown_without_charts(written):
    page = read_page(written[1].store)
    lines = to_markdown(make_sections(page)[0])
    assert not any("chart" in line for line in lines)
    assert sum(line.startswith("### ") for line in lines) == 6
