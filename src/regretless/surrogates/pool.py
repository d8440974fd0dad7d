"""A pool of feasible decisions, kept in arrays of fixed shape, and the surrogates that compare its decisions.

Learning to rank: the prediction should order the pool as the target does (Mandi et al., 2022). Contrasting: the
target's decision should be cheaper than the pool's others (Mulamba et al., 2021).
"""

import abc
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from regretless.surrogates.base import FieldSpec, Rows, SolvedCall, Surrogate
from regretless.types import Cost

SIZE = 128
"""Decisions that a pool holds unless set otherwise."""

NEVER = np.iinfo(np.int32).max


class Pool(eqx.Module):
    """Decisions with the time each was last added; a place with time 0 is empty."""

    decisions: Float[Array, "size d"]
    added: Int[Array, " size"]
    clock: Int[Array, ""]

    def present(self) -> Bool[Array, " size"]:
        """Return which places hold a decision."""
        return self.added > 0

    def count(self) -> Int[Array, ""]:
        """Return how many decisions are held."""
        return jnp.sum(self.present())

    def costs(self, cost: Float[Array, " d"]) -> Float[Array, " size"]:
        """Return ``c·w`` of each decision, infinite for an empty place."""
        return jnp.where(self.present(), self.decisions @ cost, jnp.inf)

    def cheapest(self, cost: Float[Array, " d"]) -> Bool[Array, " size"]:
        """Mark the decision of least ``c·w``, the oldest one on ties."""
        costs = self.costs(cost)
        age = jnp.where(self.present() & (costs == jnp.min(costs)), self.added, NEVER)
        return (age == jnp.min(age)) & (age < NEVER)

    def best(self, cost: Float[Array, " d"]) -> Float[Array, " d"]:
        """Return the decision of least ``c·w``, the oldest one on ties."""
        return self.cheapest(cost).astype(self.decisions.dtype) @ self.decisions

    def only(self, kept: Bool[Array, " size"]) -> "Pool":
        """Return the pool without the decisions that are not marked."""
        return Pool(self.decisions, jnp.where(kept, self.added, 0), self.clock)


def empty(dim: int, size: int = SIZE) -> Pool:
    """Return a pool without decisions."""
    return Pool(jnp.zeros((size, dim)), jnp.zeros(size, jnp.int32), jnp.zeros((), jnp.int32))


def add(pool: Pool, w: Float[Array, " d"]) -> Pool:
    """Return the pool with ``w`` as its newest decision, in place of an equal one (to 8 decimals) or the oldest."""
    clock = pool.clock + 1
    same = pool.present() & jnp.all(jnp.abs(pool.decisions - w) < 0.5e-8, axis=1)
    oldest = jnp.arange(pool.added.shape[0]) == jnp.argmin(pool.added)
    place = jnp.where(jnp.any(same), same, oldest)
    return Pool(jnp.where(place[:, None], w, pool.decisions), jnp.where(place, clock, pool.added), clock)


def add_many(pool: Pool, ws: Float[Array, "n d"]) -> Pool:
    """Return the result of ``add`` of each row in turn: the last distinct decisions, up to the size of the pool."""
    size, n = pool.added.shape[0], ws.shape[0]
    clock = pool.clock + n
    decisions = jnp.concatenate([pool.decisions, ws])
    added = jnp.concatenate([pool.added, pool.clock + 1 + jnp.arange(n, dtype=pool.added.dtype)])
    same = jnp.all(jnp.abs(decisions[:, None, :] - ws[None, :, :]) < 0.5e-8, axis=2)
    renewed = jnp.any(same & (added[None, size:] > added[:, None]), axis=1)
    added, place = jax.lax.top_k(jnp.where(renewed, 0, added), size)
    return Pool(decisions[place], added, clock)


