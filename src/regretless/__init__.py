"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.errors import RegretlessError
from regretless.live.columns import Columns
from regretless.live.evaluation.evaluate import evaluate
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.policies import Policy
from regretless.problem import Problem
from regretless.settings import Settings
from regretless.simulate.simulation import simulate, simulate_all
from regretless.studies import Experiment, run
from regretless.trace import Trace
from regretless.types import Decision, Feedback

__version__ = "0.2.0"

__all__ = [
    "Columns",
    "Decision",
    "Experiment",
    "Feedback",
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


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
