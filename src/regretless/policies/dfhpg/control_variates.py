"""Baselines ``b`` of the score term ``(y − b) ∇ log p``: they cut its variance and leave its mean alone (the paper's Appendix
on variance-reduction baselines).
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.types import Cost


def moving_average(average: Float[Array, ""], total: Float[Array, ""], momentum: Float[Array, ""]) -> Float[Array, ""]:
    """``ψ b + (1 − ψ) y`` with ``momentum`` ψ (0.95): the average after a round with total ``y``; it starts at 0."""
    return momentum * average + (1.0 - momentum) * total


def nuisance_induced(prediction: Cost, best: Float[Array, " d"]) -> Float[Array, ""]:
    """``b = min over w in S of f_φ(x)·w``: what the nuisance itself thinks is attainable; ``best`` is ``w*(f_φ(x))``."""
    return jnp.sum(prediction * best)
