"""Keeps the documentation's links to lines of code right: ``python tools/link_lines.py`` writes their numbers anew.

A link names a function, a class, a method or a constant, ``[`DFHPG.ask`](../src/….py#L118)``; its number is the line of that
definition.
"""

import ast
import functools
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
LINK = re.compile(r"\[`([\w.]+)`\]\((\.\./[\w/.]+\.py)(?:#L\d+)?\)")


@functools.cache
def defined(path: Path) -> dict[str, int]:
    """The line of each definition of a file, by name; ``Class.method`` for what is inside of a class."""
    found: dict[str, int] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                found[prefix + node.name] = node.lineno
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            targets = (
                node.targets
                if isinstance(node, ast.Assign)
                else [node.target]
                if isinstance(node, ast.AnnAssign)
                else []
            )
            found.update({prefix + each.id: node.lineno for each in targets if isinstance(each, ast.Name)})

    visit(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


def linked(text: str, folder: Path) -> str:
    """A page of ``folder`` with every link at its line; raises LookupError for a name or a file that is not there."""

    def one(match: re.Match[str]) -> str:
        name, target = match.groups()
        path = (folder / target).resolve()
        if not path.is_file():
            raise LookupError(f"{target}: no such file, which a link to `{name}` wants")
        if name not in defined(path):
            raise LookupError(f"{target}: nothing called {name!r} is defined there")
        return f"[`{name}`]({target}#L{defined(path)[name]})"

    return LINK.sub(one, text)


def main() -> None:
    """Writes the links of every page anew."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        right = linked(text, page.parent)
        if right != text:
            page.write_text(right, encoding="utf-8")
            print(f"{page.relative_to(DOCS.parent)}: {len(LINK.findall(text))} links", file=sys.stderr)


if __name__ == "__main__":
    main()
