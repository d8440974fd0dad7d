"""Recorded contexts and costs as a benchmark, in their order."""

import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from regretless.benchmarks.base import Benchmark, Round
from regretless.errors import SettingsError
from regretless.oracles.base import Oracle, check_finite
from regretless.types import Context, Instance, Key


class ArraysBenchmark(Benchmark):
    """Round ``t`` is row ``t`` of the arrays in every replication; only the policies' draws differ.

    Parameters
    ----------
    name, oracle, context_shape, horizon, regret_on_mean
        As in ``Benchmark``.
    contexts : array of shape (rounds, p) or (rounds, d, p)
        What was known in each round.
    costs : array of shape (rounds, d)
        All costs of each round.
    means : array of shape (rounds, d) or None
        Conditional means, if they are known.
    instances : pytree or None
        What changes in the feasible set, with a leading axis of rounds.
    """

    contexts: np.ndarray
    costs: np.ndarray
    means: np.ndarray | None
    instances: Instance
    data = "recorded"

    def environment(self, key: Key) -> None:
        """Return None: every replication meets the same rounds.

        Parameters
        ----------
        key : Key
            Not used.
        """

    def round(self, key: Key, environment: None, t: Int[Array, ""]) -> Round:
        row = lambda array: _as_float(jnp.asarray(array)[t - 1])  # noqa: E731
        mean = None if self.means is None else row(self.means)
        return Round(t - 1, row(self.costs), mean, jax.tree.map(lambda leaf: jnp.asarray(leaf)[t - 1], self.instances))

    def context(self, environment: None, observation: Int[Array, ""]) -> Context:
        return _as_float(jnp.asarray(self.contexts)[observation])

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves((self.contexts, self.costs, self.means, self.instances)):
            digest.update(f"{leaf.shape}{leaf.dtype}".encode() + np.ascontiguousarray(leaf).tobytes())
        return {"name": self.name, "rounds": self.horizon, "data": digest.hexdigest()}


def from_arrays(
    contexts: Any, costs: Any, oracle: Oracle, *, means: Any = None, instances: Instance = None, name: str = "history"
) -> ArraysBenchmark:
    """Return a benchmark of recorded rounds.

    Parameters
    ----------
    contexts : array of shape (rounds, p), (rounds, d, p) or (rounds, height, width, 3)
        What was known in each round.
    costs : array of shape (rounds, d)
        All costs of each round; policies see what their feedback shows.
    oracle : Oracle
        The feasible set.
    means : array of shape (rounds, d), optional
        Conditional means ``E[c|x]`` if they are known; they give the clairvoyant reference line.
    instances : pytree, optional
        What changes in the feasible set, with a leading axis of rounds in every leaf.
    name : str, default "history"
        Name of the benchmark in tables.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(50, 3))
    >>> history = rg.benchmarks.from_arrays(x, x @ rng.normal(size=(3, 5)), rg.oracles.top_k(5, 2))
    >>> policy = rg.policies.LinearThompson().build(history.problem("bandit"))
    >>> rg.simulate(policy, history, seeds=3).regret.shape
    (3, 50)
    """
    if not isinstance(oracle, Oracle):
        raise SettingsError(f"history: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
    x, c = (check_finite(*given).astype(np.float64) for given in (("contexts", contexts), ("costs", costs)))
    dim = oracle.dim
    if x.ndim < 2 or not x.shape[-1] or (x.ndim == 3 and x.shape[1] != dim):
        raise SettingsError(
            f"history: expected contexts of shape (rounds, p), (rounds, {dim}, p) or (rounds, height, width, 3), got "
            f"{x.shape}"
        )
    if c.shape != (len(x), dim) or not len(x):
        raise SettingsError(
            f"history: expected costs of shape ({len(x)}, {dim}), a row per context and a column per coordinate of the "
            f"oracle, got {c.shape}"
        )
    mean = None if means is None else check_finite("means", means, c.shape).astype(np.float64)
    recorded = oracle.instances(instances, len(x))
    return ArraysBenchmark(name, oracle, x.shape[1:], len(x), False, x, c, mean, recorded)


def _as_float(array: Array) -> Array:
    return array.astype(jnp.result_type(float))
