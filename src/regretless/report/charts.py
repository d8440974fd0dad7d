"""Interactive charts as plotly specifications: plain dictionaries of numbers; colours of the page come from its script."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from regretless.report.gather import Page, Panel, Study
from regretless.report.series import Arm, Curve
from regretless.report.words import REFERENCES, benchmark, colour, number
from regretless.studies.verdicts import LIMIT

Spec = dict[str, Any]
HEAT = [[0.0, "#f6f1dc"], [0.3, "#b9d9c0"], [0.65, "#4f9d9a"], [1.0, "#123f52"]]


def short(values: Iterable[float]) -> list[float | None]:
    """Numbers to five digits, enough for any screen; None for what is not finite."""
    return [float(f"{value:.5g}") if np.isfinite(value) else None for value in values]


def curve_traces(label: str, curve: Curve, shade: str) -> list[Spec]:
    """A curve and its band; a click on the legend hides both."""
    rounds = curve.rounds.tolist()
    hover = "%{x:,} rounds: %{y:.4g}<extra>" + label + "</extra>"
    line = {
        "type": "scatter", "mode": "lines", "name": label, "legendgroup": label, "x": rounds, "y": short(curve.mean),
        "line": {"color": shade, "width": 2}, "hovertemplate": hover,
    }  # fmt: skip
    if curve.error is None:
        return [line]
    low, high = np.maximum(curve.mean - curve.error, 0.02 * curve.mean), curve.mean + curve.error
    band = {
        "type": "scatter", "mode": "lines", "legendgroup": label, "showlegend": False, "hoverinfo": "skip",
        "x": rounds + rounds[::-1], "y": short(high) + short(low[::-1]), "fill": "toself", "fillcolor": translucent(shade),
        "line": {"width": 0},
    }  # fmt: skip
    return [band, line]


def translucent(shade: str) -> str:
    """A colour at a sixth of its strength."""
    red, green, blue = (int(shade[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def reference_traces(lines: Iterable[Mapping[str, Any]], x: list[Any], divisor: float = 1.0) -> list[Spec]:
    """Reference lines across the chart, in the text's colour."""
    return [
        {
            "type": "scatter", "mode": "lines", "name": line["name"], "x": x,
            "y": short([line["mean"] / divisor] * len(x)), "meta": "reference",
            "line": {"dash": REFERENCES.get(line["name"], "longdashdot"), "width": 1.3},
            "hovertemplate": "%{y:.4g}<extra>" + line["name"] + "</extra>",
        }
        for line in lines
        if line["mean"] is not None and line["mean"] > 0
    ]  # fmt: skip


def regret_curves(panel: Panel, horizon: int, entries: Iterable[tuple[str, Arm]]) -> Spec:
    """Average regret per round of some arms, with the reference lines at their final value."""
    arms = dict(entries)
    simple = panel.linear_thompson()
    if simple is not None:
        arms.setdefault("linear_thompson", simple)
    curves = {label: arm.curve for label, arm in arms.items() if arm.curve is not None}
    data = [
        trace
        for index, (label, curve) in enumerate(curves.items())
        for trace in curve_traces(label, curve, colour(label, index))
    ]
    data += reference_traces(panel.references(), [1, horizon], horizon)
    last = min(panel.zoom or horizon, horizon)
    floor = [line["mean"] / horizon for line in panel.references() if line["name"] == "best_fixed" and line["mean"]]
    layout = {
        "xaxis": {"title": {"text": "round"}, "range": [1, last]},
        "yaxis": {"title": {"text": "average regret per round"}, **log_axis(curves.values(), floor, last)},
    }
    return {"data": data, "layout": layout, "kind": "curves"}


