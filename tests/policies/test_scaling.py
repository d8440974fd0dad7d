"""Scaling as a wrapper: units and shifts do not matter, and no single number ruins what is learned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, policies
from regretless.benchmarks import Round
from regretless.policies import scaling
from regretless.policies.scaling import WINDOW, Scaled, initial_scaling
from regretless.problem import Problem
from regretless.simulation.simulator import Recording, simulate
from toys import DIM, FEATURES, Toy, make

NAMES = ["greedy", "dfhpg", "linear_thompson"]


class Changed(Toy):
    """The toy in other units, with one round whose context or cost is absurd; all share a program."""

    units: np.ndarray  # of costs, of contexts, shift of contexts
    spike: np.ndarray  # round, context, cost

    def __init__(self, cost_unit=1.0, context_unit=1.0, shift=0.0, at=0, context=np.nan, cost=np.nan):
        super().__init__()
        self.units, self.spike = np.array([cost_unit, context_unit, shift]), np.array([at, context, cost])

    def round(self, key, environment, t):
        played, units, spike = super().round(key, environment, t), jnp.asarray(self.units), jnp.asarray(self.spike)
        x, cost, mean = units[1] * played.observation + units[2], units[0] * played.cost, units[0] * played.mean
        hit = (t == spike[0]) & ~jnp.isnan(spike)
        x = jnp.where(hit[1] & (jnp.arange(FEATURES) == 0), spike[1], x)
        return Round(x, jnp.where(hit[2], spike[2], cost), mean)


def scaled(name, toy, mode="semi_bandit"):
    wanted = {"policy_lr": 0.3, "intercept_ridge": 1.0, "slope_ridge": 1.0, "nuisance.width": 32}
    known = policies.REGISTRY[name].model_fields
    inner = make(name, toy, mode, **{key: value for key, value in wanted.items() if key.partition(".")[0] in known})
    return Scaled(inner.problem, inner)


def run(name, toy, horizon=40, seeds=2):
    return simulate(scaled(name, toy), toy, seeds=seeds, horizon=horizon, recording=Recording(decisions=True))


@pytest.mark.parametrize("name", NAMES)
def test_units_and_shifts_do_not_matter(name):
    """Powers of two for the costs, so that rounding is the same; any unit and origin for the contexts."""
    plain = run(name, Changed())
    other = run(name, Changed(cost_unit=2.0**30, context_unit=1e-5, shift=0.7))
    assert np.array_equal(plain.decisions, other.decisions)
    np.testing.assert_allclose(2.0**30 * plain.regret, other.regret, rtol=1e-6, atol=1e-3)


@pytest.mark.parametrize("name", NAMES)
def test_one_absurd_number_ruins_nothing(name):
    """Among the first numbers or later: the last rounds lose about as little as without it; random ones lose 2."""
    calm = run(name, Changed(), horizon=250, seeds=4).regret[:, 150:].mean()
    assert calm < 0.4
    for at in (1, 2, 5, 100):
        for spike in ({"context": 1e300}, {"cost": 1e200}, {"cost": -1e12}):
            trace = run(name, Changed(at=at, **spike), horizon=250, seeds=4)
            assert not trace.diverged, (at, spike)
            assert trace.regret[:, 150:].mean() < 2 * calm + 0.1, (at, spike)


@pytest.mark.parametrize("name", policies.REGISTRY)
@pytest.mark.usefixtures("float64")
def test_the_state_stays_finite_whatever_comes(name):
    policy = scaled(name, Toy())
    learn = jax.jit(lambda *given: policy.learn(*given))
    start = policy.init(jax.random.key(0))
    for at in (0, 1, 30):
        state, rng = start, np.random.default_rng(1)
        for t in range(40):
            x, cost = rng.normal(size=FEATURES), rng.normal(size=DIM)
            if t == at:
                x, cost = np.array([1e300, -1e300, 1.0]), np.full(DIM, 1e300)
            decision = policy.problem.decision(jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.asarray(x))
            observed = policy.problem.observe(decision, jnp.asarray(cost))
            state, info = learn(jax.random.key(t), state, decision, observed)
            assert info.finite, (at, t)
            assert bool(info.more["absurd"]) == (t == at == 30), (at, t)
        leaves = [leaf for leaf in jax.tree.leaves(state) if jnp.issubdtype(leaf.dtype, jnp.floating)]
        assert all(np.all(np.isfinite(leaf)) for leaf in leaves), at
        assert 0.1 < float(state.costs.spread[0]) < 10, at
    assert np.all(np.abs(policy.mean(state, jnp.asarray(rng.normal(size=FEATURES)))) < 100)


@pytest.mark.usefixtures("float64")
def test_scale_is_the_median_and_a_trimmed_deviation_and_stays():
    rows = np.random.default_rng(0).normal(size=(WINDOW + 40, 2)) * [3.0, 0.01] + [5.0, -1.0]
    scale, after = initial_scaling(2), jax.jit(lambda s, row: s.update(row, True, jnp.asarray(True)))
    for row in rows[:WINDOW]:
        scale = after(scale, jnp.asarray(row))
    np.testing.assert_allclose(scale.centre, np.median(rows[:WINDOW], axis=0))
    near = np.sort(np.abs(rows[:WINDOW] - np.median(rows[:WINDOW], axis=0)), axis=0)[: int(np.ceil(0.9 * WINDOW))]
    np.testing.assert_allclose(scale.spread, scaling.TRIMMED_NORMAL * np.sqrt(np.mean(near**2, axis=0)))
    np.testing.assert_allclose(scale.spread, [3.0, 0.01], rtol=0.3)
    for row in rows[WINDOW:]:
        later = after(scale, jnp.asarray(100 * row))
    assert np.array_equal(later.spread, scale.spread)
    assert int(later.count) == WINDOW
    unchanged = scale.update(jnp.ones(2), True, jnp.asarray(False))
    assert np.array_equal(unchanged.seen, scale.seen)


@pytest.mark.usefixtures("float64")
def test_the_window_stays_sorted_and_its_scale_is_that_of_sorting_it_again():
    """Ties in the first column, both signs in the second, an outlier in the third; each round against plain NumPy."""
    rng = np.random.default_rng(1)
    rows = np.stack([rng.integers(0, 2, 30), np.round(rng.normal(size=30), 1), rng.standard_cauchy(30)], axis=1)
    scale, after = initial_scaling(3), jax.jit(lambda s, row: s.update(row, True, jnp.asarray(True)))
    for count, row in enumerate(rows, start=1):
        scale = after(scale, jnp.asarray(row))
        seen = np.sort(rows[:count], axis=0)
        assert np.array_equal(scale.seen[:count], seen)
        assert np.all(scale.seen[count:] == 0)
        kept = count if count < scaling.MIN_TRIMMED_COUNT else min(int(np.ceil(scaling.KEPT_SHARE * count)), count - 1)
        near = np.sort(np.abs(seen - np.median(seen, axis=0)), axis=0)[:kept]
        factor = max(1 + 2 / count, scaling.TRIMMED_NORMAL)
        np.testing.assert_allclose(scale.centre, np.median(seen, axis=0))
        np.testing.assert_allclose(scale.spread, factor * np.sqrt(np.mean(near**2, axis=0)), rtol=1e-12)


@pytest.mark.usefixtures("float64")
def test_constant_features_and_the_first_contexts_are_shown_as_zero():
    policy = scaled("greedy", Toy())
    state = policy.init(jax.random.key(0))
    assert np.all(policy.scale_context(state, jnp.array([7.0, -1e9, 0.0])) == 0)
    for t in range(20):
        x = jnp.array([7.0, float(t), 1e12])
        decision = policy.problem.decision(jnp.array([1.0, 1.0, 0.0, 0.0]), x)
        seen = policy.problem.observe(decision, jnp.ones(DIM))
        state, _ = policy.learn(jax.random.key(t), state, decision, seen)
    shown = np.asarray(policy.scale_context(state, jnp.array([7.0, 9.5, 1e12])))
    assert np.array_equal(shown, [0.0, 0.0, 0.0])
    assert float(policy.scale_context(state, jnp.array([7.0, 1e3, 1e12]))[1]) == scaling.MAX_SPREADS
    assert float(policy.scale_context(state, jnp.array([7.0, 1e9, 1e12]))[1]) == 0.0, "not used"


def after_rows(policy, rounds, spread, centre):
    """Return a scaled policy's state after rounds of feature rows with these spreads and centres, and the last rows."""
    problem = policy.problem
    rng, state = np.random.default_rng(0), policy.init(jax.random.key(0))
    learn = jax.jit(lambda *given: policy.learn(*given))
    for t in range(rounds):
        rows = rng.normal(size=(DIM, 2)) * spread + centre
        decision = problem.decision(jnp.array([1.0, 1.0, 0.0, 0.0]), jnp.asarray(rows))
        state, _ = learn(jax.random.key(t), state, decision, problem.observe(decision, jnp.ones(DIM)))
    return state, rows


