"""Pages of the documentation: links lead to what they name, formulas can be drawn, no number of the paper is missing."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import link_lines  # noqa: E402
import page_hooks  # noqa: E402

PAGES = sorted((ROOT / "docs").rglob("*.md"))
ALGORITHM = (ROOT / "docs" / "algorithm.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_code_lead_to_the_line_of_what_they_name(page):
    text = page.read_text(encoding="utf-8")
    assert link_lines.linked(text, page.parent) == text, "write them anew: python tools/link_lines.py"


def test_a_link_to_nothing_is_refused():
    folder = ROOT / "docs"
    right = "[`DFHPG.ask`](../src/regretless/policies/dfhpg/algorithm.py#L1)"
    line = int(re.search(r"#L(\d+)", link_lines.linked(right, folder))[1])
    source = (ROOT / "src/regretless/policies/dfhpg/algorithm.py").read_text(encoding="utf-8").splitlines()
    assert "def ask(" in source[line - 1]
    with pytest.raises(LookupError, match=r"nothing called 'DFHPG\.asked' is defined there"):
        link_lines.linked(right.replace("ask`", "asked`"), folder)
    with pytest.raises(LookupError, match="no such file"):
        link_lines.linked(right.replace("algorithm.py", "algorithms.py"), folder)


def test_everything_with_a_number_is_there():
    """31 equations, 4 algorithms, 11 assumptions, 4 tables and 8 figures of the PDF, and every statement."""
    told = re.findall(r"^\| ([^|]+) \|", ALGORITHM, re.MULTILINE)
    numbers = {int(n) for cell in told for n in re.findall(r"\((\d+)\)", cell)}
    assert numbers == set(range(1, 32))
    for kind, last in (("Algorithm", 4), ("Assumption", 11), ("Table", 4), ("Figure", 8)):
        found = {
            int(n) for cell in told if cell.startswith(kind) for n in re.findall(r"\b(\d+)\b", cell.partition(", (")[0])
        }
        assert found == set(range(1, last + 1)), kind
    statements = {
        "Remark": ["2.1"], "Proposition": ["2.1", "C.1", "D.2", "E.1", "E.4"], "Theorem": ["2.2", "2.3", "D.5", "E.6"],
        "Corollary": ["B.1"], "Lemma": ["D.1", "D.3", "D.4", "E.2", "E.3", "E.5"],
    }  # fmt: skip
    missing = [
        f"{kind} {number}"
        for kind, wanted in statements.items()
        for number in wanted
        if not any(cell.startswith(f"{kind} {number}") for cell in told)
    ]
    assert not missing


def test_every_formula_can_be_drawn():
    formulas = page_hooks.formulas(ALGORITHM)
    assert len(formulas) > 100
    for tex in formulas:
        assert "base64" in page_hooks.picture(tex), tex


def test_pages_work_without_the_code_beside_them():
    shown = page_hooks.on_page_markdown("[`f`](../src/a/b.py#L3) is $x^2$\n```sh\necho $HOME and $PATH\n```\n")
    assert shown.startswith("`f` (src/a/b.py:3) is <img")
    assert "echo $HOME and $PATH" in shown
