"""Random draws that do not depend on a program's precision: single-precision bits, in the program's own float type."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.types import Key


def normal(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Draw standard normal numbers."""
    return jax.random.normal(key, shape, jnp.float32).astype(jnp.result_type(float))


def uniform(key: Key, shape: tuple[int, ...] = (), low: float = 0.0, high: float = 1.0) -> Float[Array, "..."]:
    """Draw numbers uniform on ``[low, high)``."""
    return jax.random.uniform(key, shape, jnp.float32, low, high).astype(jnp.result_type(float))
