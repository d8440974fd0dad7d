"""Decisions on the data sets that scikit-learn ships: guess a label, or pick cases with low targets."""

import functools
import hashlib
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field, model_validator

from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.errors import SettingsError
from regretless.extras import require
from regretless.oracles.selection import TopKOracle
from regretless.types import Context, Key


class DataWorld(BenchmarkSpec):
    """Real data as decisions: name ``k`` labels of a case, or pick the ``k`` cases with the lowest targets.

    With ``decide="label"`` a case is seen in each round, in an order that differs between replications; a label costs
    1, the right one 0. With ``decide="case"`` the features of ``items`` random cases are seen, a row for each, and the
    cost of a case is its target: the number of diabetes, else 0 or 1 for the label ``low`` and any other.

    Parameters
    ----------
    data : {"digits", "wine", "breast_cancer", "iris", "diabetes"}
        The data set; scikit-learn ships it.
    decide : {"label", "case"}
        What is decided.
    k : int, default 1
        How many labels or cases are chosen.
    items : int, default 20
        How many cases there are to choose from.
    low : int, default 0
        The label of the cases that cost nothing.
    rounds : int, default 150
        The horizon; with labels at most the number of cases.
    """

    data: Literal["digits", "wine", "breast_cancer", "iris", "diabetes"] = "iris"
    decide: Literal["label", "case"] = "label"
    k: int = Field(default=1, ge=1)
    items: int = Field(default=20, ge=1, le=10**4)
    low: int = Field(default=0, ge=0)
    rounds: int = Field(default=150, ge=1, le=10**8)

    @model_validator(mode="after")
    def _usable(self) -> "DataWorld":
        if self.decide == "label" and self.data == "diabetes":
            raise ValueError("the targets of diabetes are numbers, not labels: expected decide = 'case'")
        return self

    def build(self) -> "DataWorldBenchmark":
        """Return the benchmark."""
        return DataWorldBenchmark(self)


class DataSet(NamedTuple):
    """Cases with their targets."""

    features: np.ndarray  # [cases, p]
    targets: np.ndarray  # [cases]


@functools.lru_cache(maxsize=8)
def _load(name: str) -> DataSet:
    bunch = getattr(require("sklearn.datasets", extra="peers"), f"load_{name}")()
    return DataSet(np.asarray(bunch.data, float), np.asarray(bunch.target, float))


class DataWorldBenchmark(Benchmark):
    """The stream of cases of ``DataWorld``; regret is counted on what happened."""

    settings: DataWorld = eqx.field(static=True)
    features: np.ndarray
    targets: np.ndarray
    data = "real"

    def __init__(self, settings: DataWorld):
        self.settings = settings
        self.features, targets = _load(settings.data)
        cases = len(targets)
        if settings.decide == "label":
            items, self.context_shape = int(targets.max()) + 1, self.features.shape[1:]
        else:
            items, self.context_shape = settings.items, (settings.items, self.features.shape[1])
            targets = targets if settings.data == "diabetes" else (targets != settings.low).astype(float)
        if (settings.rounds if settings.decide == "label" else items) > cases:
            raise SettingsError(
                f"{settings.data} has {cases} cases: expected at most as many "
                f"{'rounds' if settings.decide == 'label' else 'items'}"
            )
        self.targets = targets
        self.name, self.oracle = "world_data", TopKOracle(items, settings.k)
        self.horizon, self.regret_on_mean = settings.rounds, False

    @property
    def longest(self) -> int | None:
        return len(self.targets) if self.settings.decide == "label" else None

    def environment(self, key: Key) -> Int[Array, " cases"]:
        """Return the order of the cases.

        Parameters
        ----------
        key : Key
            For its random draws.
        """
        return jax.random.permutation(key, len(self.targets))

    def round(self, key: Key, environment: Int[Array, " cases"], t: Int[Array, ""]) -> Round:
        targets = jnp.asarray(self.targets, jnp.result_type(float))
        if self.settings.decide == "label":
            case = environment[t - 1]
            return Round(case, (jnp.arange(self.oracle.dim) != targets[case]).astype(targets.dtype))
        cases = jax.random.choice(key, len(self.targets), (self.oracle.dim,), replace=False)
        return Round(cases, targets[cases])

    def context(self, environment: Int[Array, " cases"], observation: Int[Array, "*items"]) -> Context:
        features: Float[Array, "cases p"] = jnp.asarray(self.features, jnp.result_type(float))
        return features[observation]

    def describe(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.features.tobytes() + self.targets.tobytes())
        return {"name": self.name, "data": self.data, "digest": digest.hexdigest()[:16]}
