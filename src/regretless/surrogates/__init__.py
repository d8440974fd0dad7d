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
from regretless.surrogates.base import REGISTRY as REGISTRY
from regretless.surrogates.base import SolvedCall as SolvedCall
from regretless.surrogates.base import Surrogate as Surrogate
from regretless.surrogates.base import SurrogateSpec as SurrogateSpec

if TYPE_CHECKING:
    from regretless.surrogates.direct import DBB as DBB
    from regretless.surrogates.direct import MSE as MSE
    from regretless.surrogates.direct import NID as NID
    from regretless.surrogates.direct import PG as PG
    from regretless.surrogates.direct import MSESPOPlus as MSESPOPlus
    from regretless.surrogates.direct import SPOPlus as SPOPlus
    from regretless.surrogates.learned import LANCER as LANCER
    from regretless.surrogates.perturbation import AIMLE as AIMLE
    from regretless.surrogates.perturbation import DPO as DPO
    from regretless.surrogates.perturbation import IMLE as IMLE
    from regretless.surrogates.perturbation import PFYL as PFYL
    from regretless.surrogates.pool import MAPC as MAPC
    from regretless.surrogates.pool import NCE as NCE
    from regretless.surrogates.pool import NCEC as NCEC
    from regretless.surrogates.pool import ContrastiveMAP as ContrastiveMAP
    from regretless.surrogates.pool import ListwiseLTR as ListwiseLTR
    from regretless.surrogates.pool import PairwiseDiff as PairwiseDiff
    from regretless.surrogates.pool import PairwiseLTR as PairwiseLTR
    from regretless.surrogates.pool import PointwiseLTR as PointwiseLTR
    from regretless.surrogates.pool import SPOCaching as SPOCaching
    from regretless.surrogates.projection import CaVE as CaVE
    from regretless.surrogates.projection import RegularizedFrankWolfe as RegularizedFrankWolfe

parse = REGISTRY.parse
"""Return a surrogate's specification from its name, such as ``"dbb"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a surrogate of your own under a name."""

__all__, __getattr__, __dir__ = lazy_exports(__name__, "parse", "register")
