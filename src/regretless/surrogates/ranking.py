"""Learning to rank a pool of decisions: the prediction should order them as the target does (Mandi et al., 2022)."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import Field

from regretless.oracles.base import Oracle
from regretless.surrogates.pool import Pool, PooledSpec, PooledSurrogate
from regretless.types import Cost


class PointwiseLTRSurrogate(PooledSurrogate):
    """``(2/|P|) Σ ((ĉ − c)·w) w``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        error = jnp.where(pool.present(), pool.decisions @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(pool.count(), 1) * (error @ pool.decisions)


class PointwiseLTR(PooledSpec):
    """Regression of the cost of every decision in the pool; gradient ``(2/|P|) Σ ((ĉ − c)·w) w``.

    Loss: ``(1/|P|) Σ ((ĉ − c)·w)²``.
    """

    def build(self, oracle: Oracle) -> PointwiseLTRSurrogate:
        """Return the gradient on a feasible set."""
        return PointwiseLTRSurrogate(oracle, **self.hyperparameters())


class PairwiseDiffSurrogate(PooledSurrogate):
    """``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        first = pool.cheapest(target)
        rest = pool.present() & ~first & ~_repeated(pool, pool.costs(target))
        difference = first.astype(target.dtype) @ pool.decisions - pool.decisions
        weight = jnp.where(rest, difference @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(jnp.sum(rest), 1) * (weight @ difference)


class PairwiseDiff(PooledSpec):
    """Regression of the cost differences to the pool's best ``w_b``.

    Gradient: ``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``. Loss: ``(1/|R|) Σ_r ((ĉ − c)·(w_b − w_r))²``, with
    ``R`` the pool without ``w_b``; of decisions with exactly equal target cost only the oldest counts.
    """

    def build(self, oracle: Oracle) -> PairwiseDiffSurrogate:
        """Return the gradient on a feasible set."""
        return PairwiseDiffSurrogate(oracle, **self.hyperparameters())


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


class PairwiseLTR(PooledSpec):
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

    def build(self, oracle: Oracle) -> PairwiseLTRSurrogate:
        """Return the gradient on a feasible set."""
        return PairwiseLTRSurrogate(oracle, **self.hyperparameters())


class ListwiseLTRSurrogate(PooledSurrogate):
    """``(1/τ) (softmax(−c·P/τ) − softmax(−ĉ·P/τ)) P``."""

    temperature: Float[Array, ""]

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        wanted, given = (jax.nn.softmax(-pool.costs(cost) / self.temperature) for cost in (target, prediction))
        return (wanted - given) @ pool.decisions / self.temperature


class ListwiseLTR(PooledSpec):
    """Cross entropy of the rankings; gradient ``(1/τ) (softmax(−c·P/τ) − softmax(−ĉ·P/τ)) P``.

    Loss: ``−Σ softmax(−c·P/τ) log softmax(−ĉ·P/τ)``. The paper's appendix prints the gradient with the opposite sign.

    Parameters
    ----------
    temperature : float, default 1.0
        τ, temperature of the rankings.
    """

    temperature: float = Field(default=1.0, gt=0)

    def build(self, oracle: Oracle) -> ListwiseLTRSurrogate:
        """Return the gradient on a feasible set."""
        return ListwiseLTRSurrogate(oracle, **self.hyperparameters())


def _repeated(pool: Pool, costs: Float[Array, " size"]) -> Bool[Array, " size"]:
    """Mark the decisions for which the pool holds an older one of exactly the same cost."""
    older = pool.present()[None, :] & (pool.added[None, :] < pool.added[:, None])
    return jnp.any(older & (costs[None, :] == costs[:, None]), axis=1)
