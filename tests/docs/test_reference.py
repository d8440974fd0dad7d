"""The table of the Python reference lists exactly the public names of every module."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\|[^|]*\| `([a-z.]+)` \|(.*)\|$", re.MULTILINE)
EXPLAINED = {"REGISTRY", "register"}  # below the table


def listed():
    """Names by module."""
    names = {}
    for module, cells in ROW.findall(PAGE):
        full = re.sub(r"^rg\b", "regretless", module)
        names.setdefault(full, []).extend(re.findall(r"`(\w+)`", cells))
    return names


LISTED = listed()


@pytest.mark.parametrize("name", LISTED)
def test_every_public_name_is_listed_once(name):
    module = importlib.import_module(name)
    names = LISTED[name]
    assert len(names) == len(set(names))
    assert [other for other in names if not hasattr(module, other)] == []
    public = {other for other in getattr(module, "__all__", ()) if f"{name}.{other}" not in LISTED}
    if name == "regretless":
        public -= {"benchmarks", "experiments", "feedback", "models", "offline", "oracles"}
        public -= {"policies", "simulation", "surrogates"}
    assert public - EXPLAINED <= set(names)


def test_every_package_with_public_names_is_listed():
    root = Path(importlib.import_module("regretless").__file__).parent
    packages = {
        ".".join(("regretless", *path.parent.relative_to(root).parts))
        for path in root.rglob("__init__.py")
        if "__all__" in path.read_text(encoding="utf-8")
    }
    assert packages <= set(LISTED)
