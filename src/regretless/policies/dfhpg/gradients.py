"""The gradient estimators of the paper's Section 2, and how they are mixed."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless import nets
from regretless.models.base import Model, Params, PointModel
from regretless.types import Cost, Decision

Scalar = Float[Array, ""]


def score_gradient(
    model: PointModel, params: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]
) -> Params:
    """``weight · ∇_θ log p_θ(ĉ|x)``: with ``weight = y − b`` the score estimator (equation 1), with ``f_φ(x)·w − b`` the
    plug-in estimator (equation 5).
    """
    score = model.score(params, decision.context, decision.cost_sample, decision.noise, fresh)
    return jax.tree.map(lambda g: weight * g, score)


def surrogate_gradient(model: PointModel, params: Params, decision: Decision, cotangent: Cost) -> Params:
    """``(∇_θ μ_θ(x))ᵀ ∇_ĉ ℓ^sur``: the surrogate's gradient in the prediction carried back to ``θ``."""
    return model.pullback(params, decision.context, cotangent)


def hybrid(
    alpha: Scalar, score: Params, plug_in: Params, normalise: bool, trust: Scalar
) -> tuple[Params, dict[str, Scalar]]:
    """``g = α ρ g_score + (1 − α) g_plug-in`` (equation 7), each scaled to norm 1 first if ``normalise`` says so.

    ``trust`` (ρ) is 1 for a score term that came at once, the clipped density ratio for a late one, 0 for none at all.
    """
    score_norm, plug_in_norm = nets.tree_norm(score), nets.tree_norm(plug_in)
    score_weight, plug_in_weight = alpha * trust, 1.0 - alpha
    if normalise:
        score_weight, plug_in_weight = score_weight / _unit(score_norm), plug_in_weight / _unit(plug_in_norm)
    mixed = jax.tree.map(lambda s, p: _times(score_weight, s) + _times(plug_in_weight, p), score, plug_in)
    norms = {"score_norm": score_norm, "plug_in_norm": plug_in_norm, "mixed_norm": nets.tree_norm(mixed)}
    return mixed, norms


def _times(weight: Scalar, leaf: Array) -> Array:
    """A gradient times a number, in the gradient's own precision."""
    return jnp.asarray(weight, leaf.dtype) * leaf


def _unit(norm: Scalar) -> Scalar:
    """The divisor that makes a gradient of this norm a unit vector; a norm of at most 1e-12 is left alone."""
    return jnp.where(norm > 1e-12, norm, 1.0)


def trust_in_score(
    model: Model, params: Any, decision: Decision, age: Array, known: Bool[Array, ""], clip: Scalar, limit: Scalar
) -> Scalar:
    """How far a score term counts whose decision is ``age`` learning steps old.

    1 for the present parameters, the density ratio ``p_θ(ĉ|x) / p_then(ĉ|x)`` clipped to ``[0, clip]`` for older ones, 0 if the
    total is not known, the age exceeds ``limit`` or there is no density to compare.
    """
    now = model.log_density(params, decision.context, decision.cost_sample)
    late = jnp.zeros(())
    if now is not None:
        ratio = jnp.exp(jnp.minimum(now - decision.log_density, jnp.log(clip)))
        late = jnp.where((age <= limit) & ~jnp.isnan(ratio), jnp.minimum(ratio, clip), 0.0)
    return jnp.where(known, jnp.where(age == 0, 1.0, late), 0.0)
