"""Kinds of panels: functions that turn the results of a panel into cards."""

import dataclasses
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from regretless.experiments.arena import MEDIAN_SUFFIX, REFERENCE, WORLDS, Score, conclude, overall_scores, score
from regretless.experiments.extension import REPORT
from regretless.experiments.report import content
from regretless.experiments.report.content import Block, Card, CellView, Chart, Note, Page, Table, Value, row
from regretless.experiments.study import Panel, Study
from regretless.formatting import display_name, format_mean, format_number, unique_name
from regretless.plots import EMPTY, Axis, HeatMap, Line, Plot, fit_axis, regret_plot
from regretless.registry import require_known
from regretless.results import Reference, Result

BENCHMARK_NAMES = {"topk": "Top-k", "shortest_path": "Shortest path", "pricing": "Pricing", "energy": "Energy"}


@dataclasses.dataclass(frozen=True)
class PanelContext:
    """A panel with its results, as a function that shows it receives it.

    Parameters
    ----------
    page : Page
        The page, with its store and palette.
    study, panel : Study and Panel
        What is shown.
    views : list of CellView
        The cells that have results, at least one.
    name : str
        A name of the panel that is safe in file names and addresses.
    """

    page: Page
    study: Study
    panel: Panel
    views: list[CellView]
    name: str

    @property
    def title(self) -> str:
        """The title of the panel; a benchmark is shown by its printed name."""
        return BENCHMARK_NAMES.get(self.panel.title, self.panel.title)

    @property
    def kind(self) -> str:
        """How it is shown."""
        return self.panel.kind or self.study.kind

    @property
    def references(self) -> tuple[Reference, ...]:
        """The reference lines of the first cell with finite values."""
        return tuple(line for line in self.views[0].results.references if math.isfinite(line.mean))

    def results(self) -> dict[str, Result]:
        """Return all results by label, which names the cell if there are several, and the companions' baseline."""
        views, baseline = self.views, content.SIMPLE_BASELINE
        shared = set.intersection(*(set(view.results) for view in views))
        unique = {baseline} if sum(baseline in view.results for view in views) == 1 else set()
        results: dict[str, Result] = {}
        for view in views:
            for label, result in view.results.items():
                qualified = view.label if shared == {label} else f"{view.label}, {label}"
                name = label if label in unique or len(views) == 1 or not view.label else qualified
                results[unique_name(name, results)] = result
        for companion in map(self.page.view, self.panel.companions):
            if companion is not None and baseline in companion.results:
                results.setdefault(baseline, companion.results[baseline])
        return results

    def chart(self, plot: Plot | HeatMap, part: str = "") -> list[Block]:
        """Return a chart with a note on what it leaves out; a note alone if there is nothing to draw.

        Parameters
        ----------
        plot : Plot or HeatMap
            What is drawn.
        part : str, optional
            A name that distinguishes several charts of the panel.
        """
        if isinstance(plot, Plot) and not plot.lines:
            return [Note(EMPTY)]
        outside = plot.outside_text() if isinstance(plot, Plot) else ""
        place = "-".join(filter(None, ("chart", self.name, part)))
        title = ": ".join(filter(None, (self.study.title, self.title)))
        return [Chart(place, title, plot), *([Note(outside)] if outside else [])]

    def card(self, blocks: Iterable[Block], title: str = "", wide: bool = False) -> Card:
        """Return a card with the title of the panel and the notices of its runs.

        Parameters
        ----------
        blocks : iterable of Block
            Tables, charts and notes.
        title : str, optional
            By default that of the panel.
        wide : bool, default False
            Whether it takes the whole width of the page.
        """
        results = [result for view in self.views for result in view.results.values()]
        notices = dict.fromkeys(notice for result in results for notice in result.extra.get("notices", []))
        notices |= dict.fromkeys(result.extra["contextuality"] for result in results if "contextuality" in result.extra)
        return Card(title or self.title, (*blocks, *map(Note, notices)), wide)


