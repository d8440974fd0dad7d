"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless import benchmarks as benchmarks
    from regretless import experiments as experiments
    from regretless import feedback as feedback
    from regretless import models as models
    from regretless import offline as offline
    from regretless import oracles as oracles
    from regretless import policies as policies
    from regretless import simulation as simulation
    from regretless import surrogates as surrogates
    from regretless.columns import Columns as Columns
    from regretless.errors import RegretlessError as RegretlessError
    from regretless.experiments.experiment import Arm as Arm
    from regretless.experiments.experiment import Experiment as Experiment
    from regretless.experiments.runner import run as run
    from regretless.experiments.tuning import tune as tune
    from regretless.live.evaluation import evaluate as evaluate
    from regretless.live.health import Health as Health
    from regretless.live.history import History as History
    from regretless.live.learner import Learner as Learner
    from regretless.live.options import Pending as Pending
    from regretless.live.options import Rollout as Rollout
    from regretless.live.options import Store as Store
    from regretless.live.records import Choice as Choice
    from regretless.live.rehearsal import rehearse as rehearse
    from regretless.policies.base import Policy as Policy
    from regretless.policies.guard import Budget as Budget
    from regretless.problem import Problem as Problem
    from regretless.results import Result as Result
    from regretless.results import Results as Results
    from regretless.simulation.simulator import simulate as simulate
    from regretless.spec import Spec as Spec
    from regretless.types import Decision as Decision
    from regretless.types import Feedback as Feedback

__version__ = "0.3.0.dev0"

__all__, __getattr__, __dir__ = lazy_exports(__name__)
