"""Surrogates that average over random perturbations of the prediction; all draws of a call are solved in one batch."""

import abc
import functools
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from regretless import draws
from regretless.surrogates.base import TINY, FieldSpec, Memory, Rows, SolvedCall, Surrogate
from regretless.types import Cost, Key

GAMMA_TERMS, KAPPA = 10, 5
REACH, KNOTS_PER_UNIT = 6.0, 128
"""The table of quantiles: standard deviations to each side, and entries per standard deviation."""


def sum_of_gamma(key: Key, shape: tuple[int, ...], kappa: int = KAPPA) -> Float[Array, "..."]:
    """Draw ``η = (Σ_{i=1..10} Gamma(shape 1/κ, scale κ/i) − ln 10) / κ`` with ``kappa`` κ = 5: the noise of I-MLE.

    Drawn as ``Q(Φ(z))`` from a normal ``z``, with ``Q`` the quantile function of η: one draw instead of ten rejection
    loops.
    """
    table = jnp.asarray(_quantiles(kappa), jnp.result_type(float))
    place = jnp.clip((draws.normal(key, shape) + REACH) * KNOTS_PER_UNIT, 0.0, len(table) - 1.001)
    left = place.astype(jnp.int32)
    return table[left] + (place - left) * (table[left + 1] - table[left])


@functools.cache
def _quantiles(kappa: int) -> np.ndarray:
    """Return ``Q(Φ(z))`` on a grid of ``z``, from the characteristic function of η, ``Π (1 − i t/j)^(−1/κ)``."""
    from scipy.special import ndtr

    n, width = 2**18, 60.0  # the density of η + ln(10)/κ on [0, 60), where 1 − 1e-25 of it lies
    t = 2.0 * np.pi * np.fft.fftfreq(n, width / n)
    characteristic = np.prod([(1.0 - 1j * t / j) ** (-1.0 / kappa) for j in range(1, GAMMA_TERMS + 1)], axis=0)
    density = np.maximum(np.fft.fft(characteristic).real / width, 0.0)
    mass = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]))]) * width / n
    x = np.arange(n) * width / n
    z = np.linspace(-REACH, REACH, int(2 * REACH * KNOTS_PER_UNIT) + 1)
    # Each tail is looked up by its own small probability; both meet in the middle.
    lower, upper = np.interp(ndtr(z), mass / mass[-1], x), np.interp(ndtr(-z), (1.0 - mass / mass[-1])[::-1], x[::-1])
    return np.where(z < 0, lower, upper) - np.log(GAMMA_TERMS) / kappa


class PerturbedSurrogate(Surrogate):
    """Base class of surrogates at ``ĉ + σ ξ`` with ``ξ ~ N(0, I)``."""

    spread: Float[Array, ""]
    draws: int = eqx.field(static=True)

    def draw(self, key: Key) -> Float[Array, "n d"]:
        return draws.normal(key, (self.draws, self.oracle.dim))


class PerturbedSpec(FieldSpec):
    """Base class of the perturbed losses: the noise and the number of draws.

    Parameters
    ----------
    spread : float, default 1.0
        σ, size of the noise.
    draws : int, default 10
        M, draws of the noise in each call.
    """

    spread: float = Field(default=1.0, gt=0)
    draws: int = Field(default=10, ge=1)


class ImplicitSurrogate(PerturbedSurrogate):
    """Mean over η of ``(w*(ĉ + λ c + σ η) − w*(ĉ + σ η)) / λ``; subclasses define λ."""

    noise: Literal["gamma", "normal"] = eqx.field(static=True)
    kappa: int = eqx.field(static=True)

    @abc.abstractmethod
    def step_size(self, memory: Memory, prediction: Cost, target: Cost) -> Float[Array, ""]:
        """Return λ of this call."""

    def draw(self, key: Key) -> Float[Array, "n d"]:
        noise = functools.partial(sum_of_gamma, kappa=self.kappa) if self.noise == "gamma" else draws.normal
        return noise(key, (self.draws, self.oracle.dim))

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        plain = prediction + self.spread * noise
        return jnp.concatenate([plain + self.step_size(memory, prediction, target) * target, plain])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        perturbed, plain = jnp.split(solutions, 2)
        return jnp.mean(perturbed - plain, axis=0) / (self.step_size(memory, prediction, target) + TINY)


class ImplicitSpec(PerturbedSpec):
    """Base class of implicit maximum likelihood: the noise.

    Parameters
    ----------
    noise : {"gamma", "normal"}, default "gamma"
        Sum-of-Gamma noise, or ``N(0, I)`` as the paper writes.
    kappa : int, default 5
        κ of the sum-of-Gamma noise.
    """

    noise: Literal["gamma", "normal"] = "gamma"
    kappa: int = Field(default=KAPPA, ge=1)


