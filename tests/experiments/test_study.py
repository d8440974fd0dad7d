"""Studies in TOML and Python files, and one sentence for whatever is wrong with a file."""

import sys
from pathlib import Path

import pytest

from regretless.errors import SettingsError
from regretless.experiments import QUICK, Plan, Scale
from regretless.experiments.runner import resolve
from regretless.experiments.study import read_study

STUDY = """
name = "sizes"
title = "How size matters"
about = "Greedy on larger worlds."
axis = "items"

[defaults]
benchmark = "topk"
policies = ["greedy", "dfhpg"]
seeds = 4
horizon = 500
settings.policy_lr = 0.1

[[panels]]
title = "Items"
kind = "lines"
sweep = {setting = "benchmark.items", values = [15, 30]}

[[panels]]
title = "By hand"
zoom = 50
[[panels.cells]]
label = "paper"
seeds = [3, 5]
[[panels.cells]]
label = "mixed"
[panels.cells.settings.alpha]
max = 0.5
min = 0.1
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def write(text, name="sizes.toml"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return write


def settings_of(experiment):
    return {run.label: run.policy.names() for run in resolve(experiment)}


def test_a_toml_file_is_a_study(write):
    study, imports = read_study(write(STUDY), Scale())
    assert (study.name, study.title, study.kind, study.axis) == ("sizes", "How size matters", "table", "items")
    assert imports == ()
    items, by_hand = study.panels
    assert (items.title, items.kind, by_hand.kind, by_hand.zoom) == ("Items", "lines", None, 50)
    assert [cell.label for cell in items.cells] == ["15", "30"]
    assert [cell.work.settings["benchmark.items"] for cell in items.cells] == [15, 30]
    assert [cell.work.seed_list for cell in study.cells()] == [(0, 1, 2, 3)] * 2 + [(3, 5), (0, 1, 2, 3)]
    mixed = settings_of(by_hand.cells[1].work)["dfhpg"]
    assert (mixed["alpha.max"], mixed["alpha.min"], mixed["policy_lr"]) == (0.5, 0.1, 0.1)
    assert len(Plan([study], Scale()).tasks) == 7, "greedy on 15 items is in two cells"


def test_a_scale_is_applied_to_every_cell(write):
    study, _ = read_study(write(STUDY), QUICK)
    assert {(cell.work.seed_list, cell.work.horizon) for cell in study.cells()} == {((0, 1, 2), 200)}
    study, _ = read_study(write(STUDY), Scale(None, 10, 1000))
    assert {cell.work.horizon for cell in study.cells()} == {500}, "a scale makes no study longer"
    assert {cell.work.seed_list[0] for cell in study.cells()} == {10}


def test_arms_have_tables(write):
    text = """
