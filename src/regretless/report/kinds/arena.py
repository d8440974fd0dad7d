"""The arena: regret relative to random by world and policy, the geometric means, and a dot for each of them on a log axis."""

import math
from collections.abc import Iterable, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from regretless.report.figures import add_legend
from regretless.report.gather import Panel, Study
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.kinds.base import Kind, best_words, card, chart, chart_id, note, precise, table_name
from regretless.report.tables import markdown_table
from regretless.report.words import markdown_text
from regretless.show import figures
from regretless.show.charts import Charts, Spec, labels, log_axis, plain, short
from regretless.show.plots import log_ticks
from regretless.show.style import QUIET
from regretless.show.words import number, spread
from regretless.studies.arena.scores import FLOOR, Overall, Score, overall, score

NOTHING = "Nothing to compare: no cell of this panel has a random line."
WIDTH = 5.2
"""Inches of the figure."""

HEAD = ("policy", "worlds", "relative", "95 % interval", "over linear_old", "worst world", "beats best fixed", "µs")
BELOW = "* below the best fixed decision."


def scores(panels: Iterable[Panel]) -> dict[str, dict[str, Score]]:
    """The scores of all cells, by world and policy."""
    found: dict[str, dict[str, Score]] = {}
    for cell in (cell for panel in panels for cell in panel.cells):
        for label, arm in cell.arms.items():
            one = score(cell.label, label, arm.final, arm.diverged, cell.record)
            if one is not None:
                found.setdefault(cell.label, {})[label] = one
    return found


def names(found: dict[str, dict[str, Score]]) -> list[str]:
    """The policies, in the order in which they come."""
    return list(dict.fromkeys(name for each in found.values() for name in each))


def totals(found: dict[str, dict[str, Score]]) -> list[Overall]:
    """Every policy over its worlds."""
    return overall(one for each in found.values() for one in each.values())


