"""The paper uses the library as any other package would: through its public packages."""

import ast
import importlib
from pathlib import Path

import pytest

import regretless_dfhpg

ROOT = Path(regretless_dfhpg.__file__).parent
MODULES = {"draws", "files", "formatting", "keys", "plots", "results", "schedules", "spec", "types"}
"""Public modules without a list of exports: small helpers, records and charts."""

MEASURED = {
    "policies.dfhpg.gradients",
    "policies.dfhpg.algorithm",
    "simulation",
    "simulation.programs",
    "simulation.stream",
    "surrogates",
    "surrogates.pool",
}
"""The check of the theorems measures the programs of the library itself, so it needs its running parts."""


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_only_public_names_of_the_library_are_used(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("regretless."):
            continue
        place = node.module.removeprefix("regretless.")
        if place in MODULES or (place in MEASURED and path.parent.name == "theory"):
            continue
        exported = importlib.import_module(node.module).__all__
        assert {alias.name for alias in node.names} <= set(exported), f"{node.module} in {path.name}"
