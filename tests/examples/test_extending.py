"""The code that the documentation shows is the code of examples/plugin."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "examples" / "plugin"
TEXT = "\n".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in ("extending.md", "own-studies.md"))
SHOWN = dict(re.findall(r"^`examples/plugin/(\S+)`:\n\n```\w+\n(.*?)^```$", TEXT, re.M | re.S))
FILES = [*sorted((PLUGIN / "src").rglob("[a-z]*.py")), *sorted((PLUGIN / "studies").iterdir())]


@pytest.mark.parametrize("path", [file.relative_to(PLUGIN).as_posix() for file in FILES if file.is_file()])
def test_file_is_shown_as_it_is(path):
    assert SHOWN.get(path) == (PLUGIN / path).read_text(encoding="utf-8")


def test_entry_points_are_shown_as_they_are():
    entries = SHOWN["pyproject.toml"]
    assert entries in (PLUGIN / "pyproject.toml").read_text(encoding="utf-8")
    assert entries.count("[project.entry-points.") == 6


def test_nothing_is_shown_that_is_not_there():
    assert all((PLUGIN / path).is_file() for path in SHOWN)
