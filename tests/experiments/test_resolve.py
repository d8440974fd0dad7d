"""Settings reach the parts that have them, one without effect is refused, and addresses change with what computes
a result.
"""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import regretless
from regretless import benchmarks, oracles, policies
from regretless.errors import SettingsError
from regretless.experiments import Arm, Experiment
from regretless.experiments.extension import find_preset
from regretless.experiments.runner import address_of, code_version, code_versions, resolve


def settings_of(label="dfhpg", **words):
    """Return the settings of one arm by dotted name."""
    run = next(run for run in resolve(Experiment(**{"benchmark": "topk", **words})) if run.label == label)
    return {**run.policy.names(), "scaling": run.scaling}


def test_settings_reach_the_policy_its_parts_and_the_benchmark():
    changes = {"benchmark.k": 3, "benchmark.sign": -1, "alpha.max": 0.9, "surrogate": "dbb", "surrogate.lam": 7}
    greedy, dfhpg = resolve(Experiment("topk", ["greedy", "dfhpg"], settings=changes))
    assert (dfhpg.benchmark.k, dfhpg.benchmark.sign) == (3, -1)
    assert (dfhpg.policy.alpha.max, dfhpg.policy.surrogate.lam) == (0.9, 7.0)
    assert "surrogate" not in greedy.policy.names(), "it goes to those that have it"


def test_numbers_may_be_numbers_or_text():
    one = settings_of(settings={"alpha.max": 0.25, "policy_lr": 1, "normalize_gradients": False})
    other = settings_of(settings={"alpha.max": "0.25", "policy_lr": "1", "normalize_gradients": "false"})
    assert one == other
    assert (one["alpha.max"], one["policy_lr"], one["normalize_gradients"]) == (0.25, 1.0, False)


def test_presets_follow_degree_model_and_feedback():
    assert settings_of(benchmark="pricing", feedback="semi_bandit")["policy_lr"] == 0.05
    assert settings_of(benchmark="pricing")["policy_lr"] == pytest.approx(0.0098471)
    assert settings_of("thompson", feedback="semi_bandit")["thompson_scale"] == 0.01
    assert settings_of(settings={"benchmark.degree": 2})["surrogate"] == "pairwise_ltr"
    flow = settings_of(settings={"model": "flow"})
    assert (flow["generative.scenarios"], flow["generative.kappa_dfl"]) == (32, 3.0)


def test_a_degree_without_a_preset_takes_the_nearest_and_says_so():
    (run,) = resolve(Experiment("topk", "greedy", settings={"benchmark.degree": 9}))
    assert run.notices == ("no preset was tuned at degree 9: using the one of degree 8",)


def test_a_preset_of_your_own_is_scaled_unless_it_says_otherwise():
    assert settings_of()["scaling"] is False, "tuned presets scale nothing"
    assert settings_of(preset={"policy_lr": 0.1})["scaling"] is True
    assert settings_of(preset={"policy_lr": 0.1, "scaling": False})["scaling"] is False
    assert settings_of(preset={"scaling": False}, settings={"scaling": "true"})["scaling"] is True


def test_a_specification_is_played_as_it_is_and_scaled():
    specs = {"plain": policies.DFHPG(policy_lr=0.3), "unscaled": policies.Unscaled(policies.DFHPG())}
    plain, unscaled = resolve(Experiment(benchmarks.TopK(degree=4), specs))
    assert (plain.policy, plain.scaling, plain.tuned) == (specs["plain"], True, False)
    assert (unscaled.policy, unscaled.scaling) == (policies.DFHPG(), False)
    assert plain.benchmark.degree == 4


def test_each_arm_has_its_preset_settings_and_model():
    arms = [
        Arm("a", "dfhpg", preset={"policy_lr": 0.3, "alpha.max": 0.4}),
        Arm("b", "dfhpg", {"policy_lr": 0.5}),
        Arm("c", "dfhpg", {"model": "flow"}),
        Arm("d", "dfhpg"),
    ]
    a, b, c, d = (run.policy.names() | {"scaling": run.scaling} for run in resolve(Experiment("topk", arms)))
    tuned = find_preset("topk", 8, "gaussian_linear", "bandit").values
    assert (a["policy_lr"], b["policy_lr"], d["policy_lr"]) == (0.3, 0.5, float(tuned["policy_lr"]))
    assert (a["surrogate"], b["surrogate"]) == ("spo_plus", tuned["surrogate"]), "a preset replaces all"
    assert c["model"] == "flow"
    assert [settings["scaling"] for settings in (a, b, c, d)] == [True, False, False, False]


