"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports

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

_MODULES = {
    "columns": ("Columns",),
    "errors": ("RegretlessError",),
    "experiments.experiment": ("Arm", "Experiment"),
    "experiments.runner": ("run",),
    "experiments.tuning": ("tune",),
    "live.evaluation": ("evaluate",),
    "live.health": ("Health",),
    "live.history": ("History",),
    "live.learner": ("Learner",),
    "live.options": ("Pending", "Rollout", "Store"),
    "live.records": ("Choice",),
    "policies.base": ("Policy",),
    "problem": ("Problem",),
    "results": ("Result", "Results"),
    "simulation.simulator": ("simulate",),
    "spec": ("Spec",),
    "types": ("Decision", "Feedback"),
}
"""Public names by module; they are imported when they are used, so that the command answers a typo without JAX."""

_LOCATIONS = {name: f"regretless.{module}:{name}" for module, names in _MODULES.items() for name in names}
_LOCATIONS |= {name: f"regretless.{name}" for name in __all__ if name not in _LOCATIONS}
__getattr__, __dir__ = lazy_exports(__name__, [*__all__, "__version__"], _LOCATIONS)
