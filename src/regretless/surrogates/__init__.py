"""Surrogate losses for the decision-focused branch, by name."""

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
