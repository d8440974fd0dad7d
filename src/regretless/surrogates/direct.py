"""Surrogates made of at most two solves: squared error, SPO+, differentiated black boxes, perturbation gradients."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

from regretless import settings
from regretless.surrogates.base import TINY, Memory, Surrogate
from regretless.types import Cost, Instance


class MSE(Surrogate):
    """``2 (ĉ − c)``: squared error ``‖ĉ − c‖²``, the prediction-focused yardstick."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "0 d"]:
        return jnp.zeros((0, self.oracle.dim))

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "0 d"],
        instance: Instance,
    ) -> Cost:
        return 2.0 * (prediction - target)


class SPOPlus(Surrogate):
    """``2 (w*(c) − w*(2ĉ − c))``: subgradient of the SPO+ loss (Elmachtoub & Grigas, 2022).

    Loss: ``max over w in S of (c − 2ĉ)·w + 2 ĉ·w*(c) − c·w*(c)``, an upper bound of the regret ``c·w*(ĉ) − c·w*(c)``.
    """

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "2 d"],
        instance: Instance,
    ) -> Cost:
        best, pessimistic = solutions
        return 2.0 * (best - pessimistic)


class MSESPOPlus(Surrogate):
    """``β · 2 (ĉ − c) + (1 − β) · spo_plus``: squared error mixed with SPO+, default β = 0.5; ``factor`` 1 is the paper's."""

    class Settings(settings.Settings):
        """β, and the slope of the squared error."""

        share: float = Field(0.5, ge=0, le=1, description="β, weight of the squared error beside SPO+")
        factor: float = Field(2.0, gt=0, description="of ĉ − c: 2 for ‖ĉ − c‖², 1 as the paper prints")

    share: Float[Array, ""]
    factor: Float[Array, ""]

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "2 d"],
        instance: Instance,
    ) -> Cost:
        best, pessimistic = solutions
        spo_plus = 2.0 * (best - pessimistic)
        return self.share * self.factor * (prediction - target) + (1.0 - self.share) * spo_plus


class DBB(Surrogate):
    """``(w*(ĉ + λ c) − w*(ĉ)) / λ``: differentiation of black boxes (Vlastelica et al., 2020), default λ = 10.

    The paper's appendix prints it with the opposite sign, which ascends.
    """

    class Settings(settings.Settings):
        """λ."""

        strength: float = Field(10.0, gt=0, description="λ, how far the prediction moves towards the target")

    strength: Float[Array, ""]

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([prediction + self.strength * target, prediction])

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "2 d"],
        instance: Instance,
    ) -> Cost:
        perturbed, plain = solutions
        return (perturbed - plain) / (self.strength + TINY)


class NID(Surrogate):
    """``−c``: the negative identity in place of the oracle's derivative (Sahoo et al., 2023)."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "0 d"]:
        return jnp.zeros((0, self.oracle.dim))

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "0 d"],
        instance: Instance,
    ) -> Cost:
        return -target


class PG(Surrogate):
    """``(w*(ĉ) − w*(ĉ − σ c)) / σ``: perturbation gradient (Gupta & Huang, 2024), default σ = 0.1.

    Loss: ``(V(ĉ) − V(ĉ − σ c)) / σ`` with ``V(c) = min over w in S of c·w``, the backward difference of ``V`` along ``c``; with
    ``difference="central"`` it is ``(V(ĉ + σ c) − V(ĉ − σ c)) / 2σ``. The paper's appendix prints it with the opposite sign.
    """

    class Settings(settings.Settings):
        """σ and the kind of difference."""

        step: float = Field(0.1, gt=0, description="σ, step of the difference along the target")
        difference: Literal["backward", "central"] = Field("backward", description="kind of the difference")

    step: Float[Array, ""]
    difference: Literal["backward", "central"] = eqx.field(static=True)

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        ahead = prediction + self.step * target if self.difference == "central" else prediction
        return jnp.stack([ahead, prediction - self.step * target])

    def gradient(
        self,
        memory: Memory,
        prediction: Cost,
        target: Cost,
        noise: None,
        solutions: Float[Array, "2 d"],
        instance: Instance,
    ) -> Cost:
        ahead, behind = solutions
        width = 2.0 if self.difference == "central" else 1.0
        return (ahead - behind) / (width * self.step + TINY)
