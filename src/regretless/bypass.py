"""Small networks with a linear bypass, in single precision: what learners on replay predict with.

``f(x) = A x + b + V silu(W₂ silu(W₁ x + b₁) + b₂)``. All weights are one vector, so that an optimiser step is a handful of
operations.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from regretless import draws, nets
from regretless.types import Key

Weights = Float[Array, " n"]


class Bypassed(eqx.Module):
    """The shape of a network for contexts of ``context_shape`` and ``dim`` costs; feature rows share a net with one output."""

    dim: int = eqx.field(static=True)
    context_shape: tuple[int, ...] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """Of ``W₁, b₁, W₂, b₂, V, A, b``."""
        inputs, width = self.context_shape[-1], self.width
        outputs = self.dim if len(self.context_shape) == 1 else 1
        return (inputs, width), (width,), (width, width), (width,), (width, outputs), (inputs, outputs), (outputs,)

    def init(self, key: Key) -> Weights:
        """Hidden weights and biases uniform on ``±1/√fan_in``, everything else zero: a fresh network says nothing, and what is
        linear is learnt first.
        """
        fan_in = (self.context_shape[-1], self.context_shape[-1], self.width, self.width)
        bounds = self._constant([*(size**-0.5 for size in fan_in), 0.0, 0.0, 0.0])
        return (draws.uniform(key, bounds.shape, -1.0, 1.0) * bounds).astype(jnp.float32)

    def init_output(self, key: Key) -> Weights:
        """All weights but the bypass uniform on ``±1/√fan_in``, the bypass and all biases zero."""
        inputs, outputs = self.shapes[5]
        w1, w2, v = (layer.weight for layer in nets.init_uniform(key, (inputs, self.width, self.width, outputs)))
        parts = (w1, jnp.zeros(self.width), w2, jnp.zeros(self.width), v, jnp.zeros((inputs + 1) * outputs))
        return jnp.concatenate([part.ravel() for part in parts]).astype(jnp.float32)

    def apply(self, weights: Weights, contexts: Float[Array, "*k p"]) -> Float[Array, "*k d"]:
        """The costs of one context or of several."""
        w1, b1, w2, b2, v, a, b = self._parts(weights)
        x = jnp.asarray(contexts, jnp.float32)
        h = jax.nn.silu(nets.product(x, w1) + b1)
        h = jax.nn.silu(nets.product(h, w2) + b2)
        out = nets.product(h, v) + nets.product(x, a) + b
        return out if len(self.context_shape) == 1 else out[..., 0]

    def adam_step(
        self, weights: Weights, adam: nets.AdamState, gradient: Weights, rate: Array, decay: Array, speed: Array
    ) -> tuple[Weights, nets.AdamState]:
        """A step of Adam with decoupled decay of all but biases; the bypass takes ``speed`` times the step."""
        rate, decay, speed = (jnp.asarray(each, jnp.float32) for each in (rate, decay, speed))
        stepped, adam = nets.adam_step(weights, adam, gradient, rate)
        linear, decayed = self._constant([0, 0, 0, 0, 0, 1, 1]), self._constant([1, 0, 1, 0, 1, 1, 0])
        factor = 1.0 + (speed - 1.0) * linear
        return weights + factor * (stepped - weights) - rate * decay * decayed * weights, adam

    def _parts(self, weights: Weights) -> list[Array]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return [part.reshape(shape) for part, shape in zip(jnp.split(weights, ends[:-1]), self.shapes, strict=True)]

    def _constant(self, values: list[float]) -> np.ndarray:
        """One value for all weights of each part."""
        return np.repeat(np.asarray(values, np.float32), [math.prod(shape) for shape in self.shapes])
