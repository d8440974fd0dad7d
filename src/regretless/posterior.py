"""Gaussian posterior of linear coefficients in square-root form: exact, recursive, positive semi-definite by construction.

With a factor ``L`` of the covariance, ``P = L Lᵀ``, and measurement rows ``Φ`` (``[m, n]``) of unit noise, the covariance after
the rows is ``P − P Φᵀ S⁻¹ Φ P`` with ``S = I + Φ P Φᵀ``. Its factor is (Potter for one row, Andrews for several)

    ``L ← L (I − Fᵀ C⁻ᵀ (C + I)⁻¹ F)``,  ``F = Φ L``,  ``S = C Cᵀ``,

a change of rank ``m`` that costs ``O(m n²)``; only the ``m × m`` matrix ``S`` is factorised. Nothing is ever subtracted from a
covariance, so that rounding cannot make it indefinite, and the factor's condition is the root of the covariance's.
"""

import jax.numpy as jnp
from jax.scipy.linalg import cho_solve, solve_triangular
from jaxtyping import Array, Float

FEW = 4
"""Up to this many rows go one by one, which is faster than a product with a thin matrix."""


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
    F = inflation * (rows @ factor if carried is None else carried)
    G = inflation * _through(factor, F)  # Φ P
    S = jnp.eye(len(F)) + F @ F.T
    C = jnp.linalg.cholesky(S)
    mean = mean + cho_solve((C, True), values - rows @ mean) @ G
    W = solve_triangular(C, solve_triangular(C + jnp.eye(len(F)), jnp.eye(len(F)), lower=True), lower=True, trans="T")
    return mean, inflation * factor - _outer(G, W @ F)


def _through(factor: Float[Array, "n n"], rows: Float[Array, "m n"]) -> Float[Array, "m n"]:
    """``rows · factorᵀ``."""
    if len(rows) > FEW:
        return rows @ factor.T
    return jnp.stack([factor @ row for row in rows])


def _outer(left: Float[Array, "m n"], right: Float[Array, "m n"]) -> Float[Array, "n n"]:
    """``leftᵀ · right``."""
    if len(left) > FEW:
        return left.T @ right
    return sum(a[:, None] * b[None, :] for a, b in zip(left, right, strict=True))
