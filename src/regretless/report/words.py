"""Names of benchmarks, and foreign text made safe for LaTeX, Markdown and file names."""

import math
import re
from collections.abc import Iterable

from regretless.show.words import distinct, one_line

SHORT_THEORY = (
    "A short run: rates have not settled and intervals are wide, so verdicts are left to 'regretless reproduce theory'."
)

BENCHMARKS = {"topk": "Top-k", "shortest_path": "Shortest path", "pricing": "Pricing", "energy": "Energy"}

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "–": "--",
}  # fmt: skip
_MARKDOWN = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def benchmark(name: str) -> str:
    """A benchmark's name in a heading; any other title as it is."""
    return BENCHMARKS.get(name, name)


def latex_spread(mean: float | None, error: float | None) -> str:
    """A mean with its standard error in mathematics, in the form of the paper's tables."""
    return f"${_power(mean)} \\pm {_power(error)}$"


def _power(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "\\text{--}"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}{{\\times}}10^{{{int(exponent)}}}"


def latex_text(value: str) -> str:
    r"""Text for LaTeX.

    >>> print(latex_text("50 % of dfhpg_0"))
    50 \% of dfhpg\_0
    """
    return "".join(_LATEX.get(char, char) for char in one_line(value))


def markdown_text(value: str) -> str:
    r"""Text for Markdown, also inside a table; an underscore within a word means nothing there and stays as it is.

    >>> print(markdown_text("a|b* dfhpg_0"))
    a\|b\* dfhpg_0
    """
    escaped = re.sub(r"[\\`*|\[\]{}#!]", lambda found: "\\" + found[0], one_line(value))
    escaped = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", escaped)
    return re.sub("[<>&]", lambda found: _MARKDOWN[found[0]], escaped)


def markdown_code(value: str) -> str:
    """Text as code in Markdown, outside of tables, with more backticks around it than it has inside.

    >>> markdown_code("regretless run"), markdown_code("a`b")
    ('`regretless run`', '`` a`b ``')
    """
    line = one_line(value)
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence, space = "`" * (longest + 1), " " if longest else ""
    return f"{fence}{space}{line}{space}{fence}"


def places(titles: Iterable[str], otherwise: str) -> list[str]:
    """A distinct name for each title that may stand in file names and addresses.

    >>> places(["topk", "../Top k", "Top k", ""], "panel")
    ['topk', 'Top_k', 'Top_k_2', 'panel']
    """
    found: list[str] = []
    for title in titles:
        plain = re.sub(r"[^A-Za-z0-9_]+", "_", title).strip("_")[:60] or otherwise
        found.append(distinct(plain, found, "_{}"))
    return found
