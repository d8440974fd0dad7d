import json

import pytest

from regretless import benchmarks
from regretless.errors import SettingsError
from regretless.studies.experiment import Experiment, prepare, read_preset, run


def test_result_has_the_promised_form():
    outcome = run(Experiment(benchmark="topk", policies=("greedy", "dfhpg"), seeds=3, first_seed=7, horizon=40))
    result = json.loads(json.dumps(outcome.to_dict(), allow_nan=False))
    expected = {
        "benchmark", "feedback", "degree", "model", "horizon", "seeds", "first_seed", "results", "references", "seconds",
        "settings", "notices", "data",
    }  # fmt: skip
    assert set(result) == expected
    assert (result["benchmark"], result["degree"], result["horizon"], result["seeds"]) == ("topk", 8, 40, 3)
    assert [row["policy"] for row in result["results"]] == ["greedy", "dfhpg"]
    for row in result["results"]:
        assert row["z"] is None, "40 rounds are not the published horizon"
        assert row["mean"] > 0
        assert row["diverged"] == 0
    assert [line["name"] for line in result["references"]] == ["random", "best_fixed", "clairvoyant"]
    assert set(result["seconds"]) == {"compile", "run"}
    assert outcome.simulation.traces["greedy"].seeds == (7, 8, 9)
    assert outcome.simulation.traces["greedy"].config["settings"]["surrogate"] == "pairwise_diff"


def test_one_replication_has_no_standard_error_and_no_z():
    outcome = run(Experiment(benchmark="topk", policies=("greedy",), seeds=1, horizon=40))
    assert outcome.to_dict()["results"][0]["standard_error"] is None


def test_overrides_reach_the_policy_and_the_benchmark():
    changed = prepare(
        Experiment(benchmark="topk", overrides={"k": "3", "alpha_max": "0.9", "surrogate": "dbb", "sign": "-1"})
    )
    assert changed.benchmark.oracle.k == 3
    assert changed.benchmark.sign == -1
    assert changed.settings.alpha_max == 0.9
    assert type(changed.policies["dfhpg"].surrogate).__name__ == "DBB"
    assert not changed.comparable
    assert prepare(Experiment(benchmark="topk")).comparable
    assert not prepare(Experiment(benchmark="topk", degree=4)).comparable


def test_presets_follow_degree_model_and_feedback():
    assert prepare(Experiment(benchmark="pricing", feedback="semi_bandit")).settings.policy_lr == 0.05
    assert prepare(Experiment(benchmark="pricing")).settings.policy_lr == pytest.approx(0.0098471)
    assert prepare(Experiment(benchmark="topk", feedback="semi_bandit")).settings.thompson_scale == 0.01
    assert prepare(Experiment(benchmark="pricing", model="gaussian_nn")).settings.exploration_scale < 1e-5


def test_generative_presets_and_the_policies_that_exist_for_them():
    flow = prepare(Experiment(benchmark="topk", model="flow"))
    assert list(flow.policies) == ["dfhpg_1", "dfhpg", "dfhpg_0"]
    assert (flow.settings.scenarios, flow.settings.kappa_dfl, flow.settings.lambda_reg) == (32, 3.0, 1.0)
    assert not flow.comparable
    diffusion = prepare(Experiment(benchmark="pricing", model="diffusion", policies=("dfhpg",)))
    assert diffusion.policies["dfhpg"].count == 64
    assert diffusion.policies["dfhpg"].model.sample_steps == 50
    tuned = benchmarks.preset("energy", "diffusion", None, "bandit").settings
    assert (tuned.diffusion_train_steps, tuned.diffusion_sample_steps, tuned.diffusion_weights) == (20, 8, "elbo")
    assert len(prepare(Experiment(benchmark="topk")).policies) > 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"benchmark": "topkk"}, "unknown benchmark 'topkk'; did you mean 'topk'"),
        ({"policies": ("dfhgp",)}, "unknown policy 'dfhgp'; did you mean 'dfhpg'"),
        ({"feedback": "bandits"}, "unknown feedback 'bandits'"),
        ({"model": "gauss"}, "unknown model 'gauss'"),
        ({"model": "diffusion", "policies": ("thompson",)}, "policy 'thompson' exists for point models only"),
        ({"model": "flow", "overrides": {"scenarios": "0"}}, "'scenarios': Input should be greater than or equal to 1"),
        ({"degree": 0}, "degree of at least 1, got 0"),
        ({"overrides": {"kk": "3"}}, "unknown setting 'kk'"),
        ({"overrides": {"k": "three"}}, "option 'k' of topk: expected int, got 'three'"),
        ({"overrides": {"k": "99"}}, "1 ≤ k ≤ number of items, got k = 99 with 15 items"),
        ({"overrides": {"alpha_max": "7"}}, "'alpha_max': Input should be less than or equal to 1, got '7'"),
        ({"overrides": {"surrogate": "spoplus"}}, "unknown surrogate 'spoplus'; did you mean 'spo_plus'"),
        ({"preset": {"policy_rate": 1}}, "unknown setting 'policy_rate'"),
        ({"data_dir": "."}, "benchmark 'topk' reads no data"),
        ({"benchmark": "energy", "degree": 2}, "benchmark 'energy' has no degree"),
        ({"benchmark": "energy", "horizon": 396}, "'energy' has 395 rounds, got a horizon of 396"),
        ({"benchmark": "energy", "data_dir": "/dev/null"}, "no energy data in /dev/null: expected prices2013.dat"),
        ({"benchmark": "energy", "overrides": {"split": "train"}}, "unknown split of energy 'train'"),
        ({"benchmark": "energy", "overrides": {"instance": "load4"}}, "unknown instance 'load4'; expected load1"),
        ({"benchmark": "energy", "overrides": {"data_dir": "."}}, "unknown setting 'data_dir'"),
        (
            {"benchmark": "pricing", "overrides": {"budget": "-1"}},
            "infeasible promotion budget -1, expected at least 0",
        ),
    ],
)
def test_bad_input_is_refused_before_anything_runs(change, message):
    with pytest.raises(SettingsError, match=message):
        prepare(Experiment(**{"benchmark": "topk", **change}))


def test_a_degree_without_a_preset_takes_the_nearest_and_says_so():
    prepared = prepare(Experiment(benchmark="topk", degree=9))
    assert "no preset was tuned at degree 9: using the one of degree 8" in prepared.notices[0]


def test_preset_files(tmp_path):
    file = tmp_path / "preset.json"
    file.write_text('{"policy_lr": 0.2, "surrogate": "dbb"}')
    assert prepare(Experiment(benchmark="topk", preset=read_preset(file))).settings.policy_lr == 0.2
    for text, message in (("[1]", "got list"), ("{", "expected one JSON object")):
        file.write_text(text)
        with pytest.raises(SettingsError, match=message):
            read_preset(file)
    with pytest.raises(SettingsError, match="No such file"):
        read_preset(tmp_path / "none.json")
