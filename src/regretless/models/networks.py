"""Small dense networks with their gradients written out, a network with a linear bypass, and the optimiser steps.

A layer is the pair ``(weight [in, out], bias [out])``; a network is a list of layers with a ReLU between them. For
one sample the gradient of a weight is the outer product ``h δᵀ`` of the layer's input and its output's cotangent.
Keeping those two factors instead of the product makes the gradient's norm ``‖h‖‖δ‖`` and lets Adam run in one pass
over its memory; with ``[n, in]`` rows of input the same factors give the sum over the rows.
"""

import itertools
import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from regretless import draws
from regretless.types import Key

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8
"""Decays of Adam's first and second moments, and what it adds to the root of the second."""


class Dense(NamedTuple):
    """One affine layer, ``h ↦ h W + b``."""

    weight: Float[Array, "in out"]
    bias: Float[Array, " out"]


class Factors(NamedTuple):
    """A layer's gradient: ``h`` its input and ``δ`` the cotangent of its output, one row of each per sample."""

    input: Float[Array, "*n in"]
    cotangent: Float[Array, "*n out"]


Layers = list[Dense]
Norm = Float[Array, ""]
Weights = Float[Array, " n"]
"""All weights of a ``BypassNetwork``."""


def init_uniform(key: Key, sizes: tuple[int, ...]) -> Layers:
    """Draw weights and biases uniformly on ``±1/√fan_in``."""
    return [
        uniform_layer(jax.random.fold_in(key, i), fan_in, fan_out, fan_in)
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes))
    ]


def uniform_layer(key: Key, rows: int, columns: int, fan_in: int) -> Dense:
    """Draw one layer uniformly on ``±1/√fan_in``, whether or not all of its ``fan_in`` inputs have a row."""
    bound = fan_in**-0.5
    weight_key, bias_key = jax.random.split(key)
    weight = draws.uniform(weight_key, (rows, columns), -bound, bound)
    return Dense(weight, draws.uniform(bias_key, (columns,), -bound, bound))


def init_he(key: Key, sizes: tuple[int, ...]) -> Layers:
    """Draw weights from N(0, 2/fan_in); biases are zero."""
    layers = []
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        weight = draws.normal(jax.random.fold_in(key, i), (fan_in, fan_out)) * (2.0 / fan_in) ** 0.5
        layers.append(Dense(weight, jnp.zeros(fan_out)))
    return layers


def forward(layers: Layers, x: Float[Array, "*n in"]) -> tuple[Float[Array, "*n out"], list[Float[Array, "*n hidden"]]]:
    """Return the network's output and the input of each layer, which ``backward`` needs."""
    inputs = []
    for layer in layers[:-1]:
        inputs.append(x)
        x = jax.nn.relu(product(x, layer.weight) + layer.bias)
    inputs.append(x)
    return product(x, layers[-1].weight) + layers[-1].bias, inputs


