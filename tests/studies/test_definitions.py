import pytest

from regretless import benchmarks, policies
from regretless.benchmarks.presets import read
from regretless.errors import SettingsError
from regretless.studies import definitions
from regretless.studies.cells import Cell
from regretless.studies.definitions import QUICK, Scale, study
from regretless.studies.plan import Plan
from regretless.studies.verdicts import SECOND_RANGE

SIMULATED = [name for name in definitions.REGISTRY if name != "theory"]


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("scale", [Scale(), QUICK])
def test_every_cell_can_be_settled(name, scale):
    made = study(name, scale)
    assert made.panels
    for cell in made.cells():
        assert isinstance(cell, Cell)
        assert cell.seeds == scale.seeds
        assert len({arm.label for arm in cell.arms}) == len(cell.arms)
        cell.identity()


def test_the_tables_hold_every_published_cell():
    made = {
        (c.benchmark, c.feedback, arm.label)
        for n in ("main", "semi_bandit")
        for c in study(n, Scale()).cells()
        for arm in c.arms
    }
    known = {(row["benchmark"], row["feedback"], row["method"]) for row in read("published.csv")}
    assert {cell for cell in known if cell[0] in benchmarks.REGISTRY} <= made


def test_heat_maps_have_the_papers_eighteen_surrogates():
    labels = {arm.label for cell in dict(study("surrogates", Scale()).panels[0].cells).values() for arm in cell.arms}
    assert len(labels) == 36
    assert "mse/dfhpg" not in labels


def test_fixed_alpha_keeps_the_presets_baseline_and_shares_the_schedules_program():
    cell = study("alpha", Scale()).panels[0].cells[0][1]
    settings = [settled.settings for settled in cell.settled().values()]
    assert [s.alpha_max for s in settings] == [0.3, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert len({(s.baseline, s.surrogate, s.normalize_gradients, s.alpha_gate) for s in settings}) == 1


def test_studies_share_cells():
    plan = Plan(["main", "convergence", "degree", "feedback"], QUICK)
    count = len(definitions.present())
    assert len(Plan(["main", "convergence"], QUICK).cells) == count
    assert len(plan.cells) == count + 4 * len(definitions.present(definitions.BENCHMARKS[:3])) + 2 * count


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.delitem(benchmarks.REGISTRY, "pricing")
    monkeypatch.delitem(policies.REGISTRY, "thompson")
    made = study("main", QUICK)
    assert {"benchmark pricing", "policy thompson"} <= set(made.missing)
    assert "pricing" not in [panel.benchmark for panel in made.panels]
    assert all(arm.policy != "thompson" for cell in made.cells() for arm in cell.arms)


def test_unknown_study():
    with pytest.raises(SettingsError, match="unknown study 'mian'; did you mean 'main'"):
        study("mian", QUICK)


def test_second_range_is_planned_for_tables_only():
    plan = Plan(["main", "alpha"], Scale())
    assert len(plan.second) == len(definitions.present())
    assert {again.cell.first_seed for again in plan.second.values()} == {SECOND_RANGE}
    assert Plan(["main"], Scale(first_seed=5)).second == {}
