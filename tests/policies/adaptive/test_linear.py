"""The linear learner against batch least squares with every feedback; its prior, robustness and forgetting."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import feedback, oracles
from regretless.policies.adaptive.linear import LinearLearner
from regretless.problem import Problem

pytestmark = pytest.mark.usefixtures("float64")
DIM, FEATURES = 5, 3
PLAIN = {
    "intercept_ridge": 0.5,
    "slope_ridge": 2.0,
    "mean_ridge": 0.7,
    "shared": 0.0,
    "forgetting": 0.0,
    "exploration": 0.3,
    "optimism": 1.0,
    "clipping": 0.0,
    "floor": 0.0,
}
GROUPS = feedback.Linear(
    lambda w, aux: jnp.array([[1.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0, 1.0]]) * w,
    lambda w, aux: jnp.ones(2),
    label="groups",
)
RULES = {**feedback.REGISTRY, "groups": GROUPS}
SHAPES = {"vector": (FEATURES,), "rows": (DIM, FEATURES)}


def build(rule="bandit", shape=(FEATURES,), may_miss=False, log=False, **changes):
    problem = Problem(oracles.top_k(DIM, 2), shape, rule, may_miss=may_miss)
    numbers = {name: jnp.asarray(value, jnp.float32) for name, value in {**PLAIN, **changes}.items()}
    return LinearLearner(problem, **numbers, log=log)


def world(policy, rounds, costs=None, missing=0.0, seed=5):
    """Return random decisions with their feedback."""
    rng = np.random.default_rng(seed)
    problem, played = policy.problem, []
    for _ in range(rounds):
        x = rng.normal(size=problem.context_shape)
        w = np.zeros(DIM)
        w[rng.choice(DIM, 2, replace=False)] = 1.0
        cost = rng.normal(size=DIM) + 3.0 if costs is None else costs(x, rng)
        decision = problem.decision(jnp.asarray(w), jnp.asarray(x))
        seen = None
        if missing:
            seen = jnp.asarray(rng.random(problem.observe(decision, jnp.asarray(cost)).values.shape) >= missing)
        played.append((decision, problem.observe(decision, jnp.asarray(cost), seen)))
    return played


def learn_all(policy, played):
    state, learn = policy.init(jax.random.key(0)), eqx.filter_jit(policy.learn)
    for decision, observed in played:
        state, info = learn(jax.random.key(1), state, decision, observed)
        assert info.finite
    return state


@pytest.mark.parametrize(
    ("rule", "shape", "missing"),
    [(rule, shape, 0.4) for rule in RULES.values() for shape in SHAPES.values()] + [("bandit", (FEATURES,), 0.0)],
)
def test_is_least_squares_around_a_level_without_a_prior(rule, shape, missing):
    policy = build(rule, shape, may_miss=missing > 0)
    played = world(policy, 12, missing=missing)
    state = learn_all(policy, played)
    rows, values = [], []
    by_row = len(shape) == 2
    for decision, observed in played:
        x = np.asarray(decision.context)
        if by_row:  # deviations from the round's mean row, and that row
            x = np.concatenate([x - x.mean(axis=0), np.broadcast_to(x.mean(axis=0), x.shape)], axis=-1)
        z = np.concatenate([np.ones((*shape[:-1], 1)), x], axis=-1)
        for k in np.flatnonzero(observed.used()):
            h = np.asarray(observed.operator.rmatvec(jnp.eye(len(observed.values))[k]))
            rows.append(np.kron(h, z) if len(shape) == 1 else h @ z)
            values.append(float(observed.values[k]))
    rows, values = np.array(rows), np.array(values)
    # β = deviations + level · m: a column for m without a prior; feature rows share one intercept, which is the level.
    one = [1e12, *[2.0] * FEATURES, *[0.7 * FEATURES] * FEATURES] if by_row else [0.5, *[2.0 * FEATURES] * FEATURES]
    prior = float(state.unit) * np.array(one if by_row else one * DIM)
    level = np.tile([1.0, *[0.0] * (len(one) - 1)], 1 if by_row else DIM)
    wide = np.column_stack([rows, rows @ level])
    found = np.linalg.solve(np.diag([*prior, 1e-4]) + wide.T @ wide, wide.T @ values)
    expected = found[:-1] + found[-1] * level
    np.testing.assert_allclose(np.asarray(state.posterior.mean).reshape(-1), expected, rtol=2e-3, atol=2e-3)
    assert float(state.scale.rows) == len(rows)


def test_a_constant_in_all_costs_changes_nothing_but_the_level():
    policy = build()
    plain = learn_all(policy, world(policy, 30))
    shifted = learn_all(policy, world(policy, 30, lambda x, rng: rng.normal(size=DIM) + 503.0))
    shift = np.asarray(shifted.posterior.mean - plain.posterior.mean).reshape(DIM, -1)
    np.testing.assert_allclose(shift[:, 0], 500.0, rtol=1e-3)
    np.testing.assert_allclose(shift[:, 1:], 0.0, atol=0.1)


def test_untried_costs_are_drawn_below_the_level():
    policy = build(exploration=0.0, optimism=2.0)
    played = world(policy, 40, lambda x, rng: 3.0 + 0.1 * rng.normal(size=DIM))
    tried = [(decision, observed) for decision, observed in played if decision.w[0] == 0]
    state, x = learn_all(policy, tried), jnp.zeros(FEATURES)
    drawn = np.asarray(policy.sample(jax.random.key(0), state, x, None).cost)
    mean = np.asarray(policy.mean(state, x))
    assert drawn[0] < mean[0] - 5 * np.max(np.abs(drawn - mean)[1:])


def test_log_costs_are_learned_and_a_cost_of_the_other_sign_ends_the_learner():
    slopes = np.random.default_rng(1).normal(size=(DIM, FEATURES)) * 0.5
    policy = build(log=True, intercept_ridge=0.01, slope_ridge=0.01)
    played = world(policy, 150, lambda x, rng: -np.exp(1.0 + slopes @ x))
    state, x = learn_all(policy, played), jnp.array([0.3, -0.5, 0.2])
    np.testing.assert_allclose(policy.mean(state, x), -np.exp(1.0 + slopes @ np.asarray(x)), rtol=0.05)
    assert state.usable
    decision, observed = world(policy, 1, lambda x, rng: np.ones(DIM))[0]
    assert not policy.learn(jax.random.key(0), state, decision, observed)[0].usable


def test_logarithms_of_small_values_have_little_weight():
    policy = build(log=True, floor=0.3)
    *played, (decision, observed) = world(policy, 13, lambda x, rng: np.exp(rng.normal(size=DIM)))
    state, learn = learn_all(policy, played), eqx.filter_jit(policy.learn)

    def moved(times):
        before = eqx.tree_at(lambda s: s.size, state, times * state.size)
        return float(
            jnp.max(
                jnp.abs(learn(jax.random.key(0), before, decision, observed)[0].posterior.mean - state.posterior.mean)
            )
        )

    assert moved(100.0) < 0.1 * moved(1.0)


def test_an_outlier_is_cut_off():
    cut, believed = build(clipping=4.0), build()
    played = world(cut, 60)
    decision, observed = played[-1]
    absurd = eqx.tree_at(lambda t: t.values, observed, observed.values * 50)
    x = jnp.zeros(FEATURES)

    def moved(policy):
        before = learn_all(policy, played[:-1])
        after, _ = policy.learn(jax.random.key(0), before, decision, absurd)
        return float(jnp.max(jnp.abs(policy.mean(after, x) - policy.mean(before, x))))

    assert moved(cut) < 0.1 * moved(believed)


def test_fading_follows_a_change_and_never_forgets_the_prior():
    lasting, fading = build(), build(forgetting=0.05)
    early = world(lasting, 100, lambda x, rng: np.arange(DIM) + 0.1 * rng.normal(size=DIM))
    late = world(lasting, 100, lambda x, rng: np.arange(DIM)[::-1] + 0.1 * rng.normal(size=DIM), seed=6)
    x, new = jnp.zeros(FEATURES), np.arange(DIM)[::-1]
    wrong = [
        float(np.max(np.abs(policy.mean(learn_all(policy, early + late), x) - new))) for policy in (lasting, fading)
    ]
    assert wrong[1] < 0.5 < wrong[0]
    state = learn_all(fading, early)
    variance = np.sum(np.square(np.asarray(state.posterior.factor)), axis=2)[0]
    prior = np.tile([1 / 0.5, *[1 / 6.0] * FEATURES], DIM) / float(state.unit)
    assert np.all(variance <= 1.05 * prior / 0.95)
