"""The picture that a single run leaves behind: its regret curves, as the report draws them."""

from collections.abc import Mapping
from pathlib import Path

from regretless.report import panel_plots
from regretless.report.figures import draw, paper_style, save
from regretless.report.gather import Reference
from regretless.report.series import summarise
from regretless.results import Result
from regretless.show.style import Palette

SIZE = (7.0, 4.2)


def regret_curves(traces: Mapping[str, Result], references: Mapping[str, float], title: str, path: Path) -> None:
    """Writes average regret per round with ±1 standard error to ``path``; ``references`` are final regrets by name."""
    lines = [Reference(name, regret, None) for name, regret in references.items()]
    horizon = max((trace.regret.shape[1] for trace in traces.values()), default=1)
    plot = panel_plots.regret_curves(summarise(traces, same_world=False), lines, horizon, None, Palette())
    with paper_style():
        save(draw(plot, title, SIZE), path)
