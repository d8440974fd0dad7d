"""``regretless report``: one page with every table and figure, from stored results."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regretless.cli import console
from regretless.cli.console import clear_errors

if TYPE_CHECKING:
    from regretless.report.gather import Page


def report(
    store: Annotated[
        Path, typer.Option(help="Folder of the results: a store of 'reproduce', or what 'run --out' wrote.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the tables.")] = Path("report"),
    paper: Annotated[
        bool,
        typer.Option(
            "--paper",
            help="Also write OUT/paper: every figure and table of the paper from these results (PDF and PNG at column and text "
            "width, LaTeX), and paper.tex, a document with all of them.",
        ),
    ] = False,
) -> None:
    """Write one self-contained HTML page, figures (PDF, PNG), tables (LaTeX, CSV) and reproduction.md.

    Reads what 'regretless reproduce' or 'regretless run --out' stored and computes nothing anew; cells that are not
    finished are named.
    """
    with clear_errors("files that were written whole are kept"):
        from regretless.cli.run import writable
        from regretless.report.gather import require_campaign
        from regretless.report.overview import tally
        from regretless.report.writing import write_report
        from regretless.studies.store import Store

        target = Store(store)
        require_campaign(target)  # before a folder is made for nothing
        writable(out)
        page = write_report(target, out)
        reproduced, compared = tally(page)
        words = f", {reproduced} of {compared} published cells reproduced" if compared else ""
        absent = sum(len(study.absent) for study in page.studies)
        if absent:
            words += f", {absent} cells not computed yet"
        studies, cells = len(page.studies), len(page.shown())
        counted = f"{studies} {'study' if studies == 1 else 'studies'}, {cells} {'cell' if cells == 1 else 'cells'}"
        if paper:
            _write_paper(page, out / "paper")
        console.say(f"{counted}{words}: open {out / 'report.html'}")


def _write_paper(page: "Page", folder: Path) -> None:
    """Writes the figures and tables of the paper, and says which are not computed yet."""
    from regretless.report.paper.writing import write_paper

    written = write_paper(page, folder)
    for line in written.missing:
        console.say(line)
    counted = [(written.figures, "figure"), (written.tables, "table")]
    words = " and ".join(f"{count} {name}{'' if count == 1 else 's'}" for count, name in counted)
    console.say(f"{words} for print: pdflatex paper.tex in {folder}")
