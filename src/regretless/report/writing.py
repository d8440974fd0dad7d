"""Writes a report into a folder: the page, the figures, the tables."""

import json
from pathlib import Path

from matplotlib.figure import Figure

from regretless.files import write_text
from regretless.report import presets_section
from regretless.report.exports import csv_text
from regretless.report.figures import draw, paper_style, save
from regretless.report.gather import Page, Panel, Study, gather
from regretless.report.kinds import KINDS, by_kind
from regretless.report.page import render
from regretless.report.paper import configurations
from regretless.report.reproduction import reproduction
from regretless.show.words import distinct
from regretless.studies.store import Store


def write_report(store: Store, folder: Path) -> Page:
    """Everything that ``store`` holds, as ``report.html``, ``figures/``, ``tables/`` and ``reproduction.md``."""
    page = gather(store)
    write_texts(page, folder)
    write_figures(page, folder / "figures")
    return page


def write_texts(page: Page, folder: Path) -> None:
    """The page, the tables and all numbers as Markdown."""
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    write_text(folder / "report.html", render(page))
    write_text(tables / "cells.csv", csv_text(page))
    for study in page.studies:
        found = [kind.latex(panels) for kind, panels in by_kind(study)]
        if any(found):
            write_text(tables / f"{study.place}.tex", "\n".join(filter(None, found)))
    if page.paper:
        claims = [outcome.to_dict() for outcome in page.claims]
        write_text(tables / "claims.json", json.dumps(claims, ensure_ascii=False, indent=1) + "\n")
        for title in presets_section.TABLES:
            name = f"configurations_{title.split()[0].lower()}.tex"
            write_text(tables / name, configurations.latex(title))
    write_text(folder / "reproduction.md", reproduction(page))


def write_figures(page: Page, folder: Path) -> list[Path]:
    """Draws every chart of the page as PDF and PNG; the files' names say study and panel."""
    folder.mkdir(parents=True, exist_ok=True)
    names: list[str] = []
    written = []
    for study, panel in page.panels():
        with paper_style():
            figure = figure_of(study, panel) if panel.cells else None
            if figure is None:
                continue
            name = study.place if panel.place == study.place else f"{study.place}_{panel.place}"
            names.append(distinct(name, names, "_{}"))
            for suffix in (".pdf", ".png"):
                written.append(folder / f"{names[-1]}{suffix}")
                save(figure, written[-1])
    return written


def figure_of(study: Study, panel: Panel) -> Figure | None:
    """The panel for print, or None if it has nothing to draw."""
    kind = KINDS[panel.kind]
    shown = kind.plot(study, panel)
    return kind.figure(study, panel) if shown is None else draw(shown, panel.name or study.title)
