"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.policies import Policy, Problem
from regretless.settings import Settings, SettingsError
from regretless.simulate import Simulation, simulate, simulate_all
from regretless.trace import Comparison, Trace
from regretless.types import Decision, Feedback, Solution

__version__ = "0.1.0"

__all__ = [
    "Comparison",
    "Decision",
    "Feedback",
    "Policy",
    "Problem",
    "Settings",
    "SettingsError",
    "Simulation",
    "Solution",
    "Trace",
    "benchmarks",
    "feedback",
    "models",
    "oracles",
    "policies",
    "simulate",
    "simulate_all",
    "surrogates",
]
