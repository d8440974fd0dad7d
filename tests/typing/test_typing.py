"""The public interface under ``mypy --strict`` without plugins: snippets of the pages, the example package and
cases.
"""

import importlib.util
import os
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
PLUGIN = ROOT / "examples" / "plugin" / "src"
FILE_COPY = re.compile(r"^`examples/(?:plugin|python)/\S+`:\n\n```\w+\n.*?^```", re.DOTALL | re.MULTILINE)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^( *)```(?:python|pycon)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)

pytestmark = pytest.mark.slow


def code(block):
    """The statements of a block, plain or in the style of an interactive session, one line for each line."""
    lines = block.splitlines()
    if not any(line.lstrip().startswith(">>>") for line in lines):
        return lines
    return [line.lstrip()[4:] if line.lstrip().startswith((">>>", "...")) else "" for line in lines]


def module(page):
    """A page's blocks as one module; every statement keeps its line number."""
    text = FILE_COPY.sub(lambda match: "\n" * match[0].count("\n"), page.read_text("utf-8"))  # checked as files below
    lines = [""] * (text.count("\n") + 2)
    for match in BLOCK.finditer(text):
        first = text.count("\n", 0, match.start(2))
        indent = len(match[1])
        for offset, line in enumerate(code(match[2])):
            lines[first + offset] = line[indent:] if line[:indent].isspace() else line
    return "\n".join(lines) + "\n"


def slug(page):
    return re.sub(r"\W", "_", page.relative_to(ROOT).with_suffix("").as_posix())


@pytest.fixture(scope="module")
def errors(tmp_path_factory):
    """Errors as (line, code, message) by file name, from one run of mypy."""
    folder = tmp_path_factory.mktemp("snippets")
    for page in PAGES:
        (folder / f"{slug(page)}.py").write_text(module(page), "utf-8")
    files = [*sorted(folder.glob("*.py")), *sorted(HERE.glob("case_*.py")), *sorted(PLUGIN.rglob("*.py"))]
    cache = Path(os.environ.get("MYPY_CACHE_DIR", ROOT / ".mypy_cache")) / "typing"
    options = [
        "--strict",
        "--allow-redefinition",
        "--follow-imports=silent",
        "--ignore-missing-imports",
        "--no-error-summary",
        "--hide-error-context",
    ]
    if importlib.util.find_spec("pyepo") is None:  # its classes are of any type then
        options.append("--allow-subclassing-any")
    command = [sys.executable, "-m", "mypy", "--config-file=", f"--cache-dir={cache}", *options, *map(str, files)]
    paths = os.pathsep.join(str(path) for path in (ROOT / "src", ROOT / "papers/dfhpg/src", PLUGIN) if path.is_dir())
    environment = {**os.environ, "MYPYPATH": paths}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=folder)
    assert result.returncode in (0, 1), result.stdout + result.stderr
    found = defaultdict(list)
    for line in result.stdout.splitlines():
        match = re.match(r"(.*?\.py):(\d+): error: (.*)  \[([\w-]+)\]$", line)
        if match:
            found[Path(match[1]).name].append((int(match[2]), match[4], match[3]))
    return found


@pytest.mark.parametrize("page", PAGES, ids=slug)
def test_snippets_are_typed(page, errors):
    assert errors[f"{slug(page)}.py"] == []


@pytest.mark.parametrize("path", sorted(HERE.glob("case_*.py")), ids=lambda path: path.stem)
def test_cases_have_the_errors_that_their_comments_name(path, errors):
    expected = [
        (number, match[1])
        for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if (match := re.search(r"# error: ([\w-]+)$", line))
    ]
    assert [(line, kind) for line, kind, _ in errors[path.name]] == expected, errors[path.name]


@pytest.mark.parametrize("path", sorted(PLUGIN.rglob("[a-z]*.py")), ids=lambda path: path.stem)
def test_the_example_package_is_typed(path, errors):
    assert errors[path.name] == []
