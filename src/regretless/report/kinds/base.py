"""What a kind of panel is: how it looks on the page, in print and as text."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from regretless.report.gather import ENOUGH, Panel, Study
from regretless.report.html import Markup, exact, row, table, tag, text
from regretless.report.tables import Row
from regretless.report.words import places
from regretless.show.charts import Charts, Spec
from regretless.show.plots import NOTHING, HeatMap, Plot
from regretless.show.words import number

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROW = 26
"""The height of a row of a chart with a row for each policy or world."""


def _no_plot(study: Study, panel: Panel) -> Plot | HeatMap | None:
    return None


def _no_figure(study: Study, panel: Panel) -> "Figure | None":
    return None


def _no_rows(panel: Panel) -> list[Row]:
    return []


def _no_latex(panels: Sequence[Panel]) -> str | None:
    return None


@dataclasses.dataclass(frozen=True)
class Kind:
    """The functions that show panels of one kind; each gets panels that have at least one computed cell."""

    card: Callable[[Study, Panel, Charts], Markup]
    """The panel on the page; its charts are added to ``Charts``."""

    markdown: Callable[[Study, Sequence[Panel]], list[str]]
    """The panels of a study as lines of Markdown; none if another panel tells the same."""

    plot: Callable[[Study, Panel], Plot | HeatMap | None] = _no_plot
    """The panel for print as a chart that can stand on a sheet with others; None if it has nothing to draw."""

    figure: Callable[[Study, Panel], "Figure | None"] = _no_figure
    """The panel for print as a figure of its own, where it is no such chart; called inside ``figures.paper_style``."""

    rows: Callable[[Panel], list[Row]] = _no_rows
    """The rows whose published values count as compared."""

    latex: Callable[[Sequence[Panel]], str | None] = _no_latex
    """The panels as one LaTeX table."""


def chart_id(study: Study, panel: Panel, part: str = "") -> str:
    """The id of a chart on the page."""
    return "-".join(filter(None, ("chart", study.place, "" if panel.place == study.place else panel.place, part)))


def chart_card(study: Study, panel: Panel, spec: Spec | None, charts: Charts, beneath: Sequence[Markup] = ()) -> Markup:
    """A card with one chart and what stands beneath it; without a chart, it says why there is none."""
    if spec is None:
        return card(panel, note(NOTHING), *beneath)
    label = f"{study.title}: {panel.name}" if panel.title else study.title
    return card(panel, chart(chart_id(study, panel), spec, charts, label), *beneath)


def chart(place: str, spec: Spec, charts: Charts, label: str) -> Markup:
    """The element that the page's script draws a chart into, about as high as it will be; it is added to ``charts``."""
    charts[place] = spec
    height = spec["layout"].get("height") or (ROW * spec["rows"] + 140 if "rows" in spec else 0)
    style = f"min-height:{height}px" if height else ""
    return tag("div", id=place, class_="chart", role="img", aria_label=label, style=style)


def table_name(study: Study, panel: Panel, *parts: str) -> str:
    """The file name of a table as CSV, without its suffix: study, panel and part.

    The name of a study with one panel that has no title of its own stands once.
    """
    return "_".join(dict.fromkeys((study.place, panel.place, *places(filter(None, parts), "part"))))


def card(panel: Panel, *content: Markup, wide: bool = False) -> Markup:
    """A card with the panel's title on it, and the notices of its runs at the end; ``wide`` across the whole page."""
    title = tag("h3", text(panel.name)) if panel.title else ""
    return tag("div", title, *content, *map(note, panel.notices()), class_="card wide" if wide else "card")


def note(words: str) -> Markup:
    """A remark in small letters; nothing without words."""
    return tag("p", text(words), class_="note") if words else ""


def value(mean: float | None, error: float | None) -> Markup:
    """A mean with its standard error in a quieter tone."""
    told = [exact(text(number(each, digits)), "" if each is None else each) for each, digits in ((mean, 3), (error, 2))]
    return f"{told[0]} {tag('i', '± ' + told[1])}"


def precise(value: float | None) -> Markup:
    """A number as people read it, with all its digits behind it."""
    return exact(text(number(value)), "" if value is None else value)


def best_words(marked: bool) -> str:
    """What the bold row of a table means, or why there is none."""
    if marked:
        return f"Bold: the lowest mean, of {ENOUGH} replications or more."
    return f"Nothing is bold: the lowest mean is marked from {ENOUGH} replications on."


def paired(study: Study, panel: Panel) -> Markup:
    """Differences of final regret, paired by seed: every policy of a cell met the same contexts and costs."""
    found = []
    for cell in panel.cells:
        body = [
            row(
                text(arm.label),
                precise(arm.difference.mean),
                f"{precise(arm.difference.low)} to {precise(arm.difference.high)}",
                text(arm.difference.pairs),
            )
            for arm in cell.arms.values()
            if arm.difference is not None
        ]
        if body:
            anchor = next(iter(cell.arms.values())).anchor
            where = f"{cell.label}: " if cell.label and len(panel.cells) > 1 else ""
            head = ("policy", f"minus {anchor}", "95 % interval", "pairs")
            summary = tag("summary", text(f"{where}Paired differences from {anchor}"))
            found.append(tag("details", summary, table(head, body, table_name(study, panel, where, "paired"))))
    return "".join(found)
