"""Names of benchmarks, and foreign text made safe for LaTeX, Markdown and file names."""

import re
import unicodedata
from collections.abc import Iterable, Sequence

from regretless.show.words import distinct, one_line

SHORT_THEORY = (
    "A short run: rates have not settled and intervals are wide, so verdicts are left to 'regretless reproduce theory'."
)

BENCHMARKS = {"topk": "Top-k", "shortest_path": "Shortest path", "pricing": "Pricing", "energy": "Energy"}

_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", "–": "--", "—": "---", "…": r"\dots{}", "‘": "`", "’": "'", "“": "``", "”": "''", "±": r"$\pm$",
    "×": r"$\times$", "·": r"$\cdot$", "−": "$-$", "≤": r"$\le$", "≥": r"$\ge$", "≠": r"$\ne$", "≈": r"$\approx$",
    "∞": r"$\infty$", "→": r"$\to$", "∇": r"$\nabla$", "‖": r"$\|$", "°": r"$^{\circ}$", "²": "$^2$", "³": "$^3$",
    "µ": r"$\mu$", "ß": r"\ss{}", "æ": r"\ae{}", "Æ": r"\AE{}", "ø": r"\o{}", "Ø": r"\O{}", "ł": r"\l{}", "Ł": r"\L{}",
    "√": r"$\surd$",
}  # fmt: skip
_ACCENTS = {
    "\u0300": "`", "\u0301": "'", "\u0302": "^", "\u0303": "~", "\u0304": "=", "\u0307": ".", "\u0308": '"', "\u030a": "r",
    "\u030b": "H", "\u030c": "v", "\u0327": "c", "\u0306": "u",
}  # fmt: skip
_GREEK = {
    "α": r"\alpha", "β": r"\beta", "γ": r"\gamma", "δ": r"\delta", "ε": r"\varepsilon", "ζ": r"\zeta", "η": r"\eta",
    "θ": r"\theta", "ι": r"\iota", "κ": r"\kappa", "λ": r"\lambda", "μ": r"\mu", "ν": r"\nu", "ξ": r"\xi", "ο": "o",
    "π": r"\pi", "ρ": r"\rho", "σ": r"\sigma", "ς": r"\varsigma", "τ": r"\tau", "υ": r"\upsilon", "φ": r"\varphi",
    "χ": r"\chi", "ψ": r"\psi", "ω": r"\omega", "Γ": r"\Gamma", "Δ": r"\Delta", "Θ": r"\Theta", "Λ": r"\Lambda",
    "Ξ": r"\Xi", "Π": r"\Pi", "Σ": r"\Sigma", "Φ": r"\Phi", "Ψ": r"\Psi", "Ω": r"\Omega",
}  # fmt: skip
_MARKDOWN = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}


def benchmark(name: str) -> str:
    """A benchmark's name in a heading; any other title as it is."""
    return BENCHMARKS.get(name, name)


def latex_text(value: str) -> str:
    r"""Text for LaTeX in plain ASCII; a question mark for letters that it has no command for.

    >>> print(latex_text("50 % of dfhpg_0, ε ± é"))
    50 \% of dfhpg\_0, $\varepsilon$ $\pm$ \'{e}
    """
    return "".join(_latex_letter(char) for char in one_line(value))


def _latex_letter(char: str) -> str:
    if char in _LATEX:
        return _LATEX[char]
    if char.isascii():
        return char
    plain = unicodedata.normalize("NFKD", char)
    base, marks = plain[0], plain[1:]
    if not marks and char in _GREEK:
        return f"${_GREEK[char]}$"
    if not base.isascii() or not all(mark in _ACCENTS or mark.isascii() for mark in marks):
        return "?"
    accented = _LATEX.get(base, base)
    for mark in marks:
        accented = f"\\{_ACCENTS[mark]}{{{accented}}}" if mark in _ACCENTS else accented + _LATEX.get(mark, mark)
    return accented


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


def counted(many: int, word: str, words: str = "") -> str:
    """A number with its word.

    >>> counted(1, "study", "studies"), counted(2000, "round")
    ('1 study', '2,000 rounds')
    """
    return f"{many:,} {word if many == 1 else words or word + 's'}"


def listed(words: Sequence[str]) -> str:
    """Words in a sentence.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def duration(seconds: float) -> str:
    """Seconds for people.

    >>> duration(75), duration(600), duration(9000)
    ('75 s', '10 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


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
