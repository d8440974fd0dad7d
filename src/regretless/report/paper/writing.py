"""Writes the folder ``paper/``: every figure at two widths, every table, and the document that includes them."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from regretless.files import write_text
from regretless.report import presets_section
from regretless.report.figures import paper_style, save
from regretless.report.gather import Page, Panel, Study
from regretless.report.kinds import KINDS, by_kind
from regretless.report.panel_plots import panel_curves
from regretless.report.paper import configurations
from regretless.report.paper.document import Piece, document, lacking, ran
from regretless.report.paper.items import ITEMS, ZOOM, Found, find, further, told_missing
from regretless.report.paper.sheets import WIDTHS, Drawing, sheet
from regretless.report.paper.tables import Block, result_table
from regretless.report.tables import SEPARATED
from regretless.report.words import latex_text

TOLD = f"Mean $\\pm$ standard error, powers of ten in the head; bold: {SEPARATED}."
SUFFIXES = (".pdf", ".png")


class Written(NamedTuple):
    """What was written, and what is not computed yet."""

    figures: int
    tables: int
    missing: list[str]


def write_paper(page: Page, folder: Path) -> Written:
    """All figures and tables of the paper that ``page`` has results for, other studies behind them, and ``paper.tex``."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [find(page, item) for item in ITEMS] if page.paper else []
    pieces = [
        _figure(each, folder) if each.item.form == "figure" else _table(page, each, folder)
        for each in found
        if each.panels
    ]
    pieces += _configurations(folder) if page.paper else []
    more = [piece for study in further(page) for piece in _study(study, folder)]
    missing = told_missing(found)
    write_text(folder / "paper.tex", document(page, pieces, more, missing))
    every = [piece.form for piece in [*pieces, *more]]
    return Written(every.count("figure"), every.count("table"), missing)


def _figure(found: Found, folder: Path) -> Piece:
    item, study = found.item, found.study
    assert study is not None
    drawings = [
        (panel.name, drawn) for panel in found.panels if (drawn := _drawing(study, panel, item.curves)) is not None
    ]
    file = _save(drawings, folder, item.stem)
    cut = [panel for panel in found.panels if panel.zoom is not None and panel.cells[0].record["horizon"] > panel.zoom]
    zoomed = f"Synthetic benchmarks: the first {ZOOM} rounds." if cut else ""
    words = (f"{item.name}.", zoomed)
    caption = _sentences(*map(latex_text, words), item.about, ran(found.panels), lacking(found.missing, found.partial))
    return Piece("figure", item.number, [file] if file else [], caption)


def _drawing(study: Study, panel: Panel, curves: bool) -> Drawing | None:
    if not curves:
        return KINDS[panel.kind].plot(study, panel)
    plot = panel_curves(panel)
    return plot if plot.lines else None


def _save(drawings: Sequence[tuple[str, Drawing]], folder: Path, stem: str) -> str:
    """Writes a sheet at both widths and names the one to include: a chart alone at a column's width; empty without charts."""
    if not drawings:
        return ""
    for width, inches in WIDTHS.items():
        with paper_style():
            figure = sheet(drawings, inches)
            for suffix in SUFFIXES:
                save(figure, folder / f"{stem}_{width}{suffix}")
    return f"{stem}_{'column' if len(drawings) == 1 else 'text'}"


def _table(page: Page, found: Found, folder: Path) -> Piece:
    """A table of final regrets; the paper's first has both kinds of feedback."""
    blocks, shown = [Block("", found.panels)], list(found.panels)
    semi = find(page, next(item for item in ITEMS if item.studies == ("semi_bandit",)))
    if found.item.number == 1 and semi.panels:
        blocks = [Block("Pure bandit feedback", found.panels)]
        blocks.append(Block("Semi-bandit feedback", semi.panels, ("dfhpg", "dfhpg_0"), references=False))
        shown += semi.panels
    lower = (
        latex_text("The semi-bandit half is not computed yet.") if found.item.number == 1 and not semi.panels else ""
    )
    write_text(folder / f"{found.item.stem}.tex", result_table(blocks))
    caption = _sentences(
        latex_text(f"{found.item.name}."), TOLD, ran(shown), lacking(found.missing, found.partial), lower
    )
    return Piece("table", found.item.number, [found.item.stem], caption)


def _configurations(folder: Path) -> list[Piece]:
    pieces = []
    for number, title in enumerate(presets_section.TABLES, 3):
        name = f"table{number}_{title.split()[0].lower()}"
        write_text(folder / f"{name}.tex", configurations.latex(title))
        caption = _sentences(latex_text(f"{title}: selected configurations."), latex_text(configurations.ABOUT))
        pieces.append(Piece("table", number, [name], caption))
    return pieces


def _study(study: Study, folder: Path) -> list[Piece]:
    """A study as a whole: a sheet of its charts, figures of kinds that fill one alone, and its tables."""
    pieces = []
    title = latex_text(f"{study.title}.")
    about = latex_text(study.about)
    for index, (kind, panels) in enumerate(by_kind(study)):
        stem = f"study_{study.place}" + (f"_{index + 1}" if index else "")
        caption = _sentences(title, about, ran(panels))
        drawings = [
            (panel.name or study.title, drawn) for panel in panels if (drawn := kind.plot(study, panel)) is not None
        ]
        source = kind.latex(panels)
        if source and not study.paper:
            write_text(folder / f"{stem}.tex", source)
            pieces.append(Piece("table", None, [stem], _sentences(title, about, TOLD, ran(panels))))
        elif drawings:
            pieces.append(Piece("figure", None, [_save(drawings, folder, stem)], caption))
        else:
            pieces += [Piece("figure", None, [name], caption, True) for name in _own(study, panels, folder, stem)]
    return pieces


def _own(study: Study, panels: Sequence[Panel], folder: Path, stem: str) -> list[str]:
    """Figures that fill a sheet alone, a file each."""
    names = []
    for panel in panels:
        with paper_style():
            figure = KINDS[panel.kind].figure(study, panel)
            if figure is None:
                continue
            names.append(stem if len(panels) == 1 else f"{stem}_{panel.place}")
            for suffix in SUFFIXES:
                save(figure, folder / f"{names[-1]}{suffix}")
    return names


def _sentences(*words: str) -> str:
    return " ".join(filter(None, words))
