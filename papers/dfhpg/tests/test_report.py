"""The paper's part of the report from invented results: published values, claims, theorems, and the LaTeX document."""

import json

import numpy as np
import pytest

import latex_syntax
from regretless.experiments import Scale
from regretless.experiments.report import make_sections, read_page, render_page, write_report
from regretless.experiments.store import ResultStore
from regretless.plots import HeatMap
from regretless.results import Result
from regretless_dfhpg import document, latex, report
from regretless_dfhpg.latex import TableBlock, is_separated, latex_text, number_column, result_table
from regretless_dfhpg.presets import read_table
from regretless_dfhpg.studies import STUDIES
from regretless_dfhpg.theory.check import TheoryResult
from regretless_dfhpg.theory.statements import Curve, Interval, Statement
from regretless_dfhpg.theory.world import constants
from stored_results import fill_store

STORED = ("main", "semi_bandit", "convergence", "alpha", "theory")


def theory_document(short=False):
    """A document with a statement that holds and one that does not."""
    near, far = Interval(-0.6, -0.7, -0.55), Interval(-0.2, -0.3, -0.1)
    statements = [
        Statement(
            "score_unbiased", "α = 1", "score / exact", Interval(1.0, 0.99, 1.01), "=", 1.0, 0.4, statement="Lemma 1"
        ),
        Statement("stationarity", "α = 1", "slope", near, "≤", -0.5, None, 0.01, "Theorem 2.2"),
        Statement("stationarity", "α = 0", "slope", far, "≤", -0.5, None, 0.01, "Theorem 2.2"),
    ]
    levels = [Interval(level, 0.9 * level, 1.1 * level) for level in (1.0, 0.7)]
    curves = [Curve("stationarity", rule, 0.5, [512, 1024], levels, [9.0, 9.0]) for rule in ("adaptive", "constant")]
    record = {"seed": 0, "horizons": [512, 1024], "replications": 8, "samples": 64, "short": short, "seconds": 1.0}
    return TheoryResult(statements, curves, constants(), 0.3, 0, record).to_dict()


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = ResultStore(tmp_path_factory.mktemp("store"))
    plan = fill_store(store, [STUDIES[name](Scale(seeds=4)) for name in STORED], Scale(seeds=4))
    (task,) = [task for task in plan.tasks.values() if task.name.startswith("convergence theorems")]
    empty = Result("theory", np.zeros((0, 0)), np.zeros(0, np.int32), (), task.configuration)
    extra = {"document": theory_document(), "code": {"regretless": "test"}}
    store.put(task.address, Result(**{**vars(empty), "extra": extra}), task.name, {"regretless": "test"})
    return store


