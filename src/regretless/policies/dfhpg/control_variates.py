"""Baselines ``b`` of the score term ``(y − b) ∇ log p``: they cut its variance and leave its mean alone (the paper's Appendix
on variance-reduction baselines).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.oracles.base import Oracle
from regretless.types import Cost, Instance

MOMENTUM = 0.95


def moving_average(average: Float[Array, ""], total: Float[Array, ""]) -> Float[Array, ""]:
    """``ψ b + (1 − ψ) y`` with ψ = 0.95: the average after a round with total ``y``; it starts at 0."""
    return MOMENTUM * average + (1.0 - MOMENTUM) * total


def nuisance_induced(oracle: Oracle, prediction: Cost, instance: Instance) -> Float[Array, ""]:
    """``b = min over w in S of f_φ(x)·w``: what the nuisance itself thinks is attainable."""
    return jnp.sum(prediction * oracle.solve_one(prediction, instance).w)
