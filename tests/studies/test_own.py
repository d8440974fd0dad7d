"""Studies of your own: TOML and Python files as cells, and one sentence for whatever is wrong with a file."""

import sys
from pathlib import Path

import pytest

from regretless.errors import SettingsError
from regretless.studies import own
from regretless.studies.plan import Plan
from regretless.studies.settling import settle
from regretless.studies.study import QUICK, Scale

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


def test_a_toml_file_is_a_study(write):
    study, imports = own.read(write(STUDY), Scale())
    assert (study.name, study.title, study.kind, study.axis, study.paper) == (
        "sizes", "How size matters", "table", "items", False,
    )  # fmt: skip
    assert imports == ()
    items, by_hand = study.panels
    assert (items.title, items.kind, by_hand.kind, by_hand.zoom) == ("Items", "lines", None, 50)
    assert [label for label, _ in items.cells] == ["15", "30"]
    assert [cell.settings for _, cell in items.cells] == [
        {"policy_lr": 0.1, "benchmark.items": 15}, {"policy_lr": 0.1, "benchmark.items": 30},
    ]  # fmt: skip
    assert [cell.seeds for cell in study.cells()] == [(0, 1, 2, 3)] * 2 + [(3, 5), (0, 1, 2, 3)]
    mixed = {each.arm.label: each.names() for each in settle(by_hand.cells[1][1])}["dfhpg"]
    assert (mixed["alpha.max"], mixed["alpha.min"], mixed["policy_lr"]) == (0.5, 0.1, 0.1)
    assert len(Plan([study], Scale()).cells) == 4


def test_a_scale_is_applied_to_every_cell(write):
    study, _ = own.read(write(STUDY), QUICK)
    assert {(cell.seeds, cell.horizon) for cell in study.cells()} == {((0, 1, 2), 200)}
    study, _ = own.read(write(STUDY), Scale(None, 10, 1000))
    assert {cell.horizon for cell in study.cells()} == {500}, "a scale makes no study longer"
    assert {cell.seeds[0] for cell in study.cells()} == {10}


def test_a_sweep_names_the_axis_and_may_be_of_numbers_or_words(write):
    text = STUDY.replace('axis = "items"\n', "").replace("[15, 30]", '["15", 30]')
    study, _ = own.read(write(text), Scale())
    assert study.axis == "benchmark.items"
    assert [settle(cell)[0].world.settings.items for _, cell in study.panels[0].cells] == [15, 30]


