"""Settings and their owners: each name reaches who has it, and one without effect is refused with a sentence."""

import pytest

from regretless import benchmarks, policies
from regretless.errors import SettingsError
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.preparing import prepare
from regretless.studies.settling import settle
from regretless_dfhpg import presets


def names(arm="dfhpg", **words):
    """The settings of one arm, by dotted name."""
    return {each.arm.label: each for each in settle(Experiment(**{"benchmark": "topk", **words}))}[arm].names()


def test_settings_reach_the_policy_its_parts_and_the_benchmark():
    changes = {"benchmark.k": 3, "benchmark.sign": -1, "alpha.max": 0.9, "surrogate": "dbb", "surrogate.lam": 7}
    changed = prepare(Experiment(benchmark="topk", policies=("greedy", "dfhpg"), settings=changes))
    assert (changed.benchmark.oracle.k, changed.benchmark.sign) == (3, -1)
    found = changed.settled["dfhpg"].names()
    assert {name: found[name] for name in changes if not name.startswith("benchmark.")} == {
        "alpha.max": 0.9, "surrogate": "dbb", "surrogate.lam": 7.0,
    }  # fmt: skip
    assert type(changed.policies["dfhpg"].surrogate).__name__ == "DBBSurrogate"
    assert float(changed.policies["dfhpg"].surrogate.lam) == 7.0
    assert "surrogate" not in changed.settled["greedy"].names(), "it goes to those who have it"


def test_numbers_may_be_numbers_or_words():
    one = names(settings={"alpha.max": 0.25, "policy_lr": 1, "normalize_gradients": False, "benchmark.k": 3})
    other = names(settings={"alpha.max": "0.25", "policy_lr": "1", "normalize_gradients": "false", "benchmark.k": "3"})
    assert one == other
    assert (one["alpha.max"], one["policy_lr"], one["normalize_gradients"]) == (0.25, 1.0, False)


def test_presets_follow_degree_model_and_feedback():
    assert names(benchmark="pricing", feedback="semi_bandit")["policy_lr"] == 0.05
    assert names(benchmark="pricing")["policy_lr"] == pytest.approx(0.0098471)
    assert names("thompson", feedback="semi_bandit")["thompson_scale"] == 0.01
    assert names(benchmark="pricing", model="gaussian_nn")["exploration_scale"] < 1e-5
    assert names(degree=2)["surrogate"] == "pairwise_ltr"


def test_a_degree_without_a_preset_takes_the_nearest_and_says_so():
    prepared = prepare(Experiment(benchmark="topk", policies="greedy", degree=9))
    assert prepared.notices == ("no preset was tuned at degree 9: using the one of degree 8",)


def test_generative_presets_reach_policy_and_model():
    flow = names(model="flow")
    assert (flow["generative.scenarios"], flow["generative.kappa_dfl"], flow["generative.lambda_reg"]) == (32, 3.0, 1.0)
    diffusion = prepare(Experiment(benchmark="pricing", model="diffusion", policies=("dfhpg",)))
    assert diffusion.policies["dfhpg"].count == 64
    assert diffusion.policies["dfhpg"].model.sample_steps == 50
    tuned = names(benchmark="energy", model="diffusion")
    assert [tuned[f"model.{name}"] for name in ("train_steps", "sample_steps", "weights")] == [20, 8, "elbo"]


def test_a_preset_of_your_own_is_scaled_unless_it_says_otherwise():
    assert names()["scaling"] is False, "the paper's runs scale nothing"
    assert names(preset={"policy_lr": 0.1})["scaling"] is True
    assert names(preset={"policy_lr": 0.1, "scaling": False})["scaling"] is False
    assert names(preset={"scaling": False}, settings={"scaling": "true"})["scaling"] is True


def test_each_arm_has_its_own_preset_settings_and_model():
    arms = [
        Arm(label="a", policy="dfhpg", preset={"policy_lr": 0.3, "alpha.max": 0.4}),
        Arm(label="b", policy="dfhpg", settings={"policy_lr": 0.5}),
        Arm(label="c", policy="dfhpg", model="flow"),
        Arm(label="d", policy="dfhpg"),
    ]
    found = {each.arm.label: each.names() for each in settle(Experiment(benchmark="topk", arms=arms))}
    tuned = presets.preset("topk", 8, "gaussian_linear", "bandit").values
    assert [found[label]["policy_lr"] for label in "abcd"][:2] == [0.3, 0.5]
    assert found["d"]["policy_lr"] == float(tuned["policy_lr"]) != found["c"]["policy_lr"]
    assert [found[label]["surrogate"] for label in "ab"] == ["spo_plus", tuned["surrogate"]], "a preset replaces all"
    assert [found[label]["model"] for label in "abcd"] == ["gaussian_linear"] * 2 + ["flow", "gaussian_linear"]
    assert [found[label]["scaling"] for label in "abcd"] == [True, False, False, False]


