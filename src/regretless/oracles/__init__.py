"""Feasible sets: each solves ``min c·w over w in S`` for many costs at once, exactly, the same way every time on ties.

>>> import jax.numpy as jnp, regretless as rg
>>> rg.oracles.top_k(4, 2).solve(jnp.array([[3.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 3.0]])).w.tolist()
[[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
>>> streets = [("depot", "north"), ("depot", "south"), ("north", "shop"), ("south", "shop")]
>>> rg.oracles.shortest_path(streets, "depot", "shop").solve_one(jnp.array([1.0, 5.0, 1.0, 0.0])).w.tolist()
[1.0, 0.0, 1.0, 0.0]
"""

from regretless.errors import OracleError
from regretless.oracles.assignment import Assignment as assignment
from regretless.oracles.base import MaskedOracle, Oracle, TraceableOracle
from regretless.oracles.callback import External as external
from regretless.oracles.dag import ShortestPath as shortest_path
from regretless.oracles.dag import grid_edges
from regretless.oracles.mixed_integer import Milp as milp
from regretless.oracles.price_levels import Pricing as pricing
from regretless.oracles.pyepo import from_pyepo
from regretless.oracles.scheduling.oracle import Scheduling as scheduling
from regretless.oracles.scheduling.plant import Plant, Task
from regretless.oracles.status import check
from regretless.oracles.topk import TopK as top_k
from regretless.registry import Registry

REGISTRY: Registry[type[Oracle]] = Registry(
    "oracle",
    "oracles",
    {
        "top_k": top_k,
        "shortest_path": shortest_path,
        "assignment": assignment,
        "pricing": pricing,
        "milp": milp,
        "scheduling": scheduling,
        "external": external,
    },
)
"""The oracles by name: what makes each of them."""

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