def log_axis(curves: Iterable[Curve], floor: Iterable[float], last: int) -> Spec:
    """A range that the curves fill once the first rounds are over; a double click shows what lies outside."""
    settled = [curve.mean[curve.rounds >= last // 20] for curve in curves]
    values = [value for mean in settled for value in (np.min(mean), np.max(mean))] + list(floor)
    values = [value for value in values if np.isfinite(value) and value > 0]
    if not values:
        return {"type": "log"}
    low, high = np.log10(min(values) / 1.4), np.log10(max(values) * 1.4)
    return {"type": "log", "range": short([low, high]), "dtick": 1 if high - low > 2 else "D2"}


def cell_curves(panel: Panel) -> Spec:
    """The curves of a panel with one cell: one per arm."""
    cell = panel.cells[0]
    return regret_curves(panel, cell.record["horizon"], cell.arms.items())


def model_curves(panel: Panel) -> Spec:
    """One curve per model."""
    return regret_curves(panel, panel.cells[0].record["horizon"], by_model(panel).items())


def by_model(panel: Panel) -> dict[str, Arm]:
    """DFHPG with each model, and the variants of it that a cell has besides."""
    return {
        cell.label if label == "dfhpg" else f"{cell.label}, {label}": arm
        for cell in panel.cells
        for label, arm in cell.arms.items()
        if label != "linear_thompson"
    }


def heat_map(panel: Panel) -> Spec:
    """Final regret by surrogate (rows, best first) and by policy (columns)."""
    values: dict[str, dict[str, float]] = {}
    for cell in panel.cells:
        for label, arm in cell.arms.items():
            surrogate, policy = label.split("/")
            values.setdefault(surrogate, {})[policy] = arm.mean
    columns = ["dfhpg", "dfhpg_0"]
    rows = sorted(values, key=lambda name: -values[name].get("dfhpg", np.inf))  # plotly draws upwards
    cells = [[values[name].get(column, np.nan) for column in columns] for name in rows]
    trace = {
        "type": "heatmap", "x": columns, "y": rows, "z": [short(np.log10(np.maximum(row, 1e-9))) for row in cells],
        "text": [[number(value) for value in row] for row in cells], "texttemplate": "%{text}", "colorscale": HEAT,
        "showscale": False, "hovertemplate": "%{y}, %{x}: %{text}<extra></extra>", "xgap": 2, "ygap": 2,
    }  # fmt: skip
    layout = {"xaxis": {"side": "top"}, "yaxis": {"automargin": True}, "height": 26 * len(rows) + 70}
    return {"data": [trace], "layout": layout, "kind": "heatmap"}


def points(label: str, x: list[Any], arms: list[Arm | None], index: int) -> Spec:
    """Final regret with ±1 standard error over some categories."""
    shade = colour(label, index)
    means = [np.nan if arm is None else arm.mean for arm in arms]
    errors = [0.0 if arm is None or not np.isfinite(arm.error) else arm.error for arm in arms]
    return {
        "type": "scatter", "mode": "lines+markers", "name": label, "x": x, "y": short(means),
        "error_y": {"type": "data", "array": short(errors), "thickness": 1.2, "width": 3, "color": shade},
        "line": {"color": shade, "width": 2}, "marker": {"color": shade, "size": 7},
        "hovertemplate": "%{y:.4g}<extra>" + label + "</extra>",
    }  # fmt: skip


def across(panel: Panel, policies: Iterable[str] | None, title: str) -> Spec:
    """Final regret of each policy across the panel's cells, with the reference lines of each."""
    x = [cell.label for cell in panel.cells]
    wanted = list(policies or dict.fromkeys(label for cell in panel.cells for label in cell.arms))
    data = []
    for index, label in enumerate(wanted):
        arms = [cell.arms.get(label) for cell in panel.cells]
        if any(arm is not None for arm in arms):
            data.append(points(label, x, arms, index))
    names = dict.fromkeys(line["name"] for cell in panel.cells for line in cell.record["references"])
    for name in names:
        means = [
            next((line["mean"] for line in cell.record["references"] if line["name"] == name), None)
            for cell in panel.cells
        ]
        if any(mean is not None and mean > 0 for mean in means):
            line = reference_traces([{"name": name, "mean": 1.0}], x)[0]
            line["y"] = short(np.nan if mean is None or mean <= 0 else mean for mean in means)
            data.append(line)
    layout = {
        "xaxis": {"title": {"text": title}, "type": "category"},
        "yaxis": {"title": {"text": "final regret"}, "type": "log"},
    }
    return {"data": data, "layout": layout, "kind": "points"}


def overview(page: Page) -> Spec | None:
    """The z-score of every published cell: one row per policy, one mark per benchmark."""
    marks: dict[str, tuple[list[float], list[str], list[str]]] = {}
    for study in page.studies:
        if study.kind == "table":
            for panel in study.panels:
                for cell in panel.cells:
                    for label in cell.arms:
                        found = cell.verdict(label)
                        if found is not None:
                            z, rows, texts = marks.setdefault(panel.benchmark, ([], [], []))
                            z.append(found.z)
                            rows.append(f"{label}, {cell.record['cell']['feedback'].replace('_', '-')}")
                            texts.append(found.word)
    if not marks:
        return None
    shades = ("#d9455f", "#1f9e8f", "#4a86c5", "#e0982d")
    symbols = ("circle", "diamond", "square", "triangle-up")
    data = [
        {
            "type": "scatter", "mode": "markers", "name": benchmark(name), "x": short(z), "y": rows, "text": texts,
            "marker": {"color": shades[index % 4], "symbol": symbols[index % 4], "size": 10, "opacity": 0.9},
            "hovertemplate": "%{y}: z = %{x:.2f}, %{text}<extra>" + benchmark(name) + "</extra>",
        }
        for index, (name, (z, rows, texts)) in enumerate(marks.items())
    ]  # fmt: skip
    labels = list(dict.fromkeys(row for _, rows, _ in marks.values() for row in rows))
    edge = max(4.0, *(abs(value) + 0.5 for z, _, _ in marks.values() for value in z))
    layout = {
        "xaxis": {"title": {"text": "z: standard errors above the published mean"}, "range": [-edge, edge]},
        "yaxis": {"categoryorder": "array", "categoryarray": labels[::-1], "automargin": True},
        "height": 26 * len(labels) + 130,
        "shapes": [
            {"type": "rect", "x0": -LIMIT, "x1": LIMIT, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0},
             "fillcolor": "rgba(31,158,143,0.10)", "layer": "below"},
        ],
    }  # fmt: skip
    return {"data": data, "layout": layout, "kind": "overview"}


def chart(study: Study, panel: Panel) -> Spec | None:
    """The chart of a panel; None if it has none, or nothing to show yet."""
    if not panel.cells:
        return None
    if study.kind in ("curves", "alpha"):
        return cell_curves(panel)
    if study.kind == "models":
        return model_curves(panel)
    if study.kind == "heatmap":
        return heat_map(panel)
    if study.kind == "degree":
        return across(panel, None, "degree")
    if study.kind == "feedback":
        return across(panel, ("dfhpg", "dfhpg_0", "linear_thompson"), "feedback")
    return None
