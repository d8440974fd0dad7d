"""The same figures for print: PDF and PNG in the paper's style, one file per panel."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from regretless.report.charts import by_model
from regretless.report.gather import Page, Panel, Study
from regretless.report.series import Arm
from regretless.report.theory import theory_figure
from regretless.report.words import benchmark, colour, number

STYLE: dict[Any, Any] = {
    "font.family": "serif",
    "font.size": 8,
    "mathtext.fontset": "cm",
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.fontsize": 6.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "regretless",
}
SIZE = (3.4, 2.7)


def write_figures(page: Page, folder: Path) -> list[Path]:
    """Draws every chart of the page; the files' names say study and benchmark."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for study in page.studies:
        if study.kind == "theory" and study.panels[0].cells:
            document = study.panels[0].cells[0].record["document"]
            for suffix in ("pdf", "png"):
                written.append(folder / f"{study.name}.{suffix}")
                theory_figure(document, written[-1])
        for panel in study.panels:
            with matplotlib.rc_context(STYLE):
                figure = draw(study, panel)
                if figure is None:
                    continue
                for suffix in ("pdf", "png"):
                    path = folder / f"{study.name}_{panel.benchmark}.{suffix}"
                    metadata: dict[str, Any] = {"CreationDate": None} if suffix == "pdf" else {"Software": None}
                    figure.savefig(path, dpi=200, metadata=metadata)
                    written.append(path)
    return written


def draw(study: Study, panel: Panel) -> Figure | None:
    """The figure of one panel; None for tables and for what is not computed."""
    if not panel.cells or study.kind in ("table", "theory"):
        return None
    rows = sum(len(cell.arms) for cell in panel.cells) // 2
    figure = Figure(figsize=(3.0, 0.19 * rows + 0.5) if study.kind == "heatmap" else SIZE, layout="constrained")
    axes = figure.add_subplot()
    if study.kind == "heatmap":
        _heat_map(axes, panel)
    elif study.kind == "degree":
        _across(axes, panel, None, "degree")
    elif study.kind == "feedback":
        _across(axes, panel, ("dfhpg", "dfhpg_0", "linear_thompson"), "feedback")
    elif study.kind == "models":
        _curves(axes, panel, by_model(panel).items())
    else:
        _curves(axes, panel, panel.cells[0].arms.items())
    axes.set_title(benchmark(panel.benchmark), fontsize=9)
    return figure


def _curves(axes: Axes, panel: Panel, entries: Iterable[tuple[str, Arm]]) -> None:
    horizon = panel.cells[0].record["horizon"]
    shown = dict(entries)
    simple = panel.linear_thompson()
    if simple is not None:
        shown.setdefault("linear_thompson", simple)
    for index, (label, arm) in enumerate(shown.items()):
        if arm.curve is None:
            continue
        shade = colour(label, index)
        axes.plot(arm.curve.rounds, arm.curve.mean, label=label, color=shade, linewidth=1.2)
        if arm.curve.error is not None:
            low, high = arm.curve.mean - arm.curve.error, arm.curve.mean + arm.curve.error
            axes.fill_between(arm.curve.rounds, low, high, color=shade, alpha=0.16, linewidth=0)
    for line in panel.references():
        if line["mean"] is not None and line["mean"] > 0:
            axes.axhline(line["mean"] / horizon, color="#555555", linewidth=0.7, linestyle="--")
            axes.annotate(
                line["name"], (1.0, line["mean"] / horizon), xycoords=("axes fraction", "data"), ha="right", va="bottom",
                fontsize=6, color="#555555",
            )  # fmt: skip
    axes.set(
        xlabel="round",
        ylabel="average regret per round",
        yscale="log",
        xlim=(1, min(panel.zoom or horizon, horizon)),
    )
    axes.legend(frameon=False, ncols=2)


def _across(axes: Axes, panel: Panel, policies: Iterable[str] | None, title: str) -> None:
    x = [cell.label for cell in panel.cells]
    for index, label in enumerate(policies or dict.fromkeys(name for cell in panel.cells for name in cell.arms)):
        arms = [cell.arms.get(label) for cell in panel.cells]
        if any(arm is not None for arm in arms):
            means = [np.nan if arm is None else arm.mean for arm in arms]
            errors = [0.0 if arm is None or not np.isfinite(arm.error) else arm.error for arm in arms]
            axes.errorbar(
                x, means, errors, label=label, color=colour(label, index), marker="o", markersize=3, linewidth=1.1,
                capsize=2,
            )  # fmt: skip
    for name in dict.fromkeys(line["name"] for cell in panel.cells for line in cell.record["references"]):
        found = [{line["name"]: line["mean"] for line in cell.record["references"]}.get(name) for cell in panel.cells]
        values = [np.nan if mean is None or mean <= 0 else mean for mean in found]
        if np.any(np.isfinite(values)):
            axes.plot(x, values, label=name, color="#555555", linewidth=0.7, linestyle="--")
    axes.set(xlabel=title, ylabel="final regret", yscale="log")
    axes.legend(frameon=False, ncols=2)


def _heat_map(axes: Axes, panel: Panel) -> None:
    values: dict[str, dict[str, float]] = {}
    for cell in panel.cells:
        for label, arm in cell.arms.items():
            surrogate, policy = label.split("/")
            values.setdefault(surrogate, {})[policy] = arm.mean
    rows = sorted(values, key=lambda name: values[name].get("dfhpg", np.inf))
    grid = np.array([[values[name].get(policy, np.nan) for policy in ("dfhpg", "dfhpg_0")] for name in rows])
    logs = np.log10(np.maximum(grid, 1e-9))
    axes.imshow(logs, aspect="auto", cmap="YlGnBu")
    middle = np.nanmean(logs)
    for i, j in np.ndindex(*grid.shape):
        shade = "white" if logs[i, j] > middle else "black"
        axes.text(j, i, number(float(grid[i, j])), ha="center", va="center", fontsize=6, color=shade)
    axes.set_xticks([0, 1], ["dfhpg", "dfhpg_0"])
    axes.set_yticks(range(len(rows)), rows, fontsize=6.5)
    axes.grid(False)
