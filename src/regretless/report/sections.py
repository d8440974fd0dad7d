"""The parts of the page: a section per study with a card per panel, and the list of all cells."""

from regretless.report.gather import Page, Study
from regretless.report.html import Markup, exact, row, table, tag, text
from regretless.report.kinds import KINDS
from regretless.report.summary import scale
from regretless.report.words import listed
from regretless.show.charts import Charts


def section(study: Study, charts: Charts, titled: bool) -> Markup:
    """One study, with its title unless the page has it already; its charts are added to ``charts``."""
    played = scale(cell for panel in study.panels for cell in panel.cells)
    about = " ".join(filter(None, (study.about, f"{played}." if played else "")))
    cards = [KINDS[panel.kind].card(study, panel, charts) for panel in study.panels if panel.cells]
    title = tag("h2", text(study.title)) if titled else ""
    body = tag("div", *cards, class_="grid") if cards else ""
    return tag("section", title, tag("p", text(about)) if about else "", body, missing(study), id=study.place)


def missing(study: Study) -> Markup:
    """What is not computed yet, and the command that goes on; nothing where all is there."""
    if not study.absent:
        return ""
    empty = [panel.name for panel in study.panels if not panel.cells and panel.title]
    cells = "1 cell is" if len(study.absent) == 1 else f"{len(study.absent)} cells are"
    which = f" ({listed(empty)})" if empty else ""
    return tag(
        "p", text(f"{cells} not computed yet{which}; resume with: "), tag("code", text(study.command)), class_="note"
    )


def cell_list(page: Page) -> Markup:
    """Every cell that is shown: how much, how long, where it is stored."""
    body = []
    for key, cell in page.shown().items():
        record = cell.record
        seconds = record.get("seconds") or {}
        body.append(
            row(
                text(record["name"]),
                text(cell.replications or "–"),
                text(record.get("horizon", "–")),
                exact(text(f"{record['wall_seconds']:.1f}"), record["wall_seconds"]),
                text(f"{seconds['compile']:.1f}" if seconds else "–"),
                tag("code", exact(text(key[:12]), key)),
            )
        )
    head = ("cell", "replications", "rounds", "seconds", "of these compiling", "key")
    words = f"All {len(body)} cells" if len(body) != 1 else "The cell"
    return tag("details", tag("summary", text(words)), table(head, body, "cells"))
