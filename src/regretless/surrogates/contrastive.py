"""Contrasting the target's decision with a pool of others (Mulamba et al., 2021)."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.surrogates.pool import Pool
from regretless.surrogates.pooled import Pooled
from regretless.types import Cost


class NCE(Pooled):
    """``w*(c) − mean of the pool``: noise-contrastive estimation.

    Loss of ``nce``: ``(1/|P|) Σ ĉ·(w*(c) − w)``; of ``nce_c``: ``(1/|P|) Σ (ĉ − c)·(w*(c) − w)``. They differ by a constant in
    ``ĉ``, so that their values differ and their gradients do not.
    """

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        mean = pool.present().astype(target.dtype) @ pool.decisions / jnp.maximum(pool.count(), 1)
        return best - mean


class ContrastiveMAP(Pooled):
    """``w*(c) − argmin over the pool of ĉ·w``: the hardest contrast under the prediction.

    Loss: ``max over the pool of ĉ·(w*(c) − w)``.
    """

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        return best - pool.best(prediction)


class MAPC(Pooled):
    """``w*(c) − argmin over the pool of (ĉ − c)·w``: the hardest contrast of the error; adds ``w*(ĉ − c)`` to the pool.

    Loss: ``max over the pool of (ĉ − c)·(w*(c) − w)``.
    """

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: None) -> Float[Array, "3 d"]:
        return jnp.stack([target, prediction, prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        return best - pool.best(prediction - target)


class SPOCaching(Pooled):
    """``w*(c) − argmin over the pool of (2ĉ − c)·w``: half of SPO+ with the pool as oracle; adds ``w*(2ĉ − c)`` to the pool.

    Loss: ``½ max over the pool of (2ĉ − c)·(w*(c) − w)``. The paper's appendix prints the gradient with the opposite sign.
    """

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: None) -> Float[Array, "3 d"]:
        return jnp.stack([target, prediction, 2.0 * prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Float[Array, " d"]) -> Cost:
        return best - pool.best(2.0 * prediction - target)
