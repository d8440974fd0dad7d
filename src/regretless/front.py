"""The public names in one place; ``import regretless`` loads them with the first one that is used."""

from regretless.errors import RegretlessError as RegretlessError
from regretless.live.columns import Columns as Columns
from regretless.live.evaluation.evaluate import evaluate as evaluate
from regretless.live.history import History as History
from regretless.live.learner import Learner as Learner
from regretless.policies import Policy as Policy
from regretless.problem import Problem as Problem
from regretless.settings import Settings as Settings
from regretless.simulate.simulation import simulate as simulate
from regretless.simulate.simulation import simulate_all as simulate_all
from regretless.studies import Experiment as Experiment
from regretless.studies import run as run
from regretless.trace import Trace as Trace
from regretless.types import Decision as Decision
from regretless.types import Feedback as Feedback
