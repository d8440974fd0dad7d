"""Text forms of a learner, its health, its choices and explanations: a title and a few lines."""

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from regretless.formatting import format_vector, shorten

MAX_CARD_TEXT = 300
"""Characters of one line of a card; longer ones are cut."""


def text_card(title: str, lines: Iterable[str]) -> str:
    """Return a title and indented lines.

    >>> print(text_card("Health after 3 decisions", ["too early to tell"]))
    Health after 3 decisions
      too early to tell
    """
    return "\n".join([shorten(title, MAX_CARD_TEXT), *(f"  {shorten(line, MAX_CARD_TEXT)}" for line in lines)])


def format_amount(value: float) -> str:
    """Return an amount with three significant digits, whole from a thousand on.

    >>> [format_amount(x) for x in (3.14159, 0.0, 812.34, 1234567.8, -0.00001234)]
    ['3.14', '0', '812', '1,234,568', '-1.23e-05']
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 and math.isfinite(value) else f"{value:.3g}"


def percent(share: float) -> str:
    """Return a share in per cent, with a decimal if it is small.

    >>> percent(0.42), percent(0.023)
    ('42%', '2.3%')
    """
    return f"{share:.0%}" if share >= 0.095 or share == 0.0 else f"{share:.1%}"


def format_context(context: Any) -> str:
    """Return a context, by name or as numbers, on one line."""
    if isinstance(context, dict):
        return ", ".join(f"{name}={value!r}" for name, value in context.items())
    return str(context) if isinstance(context, list) else format_vector(context)


def describe_choice(choice: Any) -> tuple[str, list[str]]:
    """Return the title and the lines of a Choice's card."""
    chosen = np.flatnonzero(np.asarray(choice.w))
    notes = [
        ", exploring" if choice.explored else "",
        ", repeated because the solver failed" if choice.fallback else "",
    ]
    lines = [
        f"decision: {format_vector(choice.w)}",
        f"not zero: {len(chosen)} of {np.size(choice.w)} coordinates ({format_vector(chosen)})",
        f"decided by the {choice.by}{''.join(notes)}, for context {format_context(choice.context)}",
        f"costs that were solved: {format_vector(choice.cost_sample)}",
        f"report its cost with learn({choice.id}, …)",
    ]
    return f"Choice {choice.id}", lines


def describe_explanation(explanation: Any) -> tuple[str, list[str]]:
    """Return the title and the lines of an Explanation's card."""
    if explanation.differs:
        reason = (
            f"differs from the greedy decision in {explanation.differs} coordinates, by exploration; it is expected to "
            f"cost {format_amount(explanation.gap)} more"
        )
    else:
        reason = "is the greedy decision: the best for the predicted costs"
    lines = [
        f"The decision {reason}",
        f"context: {format_context(explanation.context)}",
        f"predicted costs: {format_vector(explanation.mean)}",
        f"costs that were solved: {format_vector(explanation.cost_sample)}",
    ]
    if explanation.residual is not None:
        lines.append(f"prediction error of its total: {explanation.residual:+.3g}")
    if explanation.details:
        lines.append(", ".join(f"{name} {format_amount(value)}" for name, value in explanation.details.items()))
    return "Explanation", lines
