"""Writes a report into a folder: the page, the figures, the tables."""

from pathlib import Path

from regretless.report import presets_section
from regretless.report.exports import latex_table, write_csv
from regretless.report.figures import write_figures
from regretless.report.gather import Page, gather
from regretless.report.page import render
from regretless.report.reproduction import reproduction
from regretless.studies.store import Store


def write_report(store: Store, folder: Path) -> Page:
    """Everything that ``store`` holds, as ``report.html``, ``figures/``, ``tables/`` and ``reproduction.md``."""
    page = gather(store)
    write_texts(page, folder)
    write_figures(page, folder / "figures")
    return page


def write_texts(page: Page, folder: Path) -> None:
    """The page, the tables and the reproduction page of the documentation."""
    tables = folder / "tables"
    tables.mkdir(parents=True, exist_ok=True)
    (folder / "report.html").write_text(render(page), encoding="utf-8")
    write_csv(page, tables / "cells.csv")
    for study in page.studies:
        if study.kind == "table" and any(panel.cells for panel in study.panels):
            (tables / f"{study.name}.tex").write_text(latex_table(study), encoding="utf-8")
    for title in presets_section.TABLES:
        name = f"configurations_{title.split()[0].lower()}.tex"
        (tables / name).write_text(presets_section.latex(title), encoding="utf-8")
    (folder / "reproduction.md").write_text(reproduction(page), encoding="utf-8")
