"""The figures and tables of the paper from stored results, and a LaTeX document that plain pdflatex compiles."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from regretless.experiments import Panel, Study
from regretless.experiments.report import (
    BENCHMARK_NAMES,
    CellView,
    Chart,
    Page,
    PanelContext,
    file_names,
    panel_curves,
    panel_function,
    scale_text,
)
from regretless.files import write_text
from regretless.formatting import count_text, display_name, join_words, one_line
from regretless.plots import HeatMap, Plot, draw_sheet, save_figure
from regretless_dfhpg.latex import SEPARATED, TableBlock, latex_text, result_table
from regretless_dfhpg.report import CONFIGURATION_TABLES, configuration_rows
from regretless_dfhpg.studies import COLLECTION, ZOOM

WIDTHS = {"column": 3.25, "text": 6.75}
"""Inches of a figure of one column, and of the text's width."""
SUFFIXES = (".pdf", ".png")
ALL = tuple(BENCHMARK_NAMES)
CURVES = r"Average regret per round, with bands of $\pm 1$ standard error across replications."
FINAL = "Mean final regret; lower is better."
TABLE_ABOUT = f"Mean $\\pm$ standard error, powers of ten in the head; bold: {SEPARATED}."


class Float(NamedTuple):
    """A figure or table of the paper; of several studies the first with results is used."""

    number: int
    form: Literal["figure", "table"]
    name: str
    about: str  # LaTeX
    studies: tuple[str, ...]
    panels: tuple[str, ...] = ALL
    curves: bool = False  # regret curves, whatever the kind of the study
    zoom: bool = False  # the first rounds of the synthetic benchmarks

    @property
    def title(self) -> str:
        """Its name in the paper."""
        return f"{self.form.title()} {self.number}"

    @property
    def stem(self) -> str:
        """The beginning of its file names."""
        return f"{self.form}{self.number}_{self.studies[0]}"


OTHERS = ("shortest_path", "pricing", "energy")
HEAT_ORDER = ("pricing", "shortest_path", "topk", "energy")
SORTED = f"{FINAL} Rows are sorted by the first column."
BARS = f"{FINAL} Bars are standard errors."
RUNS = ("convergence", "main")
FLOATS = (
    Float(1, "table", "Final regret across benchmarks", "", ("main", "convergence")),
    Float(1, "figure", "Convergence on top-k selection", CURVES, RUNS, ("topk",), True, True),
    Float(2, "figure", "Models of the cost on pricing", CURVES, ("models",), ("pricing",), True),
    Float(3, "figure", "Convergence on the other benchmarks", CURVES, RUNS, OTHERS, True, True),
    Float(4, "figure", "Models of the cost on the other benchmarks", CURVES, ("models",), ("topk", *OTHERS[::2]), True),
    Float(5, "figure", "Surrogate losses", SORTED, ("surrogates",), HEAT_ORDER),
    Float(6, "figure", "Mixing weight: the schedule and fixed values", CURVES, ("alpha",), ALL, True),
    Float(7, "figure", "Difficulty: the degree of the costs", BARS, ("degree",), HEAT_ORDER[:3]),
    Float(2, "table", "Final regret under semi-bandit feedback", "", ("semi_bandit",)),
    Float(8, "figure", "Kinds of feedback", BARS, ("feedback",), HEAT_ORDER),
)
"""In the paper's order; its tables of configurations, 3 and 4, need no results."""

PREAMBLE = r"""\documentclass[10pt]{article}
\usepackage{booktabs}
\usepackage{graphicx}
\usepackage{amsmath}
\setlength{\textwidth}{6.75in}
\setlength{\oddsidemargin}{-0.125in}
\setlength{\textheight}{9in}
\setlength{\topmargin}{-0.5in}
\begin{document}
"""
SUPPLEMENT = r"""\clearpage
\section*{Further studies}
\renewcommand{\thefigure}{S\arabic{figure}}
\renewcommand{\thetable}{S\arabic{table}}
\setcounter{figure}{0}
\setcounter{table}{0}
"""
SYMBOLS = {
    "benchmark": "Benchmark",
    "model": "Class",
    "policy_lr": r"$\eta_\theta^0$",
    "nuisance.lr": r"$\eta_\phi^0$",
    "surrogate": "Surrogate",
    "exploration_scale": r"$\sigma_{\mathrm{G}}$",
    "alpha.max": r"$\alpha_{\max}$",
    "alpha.min": r"$\alpha_{\min}$",
    "alpha.time_scale": r"$\tau_{\mathrm{sched}}$",
    "baseline": "Base",
    "normalize_gradients": "Norm",
    "generative.scenarios": "$K$",
    "generative.kappa_dfl": r"$\kappa_{\mathrm{dfl}}$",
    "generative.lambda_reg": r"$\lambda_{\mathrm{reg}}$",
    "model.train_steps": "Train",
    "model.sample_steps": "Sample",
    "model.weights": "Weights",
}
IMPLIED = ("degree", "alpha.gate")
"""Columns that others imply: synthetic benchmarks have degree 8, and a time scale belongs to the exponential gate."""
ABBREVIATIONS = {"moving_average": "ma", "nuisance_induced": "ni", "true": "yes", "false": "no"}
CONFIGURATIONS_ABOUT = (
    "Base: moving-average (ma) or nuisance-induced (ni) baseline; Norm: whether both gradients are scaled to unit "
    "length; a time scale belongs to the exponential gate, others use a warm-up. Synthetic benchmarks have degree 8."
)


