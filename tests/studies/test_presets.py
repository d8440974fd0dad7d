"""Preset files: settings by dotted name, and files of version 0.1 with the numbers that they had."""

import json

import numpy as np
import pytest

from regretless.errors import SettingsError
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.outcome import run
from regretless.studies.presets import convert, read_preset
from regretless.studies.settling import settle

VERSION_0_1 = {
    "policy_lr": 0.07, "policy_schedule": "shifted_inverse", "nuisance_lr": 0.006, "surrogate": "pairwise_ltr",
    "exploration_scale": 0.05, "alpha_max": 0.4, "alpha_min": 0.02, "alpha_gate": "warmup", "alpha_time_scale": 100.0,
    "alpha_target": "reliability", "baseline": "moving_average", "normalize_gradients": True, "surrogate_at": "mean",
    "variant": "surrogate", "nuisance": "mlp", "nuisance_precision": "single", "nuisance_radius": 10000.0, "epsilon": 0.3,
    "thompson_scale": None, "posterior_scale": 0.1, "forgetting": 0.0, "late_clip": 10.0, "late_limit": 100.0,
    "scenarios": 4, "scenario_gradient": "own", "kappa_dfl": 2.0, "lambda_reg": 0.1, "regulariser_at": "prediction",
    "orientation": "minimise", "diffusion_train_steps": 10, "diffusion_sample_steps": 4, "diffusion_weights": "elbo",
}  # fmt: skip
"""Every setting of version 0.1, as its tuning wrote them."""


def written(tmp_path, values):
    path = tmp_path / "preset.json"
    path.write_text(values if isinstance(values, str) else json.dumps(values))
    return path


def settled(preset, **words):
    return {each.arm.label: each.names() for each in settle(Experiment(benchmark="topk", preset=preset, **words))}


def test_a_file_with_present_names_is_taken_as_it_is(tmp_path):
    values = {"policy_lr": 0.2, "surrogate": "dbb", "surrogate.lam": 3, "scaling": False}
    assert read_preset(written(tmp_path, values)) == (values, [])
    assert settled(values)["dfhpg"]["surrogate.lam"] == 3.0


def test_a_file_that_says_nothing_of_scaling_is_told(tmp_path):
    values, (notice,) = read_preset(written(tmp_path, {"policy_lr": 0.2}))
    assert values == {"policy_lr": 0.2}
    assert notice.endswith("says nothing of 'scaling': contexts and costs are scaled")


def test_a_file_of_version_0_1_is_converted_with_a_notice(tmp_path):
    values, (notice,) = read_preset(written(tmp_path, VERSION_0_1))
    assert "names of version 0.1, which were converted, without scaling: nuisance_lr, alpha_max, alpha_min" in notice
    assert values["alpha.max"] == 0.4
    assert values["scaling"] is False
    assert not {name for name in values if name.startswith(("alpha_", "nuisance_", "diffusion_"))}
    assert convert(values) == values, "converting again changes nothing"
    found = settled(values)
    assert (found["dfhpg"]["nuisance.lr"], found["epsilon_greedy"]["epsilon"], found["dfhpg"]["scaling"]) == (
        0.006, 0.3, False,
    )  # fmt: skip
    diffusion = settled(values, model="diffusion")["dfhpg"]
    assert [diffusion[name] for name in ("generative.scenarios", "generative.kappa_dfl")] == [4, 2.0]
    assert [diffusion[f"model.{name}"] for name in ("train_steps", "sample_steps", "weights")] == [10, 4, "elbo"]


@pytest.mark.parametrize(("old", "rule"), [("linear_constant", "constant"), ("linear_adaptive", "adaptive")])
def test_the_linear_nuisance_of_version_0_1_is_a_choice_with_a_rule(old, rule):
    found = settled(convert({**VERSION_0_1, "nuisance": old, "nuisance_radius": 50.0}))["dfhpg"]
    assert [found[f"nuisance{each}"] for each in ("", ".rule", ".radius", ".lr")] == ["linear", rule, 50.0, 0.006]


def test_version_0_1_played_the_same_numbers():
    """Final regrets that version 0.1.0 computed with these settings: seeds 0 and 1, 60 rounds."""
    linear = {**VERSION_0_1, "nuisance": "linear_constant", "nuisance_radius": 50.0}
    plain = {"intercept_ridge": 1.0, "slope_ridge": 1.0, "clipping": 0.0}
    arms = [
        Arm(label="epsilon_greedy", policy="epsilon_greedy"),
        Arm(label="linear_thompson", policy="linear_thompson", settings=plain),
        Arm(label="dfhpg", policy="dfhpg"),
        Arm(label="linear", policy="dfhpg", preset=convert(linear)),
    ]
    preset = convert(VERSION_0_1)
    found = run(Experiment(benchmark="topk", arms=arms, preset=preset, seeds=2, horizon=60)).traces
    known = {
        "epsilon_greedy": [25267.0935644567, 15157.896353500797],
        "linear_thompson": [39165.31363245413, 47881.15498777401],
        "dfhpg": [34576.056245724954, 53640.46242355317],
        "linear": [24224.463746286754, 32661.8068090333],
    }
    for label, trace in found.items():
        np.testing.assert_allclose(trace.regret.sum(axis=1), known[label], rtol=1e-6, err_msg=label)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1]", "expected one JSON object of settings by dotted name"),
        ('{"alpha": {"max": 1}}', "expected one JSON object of settings by dotted name"),
        ("{", "expected one JSON object of settings, but"),
        ("[" * 100_000, "expected one JSON object of settings, but"),
        ("", "expected one JSON object of settings, but"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(tmp_path, text, message):
    with pytest.raises(SettingsError, match=message):
        read_preset(written(tmp_path, text))
    with pytest.raises(SettingsError, match=r"cannot read preset .*: No such file"):
        read_preset(tmp_path / "none.json")
