"""What a learner among others can do that a policy alone need not: start anew."""

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool

from regretless.policies.base import Policy
from regretless.types import Key


class Learning(Policy):
    """A policy that can start anew in the middle of a run."""

    def restarted(self, key: Key, state: Any, anew: Bool[Array, ""]) -> Any:
        """The state, or if ``anew`` a fresh one."""
        return jax.tree.map(lambda fresh, own: jnp.where(anew, fresh, own), self.init(key), state)
