"""The theory study: a table of claims with their verdicts, and the averages behind the rates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from regretless.report.gather import Panel, Study
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.kinds.base import Kind, chart, chart_id, note, table_name
from regretless.report.tables import markdown_table
from regretless.report.theory import mixing_colour, theory_figure
from regretless.report.words import SHORT_THEORY, markdown_text
from regretless.show.charts import Charts, Spec, log_axis, short
from regretless.show.style import translucent

TITLES = {
    "excess": "Excess loss of the nuisance",
    "bias": "Squared gradient of the bias",
    "stationarity": "Squared gradient norm of the policy",
}
HEAD = ("in the paper", "what is measured", "setting", "measured, 95 %", "paper says", "verdict")
LOOKS = {"holds": "chip", "does not hold": "chip bad", "not at this length": "chip warn"}


def cards(study: Study, panel: Panel, charts: Charts) -> Markup:
    """The claims, and one chart per quantity."""
    document = panel.cells[0].record["document"]
    short_run = note(SHORT_THEORY if document.get("short") else "")
    claims = claim_table(document["claims"], table_name(study, panel))
    parts = [tag("div", tag("h3", text("Claims")), claims, short_run, class_="card wide")]
    for quantity in dict.fromkeys(curve["quantity"] for curve in document["curves"]):
        place = chart_id(study, panel, quantity)
        title = TITLES.get(quantity, quantity)
        spec = averages([curve for curve in document["curves"] if curve["quantity"] == quantity])
        drawn = chart(place, spec, charts, title)
        about = note("Average over a run, by its length; bands are 95 % intervals.")
        parts.append(tag("div", tag("h3", text(title)), drawn, about, class_="card"))
    return "".join(parts)


def claim_table(claims: Sequence[Mapping[str, Any]], name: str) -> Markup:
    """What each statement says, what was measured, and whether it holds."""
    body = []
    for claim in claims:
        interval = f"{claim['low']:.3f} to {claim['high']:.3f}"
        body.append(
            row(
                text(claim["statement"]),
                text(claim["quantity"]),
                text(claim["setting"]),
                f"{text(format(claim['measured'], '.3f'))} {tag('i', text(interval))}",
                text(f"{claim['relation']} {claim['expected']:g}"),
                tag("span", text(claim["verdict"]), class_=LOOKS[claim["verdict"]]),
            )
        )
    return table(HEAD, body, name)


def averages(curves: Sequence[Mapping[str, Any]]) -> Spec:
    """Averages by horizon on logarithmic axes: a rate is a straight line."""
    data: list[Spec] = []
    for curve in curves:
        label = f"α = {curve['alpha']:g}, {curve['rule']}{'' if curve['variant'] == 'plug_in' else ', surrogate'}"
        shade = mixing_colour(curve["alpha"])
        horizons = curve["horizons"]
        found = {key: np.asarray(values, float) for key, values in curve["averages"].items()}
        dash = "solid" if curve["rule"] == "adaptive" else "dash"
        data += [
            {"type": "scatter", "mode": "lines", "legendgroup": label, "showlegend": False, "hoverinfo": "skip",
             "x": horizons + horizons[::-1], "y": short(found["high"]) + short(found["low"][::-1]),
             "fill": "toself", "fillcolor": translucent(shade), "line": {"width": 0}},
            {"type": "scatter", "mode": "lines+markers", "name": label, "legendgroup": label, "x": horizons,
             "y": short(found["value"]), "line": {"color": shade, "width": 2, "dash": dash}, "marker": {"size": 6}},
        ]  # fmt: skip
    horizons = sorted({horizon for curve in curves for horizon in curve["horizons"]})
    every = [value for trace in data for value in trace["y"] if value and value > 0]
    layout = {
        "xaxis": {
            "title": {"text": "rounds"}, "type": "log", "tickvals": horizons, "ticktext": [f"{each:,}" for each in horizons],
        },
        "yaxis": {"title": {"text": "average"}, **log_axis(min(every, default=0.0), max(every, default=0.0))},
    }  # fmt: skip
    return {"data": data, "layout": layout, "kind": "points"}


def figure(study: Study, panel: Panel) -> Figure | None:
    """The panels for print."""
    return theory_figure(panel.cells[0].record["document"])


def markdown(study: Study, panels: Sequence[Panel]) -> list[str]:
    """The claims."""
    document = panels[0].cells[0].record["document"]
    body = [
        [
            markdown_text(claim["statement"]),
            markdown_text(claim["quantity"]),
            markdown_text(claim["setting"]),
            f"{claim['measured']:.4f} ({claim['low']:.4f} to {claim['high']:.4f})",
            f"{claim['relation']} {claim['expected']:g}",
            claim["verdict"],
        ]
        for claim in document["claims"]
    ]
    return markdown_table(HEAD, body)


KIND = Kind(card=cards, markdown=markdown, figure=figure)
