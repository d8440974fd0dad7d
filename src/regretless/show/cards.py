"""Small cards of HTML for notebooks: plain tables in the page's own colours, readable on light and dark, all text escaped."""

import html
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from regretless.show.words import one_line, shortened, sound

LINE = "1px solid rgba(128,136,150,0.35)"
CARD = f"display:inline-block;max-width:100%;overflow-x:auto;border:{LINE};border-radius:6px;padding:8px 12px;line-height:1.4"
TABLE = "border-collapse:collapse;background:none;color:inherit;font-size:inherit;margin:4px 0"
CELL = "padding:2px 12px 2px 0;text-align:{side};border:0;background:none;color:inherit;vertical-align:top;white-space:normal"
QUIET = "opacity:0.7;font-size:90%"
LONGEST = 300


class Raw(NamedTuple):
    """HTML that is safe already."""

    markup: str


def text(value: Any) -> str:
    """Anything as text that is safe in HTML.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    return value.markup if isinstance(value, Raw) else html.escape(shortened(sound(str(value)), LONGEST))


def card(title: str, *parts: Raw, note: str = "") -> str:
    """A card with a title, its parts, and a quiet note below."""
    below = f'<div style="{QUIET}">{text(note)}</div>' if note else ""
    inside = "".join(part.markup for part in parts)
    return f'<div style="{CARD}"><strong>{text(title)}</strong>{inside}{below}</div>'


def facts(pairs: Iterable[tuple[str, Any]]) -> Raw:
    """What is known, a line each: its name and its value."""
    rows = "".join(
        f'<tr><td style="{CELL.format(side="left")};opacity:0.7">{text(name)}</td>'
        f'<td style="{CELL.format(side="left")}">{text(value)}</td></tr>'
        for name, value in pairs
    )
    return Raw(f'<table style="{TABLE}"><tbody>{rows}</tbody></table>')


def table(head: Sequence[str], body: Iterable[Sequence[Any]]) -> Raw:
    """A table whose first column is words and whose others are numbers."""

    def row(cells: Sequence[Any], kind: str, more: str = "") -> str:
        sides = ["left", *["right"] * (len(cells) - 1)]
        inner = "".join(
            f'<{kind} style="{CELL.format(side=side)}{more}">{text(cell)}</{kind}>'
            for side, cell in zip(sides, cells, strict=True)
        )
        return f'<tr style="background:none">{inner}</tr>'

    top = row(head, "th", f";border-bottom:{LINE};font-weight:600")
    rows = "".join(row(cells, "td") for cells in body)
    return Raw(f'<table style="{TABLE}"><thead>{top}</thead><tbody>{rows}</tbody></table>')


def sentence(words: str) -> Raw:
    """A sentence of its own."""
    return Raw(f'<div style="margin:4px 0">{text(words)}</div>')


def vector(values: Any, most: int = 12) -> str:
    """The first numbers of an array, on one line.

    >>> vector([1.0, 0.25, 3.0], most=2)
    '1, 0.25, … (3 numbers)'
    """
    import numpy as np

    flat = np.ravel(np.asarray(values))
    shown = ", ".join(one_line(f"{value:.4g}") for value in flat[:most].tolist())
    return shown if len(flat) <= most else f"{shown}, … ({len(flat)} numbers)"
