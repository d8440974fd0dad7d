"""The study ``as_printed``: what following the paper's text instead of the published settings does to the regret.

The list of deviations says which settings follow the text. Each is played alone, all of them together but for the
clipping of gradients, and all of them together, on the four benchmarks with bandit feedback, without tuning again.
Settings of a benchmark change what regret is measured in, so they are cells of their own, with the greedy baseline.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from regretless import RegretlessError, policies
from regretless.experiments import Arm, Cell, Experiment, Panel, Scale, Study
from regretless.experiments.report import Card, Note, PanelContext, panel_function
from regretless.plots import Axis, Line, Plot, Style
from regretless.results import Result
from regretless_dfhpg.deviations import Deviation, deviations
from regretless_dfhpg.presets import preset

PUBLISHED = "published settings"
ALL_BUT_CLIPPING, ALL = "all but clipping", "all together"
CLIPPING = "gradient clipping"
SHORT_RUNS = ("alpha.warmup",)
"""Requirements that only a run of a few rounds has."""

COMPARED = ("greedy", "dfhpg", "dfhpg_0")
"""What is played where the text has another benchmark."""

RESAMPLES = 2000


def text_settings(benchmark: str) -> dict[str, dict[str, Any]]:
    """Return the settings that follow the text on a benchmark, by deviation, and those of the two groups.

    Parameters
    ----------
    benchmark : str
        Name of a benchmark of the paper.
    """
    tuned = preset(benchmark, 8, "gaussian_linear", "bandit")
    published = policies.parse("dfhpg", {} if tuned is None else _known(tuned.values)).names()
    singles = {each.what: each.option for each in _of_policy() if _changes(published, each)}
    groups: dict[str, dict[str, Any]] = {}
    for label, left_out in ((ALL_BUT_CLIPPING, (CLIPPING,)), (ALL, ())):
        settings: dict[str, Any] = {}
        for each in _of_policy():  # in the order of the list: some need an earlier one to have an effect
            if each.what not in left_out and _changes({**published, **settings}, each):
                settings |= each.option
        if settings not in groups.values():  # without clipping to leave out the groups are the same
            groups[label] = settings
    return {**singles, **groups}


def _of_policy() -> list[Deviation]:
    """Return the deviations of DFHPG with the linear model and bandit feedback that have an option."""
    where = ("dfhpg", "gaussian_linear", "bandit")
    return [
        each
        for each in deviations()
        if each.option and (each.policy, each.model, each.feedback) == where and not _world(each)
    ]


def _world(deviation: Deviation) -> dict[str, Any]:
    """Return the part of an option that changes the benchmark."""
    return {name: value for name, value in deviation.option.items() if name.startswith("benchmark.")}


def _known(values: Mapping[str, Any]) -> dict[str, Any]:
    fields = policies.REGISTRY["dfhpg"].model_fields
    return {name: value for name, value in values.items() if name.partition(".")[0] in fields}


def _changes(settings: Mapping[str, Any], deviation: Deviation) -> bool:
    """Return whether an option can be set on top of these settings, its requirements hold and it changes something."""
    if any(settings.get(name) != value for name, value in deviation.requires.items() if name not in SHORT_RUNS):
        return False
    try:
        changed = policies.parse("dfhpg", {**_writable(settings), **deviation.option}).names()
    except RegretlessError:
        return False
    return any(changed.get(name) != settings.get(name) for name in deviation.option)


def _writable(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings that differ from the defaults."""
    defaults = policies.parse("dfhpg").names()
    return {name: value for name, value in settings.items() if name not in defaults or defaults[name] != value}


def build_study(scale: Scale) -> Study:
    """Return the study at a scale.

    Parameters
    ----------
    scale : Scale
        Replications and rounds.
    """
    panels = []
    for name in ("topk", "shortest_path", "pricing", "energy"):
        arms = [Arm(PUBLISHED, "dfhpg"), *(Arm(label, "dfhpg", one) for label, one in text_settings(name).items())]
        cells = [Cell("", scale.apply(Experiment(name, arms, seeds=range(30))))]
        for each in deviations():
            if each.benchmark == name and _world(each) and each.feedback == "bandit":
                world = Experiment(name, COMPARED, seeds=range(30), settings=_world(each))
                cells.append(Cell(each.what, scale.apply(world)))
        panels.append(Panel(name, tuple(cells)))
    return Study(
        "as_printed",
        tuple(panels),
        title="As printed",
        about=(
            "Final regret with the settings that the paper's text gives, each alone and together, over that of the "
            "published settings; nothing is tuned again."
        ),
        kind="as_printed",
        collection="dfhpg",
        order=10,
    )


def show_as_printed(context: PanelContext) -> list[Card]:
    """Show the ratios to the published settings, and the table of all arms.

    Parameters
    ----------
    context : PanelContext
        The results of one benchmark.
    """
    plot = ratio_plot(context.views[0].results)
    note = Note("Mean final regret over that of the published settings, same seeds, with 95 % intervals (bootstrap).")
    diverged = [label for label, result in context.views[0].results.items() if result.diverged]
    notes = [note, *([Note(f"Diverged in some replications, left out: {', '.join(diverged)}.")] if diverged else [])]
    return [Card(context.title, (*context.chart(plot, "ratios"), *notes), wide=True), *panel_function("table")(context)]


def ratio_plot(results: Mapping[str, Result]) -> Plot:
    """Return the ratio of each arm's mean regret to that of the published settings.

    Parameters
    ----------
    results : mapping of str to Result
        Arms with equal seeds, one of them with the published settings.
    """
    base = results[PUBLISHED].final()
    drawn = np.random.default_rng(0).integers(0, len(base), (RESAMPLES, len(base)))
    labels, ratios, errors = [], [], []
    for label, result in results.items():
        if label != PUBLISHED and not result.diverged:
            final = result.final()
            resampled = final[drawn].mean(axis=1) / base[drawn].mean(axis=1)
            low, high = np.quantile(resampled, [0.025, 0.975])
            labels.append(label)
            ratios.append(float(final.mean() / base.mean()))
            errors.append(0.5 * float(high - low))
    points = Line("as printed", labels, np.array(ratios), np.array(errors), Style("#4a86c5", "circle", "dot"))
    equal = Line(PUBLISHED, labels, np.ones(len(labels)))
    return Plot("points", [points], [equal], Axis("", categories=True), Axis("ratio"))
