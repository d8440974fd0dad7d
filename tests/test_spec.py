"""Specifications: typed, frozen, printable; settings by dotted name, refused where they have no effect, numbers as
leaves.
"""

import copy
import pickle

import numpy as np
import pytest

import regretless as rg
from regretless import benchmarks, models, policies, surrogates
from regretless.errors import SettingsError
from regretless.models import nuisance
from regretless.spec import Spec, merge_names
from regretless.surrogates import DBB, IMLE
from toys import Toy

PROBLEM = Toy().problem()


def test_dotted_names_reach_the_parts():
    spec = policies.parse("dfhpg", {"alpha.max": "0.7", "surrogate": "imle", "surrogate.draws": 20, "policy_lr": 0.3})
    assert (spec.alpha.max, spec.surrogate, spec.policy_lr) == (0.7, IMLE(draws=20), 0.3)
    names = spec.names()
    assert names["alpha.max"] == 0.7
    assert names["surrogate"] == "imle"
    assert names["surrogate.lam"] == 10.0
    assert "surrogate.step" not in names
    assert policies.parse("dfhpg", names) == spec, "the names are complete"


def test_settings_of_the_default_part_need_no_name():
    assert policies.parse("dfhpg", {"nuisance.width": 16}).nuisance == models.MLPNuisance(width=16)


def test_the_order_of_names_does_not_matter():
    one = policies.parse("dfhpg", {"surrogate.draws": 3, "surrogate": "dpo"})
    assert one == policies.parse("dfhpg", {"surrogate": "dpo", "surrogate.draws": 3})


def test_a_part_may_be_an_object_a_name_or_an_object_with_changes():
    by_object = policies.DFHPG(surrogate=IMLE(draws=4))
    assert by_object == policies.DFHPG(surrogate="imle", **{"surrogate.draws": 4})
    assert by_object == policies.DFHPG(surrogate=IMLE(), **{"surrogate.draws": 4})
    assert by_object.build(PROBLEM).surrogate.draws == 4


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_every_specification_is_what_it_prints(name):
    spec = policies.parse(name)
    assert eval(repr(spec), {"rg": rg, type(spec).__name__: type(spec)}) == spec
    assert spec.names() == policies.parse(name, spec.names()).names()


def test_a_specification_prints_the_expression_that_makes_it():
    spec = policies.DFHPG(
        surrogate=DBB(lam=5.0), alpha=policies.MixingWeight(max=0.5), model=models.GaussianNN(width=7)
    )
    text = (
        "rg.policies.DFHPG(model=rg.models.GaussianNN(width=7), surrogate=rg.surrogates.DBB(lam=5.0), "
        "alpha=rg.policies.MixingWeight(max=0.5))"
    )
    assert repr(spec) == str(spec) == text
    assert eval(text, {"rg": rg}) == spec
    assert repr(policies.DFHPG(surrogate=DBB(lam=5.0))) == "rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0))"


def test_specifications_are_copied_pickled_hashed_and_never_changed():
    spec = policies.DFHPG(surrogate=DBB(lam=5.0))
    assert copy.copy(spec) == copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec
    assert len({spec, policies.DFHPG(surrogate=DBB(lam=5.0)), policies.DFHPG()}) == 2
    with pytest.raises(ValueError, match="frozen"):
        spec.policy_lr = 0.1


