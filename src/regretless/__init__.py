"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regretless import benchmarks, experiments, feedback, models, oracles, policies, simulation, surrogates
    from regretless.columns import Columns
    from regretless.errors import RegretlessError
    from regretless.experiments.experiment import Arm, Experiment
    from regretless.experiments.runner import run
    from regretless.experiments.tuning import tune
    from regretless.live.evaluation import evaluate
    from regretless.live.health import Health
    from regretless.live.history import History
    from regretless.live.learner import Learner
    from regretless.live.options import Pending, Rollout, Store
    from regretless.live.records import Choice
    from regretless.policies.base import Policy
    from regretless.problem import Problem
    from regretless.results import Result, Results
    from regretless.simulation.simulator import simulate
    from regretless.spec import Spec
    from regretless.types import Decision, Feedback

__version__ = "0.3.0.dev0"

__all__ = [
    "Arm",
    "Choice",
    "Columns",
    "Decision",
    "Experiment",
    "Feedback",
    "Health",
    "History",
    "Learner",
    "Pending",
    "Policy",
    "Problem",
    "RegretlessError",
    "Result",
    "Results",
    "Rollout",
    "Spec",
    "Store",
    "benchmarks",
    "evaluate",
    "experiments",
    "feedback",
    "models",
    "oracles",
    "policies",
    "run",
    "simulate",
    "simulation",
    "surrogates",
    "tune",
]

MODULES = ("benchmarks", "experiments", "feedback", "models", "oracles", "policies", "simulation", "surrogates")
"""Public names that are modules."""

SOURCES = {
    "Arm": "regretless.experiments.experiment",
    "Choice": "regretless.live.records",
    "Columns": "regretless.columns",
    "Decision": "regretless.types",
    "Experiment": "regretless.experiments.experiment",
    "Feedback": "regretless.types",
    "Health": "regretless.live.health",
    "History": "regretless.live.history",
    "Learner": "regretless.live.learner",
    "Pending": "regretless.live.options",
    "Policy": "regretless.policies.base",
    "Problem": "regretless.problem",
    "RegretlessError": "regretless.errors",
    "Result": "regretless.results",
    "Results": "regretless.results",
    "Rollout": "regretless.live.options",
    "Spec": "regretless.spec",
    "Store": "regretless.live.options",
    "evaluate": "regretless.live.evaluation",
    "run": "regretless.experiments.runner",
    "simulate": "regretless.simulation.simulator",
    "tune": "regretless.experiments.tuning",
}
"""The modules of the other public names."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that the command line reports a typo without importing JAX."""
    if name not in __all__:
        raise AttributeError(f"module 'regretless' has no attribute {name!r}")
    value = import_module(f"regretless.{name}") if name in MODULES else getattr(import_module(SOURCES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
