"""Small pieces of HTML. Everything that comes from data is escaped here and nowhere else."""

import html
import json
from collections.abc import Iterable, Sequence
from typing import Any

from regretless.show.words import sound

Markup = str
"""A piece of HTML, safe to be put into a page."""


def text(value: Any) -> Markup:
    """Anything as text.

    >>> text("<b>")
    '&lt;b&gt;'
    """
    return html.escape(sound(str(value)))


def tag(name: str, *children: Markup, **attributes: Any) -> Markup:
    """An element; ``class_`` stands for class.

    >>> tag("p", text("1 < 2"), class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"' for key, value in attributes.items() if value
    )
    return f"<{name}{words}>{''.join(children)}</{name}>"


def table(head: Sequence[str], body: Iterable[Markup], name: str) -> Markup:
    """A table that scrolls sideways where the screen is narrow; ``body`` holds its rows, ``name`` is its file's as CSV."""
    top = tag("thead", tag("tr", *(tag("th", text(word)) for word in head)))
    return tag("div", tag("table", top, tag("tbody", *body), data_name=name), class_="scroll")


def exact(shown: Markup, value: Any) -> Markup:
    """Something short to read that stands for a longer value, which the table's CSV has.

    >>> exact("7.55e5", 755123.25)
    '<data value="755123.25">7.55e5</data>'
    """
    return tag("data", shown, value=str(value))


def row(*cells: Markup, class_: str = "") -> Markup:
    """A row of cells that are markup already."""
    return tag("tr", *(tag("td", cell) for cell in cells), class_=class_)


def embedded_json(value: Any) -> Markup:
    """JSON that may stand inside a script element."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