class Torch:
    """Stands for a model of another library."""


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: DBB(lam="ten"), "surrogate 'dbb', setting 'lam': expected a number, got 'ten'"),
        (lambda: DBB(lam="10"), "surrogate 'dbb', setting 'lam': expected a number, got '10'"),
        (
            lambda: surrogates.parse("dbb", {"lam": "ten"}),
            "setting 'lam': Input should be a valid number, .* got 'ten'",
        ),
        (lambda: DBB(lam=None), "setting 'lam': Input should be a valid number, got None"),
        (lambda: DBB(lam=-1), "setting 'lam': Input should be greater than 0, got -1"),
        (lambda: IMLE(draws=2.5), "setting 'draws': Input should be a valid integer"),
        (
            lambda: policies.DFHPG(model=Torch()),
            "expected a model of .* or the name of one .*, got an object of type Torch",
        ),
        (lambda: policies.DFHPG(surrogate=models.Flow()), "expected a surrogate of .*, got 'flow'"),
        (lambda: policies.DFHPG(surrogate=policies.Greedy()), "expected a surrogate of .*, got 'greedy'"),
        (lambda: policies.DFHPG(alpha=0.3), "setting 'alpha'"),
        (lambda: policies.Greedy(model="flow"), r"the name of one \(gaussian_linear, gaussian_nn\), got 'flow'"),
        (lambda: policies.Greedy(modle="flow"), "unknown setting 'modle' of policy 'greedy'; did you mean 'model'"),
        (
            lambda: surrogates.PFYL(lam=2.0),
            "surrogate 'pfyl' has no setting 'lam'; dbb, imle and regularized_frank_wolfe have it",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(make, message):
    with pytest.raises(SettingsError, match=message):
        make()


def test_numbers_of_numpy_are_numbers():
    spec = policies.DFHPG(policy_lr=np.float32(0.5), surrogate=IMLE(draws=np.int64(3)))
    assert repr(spec) == "rg.policies.DFHPG(policy_lr=0.5, surrogate=rg.surrogates.IMLE(draws=3))"


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("dfhpg", {"polcy_lr": 0.1}, "unknown setting 'polcy_lr' of policy 'dfhpg'; did you mean 'policy_lr'"),
        ("dfhpg", {"policy_lr": -1}, "'policy_lr': Input should be greater than 0, got -1"),
        ("dfhpg", {"exploration_scale": "nan"}, "'exploration_scale': Input should be a finite number, got 'nan'"),
        ("dfhpg", {"alpha.min": 0.5, "alpha.max": 0.1}, r"expected alpha\.min ≤ alpha\.max, got 0\.5 and 0\.1"),
        ("dfhpg", {"alpha.gate": "sudden"}, "'warmup' or 'exponential', got 'sudden'"),
        ("dfhpg", {"alpha.maxi": 0.5}, "unknown setting 'maxi' of MixingWeight; did you mean 'max'"),
        ("dfhpg", {"surrogate": "nope"}, "unknown surrogate 'nope'"),
        ("dfhpg", {"surrogate": 3}, "expected a surrogate of .* got 3"),
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
            "policy 'greedy' has no setting 'surrogate'; dfhpg.* dfhpg_0.* have it",
        ),
        ("linear_thompson", {"model": "flow"}, "policy 'linear_thompson' has no setting 'model'"),
        ("greedyy", {}, "unknown policy 'greedyy'; did you mean 'greedy'"),
    ],
)
def test_an_unknown_setting_is_refused_with_those_that_have_it(name, given, message):
    with pytest.raises(SettingsError, match=message):
        policies.parse(name, given)


