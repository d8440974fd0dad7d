"""Surrogates that call the oracle at a few related cost vectors: SPO+ and differentiable black boxes."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.surrogates.base import Memory, Surrogate
from regretless.types import Cost


class SPOPlus(Surrogate):
    """``2 (w*(c) − w*(2ĉ − c))``: the subgradient of the SPO+ loss (Elmachtoub & Grigas, 2022).

    Loss: ``max over w in S of (c − 2ĉ)·w + 2 ĉ·w*(c) − c·w*(c)``.
    """

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(
        self, memory: Memory, prediction: Cost, target: Cost, noise: None, solutions: Float[Array, "2 d"]
    ) -> Cost:
        best, pessimistic = solutions
        return 2.0 * (best - pessimistic)


class DBB(Surrogate):
    """``(w*(ĉ + λ c) − w*(ĉ)) / λ``: differentiation of black boxes (Vlastelica et al., 2020), default λ = 10.

    The paper's appendix prints it with the opposite sign, which ascends.
    """

    strength: float = eqx.field(static=True, default=10.0)  # λ

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: None) -> Float[Array, "2 d"]:
        return jnp.stack([prediction + self.strength * target, prediction])

    def gradient(
        self, memory: Memory, prediction: Cost, target: Cost, noise: None, solutions: Float[Array, "2 d"]
    ) -> Cost:
        perturbed, plain = solutions
        return (perturbed - plain) / (self.strength + 1e-7)
