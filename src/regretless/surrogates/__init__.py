"""Surrogate losses for the decision-focused branch, by name."""

from collections.abc import Callable

from regretless.surrogates.base import Surrogate
from regretless.surrogates.oracle_calls import DBB, SPOPlus
from regretless.surrogates.ranking import PairwiseDiff

REGISTRY: dict[str, Callable[..., Surrogate]] = {
    "dbb": DBB,
    "pairwise_diff": PairwiseDiff,
    "spo_plus": SPOPlus,
}

__all__ = ["REGISTRY", "Surrogate"]
