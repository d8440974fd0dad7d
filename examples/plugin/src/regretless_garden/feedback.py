"""A feedback regime: one bill for two neighbours together."""

from typing import Any, ClassVar

import jax.numpy as jnp
from jaxtyping import Array

from regretless.feedback import Measurement, Rows


class PairSums(Measurement):
    """Show the cost of what was chosen in sums of two coordinates."""

    sparse: ClassVar[bool] = True  # what was not chosen is not measured

    @property
    def name(self) -> str:
        return "pair_sums"

    def measure(self, w: Array, aux: Any) -> tuple[Rows, Array]:
        pairs = (len(w) + 1) // 2
        member = jnp.arange(pairs)[:, None] == jnp.arange(len(w)) // 2
        return Rows(jnp.where(member, w, 0.0)), jnp.ones(pairs, w.dtype)
