"""Random keys by round and purpose, and draws that do not depend on a program's precision.

The environment's keys do not depend on the policy; live and simulated keys agree. Numbers are drawn in single precision
and converted to the program's float type.
"""

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int

from regretless.types import Key

ENVIRONMENT, STREAM, MISSING, REFERENCES, START, DECIDE, LEARN, REFIT = range(8)


def purpose_key(seed_key: Key, purpose: int, t: Int[Array, ""] | int = 0) -> Key:
    """Return ``fold_in(seed, round, purpose)``."""
    return jax.random.fold_in(jax.random.fold_in(seed_key, t), purpose)


def normal(key: Key, shape: tuple[int, ...] = ()) -> Float[Array, "..."]:
    """Draw standard normal numbers."""
    return jax.random.normal(key, shape, jnp.float32).astype(jnp.result_type(float))


def uniform(key: Key, shape: tuple[int, ...] = (), low: ArrayLike = 0.0, high: ArrayLike = 1.0) -> Float[Array, "..."]:
    """Draw numbers uniform on ``[low, high)``."""
    return jax.random.uniform(key, shape, jnp.float32, low, high).astype(jnp.result_type(float))