OWN = Arm(label="a", policy="linear_thompson", model="flow")
REFUSED = [
    ({"benchmark": "topkk"}, "unknown benchmark 'topkk'; did you mean 'topk'"),
    ({"policies": ("dfhgp",)}, "unknown policy 'dfhgp'; did you mean 'dfhpg'"),
    ({"feedback": "bandits"}, "unknown feedback 'bandits'; did you mean 'bandit'"),
    ({"model": "gauss"}, "unknown model 'gauss'"),
    ({"model": "diffusion", "policies": ("thompson",)}, "policy 'thompson'.*expected a model of|expected a model of"),
    ({"model": "flow", "policies": ("linear_thompson",)}, "model 'flow' has no effect: linear_thompson has none"),
    ({"arms": (OWN,)}, "arm 'a': model 'flow' has no effect: policy 'linear_thompson' has none"),
    ({"policies": ("greedy",), "settings": {"forgetting": 0.1}}, "on greedy; adaptive and linear_thompson have it"),
    ({"arms": (Arm(label="a", policy="greedy", settings={"forgetting": 0.1}),), "policies": ("linear_thompson",)},
     "policy 'greedy' has no setting 'forgetting'; adaptive and linear_thompson have it"),
    ({"policies": ("greedy",), "settings": {"surrogate": "nope"}}, "'surrogate' has no effect on greedy; dfhpg"),
    ({"policies": ("dfhpg",), "settings": {"surrogate": "dbb", "surrogate.draws": 4}},
     "surrogate 'dbb' has no setting 'draws'; imle, aimle, pfyl and dpo have it"),
    ({"policies": ("dfhpg",), "settings": {"surrogate": "spoplus"}}, "unknown surrogate 'spoplus'; did you mean"),
    ({"policies": ("dfhpg",), "settings": {"nuisance.radius": 3}}, "nuisance 'mlp' has no setting 'radius'; linear has"),
    ({"policies": ("dfhpg",), "settings": {"alpha": 0.3}}, "'alpha' stands for several settings: expected one of alpha.max"),
    ({"policies": ("dfhpg",), "settings": {"alpha.max": 7}}, "max': Input should be less than or equal to 1, got 7"),
    ({"policies": ("dfhpg",), "feedback": "full", "settings": {"nuisance.lr": 0.1}},
     r"'nuisance.lr' has no effect here: the whole cost is seen, no prediction is needed \(policy 'dfhpg'\)"),
    ({"policies": ("dfhpg",), "settings": {"generative.scenarios": 3}}, "the model 'gaussian_linear' is not generative"),
    ({"policies": ("dfhpg",), "model": "flow", "settings": {"exploration_scale": 3}}, "the model 'flow' has its own spread"),
    ({"model": "flow", "settings": {"generative.scenarios": 0}}, "scenarios': Input should be greater than or equal to 1"),
    ({"settings": {"forgeting": 0.1}}, "unknown setting 'forgeting'; did you mean 'forgetting'"),
    ({"settings": {"k": 3}}, "unknown setting 'k'; did you mean 'benchmark.k'"),
    ({"settings": {"benchmark.kk": 3}}, "unknown setting 'kk' of benchmark 'topk'; did you mean 'k'"),
    ({"settings": {"benchmark.k": "three"}}, "'k': Input should be a valid integer.* got 'three'"),
    ({"settings": {"benchmark.k": 99}}, "expected k ≤ items, got k = 99 of 15 items"),
    ({"settings": {"policy_lr": float("nan")}}, "'policy_lr': Input should be a finite number"),
    ({"settings": {"scaling": "maybe"}}, "'scaling': expected true or false, got 'maybe'"),
    ({"settings": {"model": "flow"}}, r"'model': give it as model \(--model\), because presets depend on it"),
    ({"settings": {"benchmark.degree": 4}}, r"'benchmark.degree': give it as degree \(--degree\)"),
    ({"settings": {"benchmark.data_dir": "."}}, r"'benchmark.data_dir': give it as data_dir \(--data-dir\)"),
    ({"arms": (Arm(label="a", policy="greedy", settings={"benchmark.degree": 4}),)}, "give it as degree"),
    ({"preset": {"policy_rate": 1}}, "unknown setting 'policy_rate' of the preset; did you mean 'policy_lr'"),
    ({"preset": {"alpha_max": 1}}, "unknown setting 'alpha_max' of the preset; did you mean 'alpha.max'"),
    ({"preset": {"model": "flow"}}, "a preset has no 'model': give it as model"),
    ({"preset": {"model.train_step": 3}}, "unknown setting 'train_step' of a model, in the preset; did you mean"),
    ({"degree": 0}, "'degree': Input should be greater than or equal to 1, got 0"),
    ({"degree": 1000}, "'degree': Input should be less than or equal to 100"),
    ({"horizon": 20, "delay": 10**14}, "expected a delay of less than the 20 rounds that are played, got 1000"),
    ({"data_dir": "."}, "benchmark 'topk' reads no data"),
    ({"benchmark": "energy", "degree": 2}, "benchmark 'energy' has no degree"),
    ({"benchmark": "energy", "horizon": 396}, "'energy' has 395 rounds, got a horizon of 396"),
    ({"benchmark": "energy", "data_dir": "/dev/null"}, "no energy data in /dev/null: expected prices2013.dat"),
    ({"benchmark": "energy", "settings": {"benchmark.split": "train"}}, "split'?: .*got 'train'"),
    ({"benchmark": "energy", "settings": {"benchmark.instance": "load4"}}, "instance.*load4"),
    ({"benchmark": "pricing", "settings": {"benchmark.budget": -1}}, "budget.*-1"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), REFUSED, ids=lambda value: value[:40] if isinstance(value, str) else "")