def apply(layers: Layers, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
    """Return the network's output."""
    return forward(layers, x)[0]


def backward(layers: Layers, inputs: list[Array], cotangent: Float[Array, "*n out"]) -> list[Factors]:
    """Return the gradient of every layer for the output's ``cotangent``, as factors."""
    factors = []
    for layer, h in zip(reversed(layers), reversed(inputs), strict=True):
        factors.append(Factors(h, cotangent))
        cotangent = product(cotangent, layer.weight.T) * (h > 0)
    return factors[::-1]


def gradient(factors: Factors) -> Dense:
    """Return the gradient of the factors: ``Σ over rows of h δᵀ`` and ``Σ δ``."""
    h, delta = factors
    if h.ndim == 1:
        return Dense(h[:, None] * delta[None, :], delta)
    return Dense(product(h.T, delta), jnp.sum(delta, axis=0))


def product(a: Array, b: Array) -> Array:
    """Return ``a @ b`` in full precision, also on accelerators that round by default."""
    return jnp.matmul(a, b, precision="highest")


def tree_norm(tree: Any) -> Norm:
    """Return the L2 norm of all leaves together."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def clip_factor(norm: Norm, limit: Norm | float) -> Norm:
    """Return the factor that brings a gradient of this norm down to ``limit``; 1 if it is within."""
    return jnp.minimum(1.0, jnp.asarray(limit, norm.dtype) / jnp.maximum(norm, 1e-30))


def sgd_step(params: Any, grads: Any, rate: Float[Array, ""], clip: Norm | float) -> Any:
    """Return ``θ − rate · g`` with ``g`` clipped to norm ``clip``."""
    step = rate * clip_factor(tree_norm(grads), clip)
    return jax.tree.map(lambda p, g: p - step * g, params, grads)


def clipped_step(
    params: Any, moments: "AdamState | None", grads: Any, rate: Float[Array, ""], clip: Norm | float
) -> tuple[Any, "AdamState | None"]:
    """Take one step with ``g`` clipped to norm ``clip``: Adam if there are moments, else SGD."""
    if moments is None:
        return sgd_step(params, grads, rate, clip), None
    scale = clip_factor(tree_norm(grads), clip)
    return adam_step(params, moments, grads, rate, scale)


class AdamState(eqx.Module):
    """Adam's moment estimates and the number of steps."""

    first: Any
    second: Any
    count: Int[Array, ""]


def adam_init(params: Any) -> AdamState:
    """Return the moments before the first step."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return AdamState(zeros, zeros, jnp.zeros((), jnp.int32))


def adam_step(
    params: Any, state: AdamState, grads: Any, rate: Norm, scale: Norm | float = 1.0
) -> tuple[Any, AdamState]:
    """Take a step of Adam (Kingma & Ba, 2015) on ``scale · grads``: ``θ − rate · m̂ / (√v̂ + ε)``.

    The bias corrections ``m̂ = m/(1−β₁ᵗ)``, ``v̂ = v/(1−β₂ᵗ)`` are folded into the step size and ``ε``, which
    leaves one square root and one division per weight. Both are computed in the widest precision of the program:
    in single precision ``1−β₂ᵗ`` is off by a relative 1e-5 in early rounds.
    """
    # Not optax: the recorded runs are reproduced bit by bit, and optax orders these operations differently.
    count = state.count + 1
    first_correction, second_correction = (-jnp.expm1(count * math.log(beta)) for beta in (BETA1, BETA2))
    root = jnp.sqrt(second_correction)
    kind = jax.tree.leaves(grads)[0].dtype
    step = (rate * root / first_correction).astype(kind)
    root = root.astype(kind)
    grads = jax.tree.map(lambda g: scale * g, grads)
    first = jax.tree.map(lambda m, g: BETA1 * m + (1.0 - BETA1) * g, state.first, grads)
    second = jax.tree.map(lambda v, g: BETA2 * v + (1.0 - BETA2) * jnp.square(g), state.second, grads)
    params = jax.tree.map(lambda p, m, v: p - step * m / (jnp.sqrt(v) + EPSILON * root), params, first, second)
    return params, AdamState(first, second, count)


class BypassNetwork(eqx.Module):
    """A network with a linear bypass: ``f(x) = A x + b + V silu(W₂ silu(W₁ x + b₁) + b₂)``, in single precision.

    It predicts ``dim`` costs from contexts of ``context_shape``; feature rows share a net with one output. All
    weights are one vector, so that an optimiser step is a handful of operations.
    """

    dim: int = eqx.field(static=True)
    context_shape: tuple[int, ...] = eqx.field(static=True)
    width: int = eqx.field(static=True)

    @property
    def shapes(self) -> tuple[tuple[int, ...], ...]:
        """The shapes of ``W₁, b₁, W₂, b₂, V, A, b``."""
        inputs, width = self.context_shape[-1], self.width
        outputs = self.dim if len(self.context_shape) == 1 else 1
        return (inputs, width), (width,), (width, width), (width,), (width, outputs), (inputs, outputs), (outputs,)

    def init_output(self, key: Key) -> Weights:
        """Draw all weights but the bypass uniformly on ``±1/√fan_in``; the bypass and all biases are zero."""
        inputs, outputs = self.shapes[5]
        w1, w2, v = (layer.weight for layer in init_uniform(key, (inputs, self.width, self.width, outputs)))
        parts = (w1, jnp.zeros(self.width), w2, jnp.zeros(self.width), v, jnp.zeros((inputs + 1) * outputs))
        return jnp.concatenate([part.ravel() for part in parts]).astype(jnp.float32)

    def apply(self, weights: Weights, contexts: Float[Array, "*k p"]) -> Float[Array, "*k d"]:
        """Return the costs of one context or of several."""
        w1, b1, w2, b2, v, a, b = self._parts(weights)
        x = jnp.asarray(contexts, jnp.float32)
        h = jax.nn.silu(product(x, w1) + b1)
        h = jax.nn.silu(product(h, w2) + b2)
        out = product(h, v) + product(x, a) + b
        return out if len(self.context_shape) == 1 else out[..., 0]

    def _parts(self, weights: Weights) -> list[Array]:
        ends = np.cumsum([math.prod(shape) for shape in self.shapes])
        return [part.reshape(shape) for part, shape in zip(jnp.split(weights, ends[:-1]), self.shapes, strict=True)]
