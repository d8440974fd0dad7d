"""Learning rates and the mixing weight α: the schedules of the published runs, and the paper's simpler ones."""

from typing import Literal, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field, model_validator

from regretless import settings
from regretless.parts import Part, fields, number

Scalar = Float[Array, ""]
OFFSET = 100.0


class RateSettings(settings.Settings):
    """How a learning rate falls."""

    rate_offset: float = Field(OFFSET, ge=0, description="s of the learning rate η_0 (r + s) / (t + s)")
    rate_start: float = Field(
        1.0,
        ge=0,
        le=1,
        description="r, the round whose rate is η_0: 1, or 0 for the η_0 / (1 + t/s) that the paper prints",
    )

    @model_validator(mode="after")
    def _moves(self) -> Self:
        if self.rate_offset + self.rate_start == 0:
            raise ValueError("expected rate_offset or rate_start above 0, got 0 for both: nothing would be learnt")
        return self


def shifted_inverse(
    initial: Scalar, t: Int[Array, ""], offset: Scalar | float = OFFSET, start: Scalar | float = 1.0
) -> Scalar:
    """``η_t = η_0 (r + s) / (t + s)`` for ``t = 1, 2, …`` with ``offset`` s: η_0 at first, about half of it after s steps.

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


class Mixing(Part):
    """α_t between ``max`` and ``min`` (the paper's Appendix on the adaptive mixing weight).

    ``r = EMA(residual²) / max(EMA(y²), 1e-8)`` says how wrong the nuisance still is. The gate says when that begins to count:
    ``warmup`` after 100 rounds, ``exponential`` gradually with time scale ``time_scale`` (τ). Once it counts, the target is
    ``min + (max − min) · clip(r / ref, 0, 1)`` (``reliability``, the published runs) or ``min`` (``minimum``, the paper's
    text); α follows its target with rate 0.05. A constant α has ``max = min``.
    """

    class Settings(settings.Settings):
        """The range of α and how it moves."""

        max: float = Field(0.3, ge=0, le=1, description="largest weight of the score term")
        min: float = Field(0.02, ge=0, le=1, description="smallest weight of the score term")
        gate: Literal["warmup", "exponential"] = Field("warmup", description="when α may begin to fall")
        warmup: int = Field(100, ge=0, description="rounds before α may fall, with gate warmup")
        time_scale: float = Field(100.0, gt=0, description="τ, in rounds, with gate exponential")
        target: Literal["reliability", "minimum"] = Field(
            "reliability", description="where α goes: with the nuisance's error, or simply to alpha.min"
        )
        decay: float = Field(0.98, ge=0, lt=1, description="of the running squares of residual and total")
        rate: float = Field(0.05, gt=0, le=1, description="η_α, how fast α follows its target")

        @model_validator(mode="after")
        def _ordered(self) -> Self:
            if self.min > self.max:
                raise ValueError(f"expected alpha.min ≤ alpha.max, got {self.min} and {self.max}")
            return self

    max: Scalar
    min: Scalar
    time_scale: Scalar
    decay: Scalar
    rate: Scalar
    warmup: Scalar
    gradual: Bool[Array, ""]  # gate ``exponential``; no static field, so that a constant α shares either gate's program
    target: Literal["reliability", "minimum"] = eqx.field(static=True)

    @classmethod
    def build(cls, settings: "Mixing.Settings | None" = None) -> "Mixing":
        """The schedule with these settings."""
        own = fields(settings or cls.Settings())
        numbers = {"warmup": number(own.pop("warmup")), "gradual": np.asarray(own.pop("gate") == "exponential")}
        return cls(**own, **numbers)

    def init(self) -> MixingState:
        zero = jnp.zeros(())
        return MixingState(jnp.asarray(self.max, zero.dtype), zero, zero, zero, jnp.zeros((), jnp.int32))

    def update(self, state: MixingState, residual: Scalar, total: Scalar) -> MixingState:
        """The state after a round with this ``residual = y − f·w`` and total ``y``."""
        t = state.count + 1
        first = t == 1
        residual_square = self._average(state.residual_square, jnp.square(residual), first)
        total_square = self._average(state.total_square, jnp.square(total), first)
        r = residual_square / jnp.maximum(total_square, 1e-8)
        closed = jnp.where(self.gradual, jnp.exp(-(t - 1) / self.time_scale), t <= self.warmup)
        above = jnp.maximum(r - state.reference, 0.0)
        reference = state.reference + jnp.where(closed > 0, closed * above, 0.0)  # an infinite r may come later
        span = self.max - self.min
        goal = self.min
        if self.target == "reliability":
            goal = self.min + span * jnp.clip(r / jnp.maximum(reference, 1e-30), 0.0, 1.0)
        target = closed * self.max + (1.0 - closed) * goal
        alpha = jnp.clip((1.0 - self.rate) * state.alpha + self.rate * target, self.min, self.max)
        return MixingState(alpha, residual_square, total_square, reference, t)

    def _average(self, old: Scalar, new: Scalar, first: Bool[Array, ""]) -> Scalar:
        return jnp.where(first, new, self.decay * old + (1.0 - self.decay) * new)
