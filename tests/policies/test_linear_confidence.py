"""Ridge regression with confidence sets against NumPy and against all decisions of a small set."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, policies
from regretless.errors import SettingsError
from regretless.problem import Problem
from regretless.simulation.simulator import simulate
from toys import DIM, FEATURES, Toy

pytestmark = pytest.mark.usefixtures("float64")
PAIRS = np.array([[float(i in pair) for i in range(DIM)] for pair in itertools.combinations(range(DIM), 2)])
SINGLES = np.eye(DIM)
ROUNDS, RIDGE = 20, 2.0
X = np.array([0.5, -1.0, 2.0])


def learned(spec, regime, k=2, shape=(FEATURES,)):
    """Return a policy with its state after some rounds, and mean, covariance and noise of the costs at X in NumPy."""
    problem = Problem(oracles.top_k(DIM, k), shape, regime)
    policy = spec.build(problem)
    learn = eqx.filter_jit(policy.learn)
    state, rng = policy.init(jax.random.key(0)), np.random.default_rng(3)
    size = DIM * (1 + FEATURES) if len(shape) == 1 else 1 + FEATURES
    V, b, squares = RIDGE * np.eye(size), np.zeros(size), []
    for t in range(ROUNDS):
        x = rng.normal(size=shape)
        w = np.zeros(DIM)
        w[rng.permutation(DIM)[:k]] = 1.0
        decision = problem.decision(jnp.asarray(w), jnp.asarray(x))
        got = problem.observe(decision, jnp.asarray(x.sum(axis=-1) + rng.normal(size=DIM)))
        z = np.concatenate([np.ones((*shape[:-1], 1)), x], axis=-1)
        before = np.linalg.inv(V), np.linalg.solve(V, b)
        for i in np.flatnonzero(got.used()):
            h = np.asarray(got.operator.rmatvec(jnp.eye(len(got.values))[i]))
            phi, v = (np.kron(h, z) if len(shape) == 1 else h @ z), float(got.values[i])
            squares.append((v - phi @ before[1]) ** 2 / (1.0 + phi @ before[0] @ phi))
            V, b = V + np.outer(phi, phi), b + phi * v
        state, info = learn(jax.random.key(t), state, decision, got)
    noise = np.sqrt(np.mean(squares))
    assert float(info.more["noise"]) == pytest.approx(noise, rel=1e-9)
    _, log_det = np.linalg.slogdet(V / RIDGE)
    x = X if len(shape) == 1 else np.outer([1.0, 2.0, -1.0, 0.5], X)
    z = np.concatenate([np.ones((*shape[:-1], 1)), x], axis=-1)
    M = np.kron(np.eye(DIM), z) if len(shape) == 1 else z
    return policy, state, jnp.asarray(x), M @ np.linalg.solve(V, b), M @ np.linalg.inv(V) @ M.T, noise, log_det


def solution(policy, state, x):
    return np.asarray(policy.problem.oracle.solve_one(policy.sample(jax.random.key(0), state, x, None).cost).w)


@pytest.mark.parametrize(("shape", "regime"), [((FEATURES,), "semi_bandit"), ((DIM, FEATURES), "full")])
def test_optimistic_costs_of_coordinates(shape, regime):
    spec = policies.CombLinUCB(ridge=RIDGE, width=1.5)
    policy, state, x, mean, C, noise, _ = learned(spec, regime, shape=shape)
    sample = policy.sample(jax.random.key(0), state, x, None)
    np.testing.assert_allclose(sample.cost, mean - 1.5 * noise * np.sqrt(np.diag(C)), rtol=1e-8)
    assert float(sample.log_probability) == 0.0


def test_posterior_draws():
    policy, state, x, mean, C, noise, _ = learned(policies.CombLinTS(ridge=RIDGE, scale=0.5), "semi_bandit")
    costs = jax.jit(jax.vmap(lambda key: policy.sample(key, state, x, None).cost))
    drawn = np.asarray(costs(jax.random.split(jax.random.key(1), 20_000)))
    # 20,000 draws: a variance is known to 1 %; five times that is allowed.
    np.testing.assert_allclose(np.cov(drawn.T), 0.25 * noise**2 * C, atol=0.05 * 0.25 * noise**2 * C.max())
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=0.036 * 0.5 * noise * np.sqrt(C.max()))


@pytest.mark.parametrize(
    ("spec", "radius"),
    [
        (policies.LinUCB(ridge=RIDGE, width=3.0), lambda noise, log_det: 3.0 * noise),
        (
            policies.OFUL(ridge=RIDGE, delta=0.1, norm=2.0),
            lambda noise, log_det: noise * np.sqrt(2 * np.log(10) + log_det) + 2.0 * np.sqrt(RIDGE),
        ),
    ],
    ids=["linucb", "oful"],
)
def test_the_optimistic_total_is_minimised(spec, radius):
    """Exactly over arms; over pairs the search never ends above the decisions that it begins with."""
    for k, decisions in ((1, SINGLES), (2, PAIRS)):
        policy, state, x, *_ = learned(spec, "bandit", k)
        best = eqx.filter_jit(lambda x, policy=policy, state=state: policy.sample(jax.random.key(0), state, x, None))
        for scale in (1.0, -1.0, 0.3, 3.0):
            _, _, _, mean, C, noise, log_det = moments(policy, state, scale * np.asarray(x))
            widths = np.sqrt(np.einsum("nd,de,ne->n", decisions, C, decisions))
            optimistic = decisions @ mean - radius(noise, log_det) * widths
            w = np.asarray(policy.problem.oracle.solve_one(best(jnp.asarray(scale * x)).cost).w)
            reached = optimistic[np.all(decisions == w, axis=1)].item()
            starts = [decisions @ mean, decisions @ (mean - radius(noise, log_det) * np.sqrt(np.diag(C)))]
            assert reached <= min(optimistic[np.argmin(costs)] for costs in starts) + 1e-9
            assert k == 2 or reached == optimistic.min()


def moments(policy, state, x):
    """Return mean and covariance of the costs in a context by the state's own factor, which other tests check."""
    z = np.concatenate([[1.0], x])
    M = np.kron(np.eye(DIM), z)
    F = M @ np.asarray(state.posterior.factor[0])
    mean = M @ np.asarray(state.posterior.mean[0])
    return policy, state, x, mean, F @ F.T, np.sqrt(float(state.noise_square)), float(state.log_det)


