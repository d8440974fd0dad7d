"""A result's address changes with what computes it, and with nothing else."""

import functools
import importlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import regretless
from regretless.errors import SettingsError
from regretless.policies.linear_thompson import LinearThompson
from regretless.studies import identity, sources
from regretless.studies.identity import address, code_version, roots_of


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Writes modules into a folder that Python looks for modules in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/").replace("/init/", "__init__") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    return write


def closure(*roots):
    return {name for name in identity._closure(roots) if name.partition(".")[0] != "regretless"}


BASE = {
    "plug____init__": '"""A package."""\n',
    "plug__policy": '"""Steps."""\nfrom plug import numbers\n\ndef step(x):\n    """One."""\n    return x + numbers.RATE\n',
    "plug__numbers": "RATE = 1.0\n",
    "plug__cli": "import plug.policy\nGREETING = 'hello'\n",
}


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("policy", '"""Other words."""\nfrom plug import numbers\n\ndef step(x):\n    return x + numbers.RATE\n'),
        (
            "policy",
            '# why\nfrom plug import numbers\n\n\ndef step(x):  # how\n\n    """."""\n    return (x +\n numbers.RATE)',
        ),
        ("numbers", 'RATE = 1.0\n"""How fast."""\n'),
        ("cli", "import plug.policy\nGREETING = 'good morning'\n"),
    ],
    ids=["docstring", "comments and layout", "docstring of a number", "a module that nothing here imports"],
)
def test_what_computes_nothing_changes_nothing(project, module, text):
    project(**BASE)
    before = code_version(("plug.policy",))
    project(**{f"plug__{module}": text})
    assert code_version(("plug.policy",)) == before


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("policy", BASE["plug__policy"].replace("x + numbers", "x - numbers")),
        ("numbers", "RATE = 2.0\n"),
        ("numbers", "RATE = 1\n"),
        ("", "import os\n"),
    ],
    ids=["sign", "number", "type of a number", "the package's own code"],
)
def test_what_computes_changes_the_version(project, module, text):
    project(**BASE)
    before = code_version(("plug.policy",))
    project(**{f"plug__{module or '__init__'}": text})
    assert code_version(("plug.policy",)) != before


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("import plug.one.two as three", {"plug.one", "plug.one.two", "plug.far"}),
        ("from plug.one import two", {"plug.one", "plug.one.two", "plug.far"}),
        ("from .one import two", {"plug.one", "plug.one.two", "plug.far"}),
        ("from . import one", {"plug.one"}),
        ("from .one.two import VALUE", {"plug.one", "plug.one.two", "plug.far"}),
        ("from plug.star import *", {"plug.star", "plug.star.inner"}),
        ("def late():\n    import plug.far\n", {"plug.far"}),
        ("try:\n    import plug.far\nexcept ImportError:\n    import plug.nowhere\n", {"plug.far"}),
        ("import importlib\nfar = importlib.import_module('plug.far')", {"plug.far"}),
        ("import typing\nif typing.TYPE_CHECKING:\n    import plug.far\nelse:\n    import plug.one", {"plug.one"}),
        ("import json, numpy, plug_other", set()),
        ("import plug.space.deep", {"plug.space", "plug.space.deep"}),
    ],
)
def test_imports_are_followed_however_they_are_written(project, statement, expected):
    project(
        plug____init__="",
        plug__root=statement,
        plug__one____init__="",
        plug__one__two="from .. import far\nVALUE = 1",
        plug__far="FAR = 2",
        plug__star____init__="__all__ = ['inner', 'missing']",
        plug__star__inner="",
        plug__space__deep="",
        plug_other="",
    )
    assert closure("plug.root") == {"plug", "plug.root", *expected}


def test_a_namespace_package_has_modules_and_data(project, tmp_path):
    project(space__part__work="from space.part import more", space__part__more="N = 1")
    assert closure("space.part.work") == {"space", "space.part", "space.part.work", "space.part.more"}
    before = code_version(("space.part.work",))
    (tmp_path / "space" / "part" / "weights.csv").write_text("1,2")
    assert code_version(("space.part.work",)) != before


def test_data_of_a_package_counts_and_presets_do_not(project, tmp_path):
    project(**BASE)
    data = tmp_path / "plug" / "data"
    data.mkdir()
    for name in ("prices.csv", "presets.csv", "notes.md"):
        (data / name).write_text("1")
    before = code_version(("plug.policy",))
    (data / "presets.csv").write_text("2")
    (data / "notes.md").write_text("2")
    assert code_version(("plug.policy",)) == before
    (data / "prices.csv").write_text("2")
    after = code_version(("plug.policy",))
    assert after != before
    (data / "more.json").write_text("{}")
    assert code_version(("plug.policy",)) != after


