"""Numbers and names as text."""

import math
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

LABELS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("labels.toml").read_text(encoding="utf-8"))
"""How policies, models, kinds of feedback and reference lines are printed and drawn."""


def display_name(label: str) -> str:
    """Return a policy, model or reference line as it is printed; any other label is returned unchanged.

    >>> display_name("dfhpg_0"), display_name("flow, plug-in variant"), display_name("custom")
    ('DFHPG-0', 'CNF, plug-in variant', 'custom')
    """
    name, comma, rest = label.partition(", ")
    return LABELS.get(name, {}).get("name", name) + comma + rest


def format_number(value: float | None, digits: int = 3) -> str:
    """Format a number such as 7.55e5; None and infinite values give a dash.

    >>> format_number(755123.0), format_number(0.0), format_number(None), format_number(812.3)
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


def format_amount(value: float) -> str:
    """Return an amount with three significant digits, whole from a thousand on.

    >>> [format_amount(x) for x in (3.14159, 0.0, 812.34, 1234567.8, -0.00001234)]
    ['3.14', '0', '812', '1,234,568', '-1.23e-05']
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 and math.isfinite(value) else f"{value:.3g}"


def format_mean(mean: float | None, error: float | None) -> str:
    """Format a mean with its standard error, such as 7.55e5 ± 4.8e4."""
    return f"{format_number(mean)} ± {format_number(error, 2)}"


def format_vector(values: Any, limit: int = 12) -> str:
    """Format the first numbers of an array on one line.

    >>> format_vector([1.0, 0.25, 3.0], limit=2)
    '1, 0.25, … (3 numbers)'
    """
    import numpy as np

    flat = np.ravel(np.asarray(values))
    shown = ", ".join(f"{value:.4g}" for value in flat[:limit].tolist())
    return shown if len(flat) <= limit else f"{shown}, … ({len(flat)} numbers)"


def printable(value: str) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by question marks."""
    return value.encode("utf-8", "replace").decode("utf-8")


def one_line(value: str) -> str:
    r"""Return text on one line, with control characters replaced by spaces.

    >>> one_line("a\nb")
    'a b'
    """
    return " ".join("".join(char if char.isprintable() else " " for char in printable(value)).split())


def shorten(value: str, length: int = 40) -> str:
    """Return text on one line, cut to a length with an ellipsis."""
    line = one_line(value)
    return line if len(line) <= length else line[: length - 1] + "…"


def unique_name(name: str, taken: Iterable[str], form: str = " ({})") -> str:
    """Return the name, with a number appended if it is taken.

    >>> unique_name("a", ["a", "b"])
    'a (2)'
    """
    used, candidate, count = set(taken), name, 1
    while candidate in used:
        count += 1
        candidate = name + form.format(count)
    return candidate


def count_text(count: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun.

    Parameters
    ----------
    count : int
        The number.
    noun, plural : str
        The noun; the plural form is only needed if it is irregular.

    Examples
    --------
    >>> count_text(1, "study", "studies"), count_text(2000, "round")
    ('1 study', '2,000 rounds')
    """
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def text_table(lines: Sequence[Sequence[str]]) -> str:
    """Return lines of cells as text in columns.

    >>> print(text_table([["name", "regret"], ["greedy", "12"]]))
    name    regret
    greedy  12
    """
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def join_words(words: Sequence[str]) -> str:
    """Join words for a sentence.

    Parameters
    ----------
    words : sequence of str
        Parts of an enumeration.

    Examples
    --------
    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))
