"""Feasible sets: each solves ``min c·w over w in S`` for many costs at once, exactly, with reproducible ties.

>>> import jax.numpy as jnp, regretless as rg
>>> rg.oracles.top_k(4, 2).solve(jnp.array([[3.0, 1.0, 2.0, 0.0], [0.0, 1.0, 2.0, 3.0]])).w.tolist()
[[0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
>>> streets = [("depot", "north"), ("depot", "south"), ("north", "shop"), ("south", "shop")]
>>> rg.oracles.shortest_path(streets, "depot", "shop").solve_one(jnp.array([1.0, 5.0, 1.0, 0.0])).w.tolist()
[1.0, 0.0, 1.0, 0.0]
"""

from typing import TYPE_CHECKING

from regretless.errors import OracleError
from regretless.oracles.base import MaskedOracle, Oracle, TraceableOracle, check
from regretless.registry import Registry, lazy_exports

if TYPE_CHECKING:
    from regretless.oracles.callback import ExternalOracle as external
    from regretless.oracles.callback import from_pyepo as from_pyepo
    from regretless.oracles.dag import ShortestPathOracle as shortest_path
    from regretless.oracles.dag import grid_edges as grid_edges
    from regretless.oracles.frontier import PortfolioOracle as portfolio
    from regretless.oracles.matching import AssignmentOracle as assignment
    from regretless.oracles.mixed_integer import MilpOracle as milp
    from regretless.oracles.packing import KnapsackOracle as knapsack
    from regretless.oracles.plant import Plant as Plant
    from regretless.oracles.plant import PlantTask as PlantTask
    from regretless.oracles.plant import SchedulingOracle as scheduling
    from regretless.oracles.selection import PricingOracle as pricing
    from regretless.oracles.selection import TopKOracle as top_k
    from regretless.oracles.terrain import NodeGridOracle as node_grid
    from regretless.oracles.tour import TourOracle as travelling_salesman

__all__ = [
    "REGISTRY",
    "MaskedOracle",
    "Oracle",
    "OracleError",
    "Plant",
    "PlantTask",
    "TraceableOracle",
    "assignment",
    "check",
    "external",
    "from_pyepo",
    "grid_edges",
    "knapsack",
    "milp",
    "node_grid",
    "portfolio",
    "pricing",
    "scheduling",
    "shortest_path",
    "top_k",
    "travelling_salesman",
]

_CLASSES = (
    *("top_k", "shortest_path", "node_grid", "assignment", "knapsack", "travelling_salesman", "portfolio"),
    *("pricing", "milp", "scheduling", "external"),
)
REGISTRY: Registry[type[Oracle]] = Registry("oracle", "oracles", {name: f"{__name__}:{name}" for name in _CLASSES})
"""The classes of oracles by name."""

_, __getattr__, __dir__ = lazy_exports(__name__, *__all__)