PanelFunction = Callable[[PanelContext], list[Card]]
"""A function that turns a panel with its results into cards."""


def result_value(result: Result | None) -> Value:
    """Return the mean final regret with its standard error; a dash without a result."""
    if result is None:
        return Value("–", (None, None))
    return content.mean_value(result.mean(), result.standard_error())


def best_note(marked: bool) -> Note:
    """Return what a bold row means, or why there is none."""
    if marked:
        return Note(f"Bold: the lowest mean, of {content.MIN_REPLICATIONS} replications or more.")
    return Note(f"Nothing is bold: the lowest mean is marked from {content.MIN_REPLICATIONS} replications on.")


def final_table(context: PanelContext) -> Table:
    """Return a folded table of the final regret of every arm."""
    results = context.results()
    return grid_table(context.name, "policy", list(results), {"mean": results})


def show_table(context: PanelContext) -> list[Card]:
    """Show final regrets with published values where there are any, paired differences, and regret curves."""
    views = context.views
    marked = any(view.replications >= content.MIN_REPLICATIONS for view in views)
    blocks: list[Block] = [result_table(context), best_note(marked), *paired_tables(context)]
    cards = [context.card(blocks)]
    every = [(panel, panel.kind or study.kind) for study in context.page.studies for panel in study.panels]
    curves = [cell for panel, kind in every if kind in ("curves", "models") for cell in panel.cells]
    drawn = {address for cell in curves for _, address in cell.arms}
    if any(not drawn.issuperset(view.addresses.values()) for view in views):
        title = ": ".join(filter(None, (context.title, "regret per round")))
        cards.append(Card(title[0].upper() + title[1:], tuple(context.chart(panel_curves(context)))))
    return cards


def result_table(context: PanelContext) -> Table:
    """Return the table of final regrets with reference lines at the end."""
    comparing = any(view.published for view in context.views)
    head = ("policy", "mean ± s.e.", "median", *(("published ± s.e.", "z", "verdict") if comparing else ()))
    rows, references = [], []
    for view in context.views:
        prefix = f"{view.label}: " if view.label and len(context.views) > 1 else ""
        best = view.best() if view.replications >= content.MIN_REPLICATIONS else None
        for label, result in view.results.items():
            diverged = f"{result.diverged} diverged" if result.diverged else ""
            name = Value(prefix + label, swatch=context.page.palette[label].colour, detail=diverged)
            cells = [name, *_result_cells(result, view.published.get(label))]
            rows.append(row(*cells[: len(head)], style="best" if label == best else ""))
        for line in view.results.references:
            cells = [Value(prefix + line.name), content.mean_value(line.mean, line.standard_error)]
            references.append(row(*cells, *["–"] * (len(head) - 2), style="reference"))
    return Table(context.name, head, (*rows, *references))


def _result_cells(result: Result, compared: content.PublishedComparison | None) -> list[Value]:
    ours, median = result_value(result), content.number_value(result.median())
    if compared is None:
        return [ours, median, Value("–"), Value("–"), Value("–")]
    z = f"{compared.z:+.2f}"
    if compared.second is not None and compared.second_z is not None:
        z += f", then {compared.second_z:+.2f}"
        ours = dataclasses.replace(ours, detail=f"second range: {format_mean(*compared.second)}")
    close = compared.verdict == "reproduced"
    chip = "good" if close else "warn" if compared.reproduced or compared.second_z is None else "bad"
    published = content.mean_value(compared.published.mean, compared.published.standard_error)
    return [ours, median, published, Value(z, (compared.z,)), Value(compared.verdict, chip=chip)]


