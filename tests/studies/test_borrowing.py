"""Arms that the main table has already: borrowed only if they are the very same, and shown where they would stand."""

import numpy as np
import pytest

from regretless import benchmarks, policies
from regretless.results import Result
from regretless.studies import definitions
from regretless.studies.borrowing import borrowing
from regretless.studies.cell_files import CellResult
from regretless.studies.cells import key
from regretless.studies.definitions import BENCHMARKS, bandit, cell, study
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.forms import BorrowedPlan
from regretless.studies.joining import Source, joined
from regretless.studies.settling import settle
from regretless.studies.study import QUICK, Panel, Scale

SMALL = Scale(seeds=2, first_seed=4, horizon=30)
DFHPG = Arm(label="dfhpg", policy="dfhpg")


def whole(name, scale, monkeypatch):
    """The panels of a study that would play everything itself."""
    with monkeypatch.context() as patch:
        patch.setattr(definitions, "borrowing", lambda panel, lender: panel)
        return study(name, scale).panels


def alone(experiment, label):
    """An experiment with one of its arms, whose label tells nothing."""
    (arm,) = [arm for arm in experiment.arms if arm.label == label]
    return experiment.changed(arms=(arm.model_copy(update={"label": "x"}),))


def meaning(experiment):
    """What every arm's words come to, by label."""
    return {each.arm.label: (each.arm.policy, each.world, each.names()) for each in settle(experiment)}


@pytest.mark.parametrize(("name", "count"), [("alpha", 1), ("surrogates", 2)])
@pytest.mark.parametrize("scale", [Scale(), QUICK, SMALL])
def test_what_is_borrowed_is_what_would_have_been_played(name, count, scale, monkeypatch):
    panels = study(name, scale).panels
    assert [panel.title for panel in panels] == list(BENCHMARKS)
    for panel, full in zip(panels, whole(name, scale, monkeypatch), strict=True):
        played, shown = dict(panel.cells), dict(full.cells)
        arms = {label: list(each.arms) for label, each in played.items()}
        for each in panel.borrowed:
            lender, own = each.cell, shown[each.into]
            assert (lender, lender.seeds, lender.horizon) == (bandit(scale, panel.title), own.seeds, own.horizon)
            assert meaning(lender)[each.arm] == meaning(own)[each.label]
            arms[each.into].insert(each.place, own.arms[each.place])
        assert len(panel.borrowed) == count
        assert {label: tuple(each) for label, each in arms.items()} == {label: e.arms for label, e in shown.items()}
        left = [each for experiment in played.values() for each in meaning(experiment).values()]
        assert not [each for each in left if each in meaning(bandit(scale, panel.title)).values()]


@pytest.mark.parametrize("name", ["alpha", "surrogates"])
def test_a_borrowed_arm_alone_has_the_address_of_the_one_that_is_not_played(name, monkeypatch):
    for panel, full in zip(study(name, SMALL).panels, whole(name, SMALL, monkeypatch), strict=True):
        each = panel.borrowed[0]
        assert key(alone(each.cell, each.arm)) == key(alone(dict(full.cells)[each.into], each.label))


def test_nothing_else_is_borrowed():
    lender = bandit(QUICK, "topk")
    changes = {"other": {"alpha.max": 0.7}, "scaled": {"scaling": True}}
    mixed = (DFHPG, *(Arm(label=label, policy="dfhpg", settings=each) for label, each in changes.items()))
    assert [each.label for each in borrowing(Panel("", (("", cell(QUICK, "topk", mixed)),)), lender).borrowed] == [
        "dfhpg"
    ]
    other = [
        cell(QUICK, "topk", mixed, degree=4),
        cell(QUICK, "topk", mixed, "semi_bandit"),
        cell(QUICK, "topk", mixed).changed(seeds=range(1, 4)),
        cell(QUICK, "topk", mixed).changed(horizon=100),
        cell(QUICK, "topk", mixed).changed(delay=1),
        cell(QUICK, "topk", mixed).changed(missing=0.1),
        cell(QUICK, "pricing", mixed),
        cell(QUICK, "topk", [DFHPG]),  # nothing would be left
    ]
    world = benchmarks.TopK().build()
    built = policies.parse("dfhpg").build(world.problem("bandit"))
    other.append(Experiment(benchmark=world, policies={"dfhpg": built, "again": built}, seeds=3, horizon=200))
    for each in other:
        panel = Panel("", (("", each),))
        assert borrowing(panel, lender) == panel


def trace(level):
    return Result("any", np.full((2, 3), level), seeds=(0, 1))


def test_borrowed_arms_stand_in_their_places():
    lent = CellResult({"x": trace(5.0), "y": trace(6.0)}, {"name": "lender"})
    results = {"own": CellResult({"a": trace(1.0), "b": trace(2.0)}, {"name": "own"}), "lender": lent}

    def load(name):
        if name not in results:
            raise FileNotFoundError(name)
        return results[name]

    def loan(place, label, where, arm):
        return BorrowedPlan.model_construct(into="", place=place, label=label, key=where, arm=arm)

    source = Source(
        "own", (loan(0, "first", "lender", "y"), loan(2, "between", "gone", "x"), loan(4, "c", "lender", "x"))
    )
    found = joined(source, load)
    assert {label: each.mean() for label, each in found.traces.items()} == {
        "first": 18.0,
        "a": 3.0,
        "b": 6.0,
        "c": 15.0,
    }
    assert found.record == {"name": "own"}
    assert list(joined(Source("own", (loan(1, "no", "lender", "z"),)), load).traces) == ["a", "b"]
    with pytest.raises(FileNotFoundError):
        joined(Source("gone"), load)
