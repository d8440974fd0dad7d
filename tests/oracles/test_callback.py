import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles


def pick_cheapest(cost):
    return np.eye(len(cost))[np.argmin(cost)]


def test_host_is_called_once_per_batch():
    calls = []

    def solve(costs):
        calls.append(costs.shape)
        return np.eye(3)[np.argmin(costs, axis=1)]

    oracle = oracles.external(solve, 3, batched=True)
    costs = jax.random.normal(jax.random.key(0), (5, 2, 3))
    w = jax.jit(jax.vmap(lambda rows: oracle.solve(rows).w))(costs)
    assert calls == [(10, 3)]
    assert np.array_equal(np.argmax(w, axis=-1), np.argmin(costs, axis=-1))


def test_instances_and_aux_travel():
    def solve(cost, allowed):
        best = int(np.argmin(np.where(allowed, cost, np.inf)))
        return np.eye(3)[best], {"index": best}

    oracle = oracles.external(solve, 3, takes_instance=True, aux={"index": np.int32(0)})
    costs = jnp.array([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    solution = oracle.solve(costs, jnp.array([[True, True, True], [False, False, True]]))
    assert solution.aux["index"].tolist() == [0, 2]
    assert solution.w.tolist() == [[1, 0, 0], [0, 0, 1]]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda cost: 1 / 0, "ZeroDivisionError"),
        (lambda cost: np.zeros(2), "expected a decision of shape"),
        (lambda cost: np.array([np.nan, 0, 0]), "not finite"),
    ],
)
def test_failure_becomes_a_status_and_is_told(answer, message):
    oracle = oracles.external(lambda cost: answer(cost) if cost[0] > 0 else pick_cheapest(cost), 3)
    solution = oracle.solve(jnp.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]]))
    assert solution.status.tolist() == [1, 0]
    assert solution.w[1].tolist() == [1, 0, 0]
    with pytest.raises(oracles.OracleError, match=message):
        oracle.raise_failure()