def paired_tables(context: PanelContext) -> list[Table]:
    """Return differences of final regret, paired by seed, for each cell."""
    tables, names = [], content.file_names((view.label for view in context.views), "cell")
    for view, place in zip(context.views, names, strict=True):
        paired = [entry for entry in view.results.rows() if entry["difference"] is not None]
        if not paired:
            continue
        base = paired[0]["against"]
        several = view.label if len(context.views) > 1 else ""
        title = ": ".join(filter(None, (several, f"Paired differences from {base}")))
        name = "_".join(filter(None, (context.name, place if several else "", "paired")))
        rows = []
        for entry in paired:
            interval, pairs = range_value(entry["low"], entry["high"]), str(entry["pairs"])
            rows.append(row(entry["policy"], content.number_value(entry["difference"]), interval, pairs))
        tables.append(Table(name, ("policy", f"minus {base}", "95 % low to high", "pairs"), tuple(rows), folded=title))
    return tables


def range_value(low: float, high: float) -> Value:
    """Return the ends of an interval as a table cell with two exact numbers."""
    return Value(f"{format_number(low)} to {format_number(high)}", (low, high))


def panel_curves(context: PanelContext, zoom: int | None = None) -> Plot:
    """Return the average regret per round of all arms with the reference lines at their final value.

    Parameters
    ----------
    context : PanelContext
        The panel with its results.
    zoom : int, optional
        The last round to show; by default the panel's own.
    """
    results = {label: result for label, result in context.results().items() if result.regret.size}
    levels = [(line.name, line.mean) for line in context.references]
    return regret_plot(results, levels, palette=context.page.palette, last=zoom or context.panel.zoom)


def show_curves(context: PanelContext) -> list[Card]:
    """Show average regret per round, with a folded table of final regrets."""
    horizon, zoom = max(view.rounds for view in context.views), context.panel.zoom
    blocks = context.chart(panel_curves(context))
    if zoom is not None and zoom < horizon:
        blocks.append(Note(f"The first {zoom} rounds; a double click shows all {horizon:,}."))
    return [context.card([*blocks, final_table(context)])]


def final_line(context: PanelContext, label: str, x: Sequence[Any], results: Sequence[Result | None]) -> Line | None:
    """Return the mean final regret of a policy at places on the x axis; None if there is no finite one."""
    means = np.array([math.nan if result is None else result.mean() for result in results])
    errors = np.array([math.nan if result is None else result.standard_error() for result in results])
    if not np.isfinite(means).any():
        return None
    shown = np.nan_to_num(errors) if np.isfinite(errors).any() else None
    return Line(label, list(x), means, shown, context.page.palette[label])


def show_bars(context: PanelContext) -> list[Card]:
    """Show the final regrets of all arms as bars with the reference lines that are near."""
    bars = [final_line(context, label, [label], [result]) for label, result in context.results().items()]
    lines = [line for line in bars if line is not None]
    names = [line.label for line in lines]
    references = [Line(line.name, names, np.full(len(names), line.mean)) for line in context.references if names]
    tips = [np.zeros(1), *(edge for line in lines for edge in line.band(False))]
    axis = fit_axis("final regret", tips, False, references)
    plot = Plot("bars", lines, references, Axis("", categories=True), axis)
    return [context.card([*context.chart(plot), final_table(context), *paired_tables(context)])]


def parse_numbers(labels: Sequence[str]) -> list[float] | None:
    """Return labels as distinct finite numbers; None if they are words.

    >>> parse_numbers(["2", "4e1"]), parse_numbers(["2", "full"])
    ([2.0, 40.0], None)
    """
    try:
        values = [float(label) for label in labels]
    except ValueError:
        return None
    return values if len(set(values)) == len(values) and all(map(math.isfinite, values)) else None


