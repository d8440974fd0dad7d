"""Tuning on the page: what every trial reached, and which settings mattered."""

from regretless.report.html import Markup, tag, text
from regretless.report.kinds.base import chart, note
from regretless.report.tunings import Tuning
from regretless.report.words import benchmark, places
from regretless.show.charts import Charts, Spec, log_axis, plain, short
from regretless.show.style import KNOWN
from regretless.show.words import number

FEW = note("Too few trials to tell which settings matter.")


def section(tuning: Tuning, charts: Charts) -> Markup:
    """One tuning; its charts are added to ``charts``."""
    place = anchor(tuning)
    best = tuning.best
    words = (
        f"{len(tuning.trials)} random configurations of {tuning.policy} with {tuning.model}, {tuning.feedback} feedback, "
        f"{tuning.seeds} validation seeds from {tuning.first_seed}; the best reaches {number(best.value)} "
        f"(trial {best.number})."
    )
    drawn = {"history": ("Trials", history(tuning)), "importance": ("Importance of the settings", importance(tuning))}
    cards = [
        tag(
            "div", tag("h3", text(title)), chart(f"{place}-{kind}", spec, charts, title) if spec else FEW, class_="card"
        )
        for kind, (title, spec) in drawn.items()
    ]
    title = f"Tuning: {benchmark(tuning.benchmark)}"
    return tag("section", tag("h2", text(title)), tag("p", text(words)), tag("div", *cards, class_="grid"), id=place)


def anchor(tuning: Tuning) -> str:
    """Where on the page a tuning is."""
    return "-".join(["tuning", *places((tuning.benchmark, tuning.model, tuning.feedback), "other")])


def history(tuning: Tuning) -> Spec:
    """Final regret of every trial, and the lowest so far."""
    trials = sorted((each.number, each.value) for each in tuning.trials if each.value is not None)
    numbers = [trial for trial, _ in trials]
    values = [value for _, value in trials]
    lowest = [min(values[: i + 1]) for i in range(len(values))]
    data = [
        {"type": "scatter", "mode": "markers", "name": "trial", "x": numbers, "y": short(values),
         "marker": {"color": KNOWN["dfhpg_1"].colour, "size": 6, "opacity": 0.7}},
        {"type": "scatter", "mode": "lines", "name": "lowest so far", "x": numbers, "y": short(lowest),
         "line": {"color": KNOWN["dfhpg"].colour, "width": 2, "shape": "hv"}},
    ]  # fmt: skip
    scale = log_axis(min(values), max(values)) if values and min(values) > 0 else {}
    layout = {
        "xaxis": {"title": {"text": "trial"}, "tick0": 0, "dtick": max(1, len(numbers) // 8)},
        "yaxis": {"title": {"text": "mean final regret"}, **scale},
    }
    return {"data": data, "layout": layout, "kind": "points"}


def importance(tuning: Tuning) -> Spec | None:
    """Share of the variation of the regret that each setting explains; None where the trials do not tell."""
    if not tuning.importances:
        return None
    pairs = sorted(tuning.importances.items(), key=lambda pair: pair[1])
    data = [{"type": "bar", "orientation": "h", "y": [plain(name) for name, _ in pairs], "x": short([v for _, v in pairs]),
             "marker": {"color": KNOWN["dfhpg_0"].colour}, "hovertemplate": "%{y}: %{x:.2f}<extra></extra>"}]  # fmt: skip
    layout = {"xaxis": {"title": {"text": "importance (sums to 1)"}}, "yaxis": {"automargin": True}}
    return {"data": data, "layout": layout, "kind": "points"}