class PooledSurrogate(Surrogate):
    """A surrogate whose gradient compares decisions of a pool ``P``; ``w_b`` is the pool's best under the target.

    Every call adds ``w*(c)``, then ``w*(ĉ)``, before the gradient is taken.
    """

    pool: int = eqx.field(static=True)

    @abc.abstractmethod
    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        """Return ``∇_ĉ ℓ`` from the pool; ``best`` is ``w*(c)``."""

    def init(self) -> Pool:
        return empty(self.oracle.dim, self.pool)

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction])

    def remember(self, memory: Pool, call: SolvedCall) -> Pool:
        for w in call.solutions:
            memory = add(memory, w)
        return memory

    def before_all(self, memory: Pool, calls: SolvedCall) -> Pool:
        return add(memory, calls.solutions[0, 0])

    def after_all(self, memory: Pool, gradients: Rows, calls: SolvedCall) -> Pool:
        return add_many(memory, calls.solutions[:, 1:].reshape(-1, self.oracle.dim))

    def points(self, memory: Pool) -> Float[Array, "n d"]:
        return memory.decisions

    def available(self, memory: Pool, feasible: Bool[Array, " n"]) -> Pool:
        return memory.only(feasible)

    def gradient(self, memory: Pool, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return self.slope(memory, prediction, target, solutions[0])


class PooledSpec(FieldSpec):
    """Base class of the surrogates with a pool of decisions.

    Parameters
    ----------
    pool : int, default 128
        Decisions that are remembered.
    """

    pool: int = Field(default=SIZE, ge=2)


class PointwiseLTRSurrogate(PooledSurrogate):
    """``(2/|P|) Σ ((ĉ − c)·w) w``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        error = jnp.where(pool.present(), pool.decisions @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(pool.count(), 1) * (error @ pool.decisions)


class PointwiseLTR(PooledSpec, of=PointwiseLTRSurrogate):
    """Regression of the cost of every decision in the pool; gradient ``(2/|P|) Σ ((ĉ − c)·w) w``.

    Loss: ``(1/|P|) Σ ((ĉ − c)·w)²``.
    """


class PairwiseDiffSurrogate(PooledSurrogate):
    """``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        first = pool.cheapest(target)
        rest = pool.present() & ~first & ~_repeated(pool, pool.costs(target))
        difference = first.astype(target.dtype) @ pool.decisions - pool.decisions
        weight = jnp.where(rest, difference @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(jnp.sum(rest), 1) * (weight @ difference)


class PairwiseDiff(PooledSpec, of=PairwiseDiffSurrogate):
    """Regression of the cost differences to the pool's best ``w_b``.

    Gradient: ``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``. Loss: ``(1/|R|) Σ_r ((ĉ − c)·(w_b − w_r))²``, with
    ``R`` the pool without ``w_b``; of decisions with exactly equal target cost only the oldest counts.
    """


class PairwiseLTRSurrogate(PooledSurrogate):
    """``(1/|R|) Σ (w_b − w_r)`` over the r with ``ĉ·w_b > ĉ·w_r − δ``."""

    margin: Float[Array, ""]
    reduction: Literal["mean", "sum"] = eqx.field(static=True)

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        first = pool.cheapest(target)
        rest = pool.present() & ~first
        w_b = first.astype(target.dtype) @ pool.decisions
        wrong = rest & (w_b @ prediction > pool.decisions @ prediction - self.margin)
        pairs = jnp.sum(wrong) * w_b - wrong.astype(target.dtype) @ pool.decisions
        return pairs / jnp.maximum(jnp.sum(rest), 1) if self.reduction == "mean" else pairs


class PairwiseLTR(PooledSpec, of=PairwiseLTRSurrogate):
    """A hinge on every pair; gradient ``(1/|R|) Σ (w_b − w_r)`` over the r with ``ĉ·w_b > ĉ·w_r − δ``.

    Loss: ``(1/|R|) Σ_r max(0, δ + ĉ·w_b − ĉ·w_r)``, with ``R`` the pool without ``w_b``.

    Parameters
    ----------
    margin : float, default 0.0
        δ, by how much the predicted cost of the best must be lower.
    reduction : {"mean", "sum"}, default "mean"
        Over the pairs; the paper prints the sum.
    """

    margin: float = Field(default=0.0, ge=0)
    reduction: Literal["mean", "sum"] = "mean"


class ListwiseLTRSurrogate(PooledSurrogate):
    """``(1/τ) (softmax(−c·P/τ) − softmax(−ĉ·P/τ)) P``."""

    temperature: Float[Array, ""]

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        wanted, given = (jax.nn.softmax(-pool.costs(cost) / self.temperature) for cost in (target, prediction))
        return (wanted - given) @ pool.decisions / self.temperature


class ListwiseLTR(PooledSpec, of=ListwiseLTRSurrogate):
    """Cross entropy of the rankings; gradient ``(1/τ) (softmax(−c·P/τ) − softmax(−ĉ·P/τ)) P``.

    Loss: ``−Σ softmax(−c·P/τ) log softmax(−ĉ·P/τ)``. The paper's appendix prints the gradient with the opposite sign.

    Parameters
    ----------
    temperature : float, default 1.0
        τ, temperature of the rankings.
    """

    temperature: float = Field(default=1.0, gt=0)


def _repeated(pool: Pool, costs: Float[Array, " size"]) -> Bool[Array, " size"]:
    """Mark the decisions for which the pool holds an older one of exactly the same cost."""
    older = pool.present()[None, :] & (pool.added[None, :] < pool.added[:, None])
    return jnp.any(older & (costs[None, :] == costs[:, None]), axis=1)


class NCESurrogate(PooledSurrogate):
    """``w*(c) − mean of the pool``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        mean = pool.present().astype(target.dtype) @ pool.decisions / jnp.maximum(pool.count(), 1)
        return best - mean


class NCE(PooledSpec, of=NCESurrogate):
    """Noise-contrastive estimation; gradient ``w*(c) − mean of the pool``.

    Loss: ``(1/|P|) Σ ĉ·(w*(c) − w)``.
    """


class NCEC(NCE):
    """Noise-contrastive estimation of the error; the gradient is that of ``NCE``.

    Loss: ``(1/|P|) Σ (ĉ − c)·(w*(c) − w)``. It differs from that of ``NCE`` by a constant in ``ĉ``.
    """


class ContrastiveMAPSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of ĉ·w``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(prediction)


class ContrastiveMAP(PooledSpec, of=ContrastiveMAPSurrogate):
    """The hardest contrast under the prediction; gradient ``w*(c) − argmin over the pool of ĉ·w``.

    Loss: ``max over the pool of ĉ·(w*(c) − w)``.
    """


class MAPCSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of (ĉ − c)·w``."""

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction, prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(prediction - target)


class MAPC(PooledSpec, of=MAPCSurrogate):
    """The hardest contrast of the error; gradient ``w*(c) − argmin over the pool of (ĉ − c)·w``.

    Loss: ``max over the pool of (ĉ − c)·(w*(c) − w)``. Every call also adds ``w*(ĉ − c)`` to the pool.
    """


class SPOCachingSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of (2ĉ − c)·w``."""

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction, 2.0 * prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(2.0 * prediction - target)


class SPOCaching(PooledSpec, of=SPOCachingSurrogate):
    """Half of SPO+ with the pool as oracle; gradient ``w*(c) − argmin over the pool of (2ĉ − c)·w``.

    Loss: ``½ max over the pool of (2ĉ − c)·(w*(c) − w)``. Every call also adds ``w*(2ĉ − c)`` to the pool. The paper's
    appendix prints the gradient with the opposite sign.
    """
