"""The text of this repository is plain technical English: words that make a reader stop are not used."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
INSTEAD = {
    "told": "reported, given, known",
    "tells": "reports, shows",
    "foretold": "predicted",
    "anew": "again",
    "mend": "fix",
    "mends": "fixes",
    "mended": "fixed",
    "dear": "expensive",
    "dearer": "more expensive",
    "dearest": "most expensive",
    "beside": "next to",
    "nobody": "no one",
    "somebody": "someone",
    "whomever": "whoever",
    "learnt": "learned",
    "hears": "receives",
    "a say": "a weight",
    "no say": "no weight",
    "cannot be told": "inconclusive",
    "slip of the pen": "typing error",
    "slips of the pen": "typing errors",
    "lets go of": "releases, closes",
    "spoken": "described",
    "whole-numbered": "integer",
}
AVOID = re.compile(
    r"(?<![A-Za-z])(" + "|".join(map(re.escape, sorted(INSTEAD, key=len, reverse=True))) + r")(?![A-Za-z])", re.I
)
TEXT = {".py", ".md", ".toml", ".yml", ".yaml", ".html", ".j2", ".svg", ".css", ".js", ".ipynb", ".cff", ".txt", ".csv"}
SKIPPED = {"requirements", "slow.txt", "fonts", "iframe-worker.js"}
AREAS = (
    "src",
    "papers",
    "docs",
    "tests",
    "examples",
    "tools",
    ".github",
    ".ci",
    "Makefile",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "CODE_OF_CONDUCT.md",
    "CITATION.cff",
    "mkdocs.yml",
    "pyproject.toml",
)
CODE = re.compile(r"`[^`\n]*`")


def texts(area):
    """The files of an area that hold text."""
    place = ROOT / area
    files = [place] if place.is_file() else sorted(path for path in place.rglob("*") if path.is_file())
    for path in files:
        if SKIPPED.isdisjoint(path.parts) and path != Path(__file__) and (path == place or path.suffix in TEXT):
            yield path


def words(path):
    """The words to avoid in a file, counted; names in the changelog are those of their version."""
    text = path.read_text("utf-8", errors="ignore")
    return Counter(
        match.lower() for match in AVOID.findall(CODE.sub("", text) if path.name == "CHANGELOG.md" else text)
    )


@pytest.mark.parametrize("area", AREAS)
def test_words_to_avoid(area):
    found = {path.relative_to(ROOT).as_posix(): dict(counts) for path in texts(area) if (counts := words(path))}
    hints = {word: INSTEAD[word] for counts in found.values() for word in counts}
    assert found == {}, f"write instead: {hints}"


def test_the_pattern_finds_words_in_names_too():
    assert AVOID.findall("told, told_about, _told; Told") == ["told", "told", "told", "Told"]
    assert AVOID.findall("retold fold endear tellsome") == []
