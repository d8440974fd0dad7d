"""Feasible sets: each solves ``min c·w over w in S`` for many costs at once, exactly, the same way every time on ties."""

from regretless.oracles.base import Oracle, OracleError, TraceableOracle
from regretless.oracles.callback import External as external
from regretless.oracles.dag import ShortestPath as shortest_path
from regretless.oracles.dag import grid_edges
from regretless.oracles.price_levels import Pricing as pricing
from regretless.oracles.topk import TopK as top_k

__all__ = [
    "Oracle",
    "OracleError",
    "TraceableOracle",
    "external",
    "grid_edges",
    "pricing",
    "shortest_path",
    "top_k",
]