def write_document(page: Page, folder: Path) -> list[str]:
    """Write every figure at two widths, every table, and ``paper.tex``.

    Parameters
    ----------
    page : Page
        The results.
    folder : Path
        Where to write.

    Returns
    -------
    list of str
        What was written, and what is not computed yet with the command that computes it.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts, missing, numbers = [], [], {"figure": 0, "table": 0}
    with_paper = any(study.collection == COLLECTION for study in page.studies)
    for item in FLOATS if with_paper else ():
        study, panels = _find(page, item)
        if study is None:
            missing.append(f"{item.title} ({item.name}) is not computed yet: regretless reproduce {item.studies[0]}")
            continue
        lacking = [title for title in item.panels if title not in {panel.title for panel in panels}]
        if lacking:
            command = f"regretless reproduce {item.studies[0]}"
            missing.append(f"{item.title} ({item.name}) lacks panels {', '.join(lacking)}: {command}")
        views = [view for panel in panels for view in page.views(panel)]
        if item.form == "figure":
            files = _save_sheet([_drawing(page, study, panel, item) for panel in panels], folder, item.stem)
        else:
            files = [item.stem]
            write_text(folder / f"{item.stem}.tex", result_table(_blocks(page, item, panels), BENCHMARK_NAMES))
        about = item.about or TABLE_ABOUT
        caption = " ".join(filter(None, (latex_text(f"{item.name}."), about, latex_text(scale_text(views)))))
        texts.append(_float(item.form, files, caption, item.number))
        numbers[item.form] += 1
    if with_paper:
        texts += [_configurations(folder, number, title) for number, title in enumerate(CONFIGURATION_TABLES, 3)]
        numbers["table"] += len(CONFIGURATION_TABLES)
    used = {name for item in FLOATS for name in item.studies if len(item.panels) > 2}
    further = [study for study in page.studies if study.collection != COLLECTION or study.name not in used]
    extra = [text for study in further for text in _whole_study(page, study, folder)]
    for text in extra:
        numbers["table" if r"\begin{table}" in text else "figure"] += 1
    comments = [f"% {one_line(line).encode('ascii', 'replace').decode('ascii')}" for line in missing]
    heading = "Figures and tables of the paper, from our own runs" if with_paper else "Results"
    supplement = [SUPPLEMENT] if extra and with_paper else []
    parts = [*comments, PREAMBLE, rf"\section*{{{heading}}}", *texts, *supplement, *extra, r"\end{document}", ""]
    write_text(folder / "paper.tex", "\n".join(parts))
    counts = join_words([count_text(number, form) for form, number in numbers.items()])
    return [f"{counts} for print: pdflatex paper.tex in {folder}", *missing]


def _find(page: Page, item: Float) -> tuple[Study | None, list[Panel]]:
    """Return the first study of an item with results, and its panels in the item's order."""
    for name in item.studies:
        study = next((s for s in page.studies if s.name == name and s.collection == COLLECTION), None)
        known = {panel.title: panel for panel in study.panels if page.views(panel)} if study else {}
        panels = [known[title] for title in item.panels if title in known]
        if panels:
            return study, panels
    return None, []


Drawing = tuple[str, Plot | HeatMap]


def _drawing(page: Page, study: Study, panel: Panel, item: Float) -> Drawing:
    context = PanelContext(page, study, panel, page.views(panel), study.name)
    if item.curves:
        zoom = ZOOM if item.zoom and panel.title != "energy" else None
        plain = dataclasses.replace(context, panel=dataclasses.replace(panel, zoom=None))
        return context.title, panel_curves(plain, zoom)
    return _charts(context)[0]


def _charts(context: PanelContext) -> list[Drawing]:
    """Return the charts of a panel with their titles."""
    cards = panel_function(context.kind)(context)
    title = context.title or context.study.title
    return [(title, block.plot) for card in cards for block in card.blocks if isinstance(block, Chart)]


