"""A mixture of two policies: a coin says which of them decides, and both learn from every round."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.policies.base import Answer, AskingPolicy, Question, answer, ask
from regretless.spec import number
from regretless.types import NOT_SAMPLED, Info


class MixtureState(eqx.Module):
    """The states of both."""

    first: Any
    second: Any

    @property
    def version(self):
        """Learning steps so far."""
        return self.first.version


class MixturePolicy(AskingPolicy):
    """``second`` decides with probability ``share``, ``first`` otherwise."""

    first: rg.Policy
    second: rg.Policy
    share: Float[Array, ""]

    def init(self, key):
        return MixtureState(*(each.init(k) for each, k in zip(self._members, jax.random.split(key), strict=True)))

    def sample(self, key, state, context, instance):
        coin, *keys = jax.random.split(key, 3)
        first = self.first.sample(keys[0], state.first, context, instance).filled()
        second = self.second.sample(keys[1], state.second, context, instance).filled()
        index = (draws.uniform(coin) < self.share).astype(jnp.int32)
        drawn = jax.tree.map(lambda a, b: jnp.where(index == 0, a, b), first, second)
        return eqx.tree_at(lambda sample: sample.member, drawn, 2 * drawn.member + index)

    def ask(self, key, state, decision, feedback):
        keys = jax.random.split(key)
        first = ask(self.first, keys[0], state.first, _seen_by(0, decision), feedback)
        second = ask(self.second, keys[1], state.second, _seen_by(1, decision), feedback)
        costs = jnp.concatenate([first.costs, second.costs])
        points = jnp.concatenate([first.points, second.points])
        return Question(costs, points, decision.instance, (first, second, decision.member % 2))

    def answer(self, question, given):
        first, second, index = question.rest
        costs, points = len(first.costs), len(first.points)
        one, told = answer(self.first, first, Answer(given.w[:costs], given.feasible[:points]))
        other, heard = answer(self.second, second, Answer(given.w[costs:], given.feasible[points:]))
        residual = jnp.where(index == 0, told.residual, heard.residual)
        return MixtureState(one, other), Info(residual, told.total, told.complete, told.finite & heard.finite)

    def mean(self, state, context):
        first, second = self.first.mean(state.first, context), self.second.mean(state.second, context)
        return (1.0 - self.share) * first + self.share * second

    @property
    def _members(self):
        return self.first, self.second


class Mixture(rg.policies.PolicySpec):
    """Two policies of which a coin chooses the one that decides; both learn from every round."""

    first: rg.policies.PolicySpec = Field(default=rg.policies.Greedy(), description="one policy")
    second: rg.policies.PolicySpec = Field(default=rg.policies.LinearThompson(), description="the other one")
    share: float = Field(default=0.3, ge=0, le=1, description="probability that the second decides")

    def unused(self, problem):
        members = {"first": self.first, "second": self.second}
        return {f"{key}.{name}": why for key in members for name, why in members[key].unused(problem).items()}

    def build(self, problem):
        """Return the policy for a problem."""
        return MixturePolicy(problem, self.first.build(problem), self.second.build(problem), number(self.share))


def _seen_by(index, decision):
    """The decision as one member sees it: what the other one drew is a decision that nobody sampled."""
    mine = decision.member % 2 == index
    version = jnp.where(mine, decision.version, NOT_SAMPLED)
    density = jnp.where(mine, decision.log_density, jnp.nan)
    places = lambda d: (d.version, d.log_density, d.member)  # noqa: E731
    return eqx.tree_at(places, decision, (version, density, decision.member // 2))
