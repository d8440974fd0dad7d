"""What the paper adds to the report; registered as ``regretless.report``.

A chart of all z-scores, the claims of the text, the tuned configurations, the deviations, the panel of the convergence
theorems, and the figures and tables of ``report --paper``.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regretless.experiments.report import (
    BENCHMARK_NAMES,
    Card,
    Chart,
    Note,
    Page,
    PanelContext,
    Section,
    Table,
    TableRow,
    Value,
)
from regretless.files import write_text
from regretless.formatting import count_text, format_number, join_words
from regretless.plots import POLICY_STYLES, Axis, HeatMap, Line, Plot, Style, fit_axis
from regretless_dfhpg.as_printed import show_as_printed
from regretless_dfhpg.claims.evaluate import ClaimOutcome, evaluate_claims, tally
from regretless_dfhpg.claims.statistics import AGREES, DISAGREES, EQUIVALENT, NOT_RUN, OPEN
from regretless_dfhpg.deviations import deviations_section
from regretless_dfhpg.presets import read_table
from regretless_dfhpg.studies import COLLECTION, PUBLISHED_DEGREE

CONFIGURATION_TABLES = ("Point models", "Generative models")
GENERATIVE = ("flow", "diffusion")
MAX_NAMED = 8
"""Contradictions that the summary names; further ones are counted."""
SHORT_THEORY = (
    "A short run: rates have not settled and intervals are wide; 'regretless reproduce theory' gives the verdicts."
)
VERBS = {
    AGREES: "agree",
    DISAGREES: "disagree",
    EQUIVALENT: "are equivalent within a few per cent",
    OPEN: "are open",
    NOT_RUN: "were not run",
}
CHIPS = {
    AGREES: "good",
    DISAGREES: "bad",
    EQUIVALENT: "good",
    OPEN: "warn",
    NOT_RUN: "warn",
    "holds": "good",
    "does not hold": "bad",
    "consistent, from above": "good",
    "too short": "warn",
}


def has_paper(page: Page) -> bool:
    """Return whether some study of the paper is on the page."""
    return any(study.collection == COLLECTION for study in page.studies)


def page_claims(page: Page) -> list[ClaimOutcome]:
    """Return the claims evaluated with the results of a page."""
    return evaluate_claims([study for study in page.studies if study.collection == COLLECTION], page.load)


def sections(page: Page) -> list[Section]:
    """Return the sections of the paper: z-scores, claims, configurations, deviations."""
    if not has_paper(page):
        return []
    scores = z_section(page)
    shown = [claims_section(page_claims(page)), configurations_section(), deviations_section()]
    return [scores, *shown] if scores is not None else shown


def summary(page: Page) -> list[list[Value]]:
    """Return sentences about claims, theorems and contradictions."""
    if not has_paper(page):
        return []
    outcomes = page_claims(page)
    verbs = {**VERBS, NOT_RUN: "wait for results"}
    counts = [f"{number} {verbs[verdict]}" for verdict, number in tally(outcomes).items() if number]
    claims = [Value("Of "), Value(count_text(len(outcomes), "claim"), link="claims")]
    sentences = [[*claims, Value(f" in the paper's text {join_words(counts)}.")]]
    for document in _theory_documents(page):
        if not document.get("short"):
            holding = sum(claim["verdict"] == "holds" for claim in document["claims"])
            words = f" of the theorems {holding} hold."
            link = Value(count_text(len(document["claims"]), "measured statement"), link=page.places()["theory"])
            sentences.append([Value("Of "), link, Value(words)])
    places = page.places()
    missed = {
        f"{label} on {panel.title} ({study.name}, z = {comparison.z:+.1f})": study.name
        for study, panel, view in page.all_views()
        for label, comparison in view.published.items()
        if not comparison.reproduced
    }
    contradicted = [f"“{outcome.claim.text}”" for outcome in outcomes if outcome.verdict == DISAGREES]
    if missed:
        sentences.append(
            [Value("Not reproduced: "), *_link_list([(text, places[name]) for text, name in missed.items()])]
        )
    if contradicted:
        sentences.append(
            [Value("Claims that the runs contradict: "), *_link_list([(text, "claims") for text in contradicted])]
        )
    return sentences


def _link_list(items: Sequence[tuple[str, str]]) -> list[Value]:
    """Return links with commas between them; many are counted."""
    parts: list[Value] = []
    for index, (text, link) in enumerate(items[:MAX_NAMED]):
        parts += [Value(", ")] if index else []
        parts.append(Value(text, link=link))
    more = f" and {len(items) - MAX_NAMED} more" if len(items) > MAX_NAMED else ""
    return [*parts, Value(f"{more}.")]


def z_section(page: Page) -> Section | None:
    """Return all z-scores in one chart: a row per policy and feedback, a column per benchmark."""
    scores: dict[str, dict[str, float]] = {}
    for study, panel, view in page.all_views():
        if study.second_seeds is not None:
            for label, comparison in view.published.items():
                feedback = str(view.results[label].config.get("feedback", "")).replace("_", "-")
                scores.setdefault(f"{label}, {feedback}", {})[panel.title] = comparison.z
    if not scores:
        return None
    titles = [title for title in BENCHMARK_NAMES if any(title in row for row in scores.values())]
    grid = np.array([[row.get(title, np.nan) for title in titles] for row in scores.values()])
    heat_map = HeatMap(list(scores), [BENCHMARK_NAMES[title] for title in titles], np.round(grid, 2), np.abs(grid))
    about = (
        "Standard errors of the difference between every mean and its published value; negative is lower regret. A "
        "value is reproduced within ±3."
    )
    card = Card("", (Chart("chart-z-scores", "z-scores of all published values", heat_map),), wide=True)
    return Section("z-scores", "Published values at a glance", about, (card,))


def claims_text(outcomes: Sequence[ClaimOutcome]) -> str:
    """Return how many claims there are and their verdicts."""
    counts = ", ".join(f"{number} {VERBS[verdict]}" for verdict, number in tally(outcomes).items())
    return (
        f"{len(outcomes)} claims of the paper's text about its figures and tables, with their lines in its source: "
        f"{counts}. Differences are paired by seed; of several pairs the one that contradicts the claim most is shown. "
        "An open claim names the replications that would decide it if its estimate stays where it is."
    )


def claims_section(outcomes: Sequence[ClaimOutcome]) -> Section:
    """Return the claims with their verdicts."""
    rows = []
    for outcome in outcomes:
        finding = outcome.finding
        measured = Value(outcome.missing)
        if finding is not None:
            text = f"{finding.quantity}: {finding.value:.3g} ({finding.low:.3g} to {finding.high:.3g})"
            measured = Value(text)
        seeds = Value(str(finding.seeds) if finding is not None and finding.seeds else "–")
        verdict = Value(outcome.verdict_text, chip=CHIPS[outcome.verdict])
        clear = Value({True: "yes", False: "no", None: "–"}[outcome.clear_in_the_paper])
        line = Value(str(outcome.claim.line))
        rows.append(TableRow((line, Value(outcome.claim.text), measured, seeds, verdict, clear, Value(outcome.cause))))
    head = ("line", "the paper says", "measured, 95 %", "seeds", "verdict", "clear in the paper's table", "cause")
    table = Table("claims", head, tuple(rows), prose=True)
    return Section("claims", "Claims", claims_text(outcomes), (Card("", (table,), wide=True),))


def configuration_rows(title: str, every_degree: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return head and rows of a table of tuned settings, of the published degree or of all degrees."""
    presets = [
        row for row in read_table("presets.csv") if (row["model"] in GENERATIVE) == (title != CONFIGURATION_TABLES[0])
    ]
    order = list(dict.fromkeys([*BENCHMARK_NAMES, *(row["benchmark"] for row in presets)]))
    presets.sort(key=lambda row: order.index(row["benchmark"]))
    first = ["benchmark", "degree", "model"]
    used = dict.fromkeys(
        name for row in presets for name in row if name not in first and any(r.get(name) for r in presets)
    )
    rows = []
    for row in presets:
        if every_degree or row["degree"] in ("", str(PUBLISHED_DEGREE)) or row["benchmark"] not in BENCHMARK_NAMES:
            start = [BENCHMARK_NAMES.get(row["benchmark"], row["benchmark"]), row["degree"] or "–", row["model"]]
            rows.append([*start, *(_setting_text(row.get(name)) for name in used)])
    return [*first, *used], rows


