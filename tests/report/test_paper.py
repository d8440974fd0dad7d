"""Figures and tables for a paper: what is written, that TeX would take it, and how names, references and numbers are set."""

import shutil
import subprocess

import numpy as np
import pytest
from typer.testing import CliRunner

import invented
import latex_syntax
from regretless.cli.main import app
from regretless.report import tables
from regretless.report.figures import draw, paper_style
from regretless.report.paper import writing
from regretless.report.paper.columns import column
from regretless.report.paper.labels import apart
from regretless.report.paper.tables import Block, result_table
from regretless.report.paper.writing import write_paper
from regretless.report.words import latex_text
from regretless.show.plots import Line, curves, fitted, log_ticks
from regretless.show.style import KNOWN, Palette, dashes
from regretless.studies.definitions import Scale
from regretless.studies.store import Store

pytestmark = pytest.mark.xdist_group("report")


@pytest.fixture(scope="module")
def paper(written, tmp_path_factory):
    """The paper from some panels of some studies; the convergence figures come from the main table's runs."""
    folder = tmp_path_factory.mktemp("paper")
    kept = {"main": 4, "semi_bandit": 4, "surrogates": 1, "alpha": 2}
    studies = [
        study._replace(panels=study.panels[: kept[study.name]]) for study in written[1].studies if study.name in kept
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "SUFFIXES", (".pdf",))
        told = write_paper(written[1]._replace(studies=studies), folder)
    return folder, told


def test_the_document_is_complete_and_tex_takes_it(paper):
    folder, told = paper
    assert latex_syntax.faults(folder / "paper.tex") == []
    assert (told.figures, told.tables) == (4, 4)
    source = (folder / "paper.tex").read_text()
    assert [source.count(rf"\begin{{{form}}}") for form in ("figure", "table")] == [4, 4]
    for missing in ("Figure 2", "Figure 4", "Figure 7", "Figure 8"):
        assert any(line.startswith(f"{missing} (") and "regretless reproduce" in line for line in told.missing)
    assert any(line.startswith("Figure 6") and "lacks panels pricing, energy" in line for line in told.missing)
    assert len(told.missing) == 6
    assert all(f"% {line}\n" in source for line in told.missing)
    assert "4 replications (seeds 0 to 3), 395 or 2,000 rounds, code " in source
    assert b"/FontFile2" in (folder / "figure6_alpha_text.pdf").read_bytes(), "fonts are embedded"
    assert b"/Type3" not in (folder / "figure6_alpha_text.pdf").read_bytes()
    if shutil.which("pdflatex"):
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
        assert subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (r"\begin{table} a", "not ended"),
        ("{", "braces"),
        ("dfhpg_0", "outside of mathematics"),
        ("$x", "dollar"),
        ("ε", "ASCII"),
        (r"\foo", "unknown command"),
        (r"\includegraphics{nowhere}", "no file"),
        (r"\begin{tabular}{lc} a & b & c \\ \end{tabular}", "3 cells instead of 2"),
        (r"\begin{tabular}{l} " + 150 * "a" + r" \\ \end{tabular}", "inches"),
    ],
)
def test_the_check_finds_faults(tmp_path, text, fault):
    path = tmp_path / "a.tex"
    path.write_text(text)
    assert fault in " ".join(latex_syntax.faults(path))


def test_tables_have_one_exponent_and_bold_only_what_is_apart(written, paper, monkeypatch):
    source = (paper[0] / "table1_main.tex").read_text()
    assert r"\multicolumn{2}{c}{Top-k ($\times 10^{5}$)}" in source
    assert "$1.68 \\pm 0.15$" in source, "the published value of DFHPG"
    assert r"$\varepsilon$-greedy &" in source
    assert "mathbf" not in source, "four seeds set nothing in bold"
    monkeypatch.setattr(tables, "ENOUGH", 4)
    panel = written[1].studies[0].panels[3]
    best, second = sorted(panel.cells[0].arms.values(), key=lambda arm: arm.mean)[:2]
    near = best._replace(final=second.final - np.array([5.0, -4.0, 5.0, -4.0]))
    for arm, clear in ((best._replace(final=second.final - 10.0 - np.arange(4)), True), (near, False)):
        cell = panel.cells[0]._replace(arms={**panel.cells[0].arms, best.label: arm})
        shown = panel._replace(cells=[cell])
        assert [row.separated for row in tables.rows(shown) if row.best] == [clear]
        assert result_table([Block("", [shown])]).count("mathbf") == clear


