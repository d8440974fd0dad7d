"""Extend the Markdown of the pages; a Python-Markdown extension that ``mkdocs.yml`` loads.

- ``$…$`` and ``$$…$$`` are TeX and become MathML when the page is built, so that pages work offline without scripts.
- Links to definitions in the source code lead to the copies that ``page_sources.py`` writes, at the right line.
- A number and its error, or the ends of an interval, stay on one line.
- A drawing (``![…](images/….svg)``) becomes part of the page, so that it follows the light or dark theme.
- An example (``>>> …``) in a docstring is code, not a quotation.
"""

import ast
import functools
import html
import re
from pathlib import Path
from typing import Any

from markdown import Markdown
from markdown.extensions import Extension
from markdown.inlinepatterns import InlineProcessor
from markdown.preprocessors import Preprocessor

DOCS = Path(__file__).resolve().parent.parent / "docs"
FENCE = re.compile(r"(^ *```.*?^ *```)", re.DOTALL | re.MULTILINE)
FORMULA = r"(?<![\\$`\w])\$([^$\n`]+)\$(?![\w$])"
DISPLAYED = re.compile(r"^\$\$(.+?)\$\$$", re.DOTALL | re.MULTILINE)
TO_CODE = re.compile(r"\[`([\w.]+)`\]\(\.\./((?:\.\./)*)((?:src|papers|tests|benchmarks|examples)/[\w/.]+\.py)\)")
DRAWING = re.compile(r"^!\[([^\]]*)\]\(images/([\w-]+\.svg)\)$", re.MULTILINE)
INDEXED = r"(?<![\w`\\.])([a-zA-Zα-ωΑ-Ωĉḡᾱ]\u0303?)_(\{[^}\s]+\}|[a-zα-ω0-9]+|[A-Z])(?![\w.=])"
TOGETHER = re.compile(r"(?<=\d) ± (?=\d)|\[[-−]?[\d.e]+, [-−]?[\d.e]+\](?!\()")
STYLE = re.compile(r"<style>.*?</style>\s*|<\?xml.*?\?>\s*", re.DOTALL)


@functools.cache
def mathml(tex: str, displayed: bool = False) -> str:
    """Return a formula as MathML; raise ``math_core.LatexError`` for invalid TeX."""
    from math_core import LatexToMathML

    return LatexToMathML(fancy_error=False).convert_with_local_state(tex.strip(), displaystyle=displayed)


def formulas(markdown: str) -> list[str]:
    """Return the TeX of every formula of a page."""
    parts = [re.sub(r"`[^`\n]*`", "``", part) for part in FENCE.split(markdown) if not part.lstrip().startswith("```")]
    shown = [tex for part in parts for tex in DISPLAYED.findall(part)]
    return shown + [tex for part in parts for tex in re.findall(FORMULA, DISPLAYED.sub("", part))]


@functools.cache
def definitions(path: Path) -> dict[str, int]:
    """Return the line of each class, function and constant of a file by name (``Class.method`` inside a class)."""
    lines: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                lines[prefix + node.name] = node.lineno
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.Assign | ast.AnnAssign):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                lines.update({prefix + target.id: node.lineno for target in targets if isinstance(target, ast.Name)})

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return lines


def line_of(name: str, path: str) -> int:
    """Return the line of a definition; raise LookupError if the file does not exist or does not define the name."""
    source = DOCS.parent / path
    if not source.is_file():
        raise LookupError(f"{path}: no such file, but a page links to `{name}` in it")
    if name not in definitions(source):
        raise LookupError(f"{path}: a page links to {name!r}, which is not defined there")
    return definitions(source)[name]


def to_copy(link: re.Match[str]) -> str:
    """Return a link to the copy of a source file; the name may be broken after each word."""
    name, up, path = link.groups()
    words = re.sub(r"([._])(?=\w)", r"\1<wbr>", name)
    return f'<a href="{up}code/{path}.html#L-{line_of(name, path)}"><code>{words}</code></a>'


def fenced(lines: list[str]) -> list[str]:
    """Put fences around examples that start a paragraph with ``>>>``, up to the next empty line."""
    done: list[str] = []
    inside = example = False
    for line in lines:
        if line.lstrip().startswith("```") and not example:
            inside = not inside
        if not inside and not example and line.startswith(">>> "):
            example = True
            done += ["", "```pycon"]
        if example and not line.strip():
            example = False
            done.append("```")
        done.append(line)
    return [*done, "```"] if example else done


class _Examples(Preprocessor):
    def run(self, lines: list[str]) -> list[str]:
        return fenced(lines)


class _Blocks(Preprocessor):
    """Replace displayed formulas, drawings and links to code; fenced code is already stashed."""

    def run(self, lines: list[str]) -> list[str]:
        text = TO_CODE.sub(lambda link: self.md.htmlStash.store(to_copy(link)), "\n".join(lines))
        text = DRAWING.sub(self._drawing, TOGETHER.sub(lambda match: match[0].replace(" ", "\u00a0"), text))
        return DISPLAYED.sub(self._formula, text).split("\n")

    def _formula(self, match: re.Match[str]) -> str:
        return self._kept(f'<div class="formula">{mathml(match[1], displayed=True)}</div>')

    def _drawing(self, match: re.Match[str]) -> str:
        drawn = STYLE.sub("", (DOCS / "images" / match[2]).read_text(encoding="utf-8")).strip()
        named = drawn.replace("<svg ", f'<svg role="img" aria-label="{html.escape(match[1])}" ', 1)
        return self._kept(f'<figure class="drawing">{named}</figure>')

    def _kept(self, text: str) -> str:
        return f"\n{self.md.htmlStash.store(text)}\n"


class _Inline(InlineProcessor):
    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(mathml(html.unescape(m[1]))), m.start(0), m.end(0)


class _Indexed(InlineProcessor):
    """A letter with an index in plain text (``η_t``), as in the list that the pages share with the report."""

    def handleMatch(self, m: re.Match[str], data: str) -> tuple[str, int, int]:  # noqa: N802
        return self.md.htmlStash.store(f"<i>{m[1]}</i><sub>{m[2].strip('{}')}</sub>"), m.start(0), m.end(0)


class PageExtension(Extension):
    """The extension that Markdown loads by the name of this module."""

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802
        md.preprocessors.register(_Examples(md), "page_examples", 40)  # before fences are read
        md.preprocessors.register(_Blocks(md), "page_blocks", 24)  # after it
        md.inlinePatterns.register(_Inline(FORMULA, md), "page_formula", 185)  # after code, before escapes
        md.inlinePatterns.register(_Indexed(INDEXED, md), "page_indexed", 60)  # before emphasis


def makeExtension(**options: Any) -> PageExtension:  # noqa: N802
    """Return the extension; Markdown calls this function."""
    return PageExtension(**options)
