"""The diffusion of feature rows on accelerators: a chain of scalars, each with a hidden layer of its own.

Products with a single column keep the hidden layers of all scenarios and rows in memory, which is slower there than computing
them. Written as sums they never leave the chip. On CPUs the products are the faster ones.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.models import networks


def product(a: Float[Array, "... n"], b: Float[Array, "n m"]) -> Float[Array, "... m"]:
    """``a @ b`` where ``n`` or ``m`` is one."""
    return jax.lax.platform_dependent(a, b, cpu=networks.product, default=_summed)


def _summed(a: Array, b: Array) -> Array:
    return a * b[0] if b.shape[0] == 1 else jnp.sum(a * b[:, 0], axis=-1, keepdims=True)


def by_sums(
    params: Any, given: Float[Array, "rows n"], steps: tuple[Array, Array, Array], visited: Float[Array, "s k rows 1"],
    slope: Float[Array, "k rows 1"],
) -> tuple[Float[Array, "1 n"], networks.Dense, Float[Array, "s rows n"]]:  # fmt: skip
    """Back-propagation in two passes: the slopes along the chain, then the gradients of all its steps from them."""
    into, out_of = params.noisy[0], params.out.weight[:, 0]

    def bent(c: Array, clock: Array) -> tuple[Array, Array]:
        """The hidden layer and its derivative."""
        before = c * into + (given + clock)
        gate = jax.nn.sigmoid(before)
        return before * gate, gate * (1.0 + before * (1.0 - gate))

    def back(slope: Array, now: tuple[Any, Array]) -> tuple[Array, Array]:
        (keep, add, clock), c = now
        return slope * (keep + add * jnp.sum(out_of * into * bent(c, clock)[1], axis=-1, keepdims=True)), slope

    def gradients(now: tuple[Any, Array, Array]) -> tuple[Array, Array, Array, Array]:
        (_, add, clock), c, slope = now
        hidden, derivative = bent(c, clock)
        error = add * slope
        delta = error * out_of * derivative
        return jnp.sum(c * delta, axis=0), jnp.sum(hidden * error, axis=0), jnp.sum(delta, axis=0), jnp.sum(error)

    _, slopes = jax.lax.scan(back, slope, (steps, visited), reverse=True)
    noisy, weight, delta, bias = jax.lax.map(gradients, (steps, visited, slopes))
    out = networks.Dense(jnp.sum(weight, axis=(0, 1))[:, None], jnp.sum(bias)[None])
    return jnp.sum(noisy, axis=(0, 1))[None], out, delta
