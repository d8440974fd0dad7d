"""Learning rates and the mixing weight α: the schedules of the published runs, and the paper's simpler ones."""

from typing import ClassVar, Literal, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field, model_validator

from regretless.spec import Spec, number

Scalar = Float[Array, ""]
OFFSET = 100.0
"""s of the learning rate, in rounds."""


class RateSpec(Spec):
    """Base class of specifications with a learning rate that falls, ``η_t = η_0 (r + s) / (t + s)``.

    Parameters
    ----------
    rate_offset, rate_start : float, default 100.0 and 1.0
        s and r of the learning rate ``η_0 (r + s) / (t + s)``; r is 1 in the published runs, 0 as the paper prints.
    """

    rate_offset: float = Field(default=OFFSET, ge=0)
    rate_start: float = Field(default=1.0, ge=0, le=1)

    @model_validator(mode="after")
    def _require_movement(self) -> Self:
        if self.rate_offset + self.rate_start == 0:
            raise ValueError("expected rate_offset or rate_start above 0, got 0 for both: nothing would be learned")
        return self


def shifted_inverse(
    initial: Scalar, t: Int[Array, ""], offset: Scalar | float = OFFSET, start: Scalar | float = 1.0
) -> Scalar:
    """Return ``η_t = η_0 (r + s) / (t + s)`` for ``t = 1, 2, …`` with ``offset`` s: half of η_0 after s steps.

    ``start`` r is 1 in the published runs; 0 makes it ``η_0 / (1 + t/s)``, as the paper's Appendix L.2 prints.
    """
    return initial * (start + offset) / (t + offset)


class MixingState(eqx.Module):
    """α and the running averages that drive it."""

    alpha: Scalar
    residual_square: Scalar  # EMA of residual²
    total_square: Scalar  # EMA of y²
    reference: Scalar  # the largest r that counts as "no better than at the start"
    count: Int[Array, ""]


class Mixing(eqx.Module):
    """α_t between ``max`` and ``min`` (the paper's Appendix on the adaptive mixing weight).

    ``r = EMA(residual²) / max(EMA(y²), 1e-8)`` measures the error of the nuisance. The gate says when it begins to
    count: ``warmup`` after ``warmup`` rounds, ``exponential`` gradually with time scale ``time_scale`` (τ). From then
    on the target is ``min + (max − min) · clip(r / ref, 0, 1)`` (``reliability``, the published runs) or ``min``
    (``minimum``, the paper's text); α follows its target with ``rate`` (η_α). A constant α has ``max = min``.
    """

    max: Scalar
    min: Scalar
    time_scale: Scalar
    decay: Scalar
    rate: Scalar
    warmup: Scalar
    gradual: Bool[Array, ""] | np.ndarray  # gate ``exponential``; not static: a constant α has one program for both
    target: Literal["reliability", "minimum"] = eqx.field(static=True)

    def init(self) -> MixingState:
        zero = jnp.zeros(())
        return MixingState(jnp.asarray(self.max, zero.dtype), zero, zero, zero, jnp.zeros((), jnp.int32))

    def update(self, state: MixingState, residual: Scalar, total: Scalar) -> MixingState:
        """Return the state after a round with this ``residual = y − f·w`` and total ``y``."""
        t = state.count + 1
        first = t == 1
        residual_square = self._average(state.residual_square, jnp.square(residual), first)
        total_square = self._average(state.total_square, jnp.square(total), first)
        r = residual_square / jnp.maximum(total_square, 1e-8)
        closed = jnp.where(self.gradual, jnp.exp(-(t - 1) / self.time_scale), t <= self.warmup)
        above = jnp.maximum(r - state.reference, 0.0)
        reference = state.reference + jnp.where(closed > 0, closed * above, 0.0)  # without 0 · ∞ for a later infinite r
        span = self.max - self.min
        goal = self.min
        if self.target == "reliability":
            goal = self.min + span * jnp.clip(r / jnp.maximum(reference, 1e-30), 0.0, 1.0)
        target = closed * self.max + (1.0 - closed) * goal
        alpha = jnp.clip((1.0 - self.rate) * state.alpha + self.rate * target, self.min, self.max)
        return MixingState(alpha, residual_square, total_square, reference, t)

    def _average(self, old: Scalar, new: Scalar, first: Bool[Array, ""]) -> Scalar:
        return jnp.where(first, new, self.decay * old + (1.0 - self.decay) * new)


class MixingWeight(Spec):
    """The mixing weight α of the score term: its range and its schedule.

    Parameters
    ----------
    max, min : float, default 0.3 and 0.02
        Largest and smallest weight of the score term, between 0 and 1; equal for a constant α.
    gate : {"warmup", "exponential"}, default "warmup"
        When α may begin to fall: after ``warmup`` rounds, or gradually with ``time_scale``.
    warmup : int, default 100
        Rounds before α may fall, with gate ``"warmup"``.
    time_scale : float, default 100.0
        τ in rounds, with gate ``"exponential"``.
    target : {"reliability", "minimum"}, default "reliability"
        What α follows: the nuisance's relative error (the published runs), or ``min`` (the paper's text).
    decay : float, default 0.98
        Decay of the running squares of residual and total.
    rate : float, default 0.05
        η_α, how fast α follows its target.
    """

    namespace: ClassVar[str] = "rg.policies."

    max: float = Field(default=0.3, ge=0, le=1)
    min: float = Field(default=0.02, ge=0, le=1)
    gate: Literal["warmup", "exponential"] = "warmup"
    warmup: int = Field(default=100, ge=0)
    time_scale: float = Field(default=100.0, gt=0)
    target: Literal["reliability", "minimum"] = "reliability"
    decay: float = Field(default=0.98, ge=0, lt=1)
    rate: float = Field(default=0.05, gt=0, le=1)

    @model_validator(mode="after")
    def _require_order(self) -> Self:
        if self.min > self.max:
            raise ValueError(f"expected alpha.min ≤ alpha.max, got {self.min} and {self.max}")
        return self

    def build(self) -> Mixing:
        """Return the schedule."""
        values = self.hyperparameters()
        warmup, gradual = number(values.pop("warmup")), np.asarray(values.pop("gate") == "exponential")
        return Mixing(**values, warmup=warmup, gradual=gradual)
