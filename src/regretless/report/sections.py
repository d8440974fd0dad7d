"""The parts of the page: a section per study, with a card per benchmark."""

from regretless.report import charts, tables, theory_section
from regretless.report.gather import Page, Panel, Study
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.tables import Row
from regretless.report.words import benchmark, colour, number, spread
from regretless.studies.verdicts import LIMIT

Charts = dict[str, charts.Spec]


def scale_note(study: Study) -> str:
    """How much was run, in words."""
    horizons = {cell.record["horizon"] for panel in study.panels for cell in panel.cells if "horizon" in cell.record}
    first = study.scale["first_seed"]
    told = f"{study.scale['seeds']} replications (seeds {first} to {first + study.scale['seeds'] - 1})"
    if not horizons:
        return told
    low, high = min(horizons), max(horizons)
    return f"{told}, {low:,} rounds" if low == high else f"{told}, {low:,} to {high:,} rounds"


def section(study: Study, drawn: Charts) -> Markup:
    """One study; its charts are added to ``drawn``."""
    about = f"{study.about} {scale_note(study)}." if study.kind != "theory" else study.about
    cards = [card(study, panel, drawn) for panel in study.panels]
    notes = []
    if study.missing:
        notes.append(f"Not available in this build: {', '.join(study.missing)}.")
    if study.absent:
        notes.append(f"{len(study.absent)} cells are not computed yet; resume with: {study.command}")
    note = tag("p", text(" ".join(notes)), class_="note") if notes else ""
    body = tag("div", *cards, class_="grid")
    return tag("section", tag("h2", text(study.title)), tag("p", text(about)), body, note, id=study.name)


def card(study: Study, panel: Panel, drawn: Charts) -> Markup:
    """One benchmark of a study."""
    title = tag("h3", text(benchmark(panel.benchmark))) if panel.benchmark else ""
    if not panel.cells:
        return tag("div", title, tag("p", text("not computed yet"), class_="note"), class_="card")
    if study.kind == "theory":
        return theory_section.cards(panel.cells[0].record["document"], drawn)
    if study.kind == "table":
        notes = [tag("p", text(word), class_="note") for word in notices(panel)]
        return tag("div", title, result_table(study, panel), paired(panel), *notes, class_="card")
    spec = charts.chart(study, panel)
    assert spec is not None
    place = f"chart-{study.name}-{panel.benchmark}"
    drawn[place] = spec
    label = f"{study.title}: {benchmark(panel.benchmark)}"
    figure = tag("div", id=place, class_="chart", role="img", aria_label=label)
    return tag("div", title, figure, beneath(study, panel), class_="card")


def notices(panel: Panel) -> list[str]:
    """What the runs themselves had to say."""
    return list(dict.fromkeys(word for cell in panel.cells for word in cell.record.get("notices", [])))


def beneath(study: Study, panel: Panel) -> Markup:
    """What a chart cannot show: the reference lines of a heat map, the hidden rest of a zoomed curve, paired differences."""
    parts = []
    if study.kind == "heatmap":
        lines = [(line["name"], line["mean"]) for line in panel.references()]
        simple = panel.linear_thompson()
        if simple is not None:
            lines.append(("linear_thompson", simple.mean))
        told = " · ".join(f"{text(name)} <b>{text(number(mean))}</b>" for name, mean in lines)
        parts.append(tag("p", "For comparison: ", told, class_="note"))
    parts += [tag("p", text(word), class_="note") for word in notices(panel)]
    horizon = panel.cells[0].record["horizon"]
    if panel.zoom and panel.zoom < horizon:
        words = f"The first {panel.zoom} rounds; a double click shows all {horizon:,}."
        parts.append(tag("p", text(words), class_="note"))
    if study.kind == "alpha":
        parts.append(paired(panel))
    return "".join(parts)


def result_table(study: Study, panel: Panel) -> Markup:
    """Final regret, ours beside the published one where there is one, with the reference lines below."""
    found = tables.rows(study, panel)
    head = ("policy", "ours", "median", "published", "z", "")
    shown = len(head) if any(each.verdict is not None for each in found) else 3
    body = [row(*result_cells(each)[:shown], class_="best" if each.best else "") for each in found]
    blank = [""] * (shown - 2)
    body += [
        row(text(line["name"]), value(line["mean"], line["standard_error"]), *blank, class_="reference")
        for line in panel.references()
    ]
    return table(head[:shown], body)


def value(mean: float | None, error: float | None) -> Markup:
    """A mean with its standard error in a quieter tone."""
    return f"{text(number(mean))} {tag('i', text('± ' + number(error, 2)))}"


def result_cells(each: Row) -> list[Markup]:
    """One policy of the table."""
    arm, found = each.arm, each.verdict
    dot = tag("span", class_="swatch", style=f"background:{colour(arm.label)}")
    name = dot + text(arm.label)
    if arm.diverged:
        name += " " + tag("span", text(f"{arm.diverged} diverged"), class_="chip warn")
    ours = value(arm.mean, arm.error)
    published, z, chip = "–", "–", ""
    if found is not None:
        published = value(found.published.mean, found.published.standard_error)
        z = text(f"{found.z:+.2f}")
        kind = "" if abs(found.z) <= LIMIT else " warn" if found.reproduced or found.second_z is None else " bad"
        word = "✓" if abs(found.z) <= LIMIT else found.word
        chip = tag("span", text(word), class_="chip" + kind, title=found.word)
        if each.second is not None and found.second_z is not None:
            again = spread(each.second["mean"], each.second["standard_error"])
            ours += tag("i", text(f" (seeds from 1000: {again})"))
            z += text(f", then {found.second_z:+.2f}")
    return [name, ours, text(number(arm.median)), published, z, chip]


def paired(panel: Panel) -> Markup:
    """Differences of final regret, paired by seed: every policy met the same contexts and costs."""
    cell = panel.cells[0]
    compared = [arm for arm in cell.arms.values() if arm.difference is not None]
    if not compared:
        return ""
    anchor = next(arm.label for arm in cell.arms.values() if arm.difference is None)
    body = []
    for arm in compared:
        gap = arm.difference
        assert gap is not None
        interval = f"{number(gap.low)} to {number(gap.high)}"
        body.append(row(text(arm.label), text(number(gap.mean)), text(interval), text(gap.pairs)))
    head = ("policy", f"minus {anchor}", "95 % interval", "pairs")
    return tag("details", tag("summary", text(f"Paired differences from {anchor}")), table(head, body))


def cell_list(page: Page) -> Markup:
    """Every cell that is shown: how much, how long, where it is stored."""
    body = []
    for key, cell in page.shown().items():
        record = cell.record
        seconds = record.get("seconds") or {}
        body.append(
            row(
                text(record["name"]),
                text(record["cell"].get("seeds", "–")),
                text(record.get("horizon", "–")),
                text(f"{record['wall_seconds']:.1f}"),
                text(f"{seconds['compile']:.1f}" if seconds else "–"),
                tag("code", text(key[:12])),
            )
        )
    head = ("cell", "replications", "rounds", "seconds", "of these compiling", "key")
    return tag("details", tag("summary", text(f"All {len(body)} cells")), table(head, body))
