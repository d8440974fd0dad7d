"""What the paper's text says about its figures and tables, beside what the stored results say."""

from collections.abc import Sequence

from regretless.report.html import Markup, row, table, tag, text
from regretless.report.tables import markdown_table
from regretless.report.words import markdown_text
from regretless.studies.claims.evaluate import Outcome, tally
from regretless.studies.claims.statistics import AGREES, DISAGREES

HEAD = ("line", "the paper says", "measured, 95 %", "verdict")
LOOKS = {"agrees": "chip", "disagrees": "chip bad", "cannot be told": "chip warn", "not run": "chip warn"}


def words(outcomes: Sequence[Outcome]) -> str:
    """How many claims there are, and how they came out."""
    verbs = {AGREES: "agree", DISAGREES: "disagree"}
    counts = ", ".join(f"{number} {verbs.get(verdict, verdict)}" for verdict, number in tally(outcomes).items())
    return (
        f"{len(outcomes)} claims of the paper's text about its figures and tables, with their lines in its source: {counts}. "
        "Differences are between replications on the same seeds; of several, the one that speaks most against the claim."
    )


def measured(outcome: Outcome) -> str:
    """The statistic with its interval, or what is missing."""
    found = outcome.finding
    if found is None:
        return outcome.why
    return f"{found.quantity}: {found.value:.3g} ({found.low:.3g} to {found.high:.3g})"


def section(outcomes: Sequence[Outcome]) -> Markup:
    """The claims on the page."""
    body = [
        row(
            tag("span", text(outcome.line.line), id=f"claim-{index}"),
            text(outcome.line.words),
            text(measured(outcome)),
            tag("span", text(outcome.verdict), class_=LOOKS[outcome.verdict]),
        )
        for index, outcome in enumerate(outcomes)
    ]
    card = tag("div", table(HEAD, body, "claims"), class_="card prose")
    return tag("section", tag("h2", text("Claims")), tag("p", text(words(outcomes))), card, id="claims")


def markdown(outcomes: Sequence[Outcome]) -> list[str]:
    """The claims for the documentation."""
    body = [
        [str(each.line.line), markdown_text(each.line.words), markdown_text(measured(each)), each.verdict]
        for each in outcomes
    ]
    return ["## Claims", "", words(outcomes), "", *markdown_table(HEAD, body), ""]
