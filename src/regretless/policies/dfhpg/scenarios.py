"""The decision-focused gradient of a generative model: ``K`` scenarios, a surrogate's slope at each (the paper's Appendix on
generative parameterisations).
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.surrogates.base import Memory, Surrogate
from regretless.types import Cost, Instance, Key

Variant = Literal["own", "averaged", "saa"]
Orientation = Literal["minimise", "published"]


class Seen(eqx.Module):
    """What the surrogate is evaluated at: one prediction per scenario (``saa``: their average alone), the target, the noise."""

    predictions: Float[Array, "k d"]
    target: Cost
    noise: Any


def questions(
    surrogate: Surrogate,
    memory: Memory,
    scenarios: Float[Array, "k d"],
    target: Cost,
    key: Key,
    variant: Variant,
    sign: Float[Array, ""],
) -> tuple[Float[Array, "q d"], Seen]:
    """The cost vectors that the surrogate needs solved for all scenarios.

    ``sign`` −1, the orientation ``published``, hands costs to a surrogate for maximisation, as the authors' generative runs
    do. That surrogate's gradient is ``−∇ℓ(−ĉ, −c̃)`` in terms of ours.
    """
    sign = jnp.asarray(sign, scenarios.dtype)
    scenarios, target = sign * scenarios, sign * target.astype(scenarios.dtype)
    if variant == "saa":
        noise = jax.tree.map(lambda leaf: leaf[None], surrogate.draw(key))
        scenarios = jnp.mean(scenarios, axis=0, keepdims=True)
    else:
        noise = jax.vmap(surrogate.draw)(jax.random.split(key, scenarios.shape[0]))
    noise = jax.tree.map(lambda leaf: leaf.astype(scenarios.dtype), noise)
    costs = jax.vmap(lambda c, eta: surrogate.queries(memory, c, target, eta))(scenarios, noise)
    return costs.reshape(-1, scenarios.shape[1]), Seen(scenarios, target, noise)


def slopes(
    surrogate: Surrogate,
    memory: Memory,
    seen: Seen,
    solutions: Float[Array, "q d"],
    instance: Instance,
    feasible: Bool[Array, " n"] | None,
    count: int,
    variant: Variant,
    sign: Float[Array, ""],
) -> tuple[Float[Array, "k d"], Memory]:
    """Cotangents of the ``count`` (K) scenarios, and the surrogate's memory afterwards. With ``g_k = ∇_ĉ ℓ(ĉ_k, c̃)``:

    ``own``: ``g_k / K``, the gradient of ``(1/K) Σ ⟨ĉ_k(θ), g_k⟩`` (the published runs); ``averaged``: ``ḡ / K`` for every
    scenario, with ``ḡ = (1/K) Σ g_k`` (the paper's text); ``saa``: ``∇_ĉ ℓ((1/K) Σ ĉ_k, c̃) / K``, one call at the average.
    """
    predictions, dtype = seen.predictions, seen.predictions.dtype
    rows, dim = predictions.shape
    solutions = solutions.astype(dtype).reshape(rows, len(solutions) // rows, dim)
    if variant == "saa":
        noise = jax.tree.map(lambda leaf: leaf[0], seen.noise)
        slope, after = surrogate.finish(memory, predictions[0], seen.target, noise, solutions[0], instance, feasible)
        each = jnp.broadcast_to(slope, (count, *slope.shape))
    else:
        each, after = surrogate.finish_all(memory, predictions, seen.target, seen.noise, solutions, instance, feasible)
        if variant == "averaged":
            each = jnp.broadcast_to(jnp.mean(each, axis=0), each.shape)
    after = jax.tree.map(lambda new, old: new.astype(old.dtype), after, memory)
    return jnp.asarray(sign, dtype) * each.astype(dtype) / count, after
