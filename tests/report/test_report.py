"""The report from invented results: every table and figure is there, escaped, light, and says what is missing."""

import csv
import json
import re

import numpy as np
import pytest

import invented
import latex_syntax
from regretless.errors import SettingsError
from regretless.report import overview, presets_section
from regretless.report.gather import gather
from regretless.report.kinds import KINDS
from regretless.report.kinds.heatmap import grid
from regretless.report.overview import tally
from regretless.report.page import render
from regretless.report.paper import configurations
from regretless.report.reproduction import WHERE
from regretless.report.tables import rows
from regretless.report.writing import write_figures
from regretless.show.series import POINTS, chosen_rounds
from regretless.studies import definitions
from regretless.studies.definitions import QUICK, Scale
from regretless.studies.store import Store
from regretless_dfhpg.presets import published

pytestmark = pytest.mark.xdist_group("report")


def specs(folder):
    text = (folder / "report.html").read_text()
    return json.loads(re.search(r'id="chart-data">(.*?)</script>', text).group(1))


def test_every_study_has_its_place(written):
    folder, page = written
    text = (folder / "report.html").read_text()
    for study in page.studies:
        assert f'<section id="{study.name}">' in text or f'id="{study.name}"' in text
    drawn = specs(folder)
    benchmarks = definitions.BENCHMARKS
    for name in ("convergence", "models", "surrogates", "alpha", "feedback"):
        assert {f"chart-{name}-{each}" for each in benchmarks} <= set(drawn)
    assert {f"chart-degree-{each}" for each in benchmarks if each != "energy"} <= set(drawn)
    assert {"chart-overview", "chart-theory-excess", "chart-theory-stationarity"} <= set(drawn)


def test_the_page_needs_nothing_from_elsewhere(written):
    text = (written[0] / "report.html").read_text()
    head = text.split('id="chart-data"')[0]
    assert not re.search(r'(src|href)="(?!#|data:,)', head), "only links within the page"
    assert "Plotly" in text


def test_curves_are_thin_and_have_whiskers_where_bands_would_crowd(written):
    drawn = specs(written[0])
    spec = drawn["chart-convergence-topk"]
    curve, whiskers = [trace for trace in spec["data"] if trace.get("legendgroup") == "dfhpg"]
    assert 100 < len(curve["x"]) <= POINTS
    assert 4 <= len(whiskers["x"]) <= 5
    assert len(whiskers["error_y"]["array"]) == len(whiskers["x"])
    assert not [trace for trace in spec["data"] if trace.get("fill")]
    apart = drawn["chart-semi_bandit-energy"]["data"]
    band, curve = [trace for trace in apart if trace.get("legendgroup") == "dfhpg"]
    assert band["fill"] == "toself"
    assert len(band["x"]) == 2 * len(curve["x"])
    assert spec["layout"]["xaxis"]["range"] == [1, 600]
    assert len(json.dumps(drawn)) < 3_000_000


def test_a_legend_names_only_what_is_drawn(written):
    drawn = specs(written[0])
    told = {trace["name"] for trace in drawn["chart-convergence-topk"]["data"] if trace.get("meta") == "reference"}
    assert told == {"random", "best_fixed"}
    assert "Outside the chart: clairvoyant 1." in (written[0] / "report.html").read_text()
    for name, spec in drawn.items():
        axis = spec["layout"]["yaxis"]
        if "range" in axis:
            low, high = np.power(10.0, axis["range"]) if axis.get("type") == "log" else axis["range"]
            levels = [value for trace in spec["data"] if trace.get("meta") == "reference" for value in trace["y"]]
            assert all(low <= value <= high for value in levels), name


@pytest.mark.parametrize("axis", ["xaxis", "yaxis"])
def test_every_logarithmic_axis_says_its_numbers(written, axis):
    found = {name: spec["layout"][axis] for name, spec in specs(written[0]).items()}
    log = {name: each for name, each in found.items() if each.get("type") == "log"}
    assert len(log) >= (2 if axis == "xaxis" else 20)
    for name, each in log.items():
        assert len(each["ticktext"]) >= 2, name
        told = [float(word.replace(",", "")) for word in each["ticktext"]]
        np.testing.assert_allclose(told, each["tickvals"], err_msg=name)


def test_a_curve_is_the_average_regret_per_round(full_store, written):
    page = written[1]
    study = next(study for study in page.studies if study.name == "convergence")
    cell = study.panels[0].cells[0]
    trace = full_store.load(cell.key).traces["dfhpg"]
    curve = cell.arms["dfhpg"].curve
    at = curve.rounds - 1
    average = np.cumsum(trace.regret, axis=1)[:, at] / curve.rounds
    np.testing.assert_allclose(curve.mean, average.mean(axis=0))
    np.testing.assert_allclose(curve.error, average.std(axis=0, ddof=1) / 2.0)
    assert cell.arms["greedy"].difference == full_store.load(cell.key).traces["greedy"].compare(trace)