def _setting_text(value: str | None) -> str:
    try:
        return format_number(float(value or ""), 2)
    except ValueError:
        return value or "–"


def configurations_section() -> Section:
    """Return the tuned settings of DFHPG in the published runs."""
    cards = []
    for title in CONFIGURATION_TABLES:
        name = f"configurations_{title.split()[0].lower()}"
        head, rows = configuration_rows(title)
        tables = [Table(name, tuple(head), tuple(TableRow(tuple(map(Value, row))) for row in rows))]
        head, more = configuration_rows(title, every_degree=True)
        if len(more) > len(rows):
            body = tuple(TableRow(tuple(map(Value, row))) for row in more)
            tables.append(Table(f"{name}_all_degrees", tuple(head), body, folded="All degrees"))
        cards.append(Card(title, tuple(tables), wide=True))
    about = (
        "Tuned settings of DFHPG in the published runs, which these runs use; the other policies share the settings "
        "that they have. 'regretless tune' searches for your own."
    )
    return Section("configurations", "Configurations", about, tuple(cards))


# The panel of the convergence theorems

QUANTITIES = {
    "excess": "Excess loss of the nuisance",
    "bias": "Squared gradient of the bias",
    "stationarity": "Squared gradient norm of the policy",
}
THEORY_HEAD = (
    "in the paper",
    "quantity",
    "setting",
    "measured",
    "low to high",
    "paper",
    "verdict",
    "share of the bound",
    "bound",
)


def _theory_documents(page: Page) -> list[dict[str, Any]]:
    results = page.shown().values()
    return [result.extra["document"] for result in results if "claims" in result.extra.get("document", {})]


