"""What the documentation's pages need when they are built: formulas as pictures, and links to code as the path they lead to.

Pages must work offline, so no script draws the formulas: Matplotlib does, when the page is built. On a code host the same pages
have links to lines, which lead out of the built site; there they become text.
"""

import base64
import functools
import io
import re
from typing import Any

FENCE = re.compile(r"(```.*?```)", re.DOTALL)
FORMULA = re.compile(r"(?<![\\$`\w])\$([^$\n`]+)\$(?![\w$])")
OUTSIDE = re.compile(r"\[(`[\w.]+`)\]\(\.\./((?:src|tests|tools)/[\w/.]+)(?:#L(\d+))?\)")


def on_page_markdown(markdown: str, **about: Any) -> str:
    """A page with its formulas drawn and its links to code in words (called by mkdocs)."""
    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else _shown(part) for part in parts)


def _shown(text: str) -> str:
    text = OUTSIDE.sub(lambda m: f"{m[1]} ({m[2]}:{m[3]})" if m[3] else f"{m[1]} ({m[2]})", text)
    return FORMULA.sub(lambda match: picture(match[1]), text)


def formulas(markdown: str) -> list[str]:
    """The TeX of every formula of a page."""
    return [tex for part in FENCE.split(markdown) if not part.startswith("```") for tex in FORMULA.findall(part)]


@functools.cache
def picture(tex: str) -> str:
    """A formula as an image that stands in the text; raises ValueError for TeX that Matplotlib cannot read."""
    import matplotlib
    from matplotlib import mathtext

    with matplotlib.rc_context({"mathtext.fontset": "cm", "svg.fonttype": "path", "svg.hashsalt": "regretless"}):
        drawn = io.BytesIO()
        mathtext.math_to_image(f"${tex}$", drawn, dpi=72, format="svg")
    data = base64.b64encode(drawn.getvalue()).decode()
    words = tex.replace('"', "&quot;").replace("|", "&#124;")
    return f'<img class="formula" alt="{words}" src="data:image/svg+xml;base64,{data}" style="vertical-align: middle">'
