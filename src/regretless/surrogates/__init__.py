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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.registry import lazy_attribute
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


def parse(name: str, settings: Mapping[str, Any] | None = None) -> SurrogateSpec:
    """Return a surrogate's specification from its name.

    Parameters
    ----------
    name : str
        A key of ``REGISTRY``, such as ``"dbb"``.
    settings : mapping, optional
        Its settings by name.

    Raises
    ------
    SettingsError
        If the name or a setting is unknown, or a value cannot be used.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.surrogates.parse("dbb", {"lam": 5})
    rg.surrogates.DBB(lam=5.0)
    """
    spec: SurrogateSpec = REGISTRY.parse(name, settings)
    return spec


register = REGISTRY.register


def __getattr__(name: str) -> Any:
    return lazy_attribute(__name__, REGISTRY.locations, name)


def __dir__() -> list[str]:
    return __all__