def test_bad_input_is_refused_before_anything_runs(change, message):
    with pytest.raises(SettingsError, match=message):
        prepare(Experiment(**{"benchmark": "topk", **change}))


def test_a_setting_that_one_arm_uses_is_no_mistake():
    both = Experiment(benchmark="topk", policies=("greedy", "linear_thompson"), settings={"forgetting": 0.1})
    assert [each.given for each in settle(both)] == [(), ("forgetting",)]
    prepare(Experiment(benchmark="topk", policies=("dfhpg", "linear_thompson"), model="gaussian_nn"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"settings": {"alpha.max": 0.1}}, "'alpha.max' has no effect on mine; dfhpg and dfhpg_auto have it"),
        (
            {"settings": {"scaling": True}},
            r"'scaling' has no effect on mine: wrap policy objects in rg\.policies\.Scaled",
        ),
        ({"model": "gaussian_nn"}, "model 'gaussian_nn' has no effect: mine has none to choose"),
        ({"feedback": "full"}, "policy 'mine'.*bandit.*full|policy 'mine'.*full.*bandit"),
        ({"settings": {"benchmark.k": 3}}, "policy 'mine'"),
        ({"missing": 0.3}, "policy 'mine'.*miss"),
    ],
)
def test_a_policy_object_is_played_as_it_is_or_refused(words, message):
    mine = policies.parse("greedy").build(benchmarks.parse("topk").build().problem("bandit"))
    assert prepare(Experiment(benchmark="topk", policies={"mine": mine})).policies["mine"] is mine
    with pytest.raises(SettingsError, match=message):
        prepare(Experiment(**{"benchmark": "topk", "policies": {"mine": mine}, **words}))


@pytest.mark.parametrize(
    "arm",
    [{"settings": {"policy_lr": 1}}, {"settings": {"scaling": True}}, {"preset": {"policy_lr": 1}}, {"model": "flow"}],
)
def test_settings_of_an_arm_are_for_a_policy_by_name(arm):
    mine = policies.parse("greedy").build(benchmarks.parse("topk").build().problem("bandit"))
    with pytest.raises(
        SettingsError, match="arm 'a': settings, preset and model are for a policy by name, not an object"
    ):
        settle(Experiment(benchmark="topk", arms=[Arm(label="a", policy=mine, **arm)]))


@pytest.mark.parametrize("words", [{"degree": 4}, {"data_dir": "."}, {"settings": {"benchmark.k": 3}}])
def test_a_benchmark_object_is_set_where_it_is_made(words):
    with pytest.raises(SettingsError, match=r"benchmark 'topk' is an object: .* has to be set where it is made"):
        settle(Experiment(benchmark=benchmarks.parse("topk").build(), policies="greedy", **words))


def test_presets_of_the_paper_are_for_the_papers_policies(monkeypatch):
    monkeypatch.setitem(policies.REGISTRY._parts, "outside", policies.REGISTRY["greedy"])
    ours, outside = settle(Experiment(benchmark="topk", policies=("greedy", "outside")))
    assert (ours.tuned, ours.scaling) == (True, False)
    assert (outside.tuned, outside.scaling) == (False, True)
    assert outside.settings == policies.parse("greedy")
    assert ours.settings != outside.settings