def show_lines(context: PanelContext) -> list[Card]:
    """Show the final regret of every policy across the cells, whose labels are the x axis."""
    cells: dict[str, CellView] = {}
    for view in context.views:
        cells[unique_name(view.label, cells)] = view
    values = parse_numbers(list(cells))
    if values is not None:
        cells = dict(sorted(cells.items(), key=lambda pair: float(pair[0])))
    x: list[float] | list[str] = list(cells) if values is None else sorted(values)
    columns = {label: dict(view.results) for label, view in cells.items()}
    policies = list(dict.fromkeys(label for results in columns.values() for label in results))
    drawn = [final_line(context, name, x, [column.get(name) for column in columns.values()]) for name in policies]
    lines = [line for line in drawn if line is not None]
    levels = [{line.name: line.mean for line in view.results.references} for view in cells.values()]
    names = dict.fromkeys(name for level in levels for name, mean in level.items() if math.isfinite(mean))
    references = [Line(name, x, np.array([level.get(name, math.nan) for level in levels])) for name in names]
    log = all(np.nanmin(line.y) > 0 for line in lines)
    axis = fit_axis("final regret", [edge for line in lines for edge in line.band(log)], log, references)
    plot = Plot("points", lines, references, Axis(context.study.axis or "", categories=values is None), axis)
    return [context.card([*context.chart(plot), grid_table(context.name, "policy", policies, columns)])]


def grid_table(name: str, corner: str, rows: Sequence[str], columns: Mapping[str, Mapping[str, Result]]) -> Table:
    """Return a folded table with a mean and standard error by row and column."""
    body = tuple(row(label, *(result_value(column.get(label)) for column in columns.values())) for label in rows)
    return Table(name, (corner, *(f"{label} ± s.e." for label in columns)), body, folded="Final regrets")


def show_heat_map(context: PanelContext) -> list[Card]:
    """Show final regrets by row and column, from arms labelled ``row/column``."""
    columns: dict[str, dict[str, Result]] = {}
    for view in context.views:
        for label, result in view.results.items():
            name, slash, column = label.partition("/")
            columns.setdefault(column if slash else view.label, {})[name] = result
    means = {column: {name: result.mean() for name, result in arms.items()} for column, arms in columns.items()}
    first = next(iter(means.values()))
    rows = list(dict.fromkeys(name for arms in columns.values() for name in arms))
    rows.sort(key=lambda name: first[name] if math.isfinite(first.get(name, math.inf)) else math.inf)
    grid = np.array([[column.get(name, math.nan) for column in means.values()] for name in rows])
    lines = [(line.name, line.mean) for line in context.references]
    lines += [(name, result.mean()) for name, result in context.results().items() if name == content.SIMPLE_BASELINE]
    comparison = " · ".join(f"{display_name(name)} {format_number(value)}" for name, value in lines)
    blocks = context.chart(HeatMap(rows, list(columns), grid))
    blocks += [Note(f"For comparison: {comparison}")] if comparison else []
    return [context.card([*blocks, grid_table(context.name, context.study.axis or "", rows, columns)])]


# Arena

Scores = dict[str, dict[str, Score]]
"""Scores by world and policy."""


MAX_SHADED_RATIO = 4.0
"""From this many times the lowest regret of a world on, cells have the darkest colour."""


def arena_scores(views: Iterable[CellView]) -> Scores:
    """Return the scores of cells by world and policy."""
    scores: Scores = {}
    for view in views:
        for label, result in view.results.items():
            one = score(view.label, label, result)
            if one is not None:
                scores.setdefault(view.label, {})[label] = one
    return scores


def arena_policies(scores: Scores) -> list[str]:
    """Return the policies, the lowest geometric mean first."""
    return [total.policy for total in overall_scores(one for world in scores.values() for one in world.values())]


def show_arena(context: PanelContext) -> list[Card]:
    """Show geometric means of relative regret, a heat map and a table of every world."""
    scores = arena_scores(context.views)
    if not scores:
        return [context.card([Note("Nothing to compare: no cell of this panel has a random line.")])]
    marked = all(view.replications >= content.MIN_REPLICATIONS for view in context.views)
    cards = []
    everything = arena_scores(view for panel in context.study.panels for view in context.page.views(panel))
    if context.study.panels[0] is context.panel and everything.keys() != scores.keys():
        total = overall_table(everything, f"{context.name}_all_worlds", marked)
        cards.append(Card("All worlds together", (total, best_note(marked)), wide=True))
    worlds = world_table(scores, f"{context.name}_worlds", marked)
    sentence = Note(conclude(one for world in scores.values() for one in world.values()))
    total = overall_table(scores, context.name, marked)
    blocks = [sentence, total, best_note(marked), *context.chart(relative_map(scores))]
    return [*cards, context.card([*blocks, worlds, Note("* below the best fixed decision.")], wide=True)]