@pytest.fixture(scope="module")
def written(store, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(store, folder)


def test_every_published_value_is_compared(written):
    folder, page = written
    reproduced, compared = page.tally()
    assert compared == len(read_table("published.csv")) == 44
    assert f"{reproduced} of 44 published values" in (folder / "report.md").read_text()
    assert "published ± s.e." not in (folder / "tables" / "alpha_topk.csv").read_text()
    head = (folder / "tables" / "main_topk.csv").read_text().splitlines()[0]
    assert head == "policy,mean,s.e.,median,published,s.e.,z,verdict"


def test_the_page_has_the_papers_sections(written):
    text = (written[0] / "report.html").read_text()
    for name in (*STORED, "z-scores", "claims", "configurations", "deviations"):
        assert f'<section id="{name}">' in text
    assert "129 claims" in text
    assert "does not hold" in text
    z = report.z_section(written[1]).cards[0].blocks[0].plot
    assert isinstance(z, HeatMap)
    assert z.grid.shape == (11, 4)


def test_a_store_without_the_paper_has_none_of_them(tmp_path):
    from regretless.experiments import Cell, Panel, Study
    from regretless.experiments.experiment import Experiment

    cell = Cell("", Experiment("topk", ("greedy", "dfhpg"), seeds=2, horizon=20))
    store = ResultStore(tmp_path / "store")
    fill_store(store, [Study("own", (Panel("t", (cell,)),))])
    page = read_page(store)
    text = render_page(page, make_sections(page))
    assert 'id="claims"' not in text
    assert 'id="deviations"' not in text


def test_claims_are_evaluated_with_the_stored_results(written):
    outcomes = {outcome.claim.text: outcome for outcome in report.page_claims(written[1])}
    known = outcomes["bandit feedback: DFHPG has the lowest regret on top-k"]
    assert known.verdict in ("agrees", "open", "equivalent", "disagrees")
    assert any(outcome.missing.endswith("is not in the store") for outcome in outcomes.values())


def test_theory_charts_and_statements(written):
    folder, _ = written
    names = {path.stem for path in (folder / "figures").iterdir()}
    assert {"theory_estimators", "theory_stationarity", "theory-estimators", "theory-stationarity"} & names
    assert "Theorem 2.2" in (folder / "tables" / "theory.csv").read_text()


def test_a_short_check_gives_no_verdicts():
    document_ = theory_document(short=True)
    assert {claim["verdict"] for claim in document_["claims"]} == {"too short"}


def test_the_document_is_complete_and_valid_latex(written, tmp_path, monkeypatch):
    monkeypatch.setattr(document, "SUFFIXES", (".pdf",))
    first, *missing = report.write(written[1], tmp_path)
    assert first.startswith("4 figures and 4 tables for print")
    assert latex_syntax.faults(tmp_path / "paper.tex") == []
    source = (tmp_path / "paper.tex").read_text()
    assert [source.count(rf"\begin{{{form}}}") for form in ("figure", "table")] == [4, 4]
    for name in ("Figure 2", "Figure 4", "Figure 5", "Figure 7", "Figure 8"):
        assert any(line.startswith(f"{name} (") and "regretless reproduce" in line for line in missing)
    assert b"/FontFile2" in (tmp_path / "figure6_alpha_text.pdf").read_bytes(), "fonts are embedded"
    assert b"/Type3" not in (tmp_path / "figure6_alpha_text.pdf").read_bytes()
    outcomes = json.loads((tmp_path / "claims.json").read_text())
    assert len(outcomes) == 129
    table = (tmp_path / "table1_main.tex").read_text()
    assert r"\multicolumn{2}{c}{Top-k ($\times 10^{" in table
    assert r"$\varepsilon$-greedy &" in table
    assert "mathbf" not in table, "four seeds set nothing in bold"
    assert (tmp_path / "table4_generative.tex").read_text().count(r"\\") == 9


def test_bold_only_what_is_separated(written, monkeypatch):
    page = written[1]
    (view,) = page.views(page.studies[0].panels[0])
    monkeypatch.setattr(latex, "MIN_REPLICATIONS", 4)
    assert is_separated(view, view.best())
    assert not any(is_separated(view, label) for label in view.results if label != view.best())
    assert result_table([TableBlock("", {"t": view})], {}).count("mathbf") == 1


def test_wide_tables_are_split_and_digits_are_aligned(written, tmp_path):
    page = written[1]
    (view,) = page.views(page.studies[0].panels[0])
    path = tmp_path / "wide.tex"
    path.write_text(result_table([TableBlock("", {f"world_{index} & ε": view for index in range(9)})], {}))
    assert path.read_text().count(r"\begin{tabular}") > 1
    assert latex_syntax.faults(path) == []
    column = number_column([(168e3, 14e3), (199e3, 2e4), (2e6, None), (float("nan"), None)], [(1.0, None)])
    cells = [column.cell(value) for value in ((168e3, 14e3), (2e6, None), (float("nan"), 1.0), (1.0, None))]
    assert cells[0] == r"$\phantom{0}1.68 \pm 0.14$"
    assert cells[1].startswith("$20.00")
    assert cells[2] == "--"
    assert "{<}0.01" in cells[3]
    assert latex_text("a_b ± ñ 漢") == r"a\_b $\pm$ \~{n} ?"


def test_configurations_are_those_of_the_paper(monkeypatch):
    head, rows = report.configuration_rows("Point models")
    energy = dict(zip(head, rows[6], strict=True))
    assert (energy["surrogate"], energy["alpha.time_scale"], energy["nuisance.lr"]) == ("map_c", "100", "0.025")
    assert len(rows) == len(report.configuration_rows("Generative models")[1]) == 8
    assert len(report.configuration_rows("Point models", every_degree=True)[1]) == 32
    known = read_table("presets.csv")
    new = {**known[0], "benchmark": "weather_<1>", "degree": "3", "model": "kernel", "forgetting": "0.5"}
    monkeypatch.setattr(report, "read_table", lambda name: (new, *known))
    head, rows = report.configuration_rows("Point models")
    assert dict(zip(head, rows[-1], strict=True))["forgetting"] == "0.5"