REFUSED = [
    ({"benchmark": "topkk"}, "unknown benchmark 'topkk'; did you mean 'topk'"),
    ({"policies": ("dfhgp",)}, "unknown policy 'dfhgp'; did you mean 'dfhpg'"),
    ({"feedback": "bandits"}, "unknown feedback 'bandits'; did you mean 'bandit'"),
    ({"policies": "greedy", "settings": {"model": "gauss"}}, "unknown model 'gauss'"),
    ({"policies": "linear_thompson", "settings": {"model": "flow"}}, "'model' has no effect on linear_thompson"),
    ({"policies": "greedy", "settings": {"forgetting": 0.1}}, "on greedy; adaptive and linear_thompson have it"),
    ({"policies": [Arm("a", "greedy", {"forgetting": 0.1})]}, "policy 'greedy' has no setting 'forgetting'"),
    ({"policies": "greedy", "settings": {"surrogate": "nope"}}, "'surrogate' has no effect on greedy; dfhpg"),
    ({"policies": "dfhpg", "settings": {"surrogate": "spoplus"}}, "unknown surrogate 'spoplus'; did you mean"),
    (
        {"policies": "dfhpg", "settings": {"alpha": 0.3}},
        "'alpha' stands for several settings: expected one of alpha.max",
    ),
    ({"policies": "dfhpg", "settings": {"alpha.max": 7}}, "max': Input should be less than or equal to 1, got 7"),
    (
        {"policies": "dfhpg", "feedback": "full", "settings": {"nuisance.lr": 0.1}},
        r"'nuisance.lr' has no effect here: .* \(policy 'dfhpg'\)",
    ),
    ({"settings": {"forgeting": 0.1}}, "unknown setting 'forgeting'; did you mean 'forgetting'"),
    ({"settings": {"k": 3}}, "unknown setting 'k'; did you mean 'benchmark.k'"),
    ({"settings": {"benchmark.kk": 3}}, "unknown setting 'kk' of benchmark 'topk'; did you mean 'k'"),
    ({"settings": {"benchmark.k": "three"}}, "'k': Input should be a valid integer.* got 'three'"),
    ({"settings": {"benchmark.k": 99}}, "expected 1 ≤ k ≤ number of items, got k = 99 with 15 items"),
    ({"settings": {"scaling": "maybe"}}, "'scaling': expected true or false, got 'maybe'"),
    ({"preset": {"policy_rate": 1}}, "unknown setting 'policy_rate' of the preset; did you mean 'policy_lr'"),
    ({"preset": {"model": "flow"}}, "a preset has no 'model': give it as a setting"),
    ({"preset": {"model.train_step": 3}}, "unknown setting 'train_step' of a model, in the preset; did you mean"),
    ({"horizon": 20, "delay": 10**6}, "expected a delay of less than the 20 rounds that are played, got 1000000"),
    ({"benchmark": "energy", "horizon": 396}, "'energy' has 395 rounds, got a horizon of 396"),
    ({"benchmark": benchmarks.TopK().build(), "settings": {"benchmark.k": 3}}, "k must be set where it is made"),
]


def test_only_an_experiment_is_run():
    with pytest.raises(SettingsError, match="expected an Experiment, got 'topk'"):
        resolve("topk")


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_bad_input_is_refused_before_anything_runs(change, message):
    with pytest.raises(SettingsError, match=message):
        resolve(Experiment(**{"benchmark": "topk", **change}))


def test_a_setting_that_one_arm_uses_is_no_mistake():
    greedy, linear = resolve(Experiment("topk", ["greedy", "linear_thompson"], settings={"forgetting": 0.1}))
    assert "forgetting" not in greedy.policy.names()
    assert linear.policy.forgetting == 0.1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"settings": {"alpha.max": 0.1}}, "'alpha.max' has no effect on mine; dfhpg and dfhpg_auto have it"),
        ({"settings": {"scaling": True}}, "'scaling' has no effect on mine: it is for policies by name"),
        ({"feedback": "full"}, "policy 'mine'"),
        ({"settings": {"benchmark.k": 3}}, "policy 'mine'"),
        ({"missing": 0.3}, "policy 'mine'.*miss"),
    ],
)
def test_a_policy_object_is_played_as_it_is_or_refused(words, message):
    mine = policies.parse("greedy").build(benchmarks.TopK().build().problem("bandit"))
    assert resolve(Experiment("topk", {"mine": mine}))[0].parts[0] is mine
    with pytest.raises(SettingsError, match=message):
        resolve(Experiment(**{"benchmark": "topk", "policies": {"mine": mine}, **words}))


