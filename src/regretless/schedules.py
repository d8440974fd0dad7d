"""Learning rates and the mixing weight α (METHOD: the schedules of the published runs, and the paper's simpler ones)."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

Scalar = Float[Array, ""]


def shifted_inverse(initial: Scalar, t: Int[Array, ""]) -> Scalar:
    """``η_t = η_0 · 101 / (t + 100)`` for ``t = 1, 2, …``: the initial rate at the first step, half of it after a hundred."""
    return initial * 101.0 / (t + 100.0)


class MixingState(eqx.Module):
    """α and the running averages that drive it."""

    alpha: Scalar
    residual_square: Scalar  # EMA of residual²
    total_square: Scalar  # EMA of y²
    reference: Scalar  # the largest r that counts as "no better than at the start"
    count: Int[Array, ""]


class Mixing(eqx.Module):
    """α_t between ``maximum`` and ``minimum`` (the paper's Appendix on the adaptive mixing weight).

    ``r = EMA(residual²) / max(EMA(y²), 1e-8)`` says how wrong the nuisance still is. The gate says when that begins to count:
    ``warmup`` after 100 rounds, ``exponential`` gradually with time scale ``time_scale`` (τ). Once it counts, the target is
    ``minimum + (maximum − minimum) · clip(r / ref, 0, 1)`` (``reliability``, the published runs) or ``minimum`` (``minimum``,
    the paper's text); α follows its target with rate 0.05. A constant α has ``maximum = minimum``.
    """

    maximum: Scalar
    minimum: Scalar
    time_scale: Scalar
    gate: Literal["warmup", "exponential"] = eqx.field(static=True, default="warmup")
    target: Literal["reliability", "minimum"] = eqx.field(static=True, default="reliability")

    warmup: int = eqx.field(static=True, default=100)
    decay: float = eqx.field(static=True, default=0.98)
    smoothing: float = eqx.field(static=True, default=0.05)

    def init(self) -> MixingState:
        zero = jnp.zeros(())
        return MixingState(jnp.asarray(self.maximum, zero.dtype), zero, zero, zero, jnp.zeros((), jnp.int32))

    def update(self, state: MixingState, residual: Scalar, total: Scalar) -> MixingState:
        """The state after a round with this ``residual = y − f·w`` and total ``y``."""
        t = state.count + 1
        first = t == 1
        residual_square = self._average(state.residual_square, jnp.square(residual), first)
        total_square = self._average(state.total_square, jnp.square(total), first)
        r = residual_square / jnp.maximum(total_square, 1e-8)
        if self.gate == "warmup":
            opened = jnp.where(t <= self.warmup, 0.0, 1.0)
            reference = jnp.where(t <= self.warmup, jnp.maximum(state.reference, r), state.reference)
        else:
            closed = jnp.exp(-(t - 1) / self.time_scale)
            opened = 1.0 - closed
            reference = jnp.where(first, r, state.reference + closed * jnp.maximum(r - state.reference, 0.0))
        span = self.maximum - self.minimum
        goal = self.minimum
        if self.target == "reliability":
            goal = self.minimum + span * jnp.clip(r / jnp.maximum(reference, 1e-30), 0.0, 1.0)
        target = (1.0 - opened) * self.maximum + opened * goal
        alpha = jnp.clip((1.0 - self.smoothing) * state.alpha + self.smoothing * target, self.minimum, self.maximum)
        return MixingState(alpha, residual_square, total_square, reference, t)

    def _average(self, old: Scalar, new: Scalar, first: Bool[Array, ""]) -> Scalar:
        return jnp.where(first, new, self.decay * old + (1.0 - self.decay) * new)
