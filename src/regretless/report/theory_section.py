"""The theory study on the page: a table of claims with their verdicts, and the averages behind the rates."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from regretless.report.charts import Spec, short, translucent
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.words import SHORT_THEORY

SHADES = {0.0: "#1f9e8f", 0.5: "#d9455f", 1.0: "#4a86c5"}
TITLES = {"excess": "Excess loss of the nuisance", "stationarity": "Squared gradient norm of the policy"}


def cards(document: Mapping[str, Any], drawn: dict[str, Spec]) -> Markup:
    """The claims, and one chart per quantity; the charts are added to ``drawn``."""
    note = tag("p", text(SHORT_THEORY), class_="note") if document.get("short") else ""
    claims = claim_table(document["claims"], judged=not document.get("short"))
    parts = [tag("div", tag("h3", text("Claims")), claims, note, class_="card wide")]
    for quantity in dict.fromkeys(curve["quantity"] for curve in document["curves"]):
        mine = [curve for curve in document["curves"] if curve["quantity"] == quantity]
        place = f"chart-theory-{quantity}"
        drawn[place] = chart(mine)
        title = TITLES.get(quantity, quantity)
        figure = tag("div", id=place, class_="chart", role="img", aria_label=title)
        note = tag("p", text("Average over a run, by its length; bands are 95 % intervals."), class_="note")
        parts.append(tag("div", tag("h3", text(title)), figure, note, class_="card"))
    return "".join(parts)


def claim_table(claims: Sequence[Mapping[str, Any]], judged: bool) -> Markup:
    """What each theorem says, what was measured, and, where the run is long enough to be judged, whether it holds."""
    body = []
    for claim in claims:
        chip = tag("span", text("holds"), class_="chip") if claim["holds"] else tag(
            "span", text("does not hold"), class_="chip bad"
        )  # fmt: skip
        interval = f"{claim['low']:.3f} to {claim['high']:.3f}"
        body.append(
            row(
                text(claim["quantity"]),
                text(claim["setting"]),
                f"{text(format(claim['measured'], '.3f'))} {tag('i', text(interval))}",
                text(f"{claim['relation']} {claim['expected']:g}"),
                chip if judged else "–",
            )
        )
    return table(("claim", "setting", "measured, 95 %", "theorem", ""), body)


def chart(curves: Sequence[Mapping[str, Any]]) -> Spec:
    """Averages by horizon on logarithmic axes: a rate is a straight line."""
    data: list[Spec] = []
    for curve in curves:
        label = f"α = {curve['alpha']:g}, {curve['rule']}"
        shade = SHADES.get(curve["alpha"], "#8a8f98")
        horizons = curve["horizons"]
        averages = {key: np.asarray(values, float) for key, values in curve["averages"].items()}
        dash = "solid" if curve["rule"] == "adaptive" else "dash"
        data += [
            {"type": "scatter", "mode": "lines", "legendgroup": label, "showlegend": False, "hoverinfo": "skip",
             "x": horizons + horizons[::-1], "y": short(averages["high"]) + short(averages["low"][::-1]),
             "fill": "toself", "fillcolor": translucent(shade), "line": {"width": 0}},
            {"type": "scatter", "mode": "lines+markers", "name": label, "legendgroup": label, "x": horizons,
             "y": short(averages["value"]), "line": {"color": shade, "width": 2, "dash": dash}, "marker": {"size": 6}},
        ]  # fmt: skip
    layout = {
        "xaxis": {"title": {"text": "rounds"}, "type": "log", "tickvals": curves[0]["horizons"]},
        "yaxis": {"title": {"text": "average"}, "type": "log"},
    }
    return {"data": data, "layout": layout, "kind": "points"}
