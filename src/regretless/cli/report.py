"""``regretless report``: one page with every table and figure, from stored results."""

from pathlib import Path
from typing import Annotated

import typer

from regretless.cli import console
from regretless.cli.console import clear_errors


def report(
    store: Annotated[
        Path, typer.Option(help="Folder of the results: a store of 'reproduce', or what 'run --out' wrote.")
    ] = Path("results"),
    out: Annotated[Path, typer.Option(help="Folder for the page, the figures and the tables.")] = Path("report"),
) -> None:
    """Write one self-contained HTML page, figures (PDF, PNG), tables (LaTeX, CSV) and reproduction.md.

    Reads what 'regretless reproduce' or 'regretless run --out' stored and computes nothing anew; cells that are not finished
    are named.
    """
    with clear_errors("files that were written whole are kept"):
        from regretless.cli.run import writable
        from regretless.report.overview import tally
        from regretless.report.writing import write_report
        from regretless.studies.store import Store

        writable(out)
        page = write_report(Store(store), out)
        reproduced, compared = tally(page)
        words = f", {reproduced} of {compared} published cells reproduced" if compared else ""
        absent = sum(len(study.absent) for study in page.studies)
        if absent:
            words += f", {absent} cells not computed yet"
        studies, cells = len(page.studies), len(page.shown())
        counted = f"{studies} {'study' if studies == 1 else 'studies'}, {cells} {'cell' if cells == 1 else 'cells'}"
        console.say(f"{counted}{words}: open {out / 'report.html'}")
