"""On-policy decision-focused learning: predict costs, solve, act, and learn from the partial feedback you get."""

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.policies import Policy
from regretless.problem import Problem
from regretless.settings import Settings
from regretless.simulate.simulation import simulate, simulate_all
from regretless.trace import Trace
from regretless.types import Decision, Feedback
