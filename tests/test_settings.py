"""Settings by dotted name: checked by their owner, refused where they have no effect, numbers as leaves."""

import pytest

from regretless import benchmarks, models, nuisance, policies, surrogates
from regretless.errors import SettingsError
from regretless.policies.dfhpg.settings import DFHPGSettings
from regretless.policies.regression import GreedySettings
from regretless.settings import Settings, merged
from regretless.surrogates.perturbation import IMLE
from toys import Toy

PROBLEM = Toy().problem()


def test_dotted_names_reach_the_parts():
    own = policies.settings_for(
        "dfhpg", {"alpha.max": "0.7", "surrogate": "imle", "surrogate.draws": 20, "policy_lr": 0.3}
    )
    assert (own.alpha.max, own.surrogate.name, own.surrogate.settings.draws, own.policy_lr) == (0.7, "imle", 20, 0.3)
    names = own.names()
    assert names["alpha.max"] == 0.7
    assert names["surrogate"] == "imle"
    assert names["surrogate.strength"] == 10.0
    assert "surrogate.step" not in names
    assert type(own)(**names) == own, "the names say everything"


def test_a_part_of_the_default_choice_needs_no_name():
    own = policies.settings_for("dfhpg", {"nuisance.width": 16})
    assert (own.nuisance.name, own.nuisance.settings.width) == ("mlp", 16)


def test_the_order_of_names_does_not_matter():
    one = policies.settings_for("dfhpg", {"surrogate.draws": 3, "surrogate": "dpo"})
    assert one == policies.settings_for("dfhpg", {"surrogate": "dpo", "surrogate.draws": 3})


def test_settings_objects_are_settings_too():
    given = DFHPGSettings(surrogate=IMLE.Settings(draws=4), **{"alpha.max": 0.5})
    assert given.surrogate.name == "imle"
    policy = policies.build("dfhpg", PROBLEM, given)
    assert policy.surrogate.draws == 4
    assert float(policy.mixing.max) == 0.5
    with pytest.raises(SettingsError, match="expected the name of a surrogate, got settings of another part"):
        DFHPGSettings(surrogate=GreedySettings())


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("dfhpg", {"polcy_lr": 0.1}, "unknown setting 'polcy_lr' of policy 'dfhpg'; did you mean 'policy_lr'"),
        ("dfhpg", {"policy_lr": -1}, "'policy_lr': Input should be greater than 0, got -1"),
        ("dfhpg", {"exploration_scale": "nan"}, "'exploration_scale': Input should be a finite number, got 'nan'"),
        ("dfhpg", {"alpha.min": 0.5, "alpha.max": 0.1}, r"expected alpha\.min ≤ alpha\.max, got 0\.5 and 0\.1"),
        ("dfhpg", {"alpha.gate": "sudden"}, "'warmup' or 'exponential', got 'sudden'"),
        ("dfhpg", {"alpha.maxi": 0.5}, "unknown setting 'maxi' of Mixing; did you mean 'max'"),
        ("dfhpg", {"surrogate": "nope"}, "unknown surrogate 'nope'"),
        ("dfhpg", {"surrogate": 3}, "expected the name of a surrogate, got 3"),
        (
            "dfhpg",
            {"surrogate": "dbb", "surrogate.draws": 3},
            "surrogate 'dbb' has no setting 'draws'; .*imle.* have it",
        ),
        (
            "dfhpg",
            {"surrogate": "imle", "surrogate.drws": 3},
            "unknown setting 'drws' of surrogate 'imle'; did you mean",
        ),
        (
            "greedy",
            {"forgetting": 0.1},
            "policy 'greedy' has no setting 'forgetting'; adaptive and linear_thompson have it",
        ),
        (
            "greedy",
            {"surrogate": "dbb"},
            "policy 'greedy' has no setting 'surrogate'; dfhpg, dfhpg_0 and dfhpg_auto have it",
        ),
        ("linear_thompson", {"model": "flow"}, "policy 'linear_thompson' has no setting 'model'"),
        ("greedyy", {}, "unknown policy 'greedyy'; did you mean 'greedy'"),
    ],
)
def test_what_nobody_has_is_refused_with_who_has_it(name, given, message):
    with pytest.raises(SettingsError, match=message):
        policies.settings_for(name, given)


@pytest.mark.parametrize(
    ("name", "given", "mode", "reason"),
    [
        ("dfhpg", {"nuisance.lr": 0.1}, "full", "the whole cost is seen"),
        ("dfhpg", {"nuisance": "linear"}, "full", "the whole cost is seen"),
        ("dfhpg", {"variant": "plug_in", "surrogate": "dbb"}, "bandit", "variant is 'plug_in'"),
        ("dfhpg", {"variant": "plug_in", "surrogate.share": 0.1, "surrogate": "mse_spo_plus"}, "bandit", "plug_in"),
        ("dfhpg", {"baseline": "none", "baseline_momentum": 0.5}, "bandit", "baseline is 'none'"),
        ("dfhpg", {"alpha.time_scale": 5}, "bandit", r"alpha\.gate is 'warmup'"),
        ("dfhpg", {"alpha.gate": "exponential", "alpha.warmup": 5}, "bandit", r"alpha\.gate is 'exponential'"),
        ("dfhpg_1", {"generative.scenarios": 5}, "bandit", "the model 'gaussian_linear' is not generative"),
        ("dfhpg_1", {"model": "flow", "exploration_scale": 0.5}, "bandit", "the model 'flow' has its own spread"),
        ("dfhpg_0", {"policy_schedule": "constant", "rate_offset": 5}, "bandit", "policy_schedule is 'constant'"),
    ],
)
def test_a_setting_without_effect_is_refused_with_the_reason(name, given, mode, reason):
    problem = Toy().problem(mode)
    with pytest.raises(SettingsError, match=f"has no effect on policy '{name}' here: .*{reason}"):
        policies.build(name, problem, given)
    policies.build(
        name, problem, policies.settings_for(name, given)
    )  # an object is one whole, which cannot say what was meant


