"""The Markdown extension of the pages: formulas, links to code, drawings and examples."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

math_core = pytest.importorskip("math_core", reason="needs the pages' generator: make docs")
markdown = pytest.importorskip("markdown")

import page_fields  # noqa: E402
import page_markdown  # noqa: E402
import page_sources  # noqa: E402

PAGES = sorted((ROOT / "docs").rglob("*.md"))
FORMULA_IN_CODE = re.compile(r"[∇‖ᵀ√⟨⟩⊗⊙≤≥²]|[ĉθφ]|[α-ω]_|w\*|f\*")
MADE = re.compile(r"<!-- made.*?<!-- end -->", re.DOTALL)


def render(text):
    return markdown.markdown(text, extensions=["tables", "fenced_code", "page_markdown"])


def test_formulas_are_typeset_in_place():
    page = render(
        "| a |\n| --- |\n| $p_\\theta(\\cdot \\mid x)$ and `$HOME` |\n\nalone\n\n$$x^2 < 3$$\n\n"
        "```sh\necho $A $B\n```\n"
    )
    assert page.count("<math>") == 1
    assert page.count('<div class="formula"><math display="block">') == 1
    assert "<code>$HOME</code>" in page
    assert "echo $A $B" in page
    assert "$x" not in page
    with pytest.raises(math_core.LatexError):
        render("$\\nonsense{$")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_formula_can_be_typeset_and_none_is_code(page):
    text = page.read_text(encoding="utf-8")
    for tex in page_markdown.formulas(text):
        assert page_markdown.mathml(tex).startswith("<math>"), tex
    prose = page_markdown.FENCE.sub("", MADE.sub("", text))
    assert [code for code in re.findall(r"`([^`\n]+)`", prose) if FORMULA_IN_CODE.search(code)] == []


def test_links_to_code_lead_to_copies_that_mark_the_line(tmp_path):
    page = render("see [`Total.matvec`](../../src/regretless/feedback.py)")
    source = (ROOT / "src/regretless/feedback.py").read_text().splitlines()
    link = re.search(
        r'<a href="(../code/src/regretless/feedback.py.html)#L-(\d+)"><code>Total.<wbr>matvec</code></a>', page
    )
    assert "def matvec(" in source[int(link[2]) - 1]
    (tmp_path / "index.html").write_text(page)
    page_sources.main(tmp_path)
    copy = (tmp_path / "code/src/regretless/feedback.py.html").read_text()
    assert re.findall(r'id="L-(\d+)"', copy) == [str(i + 1) for i in range(len(source))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_to_code_name_something_that_is_defined(page):
    for name, _, path in page_markdown.TO_CODE.findall(page.read_text(encoding="utf-8")):
        assert page_markdown.line_of(name, path) > 0


def test_links_to_nothing_are_refused():
    with pytest.raises(LookupError, match=r"'Total\.measured', which is not defined there"):
        render("[`Total.measured`](../src/regretless/feedback.py)")
    with pytest.raises(LookupError, match="no such file"):
        render("[`Linear`](../src/regretless/feedbacks.py)")


def test_drawings_become_part_of_the_page_without_their_colours():
    page = render("![A round](images/round.svg)")
    assert 'aria-label="A round"' in page
    assert "<style>" not in page
    assert "<text" in page


def test_examples_of_docstrings_are_code():
    page = render("Adds.\n\n>>> 1 + 1\n2\n\nAfter it.\n\n> a quotation\n")
    assert page.count("blockquote") == 2
    assert '<code class="language-pycon">&gt;&gt;&gt; 1 + 1\n2\n</code>' in page


def test_fields_are_documented_by_their_comment_or_description():
    assert page_fields.meaning("    gap: float  # how much worse", None) == "how much worse"
    assert page_fields.meaning("    label: str", "Field(min_length=1, description='its name')") == "its name"
    assert page_fields.meaning("    id: int", None) is None
    assert page_fields.default("Field(None, ge=1)") == "None"
    assert page_fields.default("Field(default_factory=dict)") == "{}"
    assert page_fields.default("Field(min_length=1)") is None
    assert page_fields.default("eqx.field(static=True)") is None
    assert page_fields.default("tuple(range(30))") == "tuple(range(30))"


def test_every_page_is_in_the_navigation():
    places = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    paths = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES]
    assert [path for path in paths if not re.search(rf" {re.escape(path)}$", places, re.MULTILINE)] == []


def test_snippets_fit_narrow_pages():
    block = re.compile(r"^```(?:python|pycon)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    wide = {}
    for page in [ROOT / "README.md", *PAGES]:
        lines = [line for match in block.finditer(page.read_text(encoding="utf-8")) for line in match[1].splitlines()]
        code = (
            [line for line in lines if line.startswith((">>>", "..."))]
            if any(">>>" in line for line in lines)
            else lines
        )
        name = page.relative_to(ROOT).as_posix()
        if any(len(line) > 76 for line in code):
            wide[name] = [line for line in code if len(line) > 76]
    assert wide == {}
