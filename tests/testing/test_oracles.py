"""Each check of an oracle can fail."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, testing
from regretless.oracles.base import MaskedOracle, TraceableOracle
from regretless.oracles.selection import TopKOracle
from regretless.types import Solution

COUNTER = itertools.count()


class MostExpensive(TopKOracle):
    def minimise(self, cost, instance):
        return super().minimise(-cost, instance)


class Infeasible(TopKOracle):
    def feasible(self, w, instance=None):
        return jnp.sum(w) == self.k + 1


class Fickle(TopKOracle):
    def _answer(self, costs, instances):
        return super()._answer(costs if next(COUNTER) % 2 else -costs, instances)


class OneOfTwo(TopKOracle):
    @property
    def support(self):
        return 1


class Unchecked(TopKOracle):
    def answer(self, costs, instances=None):
        return super()._answer(np.nan_to_num(np.asarray(costs, float)), instances)


class IgnoresTheMask(TopKOracle):
    def minimise(self, cost, instance):
        return super().minimise(cost, None)


class Unprintable(TopKOracle):
    def fingerprint(self):
        return {"k": np.zeros(2)}


class CallsBack(TopKOracle):
    def minimise(self, cost, instance):
        shape = jax.ShapeDtypeStruct(cost.shape, cost.dtype)
        return super().minimise(jax.pure_callback(lambda c: c, shape, cost, vmap_method="sequential"), instance)


class SaysHost(TopKOracle):
    @property
    def on_host(self):
        return True


class SecretAux(TraceableOracle):
    def minimise(self, cost, instance):
        return Solution(TopKOracle(self.dim, 2).minimise(cost, None).w, jnp.int32(0), jnp.zeros(3))

    def feasible(self, w, instance=None):
        return jnp.sum(w) == 2

    def aux_form(self):
        return None


class HalfOpen(MaskedOracle):
    def minimise(self, cost, instance):
        return TopKOracle(self.dim, 2).minimise(cost, instance)

    def feasible(self, w, instance=None):
        return jnp.sum(w) == 2

    def example_instance(self):
        return np.arange(self.dim) > 0


def test_sound_oracles_pass():
    testing.check_oracle(oracles.shortest_path(oracles.grid_edges(3, 3)))
    testing.check_oracle(oracles.milp(A_ub=[[3, 5, 2, 4]], b_ub=[8], A_eq=[[1, 1, 0, 1]], b_eq=[1], integrality=1))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (MostExpensive(6, 2), "does not minimise"),
        (Infeasible(6, 2), "solve and feasible disagree"),
        (Fickle(6, 2), "does not minimise|gives other decisions|differently than in a batch"),
        (OneOfTwo(6, 2), r"at most 1 coordinates are not zero \(support\), but 2"),
        (Unchecked(6, 2), "costs that are not finite must raise OracleError"),
        (IgnoresTheMask(6, 2), "uses a coordinate that the instance closes"),
        (Unprintable(6, 2), "fingerprint must be JSON data"),
        (CallsBack(6, 2), "calls Python from inside a program"),
        (SaysHost(6, 2), "says that it runs on the host, but lets itself be compiled"),
        (SecretAux(6), "aux_form must describe what solutions hold next to w"),
        (HalfOpen(6), "example_instance must be an instance that changes nothing"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_a_broken_oracle_raises_with_the_reason(broken, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_oracle(broken)


def test_a_function_must_be_an_oracle():
    with pytest.raises(AssertionError, match=r"subclass it, or use rg\.oracles\.external"):
        testing.check_oracle(lambda cost: cost)
    with pytest.raises(AssertionError, match="does not minimise"):
        testing.check_oracle(oracles.external(lambda cost: np.eye(4)[np.argmax(cost)], 4))
