"""Surrogates made of at most two solves: squared error, SPO+, differentiated black boxes, perturbation gradients."""

from typing import Any, Literal

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

from regretless.surrogates.base import TINY, FieldSpec, Memory, Rows, Surrogate
from regretless.types import Cost


class MSESurrogate(Surrogate):
    """``2 (ĉ − c)``."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.zeros((0, self.oracle.dim))

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return 2.0 * (prediction - target)


class MSE(FieldSpec, of=MSESurrogate):
    """Squared error ``‖ĉ − c‖²``, the prediction-focused yardstick; gradient ``2 (ĉ − c)``."""


class SPOPlusSurrogate(Surrogate):
    """``2 (w*(c) − w*(2ĉ − c))``."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        best, pessimistic = solutions
        return 2.0 * (best - pessimistic)


class SPOPlus(FieldSpec, of=SPOPlusSurrogate):
    """SPO+ loss (Elmachtoub & Grigas, 2022); gradient ``2 (w*(c) − w*(2ĉ − c))``.

    Loss: ``max over w in S of (c − 2ĉ)·w + 2 ĉ·w*(c) − c·w*(c)``, an upper bound of the regret ``c·w*(ĉ) − c·w*(c)``.
    """


class MSESPOPlusSurrogate(SPOPlusSurrogate):
    """``β · 2 (ĉ − c) + (1 − β) · spo_plus``, with ``factor`` in place of 2."""

    share: Float[Array, ""]
    factor: Float[Array, ""]

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        spo_plus = super().gradient(memory, prediction, target, noise, solutions)
        return self.share * self.factor * (prediction - target) + (1.0 - self.share) * spo_plus


class MSESPOPlus(FieldSpec, of=MSESPOPlusSurrogate):
    """Squared error mixed with SPO+; gradient ``β · 2 (ĉ − c) + (1 − β) · spo_plus``.

    Parameters
    ----------
    share : float, default 0.5
        β, weight of the squared error, between 0 and 1.
    factor : float, default 2.0
        Factor of ``ĉ − c``: 2 is the gradient of ``‖ĉ − c‖²``, 1 is what the paper prints.
    """

    share: float = Field(default=0.5, ge=0, le=1)
    factor: float = Field(default=2.0, gt=0)


class DBBSurrogate(Surrogate):
    """``(w*(ĉ + λ c) − w*(ĉ)) / λ``."""

    lam: Float[Array, ""]

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([prediction + self.lam * target, prediction])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        perturbed, plain = solutions
        return (perturbed - plain) / (self.lam + TINY)


class DBB(FieldSpec, of=DBBSurrogate):
    """Differentiation of black boxes (Vlastelica et al., 2020); gradient ``(w*(ĉ + λ c) − w*(ĉ)) / λ``.

    The paper's appendix prints it with the opposite sign, which ascends.

    Parameters
    ----------
    lam : float, default 10.0
        λ, how far the prediction moves towards the target.
    """

    lam: float = Field(default=10.0, gt=0)


class NIDSurrogate(MSESurrogate):
    """``−c``."""

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return -target


class NID(FieldSpec, of=NIDSurrogate):
    """The negative identity in place of the oracle's derivative (Sahoo et al., 2023); gradient ``−c``."""


class PGSurrogate(Surrogate):
    """``(w*(ĉ) − w*(ĉ − σ c)) / σ``, or the central difference."""

    step: Float[Array, ""]
    difference: Literal["backward", "central"] = eqx.field(static=True)

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        ahead = prediction + self.step * target if self.difference == "central" else prediction
        return jnp.stack([ahead, prediction - self.step * target])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        ahead, behind = solutions
        width = 2.0 if self.difference == "central" else 1.0
        return (ahead - behind) / (width * self.step + TINY)


class PG(FieldSpec, of=PGSurrogate):
    """Perturbation gradient (Gupta & Huang, 2024); gradient ``(w*(ĉ) − w*(ĉ − σ c)) / σ``.

    Loss: ``(V(ĉ) − V(ĉ − σ c)) / σ`` with ``V(c) = min over w in S of c·w``, the backward difference of ``V`` along
    ``c``; the central one is ``(V(ĉ + σ c) − V(ĉ − σ c)) / 2σ``. The paper's appendix prints it with the opposite
    sign.

    Parameters
    ----------
    step : float, default 0.1
        σ, step of the difference along the target.
    difference : {"backward", "central"}, default "backward"
        Kind of the difference.
    """

    step: float = Field(default=0.1, gt=0)
    difference: Literal["backward", "central"] = "backward"
