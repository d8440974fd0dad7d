"""Surrogate losses for the decision-focused branch, by name.

>>> import jax.numpy as jnp, regretless as rg
>>> spo_plus = rg.surrogates.REGISTRY["spo_plus"](rg.oracles.top_k(3, 1))
>>> prediction, target = jnp.array([2.0, 1.0, 3.0]), jnp.array([1.0, 2.0, 3.0])
>>> gradient, memory = spo_plus(spo_plus.init(), prediction, target, noise=None)
>>> gradient.tolist()  # raises the predicted cost of item 1, which looks cheap and is not
[2.0, -2.0, 0.0]
"""

from collections.abc import Callable

from regretless.surrogates.base import Surrogate
from regretless.surrogates.contrastive import MAPC, NCE, ContrastiveMAP, SPOCaching
from regretless.surrogates.direct import DBB, MSE, NID, PG, MSESPOPlus, SPOPlus
from regretless.surrogates.perturbation import AIMLE, DPO, IMLE, PFYL
from regretless.surrogates.ranking import ListwiseLTR, PairwiseDiff, PairwiseLTR, PointwiseLTR

REGISTRY: dict[str, Callable[..., Surrogate]] = {
    "mse": MSE,
    "spo_plus": SPOPlus,
    "mse_spo_plus": MSESPOPlus,
    "dbb": DBB,
    "imle": IMLE,
    "aimle": AIMLE,
    "nid": NID,
    "pfyl": PFYL,
    "dpo": DPO,
    "pg": PG,
    "nce": NCE,
    "nce_c": NCE,
    "contrastive_map": ContrastiveMAP,
    "map_c": MAPC,
    "pointwise_ltr": PointwiseLTR,
    "pairwise_diff": PairwiseDiff,
    "pairwise_ltr": PairwiseLTR,
    "listwise_ltr": ListwiseLTR,
    "spo_caching": SPOCaching,
}

__all__ = ["REGISTRY", "Surrogate"]