def overall_table(scores: Scores, name: str, marked: bool) -> Table:
    """Return a row per policy: geometric mean of relative regret with its interval, worst world and time."""
    totals = overall_scores(one for world in scores.values() for one in world.values())
    lowest = min(total.relative for total in totals)
    rows = [
        {
            "policy": Value(total.policy),
            "worlds": Value(str(total.worlds)),
            "relative": content.number_value(total.relative),
            "low to high": range_value(*total.interval),
            f"over {REFERENCE}": content.number_value(total.ratio_to_reference),
            "best on": Value(str(total.best_on)),
            "worst world": Value(f"{total.worst_world} ({format_number(total.worst_relative)})"),
            "beats best fixed": Value(f"{total.below_best_fixed} of {total.of_worlds_where_it_matters}"),
            "µs": Value(f"{total.microseconds:,.0f}", (total.microseconds,)),
        }
        for total in totals
    ]
    used = [title for title in rows[0] if any(cells[title].text != "–" for cells in rows)]
    styles = ["best" if marked and total.relative == lowest else "" for total in totals]
    body = [row(*(cells[title] for title in used), style=style) for cells, style in zip(rows, styles, strict=True)]
    return Table(name, tuple(used), tuple(body))


def world_table(scores: Scores, name: str, marked: bool) -> Table:
    """Return a row per world: the regret of random decisions; of the others their share of it."""
    policies, rows = arena_policies(scores), []
    for world, by_policy in scores.items():
        first, lowest = next(iter(by_policy.values())), min(entry.regret for entry in by_policy.values())
        cells = [Value("–")] * len(policies)
        for policy, one in by_policy.items():
            share = format_number(one.relative) + ("*" if one.below_best_fixed else "")
            best = "good" if marked and one.regret == lowest else ""
            spread = format_mean(one.regret, one.standard_error)
            cells[policies.index(policy)] = Value(share, (one.relative,), spread, chip=best)
        known = world.removesuffix(MEDIAN_SUFFIX)
        fixed = content.number_value(None if first.fixed is None else first.fixed / first.random)
        about = WORLDS[known].about if known in WORLDS else ""
        rows.append(row(world, about, content.number_value(first.random), fixed, *cells))
    return Table(name, ("world", "about", "random", "best fixed", *policies), tuple(rows), folded="Every world")


def relative_map(scores: Scores) -> HeatMap:
    """Return the regret relative to random's as a heat map, a row per world and a column per policy.

    The colours follow the regret over the lowest of the world, up to ``MAX_SHADED_RATIO``.
    """
    policies = arena_policies(scores)
    grid = np.array([[w[p].relative if p in w else np.nan for p in policies] for w in scores.values()], float)
    lowest = np.maximum(np.nanmin(grid, axis=1, keepdims=True), 1e-12)
    return HeatMap(list(scores), policies, grid, np.log(np.clip(grid / lowest, 1.0, MAX_SHADED_RATIO)))


PANELS: dict[str, PanelFunction] = {
    "table": show_table,
    "curves": show_curves,
    "models": show_curves,
    "heatmap": show_heat_map,
    "lines": show_lines,
    "bars": show_bars,
    "arena": show_arena,
}
"""The kinds of panels of the library; packages add theirs with ``ReportExtension.panels``."""


def panel_function(kind: str) -> PanelFunction:
    """Return the function that shows a kind of panel, the library's or another package's.

    Parameters
    ----------
    kind : str
        The name of the kind.

    Raises
    ------
    SettingsError
        If no such kind exists.
    """
    known = {name: show for part in REPORT.usable().values() for name, show in getattr(part, "panels", {}).items()}
    known |= PANELS
    require_known("kind of panel", kind, known)
    return known[kind]
