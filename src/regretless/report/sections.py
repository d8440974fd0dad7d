"""The parts of the page: a section per study with a card per panel, and the list of all cells."""

from regretless.report.gather import Page, Panel, Study
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.kinds import KINDS
from regretless.report.kinds.base import card, note
from regretless.show.charts import Charts


def scale_words(study: Study) -> str:
    """How much was run; nothing for a study that is not played round by round."""
    horizons = {cell.record["horizon"] for panel in study.panels for cell in panel.cells if "horizon" in cell.record}
    if not horizons:
        return ""
    played = [cell.seeds for panel in study.panels for cell in panel.cells if cell.seeds]
    fewest, seeds = min(map(len, played), default=0), max(map(len, played), default=0)
    first, last = min(map(min, played), default=0), max(map(max, played), default=0)
    ranged = f"seed {first}" if seeds == 1 else f"seeds {first} to {last}"
    low, high = min(horizons), max(horizons)
    rounds = f"{low:,} {'round' if low == 1 else 'rounds'}" if low == high else f"{low:,} to {high:,} rounds"
    count = f"{seeds}" if fewest == seeds else f"{fewest} to {seeds}"
    return f"{count} {'replication' if seeds == 1 else 'replications'} ({ranged}), {rounds}."


def section(study: Study, charts: Charts, titled: bool) -> Markup:
    """One study, with its title unless the page has it already; its charts are added to ``charts``."""
    about = " ".join(filter(None, (study.about, scale_words(study))))
    cards = [panel_card(study, panel, charts) for panel in study.panels]
    absent = len(study.absent)
    cells = "1 cell is" if absent == 1 else f"{absent} cells are"
    missing = note(f"{cells} not computed yet; resume with: {study.command}" if absent else "")
    body = tag("div", *cards, class_="grid")
    title = tag("h2", text(study.title)) if titled else ""
    return tag("section", title, tag("p", text(about)), body, missing, id=study.place)


def panel_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """One panel, as its kind shows it."""
    kind = KINDS[panel.kind]
    return kind.card(study, panel, charts) if panel.cells else card(panel, note("not computed yet"))


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
                text(f"{record['wall_seconds']:.1f}"),
                text(f"{seconds['compile']:.1f}" if seconds else "–"),
                tag("code", text(key[:12])),
            )
        )
    head = ("cell", "replications", "rounds", "seconds", "of these compiling", "key")
    return tag("details", tag("summary", text(f"All {len(body)} cells")), table(head, body))