def test_a_plug_in_in_the_working_directory_moves_the_address(project):
    text = "import helper\n\nclass Policy:\n    def decide(self, x):\n        return x {} helper.STEP\n"
    project(mine=text.format("+"), helper="STEP = 1")
    policy = importlib.import_module("mine").Policy
    for name in ("mine", "helper"):
        del sys.modules[name]

    def key():
        return address({"seeds": 3}, code_version((*identity.everything(), *roots_of(policy))))

    plus = key()
    project(mine="# commented\n" + text.format("+"))
    assert key() == plus
    project(mine=text.format("-"))
    minus = key()
    assert minus != plus
    project(helper="STEP = 2")
    assert key() not in (plus, minus), "a module beside it belongs to it"


def test_a_module_without_source_counts_by_its_bytes_or_its_name(project, tmp_path):
    project(broken="def :", with_data="")
    before = code_version(("broken",))
    project(broken="def ::")
    assert code_version(("broken",)) != before
    assert code_version(("sys",)) == code_version(("sys",)) != code_version(("time",))


def test_a_root_that_is_not_there_is_named(project):
    with pytest.raises(SettingsError, match=r"the module plug\.policy cannot be found: install its package"):
        code_version(("plug.policy",))
    project(**BASE)
    assert code_version(("plug.policy",))


def test_nothing_is_imported_to_find_out(project):
    project(plug____init__="raise SystemExit", plug__policy="import plug.more", plug__more="raise SystemExit")
    assert closure("plug.policy") == {"plug", "plug.policy", "plug.more"}
    assert "plug" not in sys.modules


CHANGES = [
    ("live/learner.py", '"""', '"""Words. '),
    ("live/health.py", '."""\n', '."""\n\nimport json\n'),
    ("policies/linear_thompson.py", '"""', '"""Words. '),
    ("benchmarks/data/published.csv", "\n", "\n\n"),
    ("policies/linear_thompson.py", "jnp.sqrt(", "jnp.exp("),
    ("benchmarks/data/synthetic_load1.txt", "\n", "\n\n"),
]
PROGRAM = """
import json, sys
from pathlib import Path
from regretless.studies.identity import code_version
print(code_version())
for name, old, new in json.loads(sys.argv[1]):
    path = Path("regretless", name)
    assert old in path.read_text(), name
    path.write_text(path.read_text().replace(old, new, 1))
    print(code_version())
"""


def test_results_of_this_program_depend_on_what_plays_them(tmp_path):
    """In a copy of the program, changed file by file while it runs."""
    home = Path(regretless.__file__).parent
    shutil.copytree(home, tmp_path / "regretless", ignore=shutil.ignore_patterns("__pycache__"))
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-c", PROGRAM, json.dumps(CHANGES)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, cwd=tmp_path, check=False)
    versions = done.stdout.split()
    assert len(versions) == 1 + len(CHANGES), done.stderr
    assert len(set(versions[:5])) == 1, "words, what only serves, and published values"
    assert len(set(versions[4:])) == 3, "an algorithm, then an instance"


def test_nothing_that_only_shows_or_serves_is_in_the_closure():
    names = identity._closure(identity.everything()).keys()
    assert "regretless.simulation.simulator" in names
    outside = {"live", "report", "cli", "engines", "tuning", "store", "campaign", "plan"}
    assert not outside & {part for name in names for part in name.split(".")}


def test_whoever_takes_from_the_front_door_depends_on_all_of_it(project):
    project(one="import regretless.oracles", two="import regretless as rg", three="from regretless import Result")
    inside = {name: "regretless.live.learner" in identity._closure((name,)) for name in ("one", "two", "three")}
    assert inside == {"one": False, "two": True, "three": True}


def test_roots_are_the_modules_of_things():
    assert roots_of(LinearThompson, code_version, code_version, sources) == (
        "regretless.policies.linear_thompson",
        "regretless.studies.identity",
        "regretless.studies.sources",
    )
    assert roots_of(functools.partial(functools.partial(code_version), ())) == ("regretless.studies.identity",)
    assert roots_of(pytest.param(1)) == roots_of(type(pytest.param(1)))


def test_versions_with_other_roots_give_other_addresses():
    one, other = code_version(("regretless.draws",)), code_version(("regretless.draws", "regretless.nets"))
    assert address({}, one) != address({}, other)
    assert one == code_version(("regretless.draws", "regretless.draws"))


def test_how_a_program_is_compiled_counts_and_how_many_devices_there_are_does_not(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    plain = address({"seeds": 3}, "1")
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    assert address({"seeds": 3}, "1") == plain
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert address({"seeds": 3}, "1") != plain
