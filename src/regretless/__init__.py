"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from regretless import benchmarks, feedback, models, oracles, policies, surrogates
    from regretless.columns import Columns
    from regretless.errors import RegretlessError
    from regretless.live.evaluation.evaluate import evaluate
    from regretless.live.health import Health
    from regretless.live.history import History
    from regretless.live.learner import Learner
    from regretless.policies.base import Policy
    from regretless.problem import Problem
    from regretless.settings import Settings
    from regretless.simulate.simulation import simulate, simulate_all
    from regretless.studies.experiment import Experiment
    from regretless.studies.outcome import run
    from regretless.trace import Trace
    from regretless.types import Decision, Feedback

__version__ = "0.3.0.dev0"

__all__ = [
    "Columns",
    "Decision",
    "Experiment",
    "Feedback",
    "Health",
    "History",
    "Learner",
    "Policy",
    "Problem",
    "RegretlessError",
    "Settings",
    "Trace",
    "benchmarks",
    "evaluate",
    "feedback",
    "models",
    "oracles",
    "policies",
    "run",
    "simulate",
    "simulate_all",
    "surrogates",
]

PARTS = ("benchmarks", "feedback", "models", "oracles", "policies", "surrogates")
"""The public names that are modules."""


HOMES = {
    "Columns": "regretless.columns",
    "Decision": "regretless.types",
    "Experiment": "regretless.studies.experiment",
    "Feedback": "regretless.types",
    "Health": "regretless.live.health",
    "History": "regretless.live.history",
    "Learner": "regretless.live.learner",
    "Policy": "regretless.policies.base",
    "Problem": "regretless.problem",
    "RegretlessError": "regretless.errors",
    "Settings": "regretless.settings",
    "Trace": "regretless.trace",
    "evaluate": "regretless.live.evaluation.evaluate",
    "run": "regretless.studies.outcome",
    "simulate": "regretless.simulate.simulation",
    "simulate_all": "regretless.simulate.simulation",
}
"""The modules of the other public names: each is loaded with what it needs, when it is first asked for."""


class _Front(ModuleType):
    """The package itself: importing the folder ``simulate`` does not put it in the place of the function of that name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PARTS or name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Front


def __getattr__(name: str) -> Any:
    """A public name when it is first asked for: the command answers a slip of the pen without waiting for JAX."""
    if name not in __all__:
        raise AttributeError(f"module 'regretless' has no attribute {name!r}")
    found = import_module(f"regretless.{name}") if name in PARTS else getattr(import_module(HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
