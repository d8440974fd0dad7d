"""Worlds: the formulas against NumPy, what is wrong with the data, and reference lines against a plain loop."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks
from regretless.benchmarks.worlds import NOISES, draw_coefficients, mean_costs
from regretless.draws import ENVIRONMENT, STREAM, purpose_key
from regretless.errors import SettingsError
from regretless.simulation.stream import SimulationSpec, draw, summarise_references

pytestmark = pytest.mark.usefixtures("float64")

FORMULAS = {
    "const": lambda base, u, v, s: base,
    "lin": lambda base, u, v, s: base + u,
    "relu": lambda base, u, v, s: base + 0.6 * u + max(v, 0.0) ** 1.5,
    "shared": lambda base, u, v, s: base * np.exp(0.5 * s) + 0.3 * u,
    "exp": lambda base, u, v, s: base * np.exp(0.7 * u),
    "inter": lambda base, u, v, s: base + 1.5 * u * np.sign(v),
    "step": lambda base, u, v, s: base + 2.0 * (u > 0.3),
    "wave": lambda base, u, v, s: base + 1.5 * np.sin(3 * u),
    "bowl": lambda base, u, v, s: base + u**2 - 0.5 * v,
}


SPREADS = {  # between the quartiles
    "normal": 1.349,
    "student": 1.53,
    "laplace": 2**0.5 * np.log(2),
    "uniform": 3**0.5,
    "skewed": 2 * np.sinh(0.6745) / (np.e**2 - np.e) ** 0.5,
}


def played(settings, count, name="world_topk", seed=0, first=1):
    """The environment and rounds of one replication, one by one, as simulations key them."""
    world, key = benchmarks.parse(name, settings).build(), jax.random.key(seed)
    environment = world.environment(purpose_key(key, ENVIRONMENT))
    step = jax.jit(lambda t: world.round(purpose_key(key, STREAM, t), environment, t))
    return environment, [jax.tree.map(np.asarray, step(jnp.int32(t))) for t in range(first, first + count)]


@pytest.mark.parametrize("shape", FORMULAS)
def test_mean_costs_are_the_formula_and_at_least_a_floor(shape):
    own = draw_coefficients(jax.random.key(1), 200, 200, 6)
    base, a, b, s = map(np.asarray, own)
    assert base.min() >= 2
    assert base.max() <= 6
    x = np.random.default_rng(0).normal(size=6)
    at = lambda direction: direction @ x / 6**0.5  # noqa: E731
    expected = [max(FORMULAS[shape](base[i], at(a[i]), at(b[i]), at(s)), 0.3) for i in range(200)]
    np.testing.assert_allclose(mean_costs(shape, own, jnp.asarray(x)), expected, rtol=1e-12)


def test_noise_is_a_share_of_the_mean_and_wrong_entries_are_none_of_it():
    _, rounds = played({"items": 30, "outliers": 0.25}, 400)
    shares = np.array([each.cost / each.mean for each in rounds])
    wrong = shares.mean(axis=1) > 10
    assert 0.15 < wrong.mean() < 0.35
    assert abs(shares[~wrong].std() - 0.25) < 0.01
    np.testing.assert_allclose(shares[wrong].mean(), 50, rtol=0.02)
    _, clean = played({"items": 30}, 400)
    assert all(np.array_equal(one.mean, other.mean) for one, other in zip(rounds, clean, strict=True))


@pytest.mark.parametrize("kind", sorted(NOISES))
def test_noises_have_mean_zero_and_about_unit_size(kind):
    values = np.asarray(NOISES[kind](jax.random.key(0), (40_000,)))
    assert abs(values.mean()) < 0.03
    np.testing.assert_allclose(np.subtract(*np.quantile(values, [0.75, 0.25])), SPREADS[kind], rtol=0.03)


def test_drift_changes_coefficients_at_half_time_or_little_by_little():
    for drift in ("abrupt", "slow"):
        world = benchmarks.parse("world_topk", {"rounds": 100, "drift": drift}).build()
        regimes = world.environment(jax.random.key(0))
        at = lambda t, world=world, regimes=regimes: np.asarray(world.coefficients(regimes, jnp.int32(t)).base)  # noqa: E731
        np.testing.assert_allclose(at(100), regimes.last.base, rtol=1e-12)
        if drift == "abrupt":
            assert np.array_equal(at(50), regimes.first.base)
            assert np.array_equal(at(51), regimes.last.base)
        else:
            np.testing.assert_allclose(at(50), (regimes.first.base + regimes.last.base) / 2)


def test_seasons_alternate_and_coins_have_two_sides():
    world = benchmarks.parse("world_topk", {"rounds": 80, "drift": "seasons", "contexts": "coins"}).build()
    regimes = world.environment(jax.random.key(0))
    bases = [np.asarray(world.coefficients(regimes, jnp.int32(t)).base) for t in (1, 10, 11, 20, 21)]
    assert [np.array_equal(base, regimes.last.base) for base in bases] == [False, False, True, True, False]
    assert set(np.unique(world.draw_features(jax.random.key(1), regimes))) == {-1.0, 1.0}


def test_odd_and_irrelevant_columns_stand_next_to_the_features():
    _, rounds = played({"odd_columns": True, "irrelevant": 40}, 50)
    seen = np.array([each.observation for each in rounds])
    assert seen.shape == (50, 49)
    assert np.all(seen[:, 6] == 7)
    assert 1e5 < seen[:, 7].std() < 1e7
    assert np.array_equal(seen[:, 8], seen[:, 0])
    _, clean = played({}, 50)
    assert all(np.array_equal(one.mean, other.mean) for one, other in zip(rounds, clean, strict=True))


def test_units_and_rewards_change_costs_alone():
    _, plain = played({}, 3)
    _, other = played({"unit": 1e6, "rewards": True}, 3)
    for one, two in zip(plain, other, strict=True):
        np.testing.assert_allclose(two.cost, -1e6 * one.cost, rtol=1e-12)
        np.testing.assert_allclose(two.mean, -1e6 * one.mean, rtol=1e-12)


def test_sets_that_change_offer_the_same_number_and_never_the_same_items():
    _, rounds = played({"items": 20, "k": 3, "available": 0.5}, 20)
    masks = np.array([each.instance for each in rounds])
    assert np.all(masks.sum(axis=1) == 10)
    assert len(np.unique(masks, axis=0)) == 20


def test_rows_share_a_formula_and_named_ones_have_base_costs():
    environment, rounds = played({"items": 7, "k": 2, "named": True}, 2, "world_rows")
    for each in rounds:
        name, z = each.observation[:, :7], each.observation[:, 7:]
        assert np.array_equal(name, np.eye(7))
        a = np.asarray(environment.first.a)[0]
        np.testing.assert_allclose(each.mean, np.maximum(environment.first.base + z @ a / 8**0.5, 0.3))
    assert environment.first.base.shape == (7,)
    assert benchmarks.parse("world_rows").build().environment(jax.random.key(0)).first.base.shape == (1,)


def scaled(x):
    """Features that stand in a context, as the directions meet them."""
    return x / len(x) ** 0.5


def lin(environment, x, t=None):
    return np.maximum(environment.first.base + environment.first.a @ scaled(x), 0.3)


@pytest.mark.parametrize(
    ("settings", "expected", "draws_of"),
    [
        ({"outcome": "rates", "unit": 0.02}, lambda m: 0.02 * m, {0, 1}),
        ({"outcome": "rates", "unit": 0.02, "rewards": True}, lambda m: -0.02 * m, {0, -1}),
        ({"outcome": "counts", "unit": 0.5}, lambda m: 0.5 * m, set(range(30))),
        ({"outcome": "labels", "unit": 2.0}, lambda m: 1 - np.exp(-2 * m) / np.exp(-2 * m).sum(), {0, 1}),
    ],
    ids=["rates", "rewards", "counts", "labels"],
)
def test_outcomes_have_the_mean_of_the_formula_and_their_own_values(settings, expected, draws_of):
    environment, rounds = played({**settings, "items": 8, "k": 2}, 3000)
    means, costs = (np.array([getattr(each, name) for each in rounds]) for name in ("mean", "cost"))
    formula = np.array([expected(lin(environment, each.observation)) for each in rounds])
    np.testing.assert_allclose(means, formula, rtol=1e-10)
    assert set(np.unique(costs)) <= draws_of
    spread = np.sqrt(abs(means) if settings["outcome"] == "counts" else abs(means) * (1 - abs(means)))
    deviations = (costs - means).sum(axis=0) / np.sqrt((spread**2).sum(axis=0))
    assert np.all(abs(deviations) < 4)
    np.testing.assert_allclose(np.mean((costs - means) ** 2) / np.mean(spread**2), 1, atol=0.05)
    if settings["outcome"] == "labels":
        assert np.all(costs.sum(axis=1) == 7)


def test_lognormal_noise_multiplies_and_keeps_the_mean():
    _, rounds = played({"items": 30, "noise": "lognormal", "noise_size": 0.8}, 1500)
    logs = np.log([each.cost / each.mean for each in rounds])
    assert abs(logs.mean() + 0.32) < 4 * 0.8 / logs.size**0.5
    np.testing.assert_allclose(logs.std(), 0.8, rtol=0.02)


def test_categories_have_one_level_each_and_the_first_are_the_most_frequent():
    settings = {"features": 12, "contexts": "levels", "levels": 4}
    environment, rounds = played(settings, 2000)
    seen = np.array([each.observation for each in rounds]).reshape(-1, 3, 4)
    assert set(np.unique(seen)) == {0.0, 2.0}
    assert np.all((seen > 0).sum(axis=2) == 1)
    weights = 1 / np.arange(1, 5)
    np.testing.assert_allclose((seen > 0).mean(axis=(0, 1)), weights / weights.sum(), atol=0.025)
    np.testing.assert_allclose(rounds[0].mean, lin(environment, rounds[0].observation), rtol=1e-10)
    with pytest.raises(SettingsError, match="a number of levels that divides the number of features"):
        benchmarks.parse("world_topk", {**settings, "levels": 5}).build()


def test_sparse_features_are_rarely_given_and_of_unit_size():
    environment, rounds = played({"features": 100, "contexts": "sparse"}, 400)
    seen = np.array([each.observation for each in rounds])
    assert abs((seen != 0).mean() - 0.1) < 0.006
    np.testing.assert_allclose(seen.std(), 1, rtol=0.03)
    np.testing.assert_allclose(rounds[0].mean, lin(environment, seen[0]), rtol=1e-10)


def test_a_calendar_multiplies_costs_by_factors_of_the_day_that_the_context_names():
    environment, rounds = played({"calendar": 7, "growth": 2.0, "rounds": 100}, 10)
    factors = np.asarray(environment.factors)
    assert factors.shape == (7, 30)
    for t, each in enumerate(rounds, start=1):
        x, day = each.observation[:6], each.observation[6:]
        assert np.array_equal(day, np.arange(7) == t % 7)
        expected = lin(environment, x) * (1 + 2 * t / 100) * factors[t % 7]
        np.testing.assert_allclose(each.mean, expected, rtol=1e-10)
    many = [benchmarks.parse("world_topk", {"calendar": 7}).build().environment(jax.random.key(i)) for i in range(40)]
    logs = np.log([each.factors for each in many])
    np.testing.assert_allclose(logs.std(), 0.4 * 2**0.5, rtol=0.1)
    np.testing.assert_allclose(logs.mean(axis=2).std(), 0.4, rtol=0.15)  # of what all items share


def test_rows_of_a_cluster_share_its_centre_and_base_cost():
    environment, rounds = played({"items": 12, "k": 2, "clusters": 4, "features": 5}, 800, "world_rows")
    seen = np.array([each.observation for each in rounds])
    cluster = np.arange(12) % 4
    centres = 0.75**0.5 * np.asarray(environment.centres)[cluster]
    np.testing.assert_allclose(seen.mean(axis=0), centres, atol=0.1)
    np.testing.assert_allclose((seen - centres).std(), 0.5, rtol=0.02)
    bases, a = np.asarray(environment.first.base)[cluster], np.asarray(environment.first.a)[0]
    np.testing.assert_allclose(rounds[0].mean, np.maximum(bases + seen[0] @ a / 5**0.5, 0.3), rtol=1e-10)
    with pytest.raises(SettingsError, match="clusters have normal features and no names"):
        benchmarks.parse("world_rows", {"clusters": 3, "named": True}).build()


@pytest.mark.parametrize("pack", [False, True])
def test_right_hand_sides_change_and_keep_a_solution(pack):
    settings = {"items": 6, "demands": 2, "cover": 0.6, "change": 0.6, "pack": pack, "rewards": pack}
    world = benchmarks.parse("world_cover", settings).build()
    _, rounds = played(settings, 60, "world_cover")
    program = world.oracle.solver.program
    sides = np.array([each.instance["b_ub"] for each in rounds])
    shares = sides / program.b_ub
    assert 0.2 < shares.min() < 0.6
    assert 1.4 < shares.max() < 1.8
    instances = {name: np.array([each.instance[name] for each in rounds]) for name in rounds[0].instance}
    w = world.oracle.answer(np.array([each.mean for each in rounds]), instances).w
    assert np.all(w @ program.a_ub.T <= sides + 1e-9)
    every = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1).T
    for each, chosen in zip(rounds[:10], w, strict=False):
        fits = every[np.all(every @ program.a_ub.T <= each.instance["b_ub"], axis=1)]
        assert np.isclose(np.min(fits @ each.mean), chosen @ each.mean)
    with pytest.raises(SettingsError, match="because all items together cover 1"):
        benchmarks.parse("world_cover", {"cover": 0.7, "change": 0.5}).build()


def test_a_storage_keeps_its_limits_and_ends_where_it_began():
    world = benchmarks.parse("world_storage", {"slots": 6, "capacity": 3.0, "rate": 1.0}).build()
    prices = np.random.default_rng(0).normal(size=(50, 6))
    w = world.oracle.answer(prices).w
    level = 1.5 + np.cumsum(w, axis=1)
    assert np.all((level > -1e-9) & (level < 3 + 1e-9) & (abs(w) < 1 + 1e-9))
    np.testing.assert_allclose(level[:, -1], 1.5, atol=1e-9)
    assert np.all(np.sum(w * prices, axis=1) < 0)
    up = world.oracle.answer(np.arange(6.0)[None]).w[0]
    np.testing.assert_allclose(up, [1, 0.5, 0, 0, -0.5, -1], atol=1e-9)  # charge while it is cheap, as far as it fits


def test_real_data_is_met_once_in_an_order_of_its_own():
    sklearn = pytest.importorskip("sklearn.datasets")
    iris = sklearn.load_iris()
    world = benchmarks.parse("world_data", {"data": "iris"}).build()
    environment, rounds = played({"data": "iris"}, 150, "world_data")
    cases = np.array([each.observation for each in rounds])
    assert sorted(cases) == list(range(150))
    for each in rounds[:5]:
        assert np.array_equal(each.cost, np.arange(3) != iris.target[each.observation])
        shown = world.context(environment, each.observation)
        assert np.array_equal(shown, iris.data[each.observation])
    settings = {"data": "breast_cancer", "decide": "case", "items": 7, "k": 2, "low": 1, "rounds": 20}
    _, rounds = played(settings, 20, "world_data")
    targets = sklearn.load_breast_cancer().target
    assert all(np.array_equal(each.cost, targets[each.observation] != 1) for each in rounds)
    assert all(len(set(each.observation.tolist())) == 7 for each in rounds)
    with pytest.raises(SettingsError, match="iris has 150 cases: expected at most as many rounds"):
        benchmarks.parse("world_data", {"data": "iris", "rounds": 151}).build()
    with pytest.raises(SettingsError, match="the targets of diabetes are numbers, not labels"):
        benchmarks.parse("world_data", {"data": "diabetes"}).build()


def test_reference_lines_are_those_of_a_plain_loop():
    settings = {"items": 6, "k": 2, "rounds": 12}
    world = benchmarks.parse("world_topk", settings).build()
    drawn = jax.jit(jax.vmap(lambda key: draw(SimulationSpec(world), key, jnp.int32(0), jnp.int32(12), 12)))
    lines = summarise_references(world, drawn(jax.vmap(jax.random.key)(jnp.arange(2))).tally)
    fixed = []
    for seed in range(2):
        means = np.array([each.mean for each in played(settings, 12, seed=seed)[1]])
        best = np.sum(means * world.oracle.answer(means).w)
        constant = world.oracle.answer(means.sum(axis=0)[None]).w[0]
        fixed.append(np.sum(means @ constant) - best)
    means = {line.name: line.mean for line in lines}
    np.testing.assert_allclose(means["best_fixed"], np.mean(fixed), rtol=1e-9)
    assert means["clairvoyant"] == 0
    assert means["random"] > means["best_fixed"] > 0


def test_refuses_settings_that_make_no_world():
    with pytest.raises(SettingsError, match="unknown shape 'linn'; did you mean 'lin'"):
        benchmarks.parse("world_topk", {"shape": "linn"}).build()
    with pytest.raises(SettingsError, match="unknown noise 'gauss'"):
        benchmarks.parse("world_topk", {"noise": "gauss"}).build()
    with pytest.raises(SettingsError, match="expected k ≤ the 15 items that are available at a time, got k = 16"):
        benchmarks.parse("world_topk", {"k": 16, "available": 0.5}).build()
    with pytest.raises(SettingsError, match="no effect on feature rows"):
        benchmarks.parse("world_rows", {"irrelevant": 3}).build()
