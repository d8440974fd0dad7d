"""Contrasting the target's decision with a pool of others (Mulamba et al., 2021)."""

from typing import Any

import jax.numpy as jnp

from regretless.oracles.base import Oracle
from regretless.surrogates.base import Rows
from regretless.surrogates.pool import Pool, PooledSpec, PooledSurrogate
from regretless.types import Cost


class NCESurrogate(PooledSurrogate):
    """``w*(c) − mean of the pool``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        mean = pool.present().astype(target.dtype) @ pool.decisions / jnp.maximum(pool.count(), 1)
        return best - mean


class NCE(PooledSpec):
    """Noise-contrastive estimation; gradient ``w*(c) − mean of the pool``.

    Loss: ``(1/|P|) Σ ĉ·(w*(c) − w)``.
    """

    def build(self, oracle: Oracle) -> NCESurrogate:
        """Return the gradient on a feasible set."""
        return NCESurrogate(oracle, **self.hyperparameters())


class NCEC(NCE):
    """Noise-contrastive estimation of the error; the gradient is that of ``NCE``.

    Loss: ``(1/|P|) Σ (ĉ − c)·(w*(c) − w)``. It differs from that of ``NCE`` by a constant in ``ĉ``.
    """


class ContrastiveMAPSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of ĉ·w``."""

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(prediction)


class ContrastiveMAP(PooledSpec):
    """The hardest contrast under the prediction; gradient ``w*(c) − argmin over the pool of ĉ·w``.

    Loss: ``max over the pool of ĉ·(w*(c) − w)``.
    """

    def build(self, oracle: Oracle) -> ContrastiveMAPSurrogate:
        """Return the gradient on a feasible set."""
        return ContrastiveMAPSurrogate(oracle, **self.hyperparameters())


class MAPCSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of (ĉ − c)·w``."""

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction, prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(prediction - target)


class MAPC(PooledSpec):
    """The hardest contrast of the error; gradient ``w*(c) − argmin over the pool of (ĉ − c)·w``.

    Loss: ``max over the pool of (ĉ − c)·(w*(c) − w)``. Every call also adds ``w*(ĉ − c)`` to the pool.
    """

    def build(self, oracle: Oracle) -> MAPCSurrogate:
        """Return the gradient on a feasible set."""
        return MAPCSurrogate(oracle, **self.hyperparameters())


class SPOCachingSurrogate(PooledSurrogate):
    """``w*(c) − argmin over the pool of (2ĉ − c)·w``."""

    def queries(self, memory: Pool, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction, 2.0 * prediction - target])

    def slope(self, pool: Pool, prediction: Cost, target: Cost, best: Cost) -> Cost:
        return best - pool.best(2.0 * prediction - target)


class SPOCaching(PooledSpec):
    """Half of SPO+ with the pool as oracle; gradient ``w*(c) − argmin over the pool of (2ĉ − c)·w``.

    Loss: ``½ max over the pool of (2ĉ − c)·(w*(c) − w)``. Every call also adds ``w*(2ĉ − c)`` to the pool. The paper's
    appendix prints the gradient with the opposite sign.
    """

    def build(self, oracle: Oracle) -> SPOCachingSurrogate:
        """Return the gradient on a feasible set."""
        return SPOCachingSurrogate(oracle, **self.hyperparameters())
