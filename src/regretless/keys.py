"""Random keys by round and purpose: the environment's never depend on the policy, a live learner's are a simulation's."""

import jax
from jaxtyping import Array, Int

from regretless.types import Key

ENVIRONMENT, STREAM, MISSING, REFERENCES, START, DECIDE, LEARN = range(7)


def purpose_key(seed_key: Key, purpose: int, t: Int[Array, ""] | int = 0) -> Key:
    """``fold_in(seed, round, purpose)``."""
    return jax.random.fold_in(jax.random.fold_in(seed_key, t), purpose)
