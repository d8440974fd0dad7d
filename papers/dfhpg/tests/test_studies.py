"""The studies of the paper are complete, resolve, and share what they have in common."""

import os
import subprocess
import sys

import numpy as np
import pytest

from regretless import benchmarks
from regretless.experiments import QUICK, Scale
from regretless.experiments import extension as library
from regretless.experiments.campaign import Plan
from regretless.experiments.experiment import Experiment
from regretless.experiments.runner import resolve
from regretless.results import Result
from regretless_dfhpg.as_printed import ratio_plot, text_settings
from regretless_dfhpg.presets import read_table
from regretless_dfhpg.studies import CLAIM_SEEDS, SECOND_SEEDS, STUDIES, TheoryTask, cell_with_more_seeds

SIMULATED = [name for name in STUDIES if name != "theory"]
STATIC = ("baseline", "surrogate", "normalize_gradients", "alpha.gate")


def plan(names, scale=QUICK):
    return Plan([STUDIES[name](scale) for name in names], scale)


def test_every_study_is_registered_under_its_name():
    own = [name for name in library.STUDIES if library.STUDIES.origin(name) == "regretless-dfhpg"]
    assert sorted(own) == sorted(STUDIES)
    for name, make in STUDIES.items():
        assert library.STUDIES[name] is make
        assert make(QUICK).name == name
        assert make(QUICK).collection == "dfhpg"


@pytest.mark.parametrize("name", SIMULATED)
def test_every_cell_resolves_at_full_length(name):
    study = STUDIES[name](Scale())
    for cell in study.cells():
        assert isinstance(cell.work, Experiment)
        more = cell.work.seed_list if name == "claims" else range(30)
        assert cell.work.seed_list == tuple(range(len(more)))
    first = next(study.cells()).work
    assert [run.label for run in resolve(first)] == [arm.label for arm in first.arms]


def test_the_tables_hold_every_published_value():
    played = {
        (cell.work.benchmark, cell.work.feedback, arm.label)
        for name in ("main", "semi_bandit")
        for cell in STUDIES[name](Scale()).cells()
        for arm in cell.work.arms
    }
    published = {(row["benchmark"], row["feedback"], row["method"]) for row in read_table("published.csv")}
    assert {value for value in published if value[0] in benchmarks.REGISTRY} <= played
    assert len(published) == 44


def test_heat_maps_have_the_eighteen_surrogates_of_the_paper():
    (cell,) = STUDIES["surrogates"](Scale()).panels[0].cells
    labels = [arm.label for arm in cell.work.arms]
    assert len(labels) == len(set(labels)) == 36
    assert "mse/dfhpg" not in labels


def test_the_comparison_of_models_is_complete():
    for panel in STUDIES["models"](Scale()).panels:
        cells = {cell.label: cell.work for cell in panel.cells}
        assert list(cells) == ["gaussian_linear", "gaussian_nn", "flow", "diffusion"]
        for model, experiment in cells.items():
            assert (experiment.benchmark, experiment.model) == (panel.title, model)
            assert experiment.horizon == (None if panel.title == "energy" else 15_000)
        variants = {model: [arm.label for arm in cells[model].arms] for model in ("flow", "diffusion")}
        assert variants["flow"] == ["dfhpg", "published orientation", "plug-in variant"]
        assert variants["diffusion"] == ["dfhpg", "published orientation", "unweighted regulariser"]


def test_fixed_alpha_keeps_the_baseline_of_the_preset():
    (cell,) = STUDIES["alpha"](QUICK).panels[0].cells
    names = [run.policy.names() for run in resolve(cell.work)]
    assert [each["alpha.max"] for each in names] == [0.3, 0.0, 0.25, 0.5, 0.75, 1.0]
    assert len({tuple(each[name] for name in STATIC) for each in names}) == 1


def test_studies_share_results():
    main = plan(["main"])
    assert len(main.tasks) == 4 * 7
    assert plan(["main", "convergence"]).tasks.keys() == main.tasks.keys()
    alpha = plan(["alpha"])
    assert len(alpha.tasks.keys() - main.tasks.keys()) == 4 * 5, (
        "the schedule and its companion belong to the main table"
    )
    surrogates = plan(["surrogates"])
    assert len(surrogates.tasks.keys() - main.tasks.keys()) == 4 * 34, "the preset's own surrogate is in the main table"


def test_claims_repeat_arms_of_the_other_studies_with_more_seeds():
    larger = {
        (cell.work.benchmark, cell.label): cell.work
        for cell in STUDIES["claims"](Scale()).cells()
        if isinstance(cell.work, Experiment)
    }
    assert {benchmark: set(seeds) for benchmark, seeds in CLAIM_SEEDS.items()} == {
        name: {label.partition(" ")[0] for benchmark, label in larger if benchmark == name} for name in CLAIM_SEEDS
    }
    for study in ("main", "semi_bandit", "surrogates", "alpha", "degree", "feedback"):
        for panel in STUDIES[study](Scale()).panels:
            for cell in panel.cells:
                label = cell_with_more_seeds(study, cell.label)
                if (panel.title, label) in larger:
                    assert larger[panel.title, label].replace(seeds=range(30)) == cell.work
    assert len(next(iter(STUDIES["claims"](QUICK).cells())).work.seed_list) == QUICK.seeds


def test_settings_as_printed_are_played_alone_and_together():
    for benchmark in ("topk", "shortest_path", "pricing", "energy"):
        settings = text_settings(benchmark)
        assert {"learning rates", "where the surrogate is evaluated", "optimiser of the nuisance"} <= set(settings)
        together = settings[next(reversed(settings))]
        for label, single in settings.items():
            if label != "all but clipping":
                assert all(together[name] == value for name, value in single.items()), (benchmark, label)
        assert together["nuisance.loss"] == "sum", "a setting that needs another one is in the group"
        assert len({str(sorted(single.items())) for single in settings.values()}) == len(settings)
    panel = STUDIES["as_printed"](Scale()).panels[0]
    assert [cell.label for cell in panel.cells] == ["", "sign of the top-k costs"]


def test_ratios_are_those_of_the_means():
    final = {"published settings": [1.0, 3.0], "twice": [2.0, 6.0], "diverged": [np.nan, 1.0]}
    results = {
        label: Result(label, np.array([values]).T, np.isnan(values).astype(np.int32), seeds=(0, 1))
        for label, values in final.items()
    }
    (points,) = ratio_plot(results).lines
    assert (list(points.x), points.y.tolist(), points.error.tolist()) == (["twice"], [2.0], [0.0])


def test_addresses_are_the_same_in_every_process():
    program = (
        "from regretless_dfhpg.studies import main; from regretless.experiments.campaign import Plan\n"
        "from regretless.experiments import QUICK; print(*Plan([main(QUICK)], QUICK).tasks)"
    )
    environment = {**os.environ, "PYTHONHASHSEED": "7", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.split() == list(plan(["main"]).tasks), done.stderr


def test_the_second_range_is_planned_for_tables_only():
    planned = plan(["main", "alpha"], Scale())
    published = {row["method"] for row in read_table("published.csv") if row["feedback"] == "bandit"}
    seeds = {task.seeds for task in planned.second.values()}
    assert seeds == {tuple(range(SECOND_SEEDS, SECOND_SEEDS + 30))}
    assert {task.label for task in planned.second.values()} <= published
    assert plan(["main"], Scale(first_seed=5)).second == {}


def test_the_theory_task_has_an_address_of_its_own():
    assert TheoryTask().address != TheoryTask(seed=1).address != TheoryTask(short=True).address
    assert len(TheoryTask().address) == 64