def _save_sheet(drawings: Sequence[Drawing], folder: Path, stem: str) -> list[str]:
    """Write a sheet of charts at both widths; return the file to include."""
    heat = all(isinstance(plot, HeatMap) for _, plot in drawings)
    for name, inches in WIDTHS.items():
        columns = 1 if inches < 5 and not heat else min(len(drawings), 3 if len(drawings) in (3, 5, 6) else 2)
        heights = [0.125 * len(plot.rows) + 0.5 for _, plot in drawings if isinstance(plot, HeatMap)]
        height = max([1.9, *heights])
        figure = draw_sheet(drawings, (inches, height * -(-len(drawings) // columns) + 0.2), columns)
        for suffix in SUFFIXES:
            save_figure(figure, folder / f"{stem}_{name}{suffix}")
    return [f"{stem}_{'column' if len(drawings) == 1 else 'text'}"]


def _blocks(page: Page, item: Float, panels: Sequence[Panel]) -> list[TableBlock]:
    """Return the rows of a table; the paper's first table has both kinds of feedback."""
    views = _first_views(page, panels)
    semi = next((study for study in page.studies if study.name == "semi_bandit"), None)
    if item.number != 1 or semi is None:
        return [TableBlock("", views)]
    lower = TableBlock("Semi-bandit feedback", _first_views(page, semi.panels), ("dfhpg", "dfhpg_0"), references=False)
    return [TableBlock("Pure bandit feedback", views), lower]


def _first_views(page: Page, panels: Sequence[Panel]) -> dict[str, CellView]:
    return {panel.title: views[0] for panel in panels if (views := page.views(panel))}


def _configurations(folder: Path, number: int, title: str) -> str:
    """Write a table of tuned settings and return its float."""
    head, rows = configuration_rows(title)
    kept = [index for index, name in enumerate(head) if name not in IMPLIED]
    name = f"table{number}_{title.split()[0].lower()}"
    cells = [[latex_text(ABBREVIATIONS.get(row[i], display_name(row[i]))) for i in kept] for row in rows]
    symbols = " & ".join(SYMBOLS.get(head[i], latex_text(head[i])) for i in kept)
    top = [rf"\begin{{tabular}}{{ll{'c' * (len(kept) - 2)}}}", r"\toprule", rf"{symbols} \\", r"\midrule"]
    lines = [*top, *(" & ".join(row) + r" \\" for row in cells), r"\bottomrule", r"\end{tabular}", ""]
    write_text(folder / f"{name}.tex", "\n".join(lines))
    caption = f"{latex_text(title)}: selected configurations. {latex_text(CONFIGURATIONS_ABOUT)}"
    return _float("table", [name], caption, number)


def _whole_study(page: Page, study: Study, folder: Path) -> list[str]:
    """Write a study as one table and one sheet of its charts; return the floats."""
    place, floats = page.places()[study.name], []
    names = file_names((panel.title for panel in study.panels), place)
    contexts = [
        PanelContext(page, study, panel, views, name)
        for panel, name in zip(study.panels, names, strict=True)
        if (views := page.views(panel))
    ]
    views = [view for context in contexts for view in context.views]
    about = " ".join(
        latex_text(text) for text in (f"{study.title or study.name}.", study.about, scale_text(views)) if text
    )
    tables = {
        ": ".join(filter(None, (context.title, view.label))) or study.name: view
        for context in contexts
        if context.kind == "table"
        for view in context.views
    }
    if tables and study.collection != COLLECTION:
        write_text(folder / f"study_{place}.tex", result_table([TableBlock("", tables)], {}))
        floats.append(_float("table", [f"study_{place}"], f"{about} {TABLE_ABOUT}", None))
    drawings = [drawing for context in contexts for drawing in _charts(context)]
    if drawings and not (tables and study.collection == COLLECTION):
        floats.append(_float("figure", _save_sheet(drawings, folder, f"study_{place}"), about, None))
    return floats


def _float(form: str, files: Sequence[str], caption: str, number: int | None) -> str:
    """Return a LaTeX float; figures of further studies are scaled to the page."""
    lines = [] if number is None else [rf"\setcounter{{{form}}}{{{number - 1}}}"]
    lines += [rf"\begin{{{form}}}[!htbp]", r"\centering"]
    if form == "table":
        lines += [rf"\caption{{{caption}}}", r"\scriptsize", r"\setlength{\tabcolsep}{3pt}"]
        lines += [rf"\input{{{file}}}" for file in files]
    else:
        options = r"[width=\textwidth,height=0.8\textheight,keepaspectratio]" if number is None else ""
        lines += [*(rf"\includegraphics{options}{{{file}}}" for file in files), rf"\caption{{{caption}}}"]
    return "\n".join([*lines, rf"\end{{{form}}}", ""])
