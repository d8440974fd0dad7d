"""The shape of the library: its size, deep modules, unique class names, and code that the formatter may touch."""

import ast
import io
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIBRARY = ROOT / "src" / "regretless"
MAX_CODE_LINES = 21_000
"""Without `serve/` and `offline/`."""

MAX_FILES = 165
MAX_SINGLE_IMPORTER_MODULES = 36
MAX_UNFORMATTED_BLOCKS = 20
NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


@pytest.fixture(scope="module")
def trees():
    """Every module's name with its text and syntax tree."""
    found = {}
    for path in sorted(LIBRARY.rglob("*.py")):
        name = ".".join(("regretless", *path.relative_to(LIBRARY).with_suffix("").parts))
        text = path.read_text("utf-8")
        found[name] = (text, ast.parse(text))
    return found


def code_lines(text, tree):
    """The number of lines that hold code: no blank lines, comments or docstrings."""
    strings, lines = set(), set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for item in body if isinstance(body, list) else []:
            if (
                isinstance(item, ast.Expr)
                and isinstance(item.value, ast.Constant)
                and isinstance(item.value.value, str)
            ):
                strings.update(range(item.lineno, item.end_lineno + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - strings)


def test_the_library_is_small(trees):
    assert len(trees) <= MAX_FILES
    apart = ("regretless.serve", "regretless.offline")
    assert sum(code_lines(*parsed) for name, parsed in trees.items() if not name.startswith(apart)) <= MAX_CODE_LINES


def test_few_modules_have_one_importer(trees):
    importers = defaultdict(set)
    modules = {name.removesuffix(".__init__") for name in trees}
    for name, (_, tree) in trees.items():
        here = name.removesuffix(".__init__")
        for node in ast.walk(tree):
            targets = []
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            for target in modules.intersection(targets) - {here}:
                importers[target].add(here)
    single = [name for name in trees if not name.endswith(("__init__", "__main__")) and len(importers[name]) == 1]
    assert len(single) <= MAX_SINGLE_IMPORTER_MODULES, single


def test_class_names_are_unique(trees):
    homes = defaultdict(list)
    for name, (_, tree) in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                homes[node.name].append(name)
    assert {name: modules for name, modules in homes.items() if len(modules) > 1} == {}


def test_the_formatter_may_touch_almost_everything():
    marker = "# fmt: " + "skip"
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.py"]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if files.returncode:
        pytest.skip("not a git repository")
    counts = {
        name: (ROOT / name).read_text("utf-8").count(marker) for name in files.stdout.split() if (ROOT / name).is_file()
    }
    assert sum(counts.values()) <= MAX_UNFORMATTED_BLOCKS, {name: count for name, count in counts.items() if count}


WALK = """
import sys, threading
files = set()
def count(frame, event, argument):
    optimized = frame.f_code.co_flags & 1  # functions, not the bodies of modules and classes
    if event == "call" and optimized and "/regretless/" in frame.f_code.co_filename:
        files.add(frame.f_code.co_filename)
import numpy as np
import regretless as rg
from regretless_command import main
sys.setprofile(count)
threading.setprofile(count)
{walk}
sys.setprofile(None)
print(len(files))
"""
LEARNER = """
learner = rg.Learner(rg.oracles.milp(A_ub=[[3, 4, 2, 5]], b_ub=[7], integrality=1), context=3)
for x in np.random.default_rng(0).normal(size=(4, 3)):
    learner.learn(learner.decide(x).id, total=1.0)
"""
COMMAND = """
sys.argv = ["regretless", *{words}]
try:
    main()
except SystemExit as left:
    assert not left.code, left.code
"""
RUN = COMMAND.format(words=["run", "topk", "--policy", "dfhpg", "--seeds", "2", "--horizon", "20", "--out", "out"])
CELL = COMMAND.format(words=["reproduce", "one.toml"])
STUDY = """
name = "one"
[[panels]]
[[panels.cells]]
benchmark = "topk"
policies = ["dfhpg"]
seeds = 2
horizon = 20
"""


@pytest.mark.slow
@pytest.mark.parametrize(("walk", "limit"), [(LEARNER, 28), (RUN, 45), (CELL, 45)], ids=["learner", "run", "cell"])
def test_a_walk_through_the_library_enters_few_files(walk, limit, tmp_path):
    (tmp_path / "one.toml").write_text(STUDY)
    command = [sys.executable, "-c", WALK.format(walk=walk)]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert int(result.stdout.split()[-1]) <= limit
