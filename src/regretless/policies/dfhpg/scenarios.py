"""The decision-focused gradient of a generative model: ``K`` scenarios, a surrogate's slope at each (the paper's Appendix on
generative parameterisations).
"""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.surrogates.base import Memory, Surrogate
from regretless.types import Cost, Instance, Key

Variant = Literal["own", "averaged", "saa"]
Orientation = Literal["minimise", "published"]


def slopes(
    surrogate: Surrogate,
    memory: Memory,
    scenarios: Float[Array, "k d"],
    target: Cost,
    key: Key,
    instance: Instance,
    variant: Variant,
    orientation: Orientation,
) -> tuple[Float[Array, "k d"], Memory]:
    """Cotangents of the ``K`` scenarios, and the surrogate's memory afterwards. With ``g_k = ∇_ĉ ℓ(ĉ_k, c̃)``:

    ``own``: ``g_k / K``, the gradient of ``(1/K) Σ ⟨ĉ_k(θ), g_k⟩`` (the published runs); ``averaged``: ``ḡ / K`` for every
    scenario, with ``ḡ = (1/K) Σ g_k`` (the paper's text); ``saa``: ``∇_ĉ ℓ((1/K) Σ ĉ_k, c̃) / K``, one call at the average.

    ``orientation="published"`` hands costs to a surrogate for maximisation, as the authors' generative runs do. That
    surrogate's gradient is ``−∇ℓ(−ĉ, −c̃)`` in terms of ours.
    """
    count = scenarios.shape[0]
    sign = 1.0 if orientation == "minimise" else -1.0
    scenarios, target = sign * scenarios, sign * target.astype(scenarios.dtype)
    if variant == "saa":
        noise = _like(surrogate.draw(key), scenarios)
        slope, after = surrogate(memory, jnp.mean(scenarios, axis=0), target, noise, instance)
        each = jnp.broadcast_to(slope, scenarios.shape)
    else:
        noise = _like(jax.vmap(surrogate.draw)(jax.random.split(key, count)), scenarios)
        each, after = surrogate.scenarios(memory, scenarios, target, noise, instance)
        if variant == "averaged":
            each = jnp.broadcast_to(jnp.mean(each, axis=0), each.shape)
    after = jax.tree.map(lambda new, old: new.astype(old.dtype), after, memory)
    return sign * each.astype(scenarios.dtype) / count, after


def _like(noise: Array | None, scenarios: Array) -> Array | None:
    """A surrogate's noise in the precision of the scenarios."""
    return None if noise is None else noise.astype(scenarios.dtype)
