"""Simulations: many replications of policies on a benchmark, what to keep of them and how to follow them."""

from regretless.simulation.run import Callback, Metrics
from regretless.simulation.simulator import Execution, Monitor, Recording, simulate

__all__ = ["Callback", "Execution", "Metrics", "Monitor", "Recording", "simulate"]