@pytest.mark.parametrize(
    ("name", "given", "mode", "reason"),
    [
        ("dfhpg", {"nuisance.lr": 0.1}, "full", "the whole cost is seen"),
        ("dfhpg", {"nuisance": "mlp", "nuisance.width": 16}, "full", "the whole cost is seen"),
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
    spec = policies.parse(name, given)
    for policy in (spec, policies.Unscaled(spec)):
        with pytest.raises(SettingsError, match=f"has no effect on .* here: .*{reason}"):
            policies.build_policy(policy, problem)
    spec.build(problem)  # tuned settings may contain some without effect


def test_a_policy_is_built_and_scaled_in_one_place():
    scaled = policies.build_policy("greedy", PROBLEM)
    assert isinstance(scaled, policies.Scaled)
    assert isinstance(policies.build_policy(policies.Greedy(), PROBLEM), policies.Scaled)
    assert policies.build_policy(scaled, PROBLEM) is scaled
    for plain in (
        policies.build_policy(policies.Unscaled(policies.Greedy()), PROBLEM),
        policies.build_policy("greedy", PROBLEM, scaling=False),
    ):
        assert not isinstance(plain, policies.Scaled)
        assert isinstance(policies.build_policy(plain, PROBLEM), policies.Scaled)
    with pytest.raises(SettingsError, match=r"expected a policy of regretless\.policies, or the name of one"):
        policies.build_policy(3, PROBLEM)


def test_replacing_checks_again_and_keeps_the_rest():
    base = policies.DFHPG(policy_lr=0.3, surrogate=IMLE(draws=7))
    assert base.replace(**{"alpha.max": 0.7}).alpha.max == 0.7
    assert base.replace(**{"alpha.max": 0.7}).surrogate == IMLE(draws=7)
    assert base.replace(surrogate="imle") == base
    assert base.replace(surrogate="dbb").surrogate == DBB()
    assert base.replace(surrogate="dpo").surrogate.draws == 10, "the settings of the former part are dropped"
    assert base.replace(surrogate=DBB(lam=2.0)).surrogate.lam == 2.0
    with pytest.raises(SettingsError, match="less than or equal to 1"):
        base.replace(**{"alpha.max": 2.0})
    with pytest.raises(SettingsError, match="unknown setting 'surogate'"):
        base.replace(surogate="dbb")


def test_merging_drops_the_settings_of_a_part_that_is_replaced():
    base = {"surrogate": "imle", "surrogate.draws": 7, "policy_lr": 0.1}
    assert merge_names(base, {"surrogate": "dbb"}) == {"surrogate": "dbb", "policy_lr": 0.1}
    assert merge_names(base, {"surrogate": "imle"}) == base
    assert merge_names(base, {"surrogate.draws": 9})["surrogate.draws"] == 9


def test_changed_names_are_those_that_differ_from_the_defaults():
    spec = policies.parse(
        "dfhpg", {"policy_lr": 0.05, "clip": 3.0, "alpha.max": 0.5, "surrogate": "dbb", "nuisance.lr": 1}
    )
    assert set(spec.changed_names()) == {"clip", "alpha.max", "surrogate", "nuisance.lr"}


def test_specifications_outside_the_library():
    class Oven(Spec):
        heat: float = 180.0

    assert repr(Oven(heat=200)) == "Oven(heat=200.0)"
    with pytest.raises(SettingsError, match="unknown setting 'heet' of Oven; did you mean 'heat'"):
        Oven(heet=200)

    class Louder(DBB):
        volume: float = 3.0

    assert repr(policies.DFHPG(surrogate=Louder())) == "rg.policies.DFHPG(surrogate=Louder())"
    assert policies.DFHPG(surrogate=Louder()).replace(**{"surrogate.volume": 4.0}).surrogate.volume == 4.0


ALL = [(family, name) for family in (policies, surrogates, models) for name in family.REGISTRY]


@pytest.mark.parametrize(("family", "name"), ALL)
def test_every_setting_is_described_in_the_docstring(family, name):
    spec = family.REGISTRY[name]
    assert set(spec.describe_settings()) == set(spec.model_fields)
    assert all(setting in spec.__doc__ for setting in spec.model_fields), "those of base classes, too"


REACHABLE = {
    "policies": {
        "dfhpg": [
            "policy_lr",
            "rate_offset",
            "rate_start",
            "clip",
            "exploration_scale",
            "normalize_gradients",
            "baseline",
            "baseline_momentum",
            "alpha.max",
            "alpha.min",
            "alpha.gate",
            "alpha.warmup",
            "alpha.time_scale",
            "alpha.target",
            "alpha.decay",
            "alpha.rate",
            "nuisance",
            "nuisance.lr",
            "nuisance.width",
            "nuisance.clip",
            "surrogate",
            "surrogate_at",
            "variant",
            "generative.scenarios",
            "generative.kappa_dfl",
            "generative.lambda_reg",
            "generative.optimiser",
            "late_clip",
            "late_limit",
            "nuisance_at",
            "overwrite_seen",
            "plug_in_baseline",
            "nuisance_always",
        ],
        "epsilon_greedy": ["epsilon"],
        "thompson": ["thompson_scale", "exploration_scale", "thompson_loss", "loss"],
        "linear_thompson": ["posterior_scale", "forgetting"],
    },
    "surrogates": {
        "mse_spo_plus": ["share", "factor"],
        "dbb": ["lam"],
        "imle": ["lam", "spread", "draws", "noise", "kappa"],
        "aimle": ["spread", "draws", "step", "decay"],
        "pfyl": ["spread", "draws"],
        "dpo": ["spread", "draws"],
        "pg": ["step", "difference"],
        "nce": ["pool"],
        "pairwise_ltr": ["margin", "pool", "reduction"],
        "listwise_ltr": ["temperature", "pool"],
    },
    "models": {
        "gaussian_linear": ["start"],
        "gaussian_nn": ["width"],
        "flow": ["width"],
        "diffusion": ["train_steps", "sample_steps", "weights", "regulariser", "sampler", "width"],
    },
    "nuisances": {
        "mlp": ["lr", "width", "clip", "precision", "optimiser", "loss", "rate_start"],
    },
    "benchmarks": {
        "topk": ["degree", "noise_radius", "items", "k", "features", "sign"],
        "shortest_path": ["degree", "noise_radius", "side", "features"],
        "pricing": [
            "degree",
            "products",
            "levels",
            "promotions",
            "budget",
            "features",
            "lowest_price",
            "highest_price",
            "shock_scale",
            "demand_cap",
            "regret",
            "context",
        ],
        "energy": ["instance", "split"],
    },
}
REGISTRIES = {
    "policies": policies.REGISTRY,
    "surrogates": surrogates.REGISTRY,
    "models": models.REGISTRY,
    "nuisances": nuisance.REGISTRY,
    "benchmarks": benchmarks.REGISTRY,
}


@pytest.mark.parametrize(("family", "name"), [(family, name) for family, parts in REACHABLE.items() for name in parts])
def test_every_constant_of_the_paper_can_be_set(family, name):
    known = REGISTRIES[family][name]().names()
    assert set(REACHABLE[family][name]) <= set(known)
