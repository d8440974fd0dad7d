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

_OWN: dict[str, Later[type[Surrogate]]] = {
    "mse": Later("regretless.surrogates.direct", "MSE"),
    "spo_plus": Later("regretless.surrogates.direct", "SPOPlus"),
    "mse_spo_plus": Later("regretless.surrogates.direct", "MSESPOPlus"),
    "dbb": Later("regretless.surrogates.direct", "DBB"),
    "imle": Later("regretless.surrogates.perturbation", "IMLE"),
    "aimle": Later("regretless.surrogates.perturbation", "AIMLE"),
    "nid": Later("regretless.surrogates.direct", "NID"),
    "pfyl": Later("regretless.surrogates.perturbation", "PFYL"),
    "dpo": Later("regretless.surrogates.perturbation", "DPO"),
    "pg": Later("regretless.surrogates.direct", "PG"),
    "nce": Later("regretless.surrogates.contrastive", "NCE"),
    "nce_c": Later("regretless.surrogates.contrastive", "NCE"),
    "contrastive_map": Later("regretless.surrogates.contrastive", "ContrastiveMAP"),
    "map_c": Later("regretless.surrogates.contrastive", "MAPC"),
    "pointwise_ltr": Later("regretless.surrogates.ranking", "PointwiseLTR"),
    "pairwise_diff": Later("regretless.surrogates.ranking", "PairwiseDiff"),
    "pairwise_ltr": Later("regretless.surrogates.ranking", "PairwiseLTR"),
    "listwise_ltr": Later("regretless.surrogates.ranking", "ListwiseLTR"),
    "spo_caching": Later("regretless.surrogates.contrastive", "SPOCaching"),
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
