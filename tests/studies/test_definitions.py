import os
import subprocess
import sys

import pytest

from regretless import benchmarks
from regretless.errors import SettingsError
from regretless.studies import definitions
from regretless.studies.definitions import BENCHMARKS, study
from regretless.studies.experiment import Experiment
from regretless.studies.plan import Plan
from regretless.studies.settling import settle
from regretless.studies.study import QUICK, Scale
from regretless.studies.verdicts import SECOND_RANGE
from regretless_dfhpg.presets import read_table as read

STATIC = ("baseline", "surrogate", "normalize_gradients", "alpha.gate")
SIMULATED = [name for name in definitions.REGISTRY if name != "theory"]


def plan(names, scale=QUICK):
    return Plan([study(name, scale) for name in names], scale)


@pytest.mark.parametrize("name", SIMULATED)
@pytest.mark.parametrize("scale", [Scale(), QUICK])
def test_every_cell_can_be_settled(name, scale):
    made = study(name, scale)
    assert made.panels
    for cell in made.cells():
        assert isinstance(cell, Experiment)
        assert cell.seeds == tuple(range(scale.seeds or 30))
        assert [each.arm.label for each in settle(cell)] == [arm.label for arm in cell.arms]


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
    panel = study("surrogates", Scale()).panels[0]
    labels = [arm.label for _, cell in panel.cells for arm in cell.arms] + [each.label for each in panel.borrowed]
    assert len(labels) == len(set(labels)) == 36
    assert "mse/dfhpg" not in labels


def test_the_comparison_of_models_is_whole():
    """Every benchmark and model at full length, both orientations, the flow's plug-in variant, the unweighted regulariser."""
    made = study("models", Scale())
    for panel in made.panels:
        cells = dict(panel.cells)
        assert list(cells) == ["gaussian_linear", "gaussian_nn", "flow", "diffusion"]
        for model, cell in cells.items():
            assert (cell.benchmark, cell.model, len(cell.seeds)) == (panel.title, model, 30)
            assert cell.horizon == (None if panel.title == "energy" else 15_000)
        variants = {model: [arm.label for arm in cells[model].arms] for model in ("flow", "diffusion")}
        assert variants["flow"] == ["dfhpg", "published orientation", "plug-in variant"]
        assert variants["diffusion"] == ["dfhpg", "published orientation", "unweighted regulariser"]
    assert [panel.title for panel in made.panels] == list(BENCHMARKS)


def test_fixed_alpha_keeps_the_presets_baseline_and_shares_the_schedules_program():
    panel = study("alpha", Scale()).panels[0]
    (schedule,) = panel.borrowed
    lender = {each.arm.label: each for each in settle(schedule.cell)}
    names = [each.names() for each in (lender[schedule.arm], *settle(panel.cells[0][1]))]
    assert [each["alpha.max"] for each in names] == [0.3, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert len({tuple(each[name] for name in STATIC) for each in names}) == 1


def test_studies_share_cells():
    count = len(BENCHMARKS)
    assert len(plan(["main", "semi_bandit"]).cells) == 8
    assert len(plan(["main", "convergence"]).cells) == count
    assert len(plan(["main", "convergence", "degree", "feedback"]).cells) == count + 4 * 3 + 2 * count


def test_every_cell_of_the_paper_has_a_key_of_its_own_in_every_process():
    """57 cells, none of which is another's; the keys are those of a process with other hashes of strings."""
    whole = plan(definitions.REGISTRY)
    cells = {cell.model_dump_json() for made in whole.studies for cell in made.cells()}
    assert len(whole.cells) == len(cells) == 57
    program = (
        "from regretless.studies.definitions import study; from regretless.studies.plan import Plan\n"
        "from regretless.studies.study import QUICK; print(*Plan([study('main', QUICK)], QUICK).cells)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(plan(["main"]).cells), done.stderr


def test_unknown_study():
    with pytest.raises(SettingsError, match="unknown study 'mian'; did you mean 'main'"):
        study("mian", QUICK)


def test_second_range_is_planned_for_tables_only():
    made = plan(["main", "alpha"], Scale())
    assert len(made.second) == len(BENCHMARKS)
    assert {again.cell.seeds for again in made.second.values()} == {tuple(range(SECOND_RANGE, SECOND_RANGE + 30))}
    assert plan(["main"], Scale(first_seed=5)).second == {}