name = "arms"
[[panels]]
[[panels.cells]]
benchmark = "topk"
[[panels.cells.arms]]
label = "a"
policy = "dfhpg"
settings.alpha.max = 0.7
[[panels.cells.arms]]
label = "b"
policy = "dfhpg"
settings.benchmark.degree = 2
[panels.cells.arms.preset]
policy_lr = 0.5
alpha.max = 0.9
"""
    (cell,) = read_study(write(text), Scale())[0].cells()
    settings = settings_of(cell.work)
    assert settings["a"]["alpha.max"] == 0.7
    assert (settings["b"]["alpha.max"], settings["b"]["policy_lr"]) == (0.9, 0.5)
    assert [run.benchmark.degree for run in resolve(cell.work)] == [8, 2]


def test_a_python_file_is_a_study(write):
    text = (
        "from regretless.experiments import Arm, Cell, Experiment, Panel, Study\n"
        "arms = [Arm(str(rate), 'greedy', {'policy_lr': rate}) for rate in (0.1, 0.2)]\n"
        "cell = Cell('', Experiment('topk', arms, seeds=2, horizon=30))\n"
        "study = Study('rates', (Panel('', (cell,)),), kind='bars')\n"
    )
    study, imports = read_study(write(text, "own_rates.py"), Scale(seeds=3))
    assert imports == ("own_rates",), "workers import it, too"
    (cell,) = study.cells()
    assert [arm.label for arm in cell.work.arms] == ["0.1", "0.2"]
    assert cell.work.seed_list == (0, 1, 2)
    study, _ = read_study(write(text.replace("study = Study", "def study(): return Study"), "own_rates_2.py"), Scale())
    assert (study.name, study.kind, study.collection) == ("rates", "bars", "")


NAMED, PANEL = 'name = "mine"\n', '[[panels]]\nsweep = {setting = "benchmark.k", values = [1]}\n'
DEFAULTS = '[defaults]\nbenchmark = "topk"\n'
WRONG = [
    (DEFAULTS + PANEL, "expected a name of letters, digits and underscores, got ''"),
    (NAMED + "panells = 3\n" + PANEL, "unknown setting 'panells' of a study; did you mean 'panels'?"),
    (NAMED + DEFAULTS, "expected at least one panel with a cell, got none"),
    (NAMED + "[[panels]]\ntitle = 'x'\n", "panel 'x': expected cells, or a sweep of one setting"),
    (NAMED + DEFAULTS + PANEL + "[[panels.cells]]\nlabel='x'\n", "panel '': expected cells, or a sweep of one setting"),
    (NAMED + PANEL + "title = 'x'\ncolour = 'red'\n", "unknown setting 'colour' of a panel"),
    (NAMED + 'kind = "pie"\n' + DEFAULTS + PANEL, "unknown kind 'pie'"),
    (NAMED + DEFAULTS + PANEL + 'kind = "pie"\n', "unknown kind 'pie'"),
    (NAMED + DEFAULTS + PANEL + "zoom = 0\n", "expected zoom to be a number of rounds, got 0"),
    (NAMED + DEFAULTS + '[[panels]]\nsweep = {setting = "benchmark.k", values = []}\n', "over a list of values"),
    (NAMED + DEFAULTS + '[[panels]]\nsweep = {seting = "benchmark.k", values = [1]}\n', "with setting and values"),
    (NAMED + PANEL, "expected a benchmark for every cell"),
    (NAMED + DEFAULTS + "seeds = '3'\n" + PANEL, "expected a number of replications or seeds, got '3'"),
    (NAMED + DEFAULTS + "settings = 3\n" + PANEL, "expected a table of settings, got 3"),
    (NAMED + "defaults = 3\n" + PANEL, "expected defaults to be a table, got 3"),
    (NAMED + "panels = [3]\n", "expected panels to be tables, got 3"),
    ('name = "my study"\n' + DEFAULTS + PANEL, "got 'my study'"),
    ("name = \n", "expected a study in TOML, but Invalid value"),
    ("\0", "expected a study in TOML, but"),
    (NAMED + 'imports = ["no_such_module"]\n' + DEFAULTS + PANEL, "imports: cannot import 'no_such_module'"),
    (
        NAMED + 'imports = ["own_broken"]\n' + DEFAULTS + PANEL,
        "cannot import 'own_broken': it failed with ZeroDivisionError",
    ),
    (NAMED + 'imports = ["../up"]\n' + DEFAULTS + PANEL, "imports: expected the name of a module"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_a_file_that_is_wrong_is_refused_in_one_sentence(write, text, message):
    write("1 / 0\n", "own_broken.py")
    with pytest.raises(SettingsError) as caught:
        read_study(write(text), Scale())
    assert message in str(caught.value)
    assert str(caught.value).count("sizes.toml") == 1, "it names the file once"
    assert "\n" not in str(caught.value)


IMPORTS = "from regretless.experiments import Cell, Panel, Study\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study = 3\n", "expected it to define 'study', a regretless.experiments.Study or a function that makes one"),
        ("", "expected it to define 'study'"),
        ("1 / 0\n", "failed with ZeroDivisionError"),
        ("study = (\n", "line 1"),
        ("def study(): 1 / 0\n", "ZeroDivisionError"),
        ("def study(): raise GeneratorExit\n", "GeneratorExit"),
        (IMPORTS + "study = Study('a b', ())\n", "got 'a b'"),
        (IMPORTS + "study = Study('a', ())\n", "expected at least one panel"),
        (IMPORTS + "study = Study('a', (Panel('', (Cell('', 3),)),))\n", "expected cells with an Experiment"),
    ],
)
def test_a_python_file_that_is_wrong_is_refused_in_one_sentence(write, request, text, message):
    name = f"own_wrong_{abs(hash(request.node.name))}.py"
    with pytest.raises(SettingsError, match=message):
        read_study(write(text, name), Scale())


def test_a_file_that_is_not_there_or_elsewhere_is_refused(write, tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match=r"nowhere\.toml: no such file: expected a study in TOML or Python"):
        read_study(Path("nowhere.toml"), Scale())
    path = write("study = 3\n", "own_elsewhere.py")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(SettingsError, match="expected a Python file in the working directory"):
        read_study(path, Scale())
