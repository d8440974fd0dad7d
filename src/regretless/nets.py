"""Small dense networks written out by hand, and the two optimiser steps that train them.

A layer is the pair ``(weight [in, out], bias [out])``; a network is a list of layers with a ReLU between them. For one sample
the gradient of a weight is the outer product ``h δᵀ`` of the layer's input and its output's cotangent. Keeping those two
factors instead of the product makes the gradient's norm ``‖h‖‖δ‖`` and lets Adam run in one pass over its memory; with
``[n, in]`` rows of input the same factors give the sum over the rows.
"""

import itertools
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from regretless import draws
from regretless.types import Key


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


def init_uniform(key: Key, sizes: tuple[int, ...]) -> Layers:
    """Weights and biases uniform on ``±1/√fan_in``."""
    return [
        uniform_layer(jax.random.fold_in(key, i), fan_in, fan_out, fan_in)
        for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes))
    ]


def uniform_layer(key: Key, rows: int, columns: int, fan_in: int) -> Dense:
    """One layer with weights and biases uniform on ``±1/√fan_in``, whether or not all of its ``fan_in`` inputs have a row."""
    bound = fan_in**-0.5
    weight_key, bias_key = jax.random.split(key)
    weight = draws.uniform(weight_key, (rows, columns), -bound, bound)
    return Dense(weight, draws.uniform(bias_key, (columns,), -bound, bound))


def init_he(key: Key, sizes: tuple[int, ...]) -> Layers:
    """Weights N(0, 2/fan_in), biases zero."""
    layers = []
    for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes)):
        weight = draws.normal(jax.random.fold_in(key, i), (fan_in, fan_out)) * (2.0 / fan_in) ** 0.5
        layers.append(Dense(weight, jnp.zeros(fan_out)))
    return layers


def forward(layers: Layers, x: Float[Array, "*n in"]) -> tuple[Float[Array, "*n out"], list[Float[Array, "*n hidden"]]]:
    """The network's output and the input of each layer (what ``backward`` needs)."""
    inputs = []
    for layer in layers[:-1]:
        inputs.append(x)
        x = jax.nn.relu(product(x, layer.weight) + layer.bias)
    inputs.append(x)
    return product(x, layers[-1].weight) + layers[-1].bias, inputs


def apply(layers: Layers, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
    """The network's output."""
    return forward(layers, x)[0]


def backward(layers: Layers, inputs: list[Array], cotangent: Float[Array, "*n out"]) -> list[Factors]:
    """Back-propagation of ``cotangent``: the gradient of every layer, as factors."""
    factors = []
    for layer, h in zip(reversed(layers), reversed(inputs), strict=True):
        factors.append(Factors(h, cotangent))
        cotangent = product(cotangent, layer.weight.T) * (h > 0)
    return factors[::-1]


def gradient(factors: Factors) -> Dense:
    """The gradient that the factors stand for: ``Σ over rows of h δᵀ`` and ``Σ δ``."""
    h, delta = factors
    if h.ndim == 1:
        return Dense(h[:, None] * delta[None, :], delta)
    return Dense(product(h.T, delta), jnp.sum(delta, axis=0))


def product(a: Array, b: Array) -> Array:
    """``a @ b`` in the full precision of its numbers, also on accelerators that would rather round them."""
    return jnp.matmul(a, b, precision="highest")


def tree_norm(tree: Any) -> Norm:
    """L2 norm of all leaves together."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def clip_factor(norm: Norm, limit: Norm | float) -> Norm:
    """The factor that brings a gradient of this norm down to ``limit``, 1 if it is within."""
    return jnp.minimum(1.0, jnp.asarray(limit, norm.dtype) / jnp.maximum(norm, 1e-30))


def sgd_step(params: Any, grads: Any, rate: Float[Array, ""], clip: Norm | float) -> Any:
    """``θ − rate · g`` with ``g`` clipped to norm ``clip``."""
    step = rate * clip_factor(tree_norm(grads), clip)
    return jax.tree.map(lambda p, g: p - step * g, params, grads)


def clipped_step(
    params: Any, moments: "AdamState | None", grads: Any, rate: Float[Array, ""], clip: Norm | float
) -> tuple[Any, "AdamState | None"]:
    """One step with ``g`` clipped to norm ``clip``: SGD, or Adam where there are moments to keep."""
    if moments is None:
        return sgd_step(params, grads, rate, clip), None
    scale = clip_factor(tree_norm(grads), clip)
    return adam_step(params, moments, grads, rate.astype(scale.dtype), scale)


class AdamState(eqx.Module):
    """Adam's moment estimates and the number of steps they have seen."""

    first: Any
    second: Any
    count: Int[Array, ""]


def adam_init(params: Any) -> AdamState:
    """No moments yet."""
    zeros = jax.tree.map(jnp.zeros_like, params)
    return AdamState(zeros, zeros, jnp.zeros((), jnp.int32))


def adam_step(
    params: Any,
    state: AdamState,
    grads: Any,
    rate: Float[Array, ""],
    scale: Float[Array, ""] | float = 1.0,
    beta1: float = 0.9,
    beta2: float = 0.999,
    eps: float = 1e-8,
) -> tuple[Any, AdamState]:
    """Adam (Kingma & Ba, 2015) on ``scale · grads``: ``θ − rate · m̂ / (√v̂ + eps)``.

    The bias corrections ``m̂ = m/(1−β₁ᵗ)``, ``v̂ = v/(1−β₂ᵗ)`` are folded into the step size and ``eps``, which leaves one
    square root and one division per weight.
    """
    count = state.count + 1
    root = jnp.sqrt(1.0 - beta2 ** count.astype(rate.dtype))
    step = rate * root / (1.0 - beta1 ** count.astype(rate.dtype))
    grads = jax.tree.map(lambda g: scale * g, grads)
    first = jax.tree.map(lambda m, g: beta1 * m + (1.0 - beta1) * g, state.first, grads)
    second = jax.tree.map(lambda v, g: beta2 * v + (1.0 - beta2) * jnp.square(g), state.second, grads)
    params = jax.tree.map(lambda p, m, v: p - step * m / (jnp.sqrt(v) + eps * root), params, first, second)
    return params, AdamState(first, second, count)