def show_theory(context: PanelContext) -> list[Card]:
    """Show the statements with their verdicts, and the averages behind the rates."""
    (result,) = context.views[0].results.values()
    document = result.extra["document"]
    notes = [Note(SHORT_THEORY)] if document.get("short") else [Note(theory_text(document))]
    cards = [Card("Statements", (statement_table(document["claims"], context.name), *notes), wide=True)]
    charts = theory_charts(document)
    about = Note("Average over a run, by its length, with 95 % intervals.")
    for place, (title, plot) in charts.items():
        below = (about,) if place in QUANTITIES else (Note("Measured share minus the theorem's, with 95 % intervals."),)
        cards.append(Card(title, (*context.chart(plot, place), *below)))
    return cards


def theory_text(document: Mapping[str, Any]) -> str:
    """Return how the statements were measured and how many hold."""
    claims, horizons = document["claims"], document["horizons"]
    bounds = [claim["bound"] for claim in claims if claim["bound"] is not None]
    counts = _count_verdicts([claim["verdict"] for claim in claims])
    return (
        f"Seed {document['seed']}; statements about one round from {document['samples']:,} steps; rates from "
        f"{document['replications']} replications per horizon, T = {horizons[0]:,} … {horizons[-1]:,}; "
        f"{document['seconds']:.0f} s. {len(claims)} values and exponents: {counts}. {len(bounds)} explicit bounds: "
        f"{_count_verdicts(bounds)}."
    )


def _count_verdicts(verdicts: Sequence[str]) -> str:
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts))


def statement_table(claims: Sequence[Mapping[str, Any]], name: str) -> Table:
    """Return statements, measurements and verdicts."""
    rows = []
    for claim in claims:
        share = claim.get("bound_share")
        cells = (
            Value(claim["statement"]),
            Value(claim["quantity"]),
            Value(claim["setting"]),
            Value(f"{claim['measured']:.4f}", (claim["measured"],)),
            Value(f"{claim['low']:.4f} to {claim['high']:.4f}", (claim["low"], claim["high"])),
            Value(f"{claim['relation']} {claim['expected']:g}"),
            Value(claim["verdict"], chip=CHIPS[claim["verdict"]]),
            Value("–" if share is None else f"{100 * share:.2g} %"),
            Value("–") if claim["bound"] is None else Value(claim["bound"], chip=CHIPS[claim["bound"]]),
        )
        rows.append(TableRow(cells))
    return Table(name, THEORY_HEAD, tuple(rows))


def theory_charts(document: Mapping[str, Any]) -> dict[str, tuple[str, Plot]]:
    """Return the charts of the theorems by name, with their titles."""
    charts = {}
    equalities = [claim for claim in document["claims"] if claim["relation"] == "="]
    if equalities:
        x = [f"{claim['name'].replace('_', ' ')}, {claim['setting']}" for claim in equalities]
        difference = np.array([claim["measured"] - claim["expected"] for claim in equalities])
        error = np.array([0.5 * (claim["high"] - claim["low"]) for claim in equalities])
        line = Line("measured minus theorem", x, difference, error, Style("#4a86c5", "circle", "dot"))
        zero = Line("theorem", x, np.zeros(len(x)))
        plot = Plot("points", [line], [zero], Axis("", categories=True), Axis("difference"))
        charts["estimators"] = "Gradient estimators", plot
    for quantity in dict.fromkeys(curve["quantity"] for curve in document["curves"]):
        curves = [curve for curve in document["curves"] if curve["quantity"] == quantity]
        charts[quantity] = QUANTITIES.get(quantity, quantity), rate_plot(curves)
    return charts


def rate_plot(curves: Sequence[Mapping[str, Any]]) -> Plot:
    """Return averages by horizon on logarithmic axes, where a rate is a straight line."""
    lines = []
    for curve in curves:
        label = f"α = {curve['alpha']:g}, {curve['rule']}{'' if curve['variant'] == 'plug_in' else ', surrogate'}"
        look = POLICY_STYLES["dfhpg_0" if curve["alpha"] == 0 else "dfhpg_1" if curve["alpha"] == 1 else "dfhpg"]
        style = Style(look.colour, look.marker, "solid" if curve["rule"] == "adaptive" else "dash")
        averages = {name: np.asarray(values, float) for name, values in curve["averages"].items()}
        error = 0.5 * (averages["high"] - averages["low"])
        lines.append(Line(label, list(map(float, curve["horizons"])), averages["value"], error, style))
    axis = fit_axis("average", [line.y for line in lines], True)
    return Plot("points", lines, [], Axis("horizon T", log=True), axis)


panels = {"theory": show_theory, "as_printed": show_as_printed}


def write(page: Page, folder: Path) -> list[str]:
    """Write the figures and tables of the paper with a LaTeX document."""
    from regretless_dfhpg.document import write_document

    folder.mkdir(parents=True, exist_ok=True)
    if has_paper(page):
        outcomes = [outcome.to_dict() for outcome in page_claims(page)]
        write_text(folder / "claims.json", json.dumps(outcomes, ensure_ascii=False, indent=1) + "\n")
    return write_document(page, folder)