def arena_card(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The two tables and the chart; before the first of several panels stands a card that sums all of them up."""
    found = scores([panel])
    if not found:
        return card(panel, note(NOTHING))
    drawn = chart(chart_id(study, panel), dots(found, panel), charts, f"{study.title}: {panel.name}")
    name = table_name(study, panel)
    everything = scores(study.panels)
    whole = study.panels[0] is panel and everything.keys() != found.keys()
    summed = ""
    if whole:
        marked = _marks(study.panels)
        every = total_table(everything, marked, f"{study.place}_all_worlds")
        title = tag("h3", text("All worlds together"))
        summed = tag("div", title, every, note(best_words(marked)), class_="card wide")
    marked = _marks([panel])
    worlds = world_table(found, marked, f"{name}_worlds")
    folded = tag("details", tag("summary", text("Every world")), worlds, note(BELOW))
    parts = (total_table(found, marked, name), note(best_words(marked)), drawn, folded)
    return summed + card(panel, *parts, wide=True)


def _marks(panels: Iterable[Panel]) -> bool:
    """Whether the lowest mean says something: every cell has enough replications."""
    return all(cell.marks_best for panel in panels for cell in panel.cells)


def total_table(found: dict[str, dict[str, Score]], marked: bool, name: str) -> Markup:
    """A row per policy, the lowest geometric mean ``marked``."""
    rows = totals(found)
    lowest = min(each.relative for each in rows)
    told = [_total(each) for each in rows]
    kept = [index for index in range(len(HEAD)) if any(line[index] != "–" for line in told)]
    body = [
        row(*(text(line[index]) for index in kept), class_="best" if marked and each.relative == lowest else "")
        for each, line in zip(rows, told, strict=True)
    ]
    return table([HEAD[index] for index in kept], body, name)


def _total(each: Overall) -> list[str]:
    return [
        each.policy,
        str(each.worlds),
        number(each.relative),
        f"{number(each.interval[0])} to {number(each.interval[1])}",
        number(each.ratio),
        f"{each.worst} ({number(each.worst_relative)})",
        f"{each.below_fixed} of {each.fixed_matters}",
        number(each.microseconds),
    ]


def world_table(found: dict[str, dict[str, Score]], marked: bool, name: str) -> Markup:
    """A row per world: the reference lines, and each policy's regret with its share of random's."""
    policies = names(found)
    body = []
    for world, mine in found.items():
        first, lowest = next(iter(mine.values())), min(each.regret for each in mine.values())
        cells = [_entry(mine.get(policy), lowest if marked else None) for policy in policies]
        body.append(row(text(world), precise(first.random), precise(first.fixed), *cells))
    return table(("world", "random", "best fixed", *policies), body, name)


def _entry(found: Score | None, lowest: float | None) -> Markup:
    if found is None:
        return text("–")
    share = text(number(found.relative) + ("*" if found.below_fixed else ""))
    value = tag("b", share) if found.regret == lowest else share
    return f"{value} {tag('i', text(spread(found.regret, found.error)))}"


def dots(found: dict[str, dict[str, Score]], panel: Panel) -> Spec:
    """A row per world from top to bottom, a dot per policy, the best fixed decision as a bar, random at 1."""
    shown = dict(zip(found, labels(found), strict=True))
    data: list[Spec] = []
    for name in names(found):
        look, mine = panel.palette[name], [each[name] for each in found.values() if name in each]
        data.append(
            {
                "type": "scatter", "mode": "markers", "name": plain(name), "y": [shown[each.world] for each in mine],
                "x": short(max(each.relative, FLOOR) for each in mine),
                "marker": {"color": look.colour, "symbol": look.marker, "size": 9, "opacity": 0.85},
                "hovertemplate": "%{y}: %{x:.3g} of random's regret<extra>%{fullData.name}</extra>",
            }
        )  # fmt: skip
    fixed = [first for first in (next(iter(each.values())) for each in found.values()) if first.fixed]
    data.append(
        {
            "type": "scatter", "mode": "markers", "name": "best_fixed", "y": [shown[each.world] for each in fixed],
            "x": short(max((each.fixed or 0.0) / each.random, FLOOR) for each in fixed),
            "marker": {"color": QUIET, "symbol": "line-ns-open", "size": 14},
            "hovertemplate": "%{y}: %{x:.3g} of random's regret<extra>best_fixed</extra>",
        }
    )  # fmt: skip
    low, high, _ = _range(value for trace in data for value in trace["x"] if value)
    layout = {
        "xaxis": {
            "title": {"text": "regret relative to random"}, "range": short([math.log10(low), math.log10(high)]),
            **log_axis(low, high),
        },
        "yaxis": {"categoryorder": "array", "categoryarray": list(shown.values())[::-1], "automargin": True},
        "shapes": [{"type": "line", "x0": 1, "x1": 1, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 1, "dash": "dot"}}],
    }  # fmt: skip
    return {"data": data, "layout": layout, "kind": "arena", "rows": len(found)}


def _range(values: Iterable[float]) -> tuple[float, float, list[float]]:
    """The ends of a logarithmic axis that shows these values and 1, and its ticks."""
    every = [*values, 1.0]
    low, high = min(every) / 1.3, max(every) * 1.3
    return low, high, log_ticks(low, high)


def figure(study: Study, panel: Panel) -> Figure | None:
    """The dots for print."""
    found = scores([panel])
    if not found:
        return None
    drawn = Figure(figsize=(WIDTH, 0.2 * len(found) + 1.2), layout="constrained")
    axes = drawn.add_subplot()
    places = {world: len(found) - index for index, world in enumerate(found)}
    for name in names(found):
        look, mine = panel.palette[name], [each[name] for each in found.values() if name in each]
        x, y = [max(each.relative, FLOOR) for each in mine], [places[each.world] for each in mine]
        mark = figures.MARKERS[look.marker]
        size, label = 1.2 * figures.SIZES[look.marker], figures.printed(figures.named(name))
        axes.plot(
            x, y, mark, color=look.colour, label=label, markersize=size, markeredgecolor="white", markeredgewidth=0.3
        )
    fixed = [first for first in (next(iter(each.values())) for each in found.values()) if first.fixed]
    levels = [max((each.fixed or 0.0) / each.random, FLOOR) for each in fixed]
    rows = [places[each.world] for each in fixed]
    axes.plot(levels, rows, "|", color=QUIET, markersize=9, label="best fixed", zorder=1.5)
    axes.axvline(1.0, color=QUIET, linestyle=":", linewidth=0.8)
    shares = [max(one.relative, FLOOR) for each in found.values() for one in each.values()]
    low, high, ticks = _range([*shares, *levels])
    axes.set_xscale("log")
    axes.set(xlim=(low, high), ylim=(0.4, len(found) + 0.6))
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(FixedFormatter([figures.power_text(tick) for tick in ticks]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("regret relative to random")
    axes.set_yticks(list(places.values()), [figures.printed(world, 24) for world in places], fontsize=6.5)
    axes.set_title(figures.printed(panel.name or study.title, 60), fontsize="large")
    add_legend(drawn, [axes], [*names(found), "best fixed"])
    return drawn


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """The geometric means of each panel, and its worlds."""
    lines: list[str] = []
    for panel in panels:
        found = scores([panel])
        if not found:
            continue
        policies = names(found)
        means = [[markdown_text(word) for word in _total(each)] for each in totals(found)]
        worlds = [
            [markdown_text(world), *(_markdown_entry(mine.get(name)) for name in policies)]
            for world, mine in found.items()
        ]
        lines += [f"### {markdown_text(panel.name or study.title)}", "", *markdown_table(HEAD, means)]
        lines += markdown_table(("world", *map(markdown_text, policies)), worlds)
    return lines


def _markdown_entry(found: Score | None) -> str:
    if found is None:
        return "–"
    mark = "\\*" if found.below_fixed else ""
    return f"{spread(found.regret, found.error)} ({number(found.relative)}{mark})"


KIND = Kind(card=arena_card, markdown=markdown, figure=figure)
