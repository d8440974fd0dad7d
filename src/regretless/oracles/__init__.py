"""Feasible sets: each solves ``min c·w over w in S`` for many costs at once, exactly, the same way every time on ties.

>>> import jax.numpy as jnp, regretless as rg
>>> rg.oracles.top_k(4, 2).solve(jnp.array([[3.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 3.0]])).w.tolist()
[[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
>>> streets = [("depot", "north"), ("depot", "south"), ("north", "shop"), ("south", "shop")]
>>> rg.oracles.shortest_path(streets, "depot", "shop").solve_one(jnp.array([1.0, 5.0, 1.0, 0.0])).w.tolist()
[1.0, 0.0, 1.0, 0.0]
"""

from typing import TYPE_CHECKING, Any

from regretless.errors import OracleError
from regretless.oracles.assignment import Assignment as assignment
from regretless.oracles.base import MaskedOracle, Oracle, TraceableOracle
from regretless.oracles.scheduling.oracle import Scheduling as scheduling
from regretless.oracles.scheduling.plant import Plant, Task
from regretless.oracles.status import check
from regretless.registry import Registry, lazy_attribute

if TYPE_CHECKING:
    from regretless.oracles.callback import External as external
    from regretless.oracles.dag import ShortestPath as shortest_path
    from regretless.oracles.dag import grid_edges
    from regretless.oracles.mixed_integer import Milp as milp
    from regretless.oracles.price_levels import Pricing as pricing
    from regretless.oracles.pyepo import from_pyepo
    from regretless.oracles.topk import TopK as top_k

# Two are loaded at once: a module of the same name would take the place of ``assignment`` and ``scheduling``.
_LOCATIONS = {
    "external": "regretless.oracles.callback:External",
    "from_pyepo": "regretless.oracles.pyepo:from_pyepo",
    "grid_edges": "regretless.oracles.dag:grid_edges",
    "milp": "regretless.oracles.mixed_integer:Milp",
    "pricing": "regretless.oracles.price_levels:Pricing",
    "shortest_path": "regretless.oracles.dag:ShortestPath",
    "top_k": "regretless.oracles.topk:TopK",
}

REGISTRY: Registry[type[Oracle]] = Registry(
    "oracle",
    "oracles",
    {
        "top_k": _LOCATIONS["top_k"],
        "shortest_path": _LOCATIONS["shortest_path"],
        "assignment": assignment,
        "pricing": _LOCATIONS["pricing"],
        "milp": _LOCATIONS["milp"],
        "scheduling": scheduling,
        "external": _LOCATIONS["external"],
    },
)
"""The oracles by name: what makes each of them."""


def __getattr__(name: str) -> Any:
    return lazy_attribute(__name__, _LOCATIONS, name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "REGISTRY",
    "MaskedOracle",
    "Oracle",
    "OracleError",
    "Plant",
    "Task",
    "TraceableOracle",
    "assignment",
    "check",
    "external",
    "from_pyepo",
    "grid_edges",
    "milp",
    "pricing",
    "scheduling",
    "shortest_path",
    "top_k",
]