def test_wide_tables_are_cut_and_digits_stand_below_each_other(written, tmp_path):
    panel = written[1].studies[0].panels[0]
    many = [panel._replace(title=f"world_{index} & ε", cells=panel.cells) for index in range(9)]
    path = tmp_path / "wide.tex"
    path.write_text(result_table([Block("", many)]))
    assert path.read_text().count(r"\begin{tabular}") > 1
    assert latex_syntax.faults(path) == []
    numbers = column([(168e3, 14e3), (199e3, 2e4), (2e6, None), (float("nan"), None)], [(1.0, None)])
    cells = [numbers.cell(value) for value in ((168e3, 14e3), (2e6, None), (float("nan"), 1.0), (1.0, None))]
    assert cells[0] == r"$\phantom{0}1.68 \pm 0.14$"
    assert cells[1].startswith("$20.00")
    assert cells[2] == "--"
    assert "{<}0.01" in cells[3]
    assert latex_text("a_b ± ñ 漢") == r"a\_b $\pm$ \~{n} ?"


def nine_curves():
    palette, x = Palette(), [1.0, 50.0, 100.0]
    labels = [*list(KNOWN)[:7], "mine", "other"]
    lines = [
        Line(label, x, np.array([30.0, 12.0, 10.0 + 0.01 * index]), None, palette[label])
        for index, label in enumerate(labels)
    ]
    return curves(
        "regret", lines, [("random", 11.0), ("random (b)", 9.5), ("clairvoyant", 0.2), ("worst", 900.0)], 100, 100
    )


def test_names_stand_beside_the_curves_and_far_references_in_words():
    plot = nine_curves()
    assert len({(line.style.marker, line.style.dash) for line in plot.lines}) == 9
    assert len(set(dashes(["random", "random (b)", "mine", "best fixed", "yours"]).values())) == 5
    with paper_style():
        axes = draw(plot, "nine").axes[0]
    names = {text.get_text(): text for text in axes.texts}
    assert {"DFHPG-0", "ε-greedy", "mine", "random", "random (b)"} <= set(names)
    assert r"$\downarrow$ off the chart: clairvoyant 0.2" in names
    assert r"$\uparrow$ off the chart: worst 900" in names
    beside = sorted(text.xyann[1] for name, text in names.items() if "off the chart" not in name)
    assert min(np.diff(beside)) * axes.bbox.height >= 6.5 * axes.figure.dpi / 72, "no name covers another"
    low, high = axes.get_ylim()
    assert (low > 5.0, high < 60.0) == (True, True), "far references stretch nothing"
    assert apart([0.2, 0.2], 0.1, 0.2, 1.0) == [0.2, 0.3]


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.001), (0.9, 1.1), (3.0, 7.0), (0.02, 5e7), (2e5, 2.1e5), (1e-9, 3e-9)]
)
def test_a_logarithmic_axis_has_ticks_at_any_range(low, high):
    ticks = log_ticks(low, high)
    assert 3 <= len(ticks) <= 12
    assert all(low <= tick <= high * (1 + 1e-9) for tick in ticks)
    axis, near, far = fitted("", [np.array([low, high])], True, [Line("r", [0.0], np.array([high * 100]))])
    assert (near, len(far)) == ([], 1) or high / low > 1e4
    assert axis.range[0] < low < high < axis.range[1]


def test_the_command_writes_the_paper(tmp_path):
    store = Store(tmp_path / "store")
    invented.fill(store, ["semi_bandit"], Scale(seeds=2))
    out = tmp_path / "out"
    done = CliRunner().invoke(app, ["report", "--paper", "--store", str(store.folder), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert "Figure 5 (Surrogate losses) is not computed yet" in " ".join(done.output.split())
    assert latex_syntax.faults(out / "paper" / "paper.tex") == []
    assert "semi-bandit feedback" in (out / "paper" / "paper.tex").read_text()
