"""Random keys by round and purpose: the environment's do not depend on the policy; live and simulated keys agree."""

import jax
from jaxtyping import Array, Int

from regretless.types import Key

ENVIRONMENT, STREAM, MISSING, REFERENCES, START, DECIDE, LEARN = range(7)


def purpose_key(seed_key: Key, purpose: int, t: Int[Array, ""] | int = 0) -> Key:
    """Return ``fold_in(seed, round, purpose)``."""
    return jax.random.fold_in(jax.random.fold_in(seed_key, t), purpose)