@pytest.mark.parametrize("horizon", [1, 2, 7, 200, 2000, 15_000])
def test_chosen_rounds(horizon):
    rounds = chosen_rounds(horizon)
    assert rounds[0] == 1
    assert rounds[-1] == horizon
    assert len(rounds) <= POINTS
    assert np.all(np.diff(rounds) > 0)


def test_tables_tell_z_and_verdict(written):
    folder, page = written
    main = page.studies[0]
    row = next(row for row in rows(main.panels[0]) if row.arm.label == "dfhpg")
    known = published("topk", "bandit", "dfhpg")
    assert row.verdict.z == pytest.approx(known.z(row.arm.mean, row.arm.error))
    assert sum(row.best for row in rows(main.panels[0])) == 1
    text = (folder / "reproduction.md").read_text()
    assert f"{row.verdict.z:+.2f}" in text
    assert all(f"\n## {study.title}\n" in text for study in page.studies if study.name != "convergence")
    assert "\n### Top-k, by degree\n" in text
    assert "\n## Deviations\n" in text
    assert "[The list](deviations.md)" in text
    reproduced, compared = tally(page)
    assert f"{reproduced} of {compared} published cells" in text
    assert compared == 11 * len(definitions.BENCHMARKS), "six bandit and five semi-bandit cells a benchmark"


