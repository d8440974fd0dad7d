"""The gradient estimators of the paper's Section 2, baselines of the score term, scenarios of generative models."""

from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

import regretless.models.networks as networks
from regretless.models.base import Model, Params, PointModel
from regretless.surrogates.base import Feasible, Memory, Rows, Surrogate
from regretless.types import Cost, Decision, Key

Scalar = Float[Array, ""]
ScenarioGradient = Literal["own", "averaged", "saa"]
Orientation = Literal["minimise", "published"]


def score_gradient(
    model: PointModel, params: Params, decision: Decision, weight: Scalar, fresh: Bool[Array, ""]
) -> Params:
    """Return ``weight · ∇_θ log p_θ(ĉ|x)``.

    With ``weight = y − b`` the score estimator (equation 1), with ``f_φ(x)·w − b`` the
    plug-in estimator (equation 5).
    """
    score = model.score(params, decision.context, decision.cost_sample, decision.noise, fresh)
    return jax.tree.map(lambda g: weight * g, score)


def hybrid(
    alpha: Scalar, score: Params, plug_in: Params, normalise: bool, trust: Scalar
) -> tuple[Params, dict[str, Scalar]]:
    """Return ``g = α ρ g_score + (1 − α) g_plug-in`` (equation 7) and norms; ``normalise`` scales both to norm 1 first.

    ``trust`` (ρ) is 1 for the score term of a present decision, the clipped density ratio for a late one, 0 for none.
    """
    score_norm, plug_in_norm = networks.tree_norm(score), networks.tree_norm(plug_in)
    score_weight, plug_in_weight = alpha * trust, 1.0 - alpha
    if normalise:
        score_weight, plug_in_weight = score_weight / _unit(score_norm), plug_in_weight / _unit(plug_in_norm)
    mixed = jax.tree.map(lambda s, p: _times(score_weight, s) + _times(plug_in_weight, p), score, plug_in)
    norms = {"score_norm": score_norm, "plug_in_norm": plug_in_norm, "mixed_norm": networks.tree_norm(mixed)}
    return mixed, norms


def _times(weight: Scalar, leaf: Array) -> Array:
    """Return a gradient times a number, in the precision of the gradient."""
    return jnp.asarray(weight, leaf.dtype) * leaf


def _unit(norm: Scalar) -> Scalar:
    """Return the divisor that makes a gradient of this norm a unit vector; a norm of at most 1e-12 is left alone."""
    return jnp.where(norm > 1e-12, norm, 1.0)


def trust_in_score(
    model: Model, params: Any, decision: Decision, age: Array, known: Bool[Array, ""], clip: Scalar, limit: Scalar
) -> Scalar:
    """Return the weight of a score term whose decision is ``age`` learning steps old.

    1 for the present parameters, the density ratio ``p_θ(ĉ|x) / p_then(ĉ|x)`` clipped to ``[0, clip]`` for older
    ones, 0 if the total is not known, the age exceeds ``limit`` or the model has no density.
    """
    now = model.log_density(params, decision.context, decision.cost_sample)
    late = jnp.zeros(())
    if now is not None:
        ratio = jnp.exp(jnp.minimum(now - decision.log_density, jnp.log(clip)))
        late = jnp.where((age <= limit) & ~jnp.isnan(ratio), jnp.minimum(ratio, clip), 0.0)
    return jnp.where(known, jnp.where(age == 0, 1.0, late), 0.0)


# Baselines b of the score term (y − b) ∇ log p: they reduce its variance and do not change its mean
# (the paper's Appendix on variance-reduction baselines).


def moving_average(average: Float[Array, ""], total: Float[Array, ""], momentum: Float[Array, ""]) -> Float[Array, ""]:
    """Return ``ψ b + (1 − ψ) y``, the average after a round with total ``y``; ``momentum`` is ψ, it starts at 0."""
    return momentum * average + (1.0 - momentum) * total


def nuisance_induced(prediction: Cost, best: Float[Array, " d"]) -> Float[Array, ""]:
    """Return ``b = min over w in S of f_φ(x)·w``, the best that the nuisance predicts; ``best`` is ``w*(f_φ(x))``."""
    return jnp.sum(prediction * best)


# Scenarios: the decision-focused gradient of a generative model (the paper's Appendix on generative parameterisations).


class ScenarioTerm(NamedTuple):
    """The surrogate at a ``number`` (K) of scenarios.

    ``sign`` −1, the orientation ``published``, hands costs to a surrogate for maximisation, as the authors'
    generative runs do. That surrogate's gradient is ``−∇ℓ(−ĉ, −c̃)`` in terms of ours.
    """

    surrogate: Surrogate
    number: int
    variant: ScenarioGradient
    sign: Scalar

    def queries(
        self, memory: Memory, scenarios: Rows, target: Cost, key: Key, instance: Any = None
    ) -> tuple[Rows, Any]:
        """Return the cost vectors that the surrogate needs solved for all scenarios, and its arguments.

        These are one prediction per scenario (``saa``: their average), the target and the noise.
        """
        sign = jnp.asarray(self.sign, scenarios.dtype)
        scenarios, target = sign * scenarios, sign * target.astype(scenarios.dtype)
        if self.variant == "saa":
            noise = jax.tree.map(lambda leaf: leaf[None], self.surrogate.draw(key))
            scenarios = jnp.mean(scenarios, axis=0, keepdims=True)
        else:
            noise = jax.vmap(self.surrogate.draw)(jax.random.split(key, scenarios.shape[0]))
        noise = jax.tree.map(lambda leaf: leaf.astype(scenarios.dtype), noise)
        prepare = lambda c, eta: self.surrogate.prepare(memory, c, target, eta, instance)  # noqa: E731
        noise = jax.vmap(prepare)(scenarios, noise)
        costs = jax.vmap(lambda c, eta: self.surrogate.queries(memory, c, target, eta))(scenarios, noise)
        return costs.reshape(-1, scenarios.shape[1]), (scenarios, target, noise)

    def cotangents(
        self, memory: Memory, arguments: Any, solutions: Rows, feasible: Feasible
    ) -> tuple[Float[Array, "k d"], Memory]:
        """Return the cotangents of the scenarios, and the surrogate's memory afterwards.

        With ``g_k = ∇_ĉ ℓ(ĉ_k, c̃)``:

        ``own``: ``g_k / K``, the gradient of ``(1/K) Σ ⟨ĉ_k(θ), g_k⟩`` (the published runs); ``averaged``: ``ḡ / K``
        for every scenario, with ``ḡ = (1/K) Σ g_k`` (the paper's text); ``saa``: ``∇_ĉ ℓ((1/K) Σ ĉ_k, c̃) / K``, one
        call at the average.
        """
        predictions, target, noise = arguments
        (rows, dim), dtype = predictions.shape, predictions.dtype
        solutions = solutions.astype(dtype).reshape(rows, len(solutions) // rows, dim)
        if self.variant == "saa":
            noise = jax.tree.map(lambda leaf: leaf[0], noise)
            slope, after = self.surrogate.finish(memory, predictions[0], target, noise, solutions[0], feasible)
            cotangents = jnp.broadcast_to(slope, (self.number, *slope.shape))
        else:
            cotangents, after = self.surrogate.finish_all(memory, predictions, target, noise, solutions, feasible)
            if self.variant == "averaged":
                cotangents = jnp.broadcast_to(jnp.mean(cotangents, axis=0), cotangents.shape)
        after = jax.tree.map(lambda new, old: new.astype(old.dtype), after, memory)
        return jnp.asarray(self.sign, dtype) * cotangents.astype(dtype) / self.number, after
