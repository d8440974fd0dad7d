"""Imports agree with the declared dependencies: the core at the top of a module, extras through ``extras.require``."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OWN = {"regretless", "regretless_command", "regretless_dfhpg"}
LIBRARY = sorted((ROOT / "src").rglob("*.py"))
PAPER = sorted((ROOT / "papers/dfhpg/src").rglob("*.py"))


def packages(requirements):
    """Names of the packages in requirements, with those of the extras that they name."""
    names = set()
    for requirement in requirements:
        name, extras = re.match(r"([\w.-]+)(?:\[([\w,-]+)\])?", requirement).groups()
        if name == PROJECT["name"]:
            for extra in extras.split(","):
                names |= packages(PROJECT["optional-dependencies"][extra])
        else:
            names.add({"scikit-learn": "sklearn"}.get(name, name.replace("-", "_").lower()))
    return names


CORE = packages(PROJECT["dependencies"]) | OWN
EXTRAS = {extra: packages(listed) for extra, listed in PROJECT["optional-dependencies"].items()}


def imports(path):
    """(package, for type checkers only) of every import statement of a file."""
    statements = []

    def visit(node, typing):
        for child in ast.iter_child_nodes(node):
            guarded = typing or (isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test))
            if isinstance(child, ast.Import):
                statements.extend((alias.name.partition(".")[0], guarded) for alias in child.names)
            elif isinstance(child, ast.ImportFrom) and not child.level:
                statements.append((child.module.partition(".")[0], guarded))
            visit(child, guarded)

    visit(ast.parse(path.read_text("utf-8")), False)
    return [(package, typing) for package, typing in statements if package not in sys.stdlib_module_names]


def required(path):
    """(package, extra) of every call of ``extras.require`` with literal arguments."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "require":
            extras = [word.value.value for word in node.keywords if word.arg == "extra"]
            if extras and node.args and isinstance(node.args[0], ast.Constant):
                yield node.args[0].value.partition(".")[0], extras[0]


def test_the_core_is_light():
    assert (
        OWN | {"equinox", "highspy", "jax", "jaxtyping", "numpy", "pydantic", "pydantic_core", "rich", "scipy", "typer"}
        == CORE
    )


@pytest.mark.parametrize("path", LIBRARY, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_imports_are_declared(path):
    used = set(imports(path))
    assert {package for package, _ in used} <= CORE.union(*EXTRAS.values()), "a package that is not declared"
    allowed = CORE | EXTRAS["serve"] if "serve" in path.parts else CORE  # serve/ is imported with its extra only
    assert {package for package, typing in used if not typing} <= allowed, "use extras.require for optional packages"
    for package, extra in required(path):
        if package != "json":
            assert package in EXTRAS[extra], f"{package} is not in the extra {extra}"


@pytest.mark.parametrize("path", PAPER, ids=lambda path: path.name)
def test_imports_of_the_paper_are_declared(path):
    project = tomllib.loads((ROOT / "papers/dfhpg/pyproject.toml").read_text("utf-8"))["project"]
    assert {package for package, _ in imports(path)} <= packages(project["dependencies"]) | OWN


def test_every_extra_is_documented():
    assert set(EXTRAS) == {
        "plots",
        "tune",
        "data",
        "report",
        "parallel",
        "serve",
        "ray",
        "torch",
        "pyepo",
        "paper",
        "all",
        "docs",
        "ortools",
        "peers",
        "test",
        "dev",
    }
    own = ("plots", "tune", "data", "report", "parallel", "serve")
    assert EXTRAS["all"] == set().union(*(EXTRAS[extra] for extra in own))


def test_metadata_names_no_invented_people_or_hosts():
    assert not {"authors", "maintainers", "urls"} & set(PROJECT)
    assert "version" in PROJECT["dynamic"]
