"""The ``k`` smallest of some values, as a mask."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

PAIRWISE_LIMIT = 64
"""Up to this many values every pair is compared, which is faster than sorting; beyond it a partial sort takes over."""


def cheapest(values: Float[Array, " n"], k: int | Array) -> Bool[Array, " n"]:
    """Marks the ``k`` smallest values, ties to the lowest index; a traced ``k`` needs few values (see PAIRWISE_LIMIT).

    >>> import jax.numpy as jnp
    >>> cheapest(jnp.array([3., 1., 2., 1.]), 2).tolist()
    [False, True, False, True]
    """
    n = values.shape[0]
    if isinstance(k, int):
        k = min(max(k, 0), n)
    if n <= PAIRWISE_LIMIT or not isinstance(k, int) or k == 0:
        index = jnp.arange(n)
        before = (values[None, :] < values[:, None]) | (
            (values[None, :] == values[:, None]) & (index[None, :] < index[:, None])
        )
        return jnp.sum(before, axis=1) < k
    last = -jax.lax.top_k(-values, k)[0][-1]
    less, equal = values < last, values == last
    return less | (equal & (jnp.cumsum(equal) <= k - jnp.sum(less)))
