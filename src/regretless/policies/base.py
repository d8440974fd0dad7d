"""What a policy is: three pure functions. Nothing is remembered between ``decide`` and ``learn`` except in the Decision."""

import abc
from typing import Any

import equinox as eqx

from regretless.oracles.base import Oracle
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key

State = Any


class Policy(eqx.Module):
    """A learning algorithm. Its numbers are array leaves, its choices static, so that a sweep over numbers is a ``vmap``."""

    oracle: Oracle

    @abc.abstractmethod
    def init(self, key: Key) -> State:
        """The state before the first round."""

    @abc.abstractmethod
    def decide(self, key: Key, state: State, context: Context, instance: Instance) -> Decision:
        """What to do in this context."""

    @abc.abstractmethod
    def learn(self, key: Key, state: State, decision: Decision, feedback: Feedback) -> tuple[State, Info]:
        """The state after the feedback on ``decision``, and diagnostics of the step."""

    def mean(self, state: State, context: Context) -> Cost:
        """The cost that this policy expects in this context; greedy decisions and explanations need it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no mean prediction: write its method mean(state, context)"
        )