def test_arms_have_tables_of_their_own(write):
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
degree = 2
[panels.cells.arms.preset]
policy_lr = 0.5
alpha.max = 0.9
"""
    (cell,) = own.read(write(text), Scale())[0].cells()
    a, b = (each.names() for each in settle(cell))
    assert (a["alpha.max"], b["alpha.max"], b["policy_lr"]) == (0.7, 0.9, 0.5)
    assert [each.world.degree for each in settle(cell)] == [8, 2]


def test_a_python_file_is_a_study(write):
    text = (
        "from regretless.studies import Arm, Experiment, Panel, Study\n"
        "arms = [Arm(label=str(rate), policy='greedy', settings={'policy_lr': rate}) for rate in (0.1, 0.2)]\n"
        "cell = Experiment(benchmark='topk', arms=arms, seeds=2, horizon=30)\n"
        "study = Study('rates', 'bars', 'Rates', '', (Panel('', (('', cell),)),))\n"
    )
    study, imports = own.read(write(text, "own_rates.py"), Scale(seeds=3))
    assert imports == ("own_rates",), "workers import it too"
    (cell,) = study.cells()
    assert [arm.label for arm in cell.arms] == ["0.1", "0.2"]
    assert cell.seeds == (0, 1, 2)
    study, _ = own.read(write(text.replace("study = Study", "def study(): return Study"), "own_rates_2.py"), Scale())
    assert (study.name, study.kind, study.paper) == ("rates", "bars", False)


def test_cells_that_lend_an_arm_have_the_same_scale(write):
    text = (
        "from regretless.studies import Experiment, Panel, Study\n"
        "from regretless.studies.study import Borrowed\n"
        "one, other = (Experiment(benchmark='topk', policies=name, seeds=2) for name in ('greedy', 'thompson'))\n"
        "lent = Borrowed('', 0, 'lent', other, 'thompson')\n"
        "study = Study('loans', 'bars', 'Loans', '', (Panel('', (('', one),), borrowed=(lent,)),))\n"
    )
    study, _ = own.read(write(text, "own_loans.py"), Scale(seeds=3, horizon=20))
    assert [(cell.seeds, cell.horizon) for cell in study.cells()] == [((0, 1, 2), 20)] * 2
    plan = Plan([study], Scale(seeds=3, horizon=20))
    (loan,) = plan.to_dict()["studies"][0]["panels"][0]["borrowed"]
    assert loan == {"into": "", "place": 0, "label": "lent", "key": list(plan.cells)[1], "arm": "thompson"}


NAMED, PANEL = 'name = "mine"\n', '[[panels]]\nsweep = {setting = "benchmark.k", values = [1]}\n'
DEFAULTS = '[defaults]\nbenchmark = "topk"\n'
WRONG = [
    (PANEL, "'name': Field required"),
    (NAMED + "panells = 3\n" + PANEL, "unknown setting 'panells' of OwnStudy; did you mean 'panels'?"),
    (NAMED + DEFAULTS, "'panels': Field required"),
    (NAMED + "panels = []\n", "'panels': List should have at least 1 item"),
    (NAMED + "[[panels]]\ntitle = 'x'\n", "panel 'x': expected cells, or a sweep of one setting"),
    (NAMED + DEFAULTS + PANEL + "[[panels.cells]]\nlabel='x'\n", "panel '': expected cells, or a sweep of one setting"),
    (NAMED + PANEL + "title = 'x'\ncolour = 'red'\n", "unknown setting 'colour' of OwnPanel"),
    (NAMED + 'kind = "pie"\n' + DEFAULTS + PANEL, "'kind': Input should be 'table', 'curves'"),
    (NAMED + DEFAULTS + PANEL + 'kind = "pie"\n', "Input should be 'table', 'curves'"),
    (NAMED + DEFAULTS + PANEL + "zoom = 0\n", "Input should be greater than or equal to 1"),
    (NAMED + DEFAULTS + '[[panels]]\nsweep = {setting = "benchmark.k", values = []}\n', "at least 1 item"),
    (NAMED + DEFAULTS + '[[panels]]\nsweep = {seting = "benchmark.k", values = [1]}\n', "unknown setting 'seting'"),
    (NAMED + PANEL, "'benchmark': Field required"),
    (
        NAMED + DEFAULTS + "polices = ['greedy']\n" + PANEL,
        "unknown setting 'polices' of Experiment; did you mean 'policies'?",
    ),
    (NAMED + DEFAULTS + "seeds = '3'\n" + PANEL, "expected a number of replications or seeds, got '3'"),
    (NAMED + DEFAULTS + "settings = 3\n" + PANEL, "expected a table of settings, got 3"),
    (NAMED + "defaults = 3\n" + PANEL, "'defaults': Input should be a valid dictionary"),
    ('name = "main"\n' + DEFAULTS + PANEL, "'main' is a study of the paper: choose another name"),
    ('name = "my study"\n' + DEFAULTS + PANEL, "'name': String should match pattern"),
    ("name = \n", "expected a study in TOML, but Invalid value"),
    ("\0", "expected a study in TOML, but"),
    (NAMED + 'imports = ["no_such_module"]\n' + DEFAULTS + PANEL, "imports: cannot import 'no_such_module'"),
    (NAMED + 'imports = ["own_broken"]\n' + DEFAULTS + PANEL, "importing 'own_broken' failed with ZeroDivisionError"),
    (NAMED + 'imports = ["../up"]\n' + DEFAULTS + PANEL, "imports: expected the name of a module"),
]


@pytest.mark.parametrize(("text", "message"), WRONG, ids=[message[:40] for _, message in WRONG])
def test_a_file_that_is_wrong_is_refused_in_one_sentence(write, text, message):
    write("1 / 0\n", "own_broken.py")
    with pytest.raises(SettingsError) as caught:
        own.read(write(text), Scale())
    assert message in str(caught.value)
    assert str(caught.value).count("sizes.toml") == 1, "it names the file once"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study = 3\n", "expected it to define 'study', a regretless.studies.Study or a function that makes one"),
        ("", "expected it to define 'study'"),
        ("1 / 0\n", "failed with ZeroDivisionError"),
        ("study = (\n", "line 1"),
        ("def study(): 1 / 0\n", "ZeroDivisionError"),
        ("from regretless.studies import Study\nstudy = Study('a', 'pie', '', '', ())\n", "unknown kind 'pie'"),
        ("from regretless.studies import Study\nstudy = Study('a b', 'bars', '', '', ())\n", "got 'a b'"),
        ("from regretless.studies import Study\nstudy = Study('a', 'bars', '', '', ())\n", "expected at least one panel"),
        ("from regretless.studies import Panel, Study\nstudy = Study('a', 'bars', '', '', (Panel('', (('', 3),)),))\n",
         "expected cells that are Experiments, got int"),
    ],
)  # fmt: skip
def test_a_python_file_that_is_wrong_is_refused_in_one_sentence(write, request, text, message):
    name = f"own_wrong_{abs(hash(request.node.name))}.py"
    with pytest.raises(SettingsError, match=message):
        own.read(write(text, name), Scale())


def test_a_file_that_is_not_there_or_elsewhere_is_refused(write, tmp_path, monkeypatch):
    with pytest.raises(SettingsError, match=r"no study at nowhere\.toml: expected a TOML or Python file"):
        own.read(Path("nowhere.toml"), Scale())
    path = write("study = 3\n", "own_elsewhere.py")
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path / "below")
    with pytest.raises(SettingsError, match="expected a Python file in the working directory"):
        own.read(path, Scale())
