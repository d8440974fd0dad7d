"""Names and numbers as people read them."""

import math
from collections.abc import Iterable

POLICIES = {
    "dfhpg": "DFHPG", "dfhpg_0": "DFHPG-0", "dfhpg_1": "DFHPG-1", "greedy": "Greedy", "epsilon_greedy": "ε-greedy",
    "thompson": "Thompson", "linear_thompson": "linear Thompson",
}  # fmt: skip
"""Policies as the paper writes them."""


def policy(label: str) -> str:
    """A policy as the paper writes it, with whatever stands behind its name; any other label as it is.

    >>> policy("dfhpg_0"), policy("epsilon_greedy, ε 0.1"), policy("mine")
    ('DFHPG-0', 'ε-greedy, ε 0.1', 'mine')
    """
    name, comma, rest = label.partition(", ")
    return POLICIES.get(name, name) + comma + rest


def number(value: float | None, digits: int = 3) -> str:
    """A regret such as 7.55e5; a dash for none.

    >>> number(755123.0), number(0.0), number(None), number(812.3)
    ('7.55e5', '0', '–', '812')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.{digits}g}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def tick_text(value: float) -> str:
    """A round number below an axis.

    >>> tick_text(500.0), tick_text(20000.0), tick_text(0.0)
    ('500', '2e4', '0')
    """
    if value == 0 or 0.001 <= abs(value) < 10_000:
        return f"{value:.6g}"
    mantissa, exponent = f"{value:.5e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"


def spread(mean: float | None, error: float | None) -> str:
    """A mean with its standard error, such as 7.55e5 ± 4.8e4."""
    return f"{number(mean)} ± {number(error, 2)}"


def sound(value: str) -> str:
    """Text that UTF-8 can write: a question mark for half a character."""
    return value.encode("utf-8", "replace").decode("utf-8")


def one_line(value: str) -> str:
    r"""Text on one line, with spaces for control characters.

    >>> one_line("a\nb")
    'a b'
    """
    return " ".join("".join(char if char.isprintable() else " " for char in sound(value)).split())


def shortened(value: str, length: int = 40) -> str:
    """A label that fits into a legend."""
    line = one_line(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def distinct(name: str, taken: Iterable[str], form: str = " ({})") -> str:
    """``name``, with a number behind it if it is taken."""
    used, candidate, count = set(taken), name, 1
    while candidate in used:
        count += 1
        candidate = name + form.format(count)
    return candidate