def test_tables_for_print(written):
    folder, page = written
    with (folder / "tables" / "cells.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert {line["study"] for line in lines} == {study.name for study in page.studies} - {"theory"}
    assert any(line["policy"] == "best_fixed" for line in lines)
    source = (folder / "tables" / "main.tex").read_text()
    assert latex_syntax.faults(folder / "tables" / "main.tex") == []
    assert source.count("published") == len(definitions.BENCHMARKS)


def test_figures_for_print(written, tmp_path):
    """One panel of each kind, as PDF and PNG."""
    kinds = {study.panels[0].kind: study._replace(panels=study.panels[:1]) for study in written[1].studies}
    assert set(kinds) == set(KINDS) - {"arena"}, "the arena has a test of its own"
    files = write_figures(written[1]._replace(studies=list(kinds.values())), tmp_path)
    assert len(files) == 2 * (len(kinds) - 1), "tables have none"
    assert {path.suffix for path in files} == {".pdf", ".png"}
    assert all(path.read_bytes().startswith(b"%PDF" if path.suffix == ".pdf" else b"\x89PNG") for path in files)
    assert (tmp_path / "surrogates_topk.pdf").stat().st_size > 5_000


def test_the_main_table_alone_shows_its_curves(tmp_path, written):
    store = Store(tmp_path / "store")
    invented.fill(store, ["main"], Scale(seeds=2, horizon=40))
    (tmp_path / "report.html").write_text(render(gather(store)))
    assert {f"chart-main-{each}" for each in definitions.BENCHMARKS} == set(specs(tmp_path))
    assert "chart-main-topk" not in specs(written[0]), "convergence draws the same runs"


def test_the_lowest_mean_is_bold_with_ten_replications_only(tmp_path, written):
    few = (written[0] / "report.html").read_text()
    assert 'class="best"' not in few
    assert "Nothing is bold: the lowest mean is marked from 10 replications on." in few
    store = Store(tmp_path / "store")
    invented.own_study(
        store, [("table", "t", {"": {"a": invented.own_trace(5, [3.0] * 10), "b": invented.own_trace(5, [4.0] * 10)}})]
    )
    many = render(gather(store))
    assert many.count('class="best"') == 1
    assert "Bold: the lowest mean, of 10 replications or more." in many


def test_borrowed_arms_are_shown_as_if_they_were_played(written):
    studies = {study.name: study for study in written[1].studies}
    for main, alpha, heat in zip(*(studies[name].panels for name in ("main", "alpha", "surrogates")), strict=True):
        played = main.cells[0].arms
        bars = alpha.arms()
        assert list(bars) == ["schedule", "α = 0", "α = 0.25", "α = 0.5", "α = 0.75", "α = 1"]
        assert bars["schedule"].final.tolist() == played["dfhpg"].final.tolist()
        assert {arm.anchor for arm in bars.values()} == {"schedule"}
        found = grid(heat)
        assert [len(arms) for arms in found.columns.values()] == [18, 18]
        assert list(found.columns) == ["dfhpg", "dfhpg_0"]
        (surrogate,) = {row for row, arm in found.columns["dfhpg"].items() if arm.mean == played["dfhpg"].mean}
        assert found.columns["dfhpg_0"][surrogate].mean == played["dfhpg_0"].mean
        assert [cell.key for cell in (*alpha.lenders, *heat.lenders)] == [main.cells[0].key] * 2


def test_what_is_not_computed_is_named(tmp_path):
    store = Store(tmp_path / "store")
    plan = invented.fill(store, ["main", "alpha"], QUICK)
    for key in list(plan.cells)[:2]:
        store.path(key).unlink()
    page = gather(store)
    main, alpha = page.studies
    assert len(main.absent) == 2
    assert alpha.absent == main.absent, "they play the schedule"
    assert [("schedule" in panel.arms(), len(panel.arms())) for panel in alpha.panels] == [(False, 5)] * 2 + [
        (True, 6)
    ] * 2
    assert "schedule in alpha on topk is not computed yet" in {outcome.why for outcome in page.claims}
    text = render(page)
    assert "not computed yet" in text
    assert "regretless reproduce" in text
    assert "This is a short run" in text
    assert re.search(r"Not computed yet: .*Main table \(\d cells?\)", text)
    assert overview.z_scores(page) is None


def test_full_runs_replace_quick_ones(tmp_path):
    store = Store(tmp_path / "store")
    invented.fill(store, ["main"], Scale(seeds=2))
    invented.fill(store, ["main", "alpha"], QUICK)
    (store.plans / "damaged.json").write_text("{")
    page = gather(store)
    assert {study.name: study.scale.seeds for study in page.studies} == {"main": 2, "alpha": 3}


def test_a_store_without_campaigns_is_refused(tmp_path):
    store = Store(tmp_path)
    store.create()
    with pytest.raises(SettingsError, match="run 'regretless reproduce' first"):
        gather(store)


def test_everything_from_data_is_escaped(tmp_path):
    store = Store(tmp_path / "store")
    plan = invented.fill(store, ["main"], QUICK)
    path = store.plans / f"{plan.id}.json"
    path.write_text(path.read_text().replace("Main table", "<script>alert(1)</script>"))
    text = render(gather(store))
    assert "<script>alert" not in text
    assert "&lt;script&gt;alert" in text


def test_a_diverged_policy_is_told(tmp_path):
    store = Store(tmp_path / "store")
    plan = invented.fill(store, ["main"], Scale(seeds=3))
    key, cell = next(iter(plan.cells.items()))
    result = invented.invent(cell)
    result.traces["greedy"].regret[0, 5:] = np.nan
    result.traces["greedy"].diverged_at[0] = 6
    result.traces["thompson"].regret[:, 5:] = np.nan
    result.traces["thompson"].diverged_at[:] = 6
    store.put(key, result)
    page = gather(store)
    text = render(page)
    assert "1 diverged" in text
    assert "3 diverged" in text
    source = KINDS["table"].latex(page.studies[0].panels)
    assert "Thompson & --$^{*}$" in source
    assert source.count("$^{*}$") == 2
    best = [row.arm.label for row in rows(page.studies[0].panels[0]) if row.best]
    assert len(best) == 1
    assert best != ["thompson"]


def test_a_single_replication_has_curves_without_bands_and_no_verdict(tmp_path):
    store = Store(tmp_path / "store")
    invented.fill(store, list(definitions.REGISTRY), Scale(seeds=1, horizon=60))
    page = gather(store)
    (tmp_path / "report.html").write_text(render(page))
    spec = specs(tmp_path)["chart-convergence-topk"]
    assert not [trace for trace in spec["data"] if trace.get("fill")]
    assert tally(page) == (0, 0)


def test_a_short_theory_is_not_judged(written, tmp_path):
    store = Store(tmp_path / "store")
    invented.fill(store, ["theory"], QUICK)
    text = render(gather(store))
    assert "verdicts are left to" in text
    assert "does not hold" not in text
    assert "does not hold" in (written[0] / "report.html").read_text(), "a full run says what it found"


def test_the_tables_of_configurations_are_the_papers(written):
    folder, _ = written
    assert [line[:3] for line in presets_section.rows("Generative models")[:2]] == [
        ["Top-k", "8", "flow"],
        ["Top-k", "8", "diffusion"],
    ]
    assert len(presets_section.rows("Point models")) == len(presets_section.rows("Generative models")) == 8
    assert len(presets_section.rows("Point models", every_degree=True)) == 32
    energy = dict(zip(presets_section.head("Point models"), presets_section.rows("Point models")[6], strict=True))
    assert (energy["surrogate"], energy["alpha.time_scale"], energy["nuisance.lr"]) == ("map_c", "100", "0.025")
    source = (folder / "tables" / "configurations_generative.tex").read_text()
    assert source.count(r"\\") == 9
    assert latex_syntax.faults(folder / "tables" / "configurations_generative.tex") == []
    assert 'id="configurations"' in (folder / "report.html").read_text()


def test_a_preset_of_a_new_benchmark_and_model_is_shown_last(written, monkeypatch):
    known = presets_section.read("presets.csv")
    new = {**known[0], "benchmark": "weather_<1>", "degree": "3", "model": "kernel", "forgetting": "0.5"}
    monkeypatch.setattr(presets_section, "read", lambda name: (new, *known))
    last = dict(zip(presets_section.head("Point models"), presets_section.rows("Point models")[-1], strict=True))
    assert (last["benchmark"], last["degree"], last["model"], last["forgetting"]) == (
        "weather_<1>",
        "3",
        "kernel",
        "0.5",
    )
    assert "weather_&lt;1&gt;" in render(written[1])
    assert r"weather\_\textless{}1\textgreater{}" in configurations.latex("Point models")


def test_a_command_on_the_page_tells_what_was_computed_and_not_where():
    told = "regretless reproduce main --seeds 4 --store '/home/me/my results' --jobs 2 --device=gpu"
    assert WHERE.sub("", told) == "regretless reproduce main --seeds 4"
