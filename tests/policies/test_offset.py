"""A known part of the cost: the policy learns the rest, and decides by both together."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, policies
from regretless.policies.scaling import Offset
from regretless.problem import Problem
from toys import DIM, FEATURES

KNOWN = jnp.array([3.0, -1.0, 0.5, 2.0])
PLAIN = oracles.top_k(DIM, 2)


class Shifted(oracles.TraceableOracle):
    """The same set for the rest of the cost: ``argmin (c + known)·w``."""

    def minimise(self, cost, instance):
        return PLAIN.minimise(cost + KNOWN.astype(cost.dtype), instance)

    def feasible(self, w, instance=None):
        return PLAIN.feasible(w, instance)


def played(policy, cost_of):
    """Return the decisions of ten rounds, and the state after them."""
    state, decisions = policy.init(jax.random.key(0)), []
    learn = jax.jit(lambda *given: policy.learn(*given))
    rng = np.random.default_rng(2)
    for t in range(10):
        x, cost = jnp.asarray(rng.normal(size=FEATURES)), jnp.asarray(rng.normal(size=DIM))
        decision = policy.decide(jax.random.key(t), state, x)
        decisions.append(np.asarray(decision.w))
        seen = policy.problem.observe(decision, cost_of(cost))
        state, info = learn(jax.random.key(50 + t), state, decision, seen)
        assert float(info.total) == pytest.approx(float(cost_of(cost) @ decision.w))
    return np.array(decisions), state, policy.mean(state, x), info


@pytest.mark.parametrize("mode", ["bandit", "semi_bandit", "full"])
@pytest.mark.parametrize(
    ("name", "given"),
    [("greedy", {}), ("dfhpg", {}), ("dfhpg", {"surrogate_at": "sample"}), ("linear_thompson", {})],
    ids=["greedy", "dfhpg", "dfhpg at the sample", "linear_thompson"],
)
@pytest.mark.usefixtures("float64")
def test_is_a_policy_of_the_rest_with_a_shifted_oracle(name, given, mode):
    """DFHPG solves while it learns: the surrogate sees the rest, its solutions are those of the whole cost."""
    problem, other = (Problem(oracle, (FEATURES,), mode) for oracle in (PLAIN, Shifted(DIM)))
    whole = Offset(problem, policies.parse(name, given).build(problem), KNOWN)
    rest = policies.parse(name, given).build(other)
    one, state, mean, info = played(whole, lambda cost: cost + KNOWN)
    two, expected, rest_mean, rest_info = played(rest, lambda cost: cost)
    assert np.array_equal(one, two)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), state, expected)
    np.testing.assert_allclose(mean, rest_mean + KNOWN, rtol=1e-5, atol=1e-6)
    assert float(info.residual) == pytest.approx(float(rest_info.residual), rel=1e-5)
