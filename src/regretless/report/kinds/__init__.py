"""The kinds of panels, by the name that a study gives: each is one file, and other packages may add theirs."""

from itertools import groupby

from regretless.registry import Registry
from regretless.report.gather import Panel, Study
from regretless.report.kinds import arena, bars, curves, heatmap, lines, table, theory
from regretless.report.kinds.base import Kind

KINDS: Registry[Kind] = Registry(
    "kind of panel",
    "kinds",
    {
        "table": table.KIND,
        "curves": curves.KIND,
        "models": curves.WITH_TABLE,
        "heatmap": heatmap.KIND,
        "lines": lines.KIND,
        "bars": bars.KIND,
        "theory": theory.KIND,
        "arena": arena.KIND,
    },
)


def by_kind(study: Study) -> list[tuple[Kind, list[Panel]]]:
    """The panels that have something to show, neighbours of one kind together."""
    computed = [panel for panel in study.panels if panel.cells]
    return [(KINDS[name], list(panels)) for name, panels in groupby(computed, key=lambda panel: panel.kind)]
