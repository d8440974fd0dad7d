"""Learning to rank a pool of decisions: the prediction should order them as the target does (Mandi et al., 2022)."""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float
from pydantic import Field

from regretless.surrogates.pool import Pool
from regretless.surrogates.pooled import Pooled
from regretless.types import Cost


class PointwiseLTR(Pooled):
    """``(2/|P|) Σ ((ĉ − c)·w) w``: regress the cost of every decision in the pool.

    Loss: ``(1/|P|) Σ ((ĉ − c)·w)²``.
    """

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        error = jnp.where(pool.present(), pool.decisions @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(pool.count(), 1) * (error @ pool.decisions)


class PairwiseDiff(Pooled):
    """``(2/|R|) Σ_r ((ĉ − c)·(w_b − w_r)) (w_b − w_r)``: regress the cost differences to the pool's best.

    Loss: ``(1/|R|) Σ_r ((ĉ − c)·(w_b − w_r))²``, with ``R`` the pool without ``w_b``; of decisions with exactly equal target
    cost only the oldest counts.
    """

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        first = pool.cheapest(target)
        rest = pool.present() & ~first & ~_repeated(pool, pool.costs(target))
        difference = first.astype(target.dtype) @ pool.decisions - pool.decisions
        weight = jnp.where(rest, difference @ (prediction - target), 0.0)
        return 2.0 / jnp.maximum(jnp.sum(rest), 1) * (weight @ difference)


class PairwiseLTR(Pooled):
    """``(1/|R|) Σ (w_b − w_r)`` over the r with ``ĉ·w_b > ĉ·w_r − δ``: a hinge on every pair, default margin δ = 0.

    Loss: ``(1/|R|) Σ_r max(0, δ + ĉ·w_b − ĉ·w_r)``, with ``R`` the pool without ``w_b``.
    """

    class Settings(Pooled.Settings):
        """δ beside the pool's size."""

        margin: float = Field(0.0, ge=0, description="δ, how much cheaper the best must be predicted")
        reduction: Literal["mean", "sum"] = Field("mean", description="over the pairs; the paper prints the sum")

    margin: Float[Array, ""]
    reduction: Literal["mean", "sum"] = eqx.field(static=True)

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        first = pool.cheapest(target)
        rest = pool.present() & ~first
        w_b = first.astype(target.dtype) @ pool.decisions
        wrong = rest & (w_b @ prediction > pool.decisions @ prediction - self.margin)
        pairs = jnp.sum(wrong) * w_b - wrong.astype(target.dtype) @ pool.decisions
        return pairs / jnp.maximum(jnp.sum(rest), 1) if self.reduction == "mean" else pairs


class ListwiseLTR(Pooled):
    """``(1/τ) (softmax(−c·P/τ) − softmax(−ĉ·P/τ)) P``: cross entropy of the rankings, default temperature τ = 1.

    Loss: ``−Σ softmax(−c·P/τ) log softmax(−ĉ·P/τ)``. The paper's appendix prints the gradient with the opposite sign.
    """

    class Settings(Pooled.Settings):
        """τ beside the pool's size."""

        temperature: float = Field(1.0, gt=0, description="τ, temperature of the rankings")

    temperature: Float[Array, ""]

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        wanted, given = (jax.nn.softmax(-pool.costs(cost) / self.temperature) for cost in (target, prediction))
        return (wanted - given) @ pool.decisions / self.temperature


def _repeated(pool: Pool, costs: Float[Array, " size"]) -> Bool[Array, " size"]:
    """Marks the decisions for which the pool holds an older one of exactly the same cost."""
    older = pool.present()[None, :] & (pool.added[None, :] < pool.added[:, None])
    return jnp.any(older & (costs[None, :] == costs[:, None]), axis=1)