@pytest.mark.usefixtures("float64")
def test_feature_rows_share_the_scale_of_their_columns():
    problem = Problem(oracles.top_k(DIM, 2), (DIM, 2), "semi_bandit")
    policy = Scaled(problem, policies.parse("greedy").build(problem))
    state, rows = after_rows(policy, WINDOW + 5, [1e6, 1e-3], [1e7, 0.0])
    np.testing.assert_allclose(state.contexts.spread, [1e6, 1e-3], rtol=0.4)
    np.testing.assert_allclose(state.contexts.centre, [1e7, 0.0], rtol=0.1, atol=1e-3)
    assert np.all(np.abs(policy.scale_context(state, jnp.asarray(rows))) < 5)


@pytest.mark.usefixtures("float64")
def test_without_a_level_feature_rows_are_described_by_means_and_deviations():
    problem = Problem(oracles.top_k(DIM, 2), (DIM, 2), "semi_bandit")
    policy = Scaled(problem, policies.parse("adaptive", {"networks": 0, "forgetting": 0.0}).build(problem))
    state, rows = after_rows(policy, 9, [1e6, 1e-3], [1e7, 0.0])
    mean, within = np.split(np.asarray(state.contexts.centre), 2)
    np.testing.assert_allclose(within, [1e6, 1e-3], rtol=0.5)
    np.testing.assert_allclose(mean, [1e7, 0.0], rtol=0.1, atol=1e-3)
    shown = np.asarray(policy.scale_context(state, jnp.asarray(rows)))
    assert np.all((shown.std(axis=0) > 0.1) & (shown.std(axis=0) < 10)), "from a quarter to four, give or take"
    for unit in (0.5, 3.0):
        state, rows = after_rows(policy, 9, unit, 0.0)
        kept = rows - np.split(np.asarray(state.contexts.centre), 2)[0]
        np.testing.assert_allclose(policy.scale_context(state, jnp.asarray(rows)), kept)


@pytest.mark.usefixtures("float64")
def test_diagnostics_are_in_the_users_units():
    policy = scaled("linear_thompson", Toy())
    state, cost = policy.init(jax.random.key(0)), jnp.array([4e6, 1e6, 3e6, 2e6])
    learn = jax.jit(lambda *given: policy.learn(*given))
    for t in range(80):
        x = jax.random.normal(jax.random.key(t), (FEATURES,))
        decision = policy.decide(jax.random.key(t), state, x)
        state, info = learn(jax.random.key(t), state, decision, policy.problem.observe(decision, cost))
        assert float(info.total) == float(decision.w @ cost)
    chosen = np.array([1, 3])
    np.testing.assert_allclose(policy.mean(state, x)[chosen], cost[chosen], rtol=0.15)
    assert decision.w.tolist() == [0.0, 1.0, 0.0, 1.0]
    assert abs(float(info.residual)) < 1e6
    assert float(policy.describe(state)["cost_unit"]) == pytest.approx(float(state.costs.spread[0]))
    assert 1e6 < float(state.costs.spread[0]) < 1e7