def test_parts_that_a_policy_has_not_are_refused():
    with pytest.raises(
        SettingsError, match="'linear_thompson' has no surrogate; dfhpg, dfhpg_0 and dfhpg_auto have one"
    ):
        policies.build("linear_thompson", PROBLEM, surrogate="dbb")
    with pytest.raises(SettingsError, match=r"policy 'linear_thompson' has no model; greedy, .* have one"):
        policies.build("linear_thompson", PROBLEM, model="flow")


def test_objects_take_the_place_of_names():
    mine = surrogates.build("imle", PROBLEM.oracle, {"draws": 2})
    assert policies.build("dfhpg", PROBLEM, surrogate=mine).surrogate is mine
    model = models.GaussianNN.build(4, (3,), 0.5)
    assert policies.build("greedy", PROBLEM, model=model).model is model


def test_updating_checks_again_and_keeps_the_rest():
    base = DFHPGSettings(policy_lr=0.3, surrogate="imle", **{"surrogate.draws": 7})
    assert base.updated({"alpha.max": "0.7"}).alpha.max == 0.7
    assert base.updated({"alpha.max": 0.7}).surrogate.settings.draws == 7
    assert base.updated({"surrogate": "dbb"}).surrogate.settings.strength == 10.0
    assert base.updated({"surrogate": "dpo"}).surrogate.settings.draws == 10, "the former part's settings go"
    with pytest.raises(SettingsError, match="less than or equal to 1"):
        base.updated({"alpha.max": 2.0})


def test_merged_drops_the_settings_of_a_part_that_is_chosen_anew():
    base = {"surrogate": "imle", "surrogate.draws": 7, "policy_lr": 0.1}
    assert merged(base, {"surrogate": "dbb"}) == {"surrogate": "dbb", "policy_lr": 0.1}
    assert merged(base, {"surrogate": "imle"}) == base
    assert merged(base, {"surrogate.draws": 9})["surrogate.draws"] == 9


def test_owners_have_names_in_messages():
    class Oven(Settings):
        heat: float = 180.0

    assert Oven.owner().endswith("Oven")
    assert IMLE.Settings.owner() == "IMLE"
    assert GreedySettings.owner() == "Greedy"


REACHABLE = {
    "policies": {
        "dfhpg": [
            "policy_lr", "rate_offset", "rate_start", "clip", "exploration_scale", "normalize_gradients", "baseline",
            "baseline_momentum",
            "alpha.max", "alpha.min", "alpha.gate", "alpha.warmup", "alpha.time_scale", "alpha.target", "alpha.decay",
            "alpha.rate", "nuisance", "nuisance.lr", "nuisance.width", "nuisance.clip", "surrogate", "surrogate_at", "variant",
            "generative.scenarios", "generative.kappa_dfl", "generative.lambda_reg", "generative.optimiser", "late_clip",
            "late_limit", "nuisance_at", "overwrite_seen", "plug_in_baseline", "nuisance_always",
        ],
        "epsilon_greedy": ["epsilon"],
        "thompson": ["thompson_scale", "exploration_scale", "thompson_loss", "loss"],
        "linear_thompson": ["posterior_scale", "forgetting"],
    },
    "surrogates": {
        "mse_spo_plus": ["share", "factor"], "dbb": ["strength"], "imle": ["strength", "spread", "draws", "noise", "kappa"],
        "aimle": ["spread", "draws", "step", "decay"], "pfyl": ["spread", "draws"], "dpo": ["spread", "draws"],
        "pg": ["step", "difference"], "nce": ["pool"], "pairwise_ltr": ["margin", "pool", "reduction"],
        "listwise_ltr": ["temperature", "pool"],
    },
    "models": {
        "gaussian_linear": ["start"], "gaussian_nn": ["width"], "flow": ["width"],
        "diffusion": ["train_steps", "sample_steps", "weights", "regulariser", "sampler", "width"],
    },
    "nuisances": {
        "mlp": ["lr", "width", "clip", "precision", "optimiser", "loss", "rate_start"], "linear": ["lr", "rule", "radius"],
    },
    "benchmarks": {
        "topk": ["degree", "noise_radius", "items", "k", "features", "sign"],
        "shortest_path": ["degree", "noise_radius", "side", "features"],
        "pricing": [
            "degree", "products", "levels", "promotions", "budget", "features", "lowest_price", "highest_price",
            "shock_scale", "demand_cap", "regret", "context",
        ],
        "energy": ["instance", "split"],
    },
}  # fmt: skip
REGISTRIES = {
    "policies": policies.REGISTRY, "surrogates": surrogates.REGISTRY, "models": models.REGISTRY,
    "nuisances": nuisance.REGISTRY, "benchmarks": benchmarks.REGISTRY,
}  # fmt: skip


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, parts in REACHABLE.items() for name in parts])
def test_every_constant_of_the_paper_can_be_set(family, name):
    known = REGISTRIES[family][name].Settings().names()
    assert set(REACHABLE[family][name]) <= set(known)
