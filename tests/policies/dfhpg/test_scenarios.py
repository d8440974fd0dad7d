"""The K scenarios of a generative model: three ways to use a surrogate's gradients, one batch of solves, both
orientations.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, surrogates
from regretless.policies.dfhpg import gradients
from regretless.surrogates import SolvedCall

ORACLE = oracles.top_k(6, 2)
COUNT = 5
COSTS = jax.random.normal(jax.random.key(0), (COUNT, 6))
TARGET = jax.random.normal(jax.random.key(1), (6,))
KEY = jax.random.key(2)


@pytest.fixture(params=surrogates.REGISTRY)
def name(request):
    return request.param


def warm(surrogate):
    """A memory that holds something."""
    memory = surrogate.init()
    for i in range(3):
        point = jax.random.normal(jax.random.key(10 + i), (6,))
        _, memory = surrogate(memory, point, TARGET, surrogate.draw(jax.random.key(i)))
    return memory


def slopes(surrogate, memory, variant="own", orientation="minimise", costs=COSTS, target=TARGET):
    """Questions, solves and slopes of one round, in one program where the oracle allows it."""
    sign = 1.0 if orientation == "minimise" else -1.0
    return (whole if surrogate.oracle.on_host else compiled)(surrogate, memory, variant, sign, costs, target)


def whole(surrogate, memory, variant, sign, costs, target):
    term = gradients.ScenarioTerm(surrogate, COUNT, variant, sign)
    queries, seen = term.queries(memory, costs, target, KEY)
    solved = surrogate.oracle.solve(queries).w if len(queries) else queries
    return term.cotangents(memory, seen, solved, None)


compiled = eqx.filter_jit(whole)


def test_own_gradients_are_those_of_single_calls(name):
    """Each scenario's gradient is the surrogate's there, with the memory from before the round and ``w*(c̃)`` in it."""
    surrogate = surrogates.parse(name).build(ORACLE)
    memory = warm(surrogate)
    got, _ = slopes(surrogate, memory)
    keys = jax.random.split(KEY, COUNT)
    for k in range(COUNT):
        noise = surrogate.prepare(memory, COSTS[k], TARGET, surrogate.draw(keys[k]), None)
        queries = surrogate.queries(memory, COSTS[k], TARGET, noise)
        solved = ORACLE.solve(queries).w if len(queries) else queries
        seen = surrogate.before_all(memory, SolvedCall(COSTS[k : k + 1], TARGET, solved[None]))
        expected = surrogate.gradient(seen, COSTS[k], TARGET, noise, solved) / COUNT
        np.testing.assert_allclose(got[k], expected, rtol=1e-5, atol=1e-6)


def test_averaged_and_saa_give_every_scenario_the_same(name):
    surrogate = surrogates.parse(name).build(ORACLE)
    memory = warm(surrogate)
    separate, _ = slopes(surrogate, memory)
    averaged, _ = slopes(surrogate, memory, "averaged")
    np.testing.assert_allclose(averaged, np.broadcast_to(separate.mean(axis=0), separate.shape), rtol=1e-5, atol=1e-6)
    saa, _ = slopes(surrogate, memory, "saa")
    expected, _ = surrogate(memory, COSTS.mean(axis=0), TARGET, surrogate.draw(KEY))
    np.testing.assert_allclose(saa, np.broadcast_to(expected / COUNT, saa.shape), rtol=1e-5, atol=1e-6)


def test_the_published_orientation_is_the_surrogate_of_the_maximisation_problem(name):
    surrogate = surrogates.parse(name).build(ORACLE)
    memory = surrogate.init()
    got, _ = slopes(surrogate, memory, orientation="published")
    mirrored, _ = slopes(surrogate, memory, costs=-COSTS, target=-TARGET)
    np.testing.assert_allclose(got, -mirrored, rtol=1e-5, atol=1e-6)


def test_published_spo_plus_takes_the_most_expensive_decisions():
    surrogate = surrogates.parse("spo_plus").build(ORACLE)
    got, _ = slopes(surrogate, None, orientation="published")
    most_expensive = lambda cost: np.isin(np.arange(6), np.argsort(cost)[-2:]).astype(float)  # noqa: E731
    expected = [2 * (most_expensive(2 * c - TARGET) - most_expensive(TARGET)) / COUNT for c in np.asarray(COSTS)]
    np.testing.assert_allclose(got, expected, atol=1e-6)


def test_the_pool_takes_the_solutions_after_the_gradients():
    surrogate = surrogates.parse("pairwise_diff").build(ORACLE)
    _, pool = slopes(surrogate, surrogate.init())
    added = {tuple(w) for w in np.asarray(pool.decisions)[np.asarray(pool.present())]}
    assert added == {tuple(w) for w in np.asarray(ORACLE.solve(jnp.concatenate([TARGET[None], COSTS])).w)}
    # In an empty pool the gradients see the target's decision alone, which leaves nothing to compare it with.
    first, _ = slopes(surrogate, surrogate.init())
    assert np.all(np.asarray(first) == 0)
    second, _ = slopes(surrogate, pool)
    assert np.all(np.any(np.asarray(second) != 0, axis=1))


def test_aimle_adapts_once_per_scenario():
    surrogate = surrogates.parse("aimle").build(ORACLE)
    cotangents, memory = slopes(surrogate, surrogate.init())
    expected = surrogate.init()
    for gradient in cotangents * COUNT:
        expected = surrogate.adapt(expected, gradient, None)
    assert float(memory.scale) == pytest.approx(float(expected.scale))
    assert float(memory.share) == pytest.approx(float(expected.share))
    assert float(memory.scale) != 1.0


def test_all_solves_of_a_round_are_one_batch():
    sizes = []

    def cheapest_two(costs):
        sizes.append(len(costs))
        w = np.zeros_like(costs)
        np.put_along_axis(w, np.argsort(costs, axis=1)[:, :2], 1.0, axis=1)
        return w

    surrogate = surrogates.parse("spo_plus").build(oracles.external(cheapest_two, 6, batched=True))
    got, _ = slopes(surrogate, None)
    assert len(sizes) == 1
    np.testing.assert_allclose(got, slopes(surrogates.parse("spo_plus").build(ORACLE), None)[0], atol=1e-6)


@pytest.mark.parametrize("name", ["spo_plus", "map_c", "aimle"])
@pytest.mark.usefixtures("float64")
def test_a_memory_keeps_its_precision(name):
    surrogate = surrogates.parse(name).build(ORACLE)
    half = lambda leaf: leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf  # noqa: E731
    memory = jax.tree.map(half, surrogate.init())
    costs = COSTS.astype(jnp.float32)
    for variant in ("own", "saa"):
        cotangents, after = slopes(surrogate, memory, variant, costs=costs)
        assert cotangents.dtype == jnp.float32
        assert [leaf.dtype for leaf in jax.tree.leaves(after)] == [leaf.dtype for leaf in jax.tree.leaves(memory)]