class IMLESurrogate(ImplicitSurrogate):
    """Mean over η of ``(w*(ĉ + λ c + σ η) − w*(ĉ + σ η)) / λ`` with a fixed λ."""

    lam: Float[Array, ""]

    def step_size(self, memory: Memory, prediction: Cost, target: Cost) -> Float[Array, ""]:
        return jnp.asarray(self.lam)


class IMLE(ImplicitSpec, of=IMLESurrogate):
    """Implicit maximum likelihood (Niepert et al., 2021).

    Gradient: mean over η of ``(w*(ĉ + λ c + σ η) − w*(ĉ + σ η)) / λ``. The paper's appendix prints it with the
    opposite sign, which ascends.

    Parameters
    ----------
    lam : float, default 10.0
        λ, how far the prediction moves towards the target.
    """

    lam: float = Field(default=10.0, gt=0)


class AIMLEMemory(eqx.Module):
    """The scale ``a`` and the running share of gradient entries that are not zero."""

    scale: Float[Array, ""]
    share: Float[Array, ""]


class AIMLESurrogate(ImplicitSurrogate):
    """I-MLE with ``λ = a ‖ĉ‖/‖c‖``; ``a`` grows while gradients are sparse and shrinks otherwise."""

    step: Float[Array, ""]
    decay: Float[Array, ""]

    def init(self) -> AIMLEMemory:
        return AIMLEMemory(jnp.ones(()), jnp.ones(()))

    def adapt(self, memory: AIMLEMemory, gradient: Cost, call: SolvedCall) -> AIMLEMemory:
        share = self.decay * memory.share + (1.0 - self.decay) * jnp.mean(jnp.abs(gradient) > 1e-7)
        scale = jnp.where(share < 1.0, memory.scale + self.step, jnp.maximum(memory.scale - self.step, 0.0))
        return AIMLEMemory(scale, share)

    def after_all(self, memory: AIMLEMemory, gradients: Rows, calls: SolvedCall) -> AIMLEMemory:
        def adapt_once(memory: AIMLEMemory, gradient: Cost) -> tuple[AIMLEMemory, None]:
            adapted = self.adapt(memory, gradient, calls)
            return jax.tree.map(lambda new, old: new.astype(old.dtype), adapted, memory), None

        return jax.lax.scan(adapt_once, memory, gradients)[0]

    def step_size(self, memory: AIMLEMemory, prediction: Cost, target: Cost) -> Float[Array, ""]:
        return memory.scale * jnp.linalg.norm(prediction) / jnp.maximum(jnp.linalg.norm(target), 1e-30)


class AIMLE(ImplicitSpec, of=AIMLESurrogate):
    """Adaptive I-MLE (Minervini et al., 2023): the gradient of ``IMLE`` with ``λ = a ‖ĉ‖/‖c‖``.

    ``a`` starts at 1. After each call a running average (from 1) takes the share of gradient entries above 1e-7 in
    size; below 1 it makes ``a`` larger by ``step``, else smaller by ``step``, never negative.

    Parameters
    ----------
    step : float, default 0.001
        By how much ``a`` changes after each call.
    decay : float, default 0.9
        Decay of the running share of gradient entries that are not zero.
    """

    step: float = Field(default=1e-3, ge=0)
    decay: float = Field(default=0.9, ge=0, lt=1)


class PFYLSurrogate(PerturbedSurrogate):
    """``w*(c) − mean over ξ of w*(ĉ + σ ξ)``."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.concatenate([target[None], prediction + self.spread * noise])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return solutions[0] - jnp.mean(solutions[1:], axis=0)


class PFYL(PerturbedSpec, of=PFYLSurrogate):
    """Perturbed Fenchel-Young loss (Berthet et al., 2020); gradient ``w*(c) − mean over ξ of w*(ĉ + σ ξ)``.

    Loss: ``ĉ·w*(c) − E min over w in S of (ĉ + σ ξ)·w``, ξ ~ N(0, I). The paper's appendix prints the opposite sign.
    """


class DPOSurrogate(PerturbedSurrogate):
    """``mean over ξ of ξ (c·w*(ĉ + σ ξ)) / σ``."""

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return prediction + self.spread * noise

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        return jnp.mean(noise * (solutions @ target)[:, None], axis=0) / (self.spread + TINY)


class DPO(PerturbedSpec, of=DPOSurrogate):
    """Differentiable perturbed optimiser (Berthet et al., 2020); gradient ``mean over ξ of ξ (c·w*(ĉ + σ ξ)) / σ``.

    An unbiased estimate of the gradient of the smoothed task cost ``E c·w*(ĉ + σ ξ)``, ξ ~ N(0, I).
    """
