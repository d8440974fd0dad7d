"""Gaussian posterior of linear coefficients in square-root form: exact, recursive, positive semi-definite by construction.

With a factor ``L`` of the covariance, ``P = L Lᵀ``, and measurement rows ``Φ`` (``[m, n]``) of unit noise, the covariance after
the rows is ``P − P Φᵀ S⁻¹ Φ P`` with ``S = I + Φ P Φᵀ``. Its factor is (Potter for one row, Andrews for several)

    ``L ← L (I − Fᵀ (S + S^½)⁻¹ F)``,  ``F = Φ L``,

a change of rank ``m`` that costs ``O(m n²)``; only the ``m × m`` matrix ``S`` is factorised; many rows go group by group.
Nothing is ever subtracted from a covariance, so that rounding cannot make it indefinite, and the factor's condition is the root
of the covariance's.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

GROUP_SIZE = 4
"""Rows that are taken in at once."""


def assimilate(
    mean: Float[Array, " n"],
    factor: Float[Array, "n n"],
    inflation: Float[Array, ""],
    rows: Float[Array, "m n"],
    values: Float[Array, " m"],
    carried: Float[Array, "m n"] | None = None,
) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Mean and factor after ``values`` were measured along ``rows``; a row of zeros with value zero changes nothing.

    The factor before is ``inflation · factor`` (more than 1 forgets). ``carried`` is ``Φ · factor`` if the caller has it.

    >>> import jax.numpy as jnp
    >>> mean, factor = assimilate(jnp.zeros(1), jnp.eye(1), jnp.ones(()), jnp.array([[3.0]]), jnp.array([10.0]))
    >>> round(float(mean[0]), 6), round(float(factor[0, 0] ** 2), 6)  # 3·10 / (1 + 3²), 1 / (1 + 3²)
    (3.0, 0.1)
    """
    if len(rows) > GROUP_SIZE:
        return _in_groups(mean, inflation * factor, rows, values)
    F = inflation * (rows @ factor if carried is None else carried)
    G = inflation * jnp.stack([factor @ f for f in F])  # Φ P
    size, Q = jnp.linalg.eigh(jnp.eye(len(F)) + F @ F.T)  # S
    size = jnp.maximum(size, 1.0)
    mean = mean + ((Q / size) @ (Q.T @ (values - rows @ mean))) @ G
    F = (Q / (size + jnp.sqrt(size))) @ (Q.T @ F)
    return mean, inflation * factor - sum(g[:, None] * f[None, :] for g, f in zip(G, F, strict=True))


def _in_groups(
    mean: Float[Array, " n"], factor: Float[Array, "n n"], rows: Float[Array, "m n"], values: Float[Array, " m"]
) -> tuple[Float[Array, " n"], Float[Array, "n n"]]:
    """Group after group, the last one filled up with rows of zeros."""
    padding = -len(rows) % GROUP_SIZE
    grouped = (
        jnp.pad(rows, ((0, padding), (0, 0))).reshape(-1, GROUP_SIZE, rows.shape[1]),
        jnp.pad(values, (0, padding)).reshape(-1, GROUP_SIZE),
    )

    def take(carry: tuple[Array, Array], group: tuple[Array, Array]) -> tuple[tuple[Array, Array], None]:
        return assimilate(*carry, jnp.ones(()), *group), None

    return jax.lax.scan(take, (mean, factor), grouped)[0]
