"""Small networks with a linear bypass, in single precision: what ``dfhpg_auto`` predicts and decides with.

``f(x) = A x + b + V silu(W₂ silu(W₁ x + b₁) + b₂)``. ``A``, ``b`` and ``V`` start at zero: a fresh network says nothing, and what is
linear is learnt first.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless import nets
from regretless.types import Key


class Bypassed(NamedTuple):
    """The weights."""

    hidden: nets.Layers
    output: Float[Array, "width out"]  # V
    linear: nets.Dense  # A and b


def init(key: Key, inputs: int, width: int, outputs: int) -> Bypassed:
    """Random hidden layers, and nothing said yet."""
    hidden = nets.init_uniform(key, (inputs, width, width))
    zero = nets.Dense(jnp.zeros((inputs, outputs)), jnp.zeros(outputs))
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), Bypassed(hidden, jnp.zeros((width, outputs)), zero))


def apply(net: Bypassed, x: Float[Array, "*n in"]) -> Float[Array, "*n out"]:
    """The network's output."""
    x = jnp.asarray(x, jnp.float32)
    h = x
    for layer in net.hidden:
        h = jax.nn.silu(nets.product(h, layer.weight) + layer.bias)
    return nets.product(h, net.output) + nets.product(x, net.linear.weight) + net.linear.bias


def costs(net: Bypassed, context: Float[Array, "..."]) -> Float[Array, " d"]:
    """A cost per coordinate: all outputs of a context vector, or the one output of each feature row."""
    out = apply(net, context)
    return out if context.ndim == 1 else out[:, 0]


def outputs(dim: int, context_shape: tuple[int, ...]) -> int:
    """How many outputs a network for ``dim`` costs has."""
    return dim if len(context_shape) == 1 else 1
