"""The published cells at a glance: how many are reproduced, and the z-score of each."""

from regretless.report.gather import Page, Panel
from regretless.report.kinds import KINDS
from regretless.report.tables import Row
from regretless.show.charts import Spec, plain, short
from regretless.show.style import CYCLE, KNOWN, MARKERS
from regretless.studies.verdicts import LIMIT

SHADES = (*(KNOWN[name].colour for name in ("dfhpg", "dfhpg_0", "dfhpg_1", "linear_thompson")), *CYCLE)


def judged(page: Page) -> list[tuple[Panel, Row]]:
    """Every row of every table that has a published value beside it."""
    every = ((panel, row) for _, panel in page.panels() if panel.cells for row in KINDS[panel.kind].rows(panel))
    return [(panel, row) for panel, row in every if row.verdict is not None]


def tally(page: Page) -> tuple[int, int]:
    """How many published cells are reproduced, and how many were compared."""
    found = judged(page)
    return sum(row.verdict is not None and row.verdict.reproduced for _, row in found), len(found)


def z_scores(page: Page) -> Spec | None:
    """The z-score of every published cell: one row per policy, one mark per benchmark; None without any."""
    marks: dict[str, tuple[list[float], list[str], list[str]]] = {}
    for panel, row in judged(page):
        assert row.verdict is not None
        z, names, texts = marks.setdefault(panel.name, ([], [], []))
        z.append(row.verdict.z)
        names.append(plain(f"{row.name}, {row.feedback.replace('_', '-')}"))
        texts.append(row.verdict.word)
    if not marks:
        return None
    data = [
        {
            "type": "scatter", "mode": "markers", "name": plain(name), "x": short(z), "y": names, "text": texts,
            "marker": {"color": SHADES[i % len(SHADES)], "symbol": MARKERS[i % len(MARKERS)], "size": 10, "opacity": 0.9},
            "hovertemplate": "%{y}: z = %{x:.2f}, %{text}<extra>%{fullData.name}</extra>",
        }
        for i, (name, (z, names, texts)) in enumerate(marks.items())
    ]  # fmt: skip
    labels = list(dict.fromkeys(name for _, names, _ in marks.values() for name in names))
    edge = max(4.0, *(abs(value) + 0.5 for z, _, _ in marks.values() for value in z))
    layout = {
        "xaxis": {"title": {"text": "z: standard errors above the published mean"}, "range": [-edge, edge]},
        "yaxis": {"categoryorder": "array", "categoryarray": labels[::-1], "automargin": True},
        "shapes": [
            {"type": "rect", "x0": -LIMIT, "x1": LIMIT, "y0": 0, "y1": 1, "yref": "paper", "line": {"width": 0},
             "fillcolor": "rgba(31,158,143,0.10)", "layer": "below"},
        ],
    }  # fmt: skip
    return {"data": data, "layout": layout, "kind": "overview", "rows": len(labels)}