def test_the_state_of_the_search_is_that_of_dense_algebra():
    policy, state, x, mean, C, noise, log_det = learned(policies.OFUL(ridge=RIDGE), "bandit")
    *_, own_mean, own_C, own_noise, own_log_det = moments(policy, state, np.asarray(x))
    np.testing.assert_allclose(own_mean, mean, atol=1e-9)
    np.testing.assert_allclose(own_C, C, atol=1e-9)
    assert (own_noise, own_log_det) == pytest.approx((noise, log_det))


def test_square_cb_records_the_frequencies_of_its_decisions():
    policy, state, x, mean, _, noise, _ = learned(policies.SquareCB(ridge=RIDGE, gain=0.5), "bandit")
    sample = jax.jit(jax.vmap(lambda key: policy.sample(key, state, x, None)))
    drawn = sample(jax.random.split(jax.random.key(5), 20_000))
    decisions = np.asarray(policy.problem.oracle.solve(drawn.cost).w)
    chosen, places, counts = np.unique(decisions, axis=0, return_inverse=True, return_counts=True)
    totals = chosen @ mean
    gamma = 0.5 * np.sqrt(len(chosen) * (1 + ROUNDS)) / noise
    expected = 1.0 / (len(chosen) + gamma * (totals - totals.min()))
    expected[np.argmin(totals)] += 1.0 - expected.sum()
    assert len(chosen) > 2
    np.testing.assert_allclose(np.exp(drawn.log_probability), expected[places.ravel()], rtol=1e-9)
    np.testing.assert_allclose(counts / 20_000, expected, atol=0.02)  # five standard errors


def test_totals_are_refused_where_parts_are_needed():
    for spec in (policies.CombLinUCB(), policies.CombLinTS()):
        with pytest.raises(SettingsError, match=r"expected feedback that shows costs one by one .*, got 'bandit'"):
            spec.build(Problem(oracles.top_k(DIM, 2), FEATURES))


def test_epoch_spo_explores_and_trains_in_the_rounds_that_it_says():
    spec = policies.EpochSPO(every=20, steps=30)
    policy = spec.build(Problem(oracles.top_k(DIM, 2), FEATURES, "semi_bandit"))
    state = policy.init(jax.random.key(0))
    draw = jax.jit(
        lambda t: policy.sample(jax.random.key(1), eqx.tree_at(lambda s: s.version, state, t), jnp.ones(3), None)
    )
    explored = np.isnan([draw(jnp.int32(t)).log_probability for t in range(126)])
    assert explored.sum() == 25, "126 to the power of two thirds"
    assert explored[0]
    world = Toy()
    trained, fixed = (
        simulate(spec.replace(every=every), world, seeds=4, horizon=100, feedback="semi_bandit") for every in (20, 1000)
    )
    same = np.all(trained.regret[:, :20] == fixed.regret[:, :20])
    assert same, "the same until the first training"
    assert not np.allclose(trained.regret[:, 20:], fixed.regret[:, 20:])
    later = trained.regret[:, 60:].mean()
    assert later < 0.5 * trained.regret[:, :10].mean()
