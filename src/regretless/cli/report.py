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
    paper: Annotated[
        bool,
        typer.Option(
            "--paper", help="Also write OUT/paper: figures and tables for print, where an installed package has any."
        ),
    ] = False,
) -> None:
    """Write one self-contained HTML page, figures (PDF, PNG), tables (CSV) and report.md.

    Reads what 'regretless reproduce' or 'regretless run --out' stored and computes nothing; missing results are named.
    """
    with clear_errors("files that were written completely are kept"):
        from regretless.errors import SettingsError
        from regretless.experiments.extension import REPORT, STUDIES_HINT
        from regretless.experiments.report import read_page, write_report
        from regretless.experiments.store import ResultStore

        target = ResultStore(store)
        read_page(target)  # before a folder is made for nothing
        writers = [part.write for part in REPORT.usable().values() if hasattr(part, "write")]
        if paper and not writers:
            raise SettingsError(f"--paper: {STUDIES_HINT}")
        console.require_writable(out)
        page = write_report(target, out)
        for write in writers if paper else ():
            for message in write(page, out / "paper"):
                console.say(message)
        console.say(
            f"{len(page.studies)} {'study' if len(page.studies) == 1 else 'studies'}: open {out / 'report.html'}"
        )
