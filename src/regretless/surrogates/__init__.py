"""Surrogate losses for the decision-focused branch, by name.

>>> import jax.numpy as jnp, regretless as rg
>>> spo_plus = rg.surrogates.build("spo_plus", rg.oracles.top_k(3, 1))
>>> prediction, target = jnp.array([2.0, 1.0, 3.0]), jnp.array([1.0, 2.0, 3.0])
>>> gradient, memory = spo_plus(spo_plus.init(), prediction, target, noise=None)
>>> gradient.tolist()  # raises the predicted cost of item 1, which looks cheap and is not
[2.0, -2.0, 0.0]
"""

from collections.abc import Mapping
from typing import Any

from regretless.oracles.base import Oracle
from regretless.registry import Later, Registry
from regretless.settings import Settings
from regretless.surrogates.base import Surrogate
from regretless.surrogates.direct import DBB, MSE, NID, PG, MSESPOPlus, SPOPlus


def _perturbation(name: str) -> type[Surrogate]:
    from regretless.surrogates.perturbation import AIMLE, DPO, IMLE, PFYL

    own: dict[str, type[Surrogate]] = {"imle": IMLE, "aimle": AIMLE, "pfyl": PFYL, "dpo": DPO}
    return own[name]


def _contrastive(name: str) -> type[Surrogate]:
    from regretless.surrogates.contrastive import MAPC, NCE, ContrastiveMAP, SPOCaching

    own = {"nce": NCE, "nce_c": NCE, "contrastive_map": ContrastiveMAP, "map_c": MAPC, "spo_caching": SPOCaching}
    return own[name]


def _ranking(name: str) -> type[Surrogate]:
    from regretless.surrogates.ranking import ListwiseLTR, PairwiseDiff, PairwiseLTR, PointwiseLTR

    own: dict[str, type[Surrogate]] = {
        "pointwise_ltr": PointwiseLTR,
        "pairwise_diff": PairwiseDiff,
        "pairwise_ltr": PairwiseLTR,
        "listwise_ltr": ListwiseLTR,
    }
    return own[name]


_OWN: dict[str, type[Surrogate] | Later[type[Surrogate]]] = {
    "mse": MSE,
    "spo_plus": SPOPlus,
    "mse_spo_plus": MSESPOPlus,
    "dbb": DBB,
    "imle": Later(_perturbation),
    "aimle": Later(_perturbation),
    "nid": NID,
    "pfyl": Later(_perturbation),
    "dpo": Later(_perturbation),
    "pg": PG,
    "nce": Later(_contrastive),
    "nce_c": Later(_contrastive),
    "contrastive_map": Later(_contrastive),
    "map_c": Later(_contrastive),
    "pointwise_ltr": Later(_ranking),
    "pairwise_diff": Later(_ranking),
    "pairwise_ltr": Later(_ranking),
    "listwise_ltr": Later(_ranking),
    "spo_caching": Later(_contrastive),
}

REGISTRY: Registry[type[Surrogate]] = Registry(
    "surrogate", "surrogates", _OWN, ("Settings", "build"), "a class that subclasses regretless.surrogates.Surrogate"
)


def build(name: str, oracle: Oracle, settings: Settings | Mapping[str, Any] | None = None) -> Surrogate:
    """The surrogate called ``name`` on a feasible set, with settings of its own.

    >>> import regretless as rg
    >>> float(rg.surrogates.build("dbb", rg.oracles.top_k(3, 1), {"strength": 5}).strength)
    5.0
    """
    entry = REGISTRY[name]
    return entry.build(oracle, settings if isinstance(settings, Settings) else entry.Settings(**(settings or {})))


__all__ = ["REGISTRY", "Surrogate", "build"]
