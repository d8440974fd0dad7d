"""The regret curves of a panel, before anyone draws them."""

from collections.abc import Iterable

from regretless.report.gather import Panel, Reference
from regretless.report.series import ArmSummary
from regretless.show.plots import Line, Plot, curves
from regretless.show.style import Palette


def regret_curves(
    arms: dict[str, ArmSummary], references: Iterable[Reference], horizon: int, zoom: int | None, palette: Palette
) -> Plot:
    """Average regret per round of some arms, with the reference lines at their final value."""
    lines = [
        Line(label, arm.curve.rounds.tolist(), arm.curve.mean, arm.curve.error, palette[label])
        for label, arm in arms.items()
        if arm.curve is not None
    ]
    levels = [(each.name, each.mean / horizon) for each in references if each.mean is not None]
    return curves("average regret per round", lines, levels, horizon, min(zoom or horizon, horizon))


def panel_curves(panel: Panel) -> Plot:
    """The curves of a panel's arms and of the simple baseline beside them."""
    arms = dict(panel.arms())
    simple = panel.simple_baseline()
    if simple is not None:
        arms.setdefault(simple.label, simple)
    return regret_curves(arms, panel.references(), panel.cells[0].record["horizon"], panel.zoom, panel.palette)
