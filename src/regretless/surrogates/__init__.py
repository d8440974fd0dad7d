"""Surrogate losses of the decision-focused branch.

Each is a specification, such as ``SPOPlus()`` or ``DBB(lam=10.0)``, whose ``build`` makes the gradient on a feasible
set.

>>> import jax.numpy as jnp, regretless as rg
>>> spo_plus = rg.surrogates.SPOPlus().build(rg.oracles.top_k(3, 1))
>>> prediction, target = jnp.array([2.0, 1.0, 3.0]), jnp.array([1.0, 2.0, 3.0])
>>> gradient, memory = spo_plus(spo_plus.init(), prediction, target, noise=None)
>>> gradient.tolist()  # raises the predicted cost of item 1, which looks cheap and is not
[2.0, -2.0, 0.0]
"""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports
from regretless.surrogates.base import REGISTRY, Surrogate, SurrogateSpec

if TYPE_CHECKING:
    from regretless.surrogates.direct import DBB, MSE, NID, PG, MSESPOPlus, SPOPlus
    from regretless.surrogates.perturbation import AIMLE, DPO, IMLE, PFYL
    from regretless.surrogates.pool import (
        MAPC,
        NCE,
        NCEC,
        ContrastiveMAP,
        ListwiseLTR,
        PairwiseDiff,
        PairwiseLTR,
        PointwiseLTR,
        SPOCaching,
    )

__all__ = [
    "AIMLE",
    "DBB",
    "DPO",
    "IMLE",
    "MAPC",
    "MSE",
    "NCE",
    "NCEC",
    "NID",
    "PFYL",
    "PG",
    "REGISTRY",
    "ContrastiveMAP",
    "ListwiseLTR",
    "MSESPOPlus",
    "PairwiseDiff",
    "PairwiseLTR",
    "PointwiseLTR",
    "SPOCaching",
    "SPOPlus",
    "Surrogate",
    "SurrogateSpec",
    "parse",
    "register",
]

parse = REGISTRY.parse
"""Return a surrogate's specification from its name, such as ``"dbb"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a surrogate of your own under a name."""

__getattr__, __dir__ = lazy_exports(__name__, __all__, REGISTRY.locations)