SMALL = Experiment("topk", "greedy", seeds=3, horizon=40)
CHANGES = [
    {"seeds": 4},
    {"seeds": range(1, 4)},
    {"seeds": (0, 2, 1)},
    {"horizon": 41},
    {"feedback": "full"},
    {"settings": {"benchmark.degree": 4}},
    {"settings": {"policy_lr": 0.123}},
    {"settings": {"benchmark.items": 16}},
    {"settings": {"scaling": True}},
    {"settings": {"model": "gaussian_nn"}},
    {"preset": {"policy_lr": 0.1}},
    {"delay": 1},
    {"missing": 0.25},
]


def address(experiment):
    (run,) = resolve(experiment)
    return run.address


def test_addresses_depend_on_everything_that_matters():
    addresses = [address(SMALL.replace(**change)) for change in CHANGES]
    assert len({address(SMALL), *addresses}) == len(CHANGES) + 1


def test_other_words_for_the_same_arm_have_the_same_address():
    tuned = find_preset("topk", 8, "gaussian_linear", "bandit").values["policy_lr"]
    for same in (
        {"settings": {"benchmark.degree": 8}},
        {"settings": {"benchmark.k": "2"}},
        {"settings": {"policy_lr": tuned}},
        {"policies": {"another label": "greedy"}},
        {"benchmark": benchmarks.TopK()},
        {"title": "a title"},
    ):
        assert address(SMALL.replace(**same)) == address(SMALL), same


def test_objects_that_a_store_cannot_recognise_are_refused():
    world = benchmarks.TopK().build()
    mine = policies.parse("greedy").build(world.problem("bandit"))
    with pytest.raises(SettingsError, match="arm 'mine' is a policy object, which a store cannot recognise"):
        address(Experiment("topk", {"mine": mine}, seeds=2, horizon=20))
    with pytest.raises(SettingsError, match=r"benchmark 'topk' is an object that describes itself by its name only"):
        address(Experiment(world, "greedy", seeds=2, horizon=20))


def recorded(scale):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(20, 3))
    return benchmarks.from_arrays(x, scale * (3.0 + x @ rng.normal(size=(3, 15))), oracles.top_k(15, 2))


def test_recorded_data_are_recognised_by_their_numbers():
    one, other = (address(Experiment(recorded(scale), "greedy", seeds=2, horizon=20)) for scale in (1.0, 2.0))
    assert one != other
    assert one == address(Experiment(recorded(1.0), "greedy", seeds=2, horizon=20))


def test_how_a_program_is_compiled_counts_and_the_number_of_devices_does_not(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS", "")
    plain = address_of({"seeds": 3})
    monkeypatch.setenv("XLA_FLAGS", "--xla_force_host_platform_device_count=4")
    assert address_of({"seeds": 3}) == plain
    monkeypatch.setenv("XLA_FLAGS", "--xla_backend_optimization_level=0")
    assert address_of({"seeds": 3}) != plain


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Return a function that writes modules into a folder that Python looks for modules in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(**files):
        for name, text in files.items():
            path = tmp_path / (name.replace("__", "/") + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        importlib.invalidate_caches()

    return write


def version(name):
    return code_versions([name])[name]


def test_a_plug_in_counts_with_what_it_imports_from_its_folder(project):
    project(plug_one="import plug_helper\nSTEP = 1\n", plug_helper="RATE = 1.0\n", plug_other="x = 1\n")
    before = version("plug_one")
    project(plug_other="x = 2\n")
    assert version("plug_one") == before, "it is not imported"
    project(plug_helper="RATE = 2.0\n")
    changed = version("plug_one")
    assert changed != before
    project(plug_one="import plug_helper\nSTEP = 2\n")
    assert version("plug_one") != changed


def test_a_package_counts_as_a_whole(project, tmp_path):
    (tmp_path / "plug_package").mkdir()
    (tmp_path / "plug_package" / "__init__.py").write_text("")
    project(plug_package__policy="STEP = 1\n")
    before = version("plug_package")
    (tmp_path / "plug_package" / "prices.csv").write_text("1,2\n")
    assert version("plug_package") != before
    with pytest.raises(SettingsError, match="the module plug_absent cannot be found"):
        version("plug_absent")


PROGRAM = "from regretless.experiments.runner import code_version; print(code_version())"


def test_the_library_counts_by_what_computes_results(tmp_path):
    home = shutil.copytree(
        Path(regretless.__file__).parent, tmp_path / "regretless", ignore=shutil.ignore_patterns("__pycache__")
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}

    def run():
        command = [sys.executable, "-c", PROGRAM]
        return subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, check=True).stdout

    assert run().strip() == code_version()
    for name in ("live/learner.py", "cli/run.py", "plots.py", "experiments/store.py", "testing/__init__.py"):
        (home / name).write_text((home / name).read_text() + "\n# changed\n")
    assert run().strip() == code_version(), "what only shows, serves or stores"
    (home / "policies" / "linear_thompson.py").open("a").write("\n# changed\n")
    assert run().strip() != code_version()
