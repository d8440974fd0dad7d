"""A mixture of two policies, which both learn from every round."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

import regretless as rg
from regretless import draws
from regretless.spec import number
from regretless.types import (
    NOT_SAMPLED,
    Context,
    Cost,
    Decision,
    Feedback,
    Info,
    Instance,
    Key,
    Sample,
)


class MixtureState(eqx.Module):
    """The states of both."""

    first: Any
    second: Any

    @property
    def version(self) -> Any:
        """Learning steps so far."""
        return self.first.version


class MixturePolicy(rg.Policy):
    """Let ``second`` decide with probability ``share``, else ``first``."""

    first: rg.Policy
    second: rg.Policy
    share: Float[Array, ""]

    def init(self, key: Key) -> MixtureState:
        keys = jax.random.split(key)
        first, second = self.first.init(keys[0]), self.second.init(keys[1])
        return MixtureState(first, second)

    def sample(
        self,
        key: Key,
        state: MixtureState,
        context: Context,
        instance: Instance,
    ) -> Sample:
        coin, *keys = jax.random.split(key, 3)
        first = self.first.sample(keys[0], state.first, context, instance)
        second = self.second.sample(
            keys[1], state.second, context, instance
        )
        index = (draws.uniform(coin) < self.share).astype(jnp.int32)
        drawn = jax.tree.map(
            lambda a, b: jnp.where(index == 0, a, b),
            first.filled(),
            second.filled(),
        )
        member = 2 * drawn.member + index
        sample: Sample = eqx.tree_at(lambda s: s.member, drawn, member)
        return sample

    def learn(
        self,
        key: Key,
        state: MixtureState,
        decision: Decision,
        feedback: Feedback,
    ) -> tuple[MixtureState, Info]:
        keys = jax.random.split(key)
        view = member_view(0, decision)
        first, info = self.first.learn(keys[0], state.first, view, feedback)
        view = member_view(1, decision)
        second, other = self.second.learn(
            keys[1], state.second, view, feedback
        )
        decided = decision.member % 2 == 0
        info = Info(
            residual=jnp.where(decided, info.residual, other.residual),
            total=info.total,
            complete=info.complete,
            finite=info.finite & other.finite,
        )
        return MixtureState(first, second), info

    def mean(self, state: MixtureState, context: Context) -> Cost:
        first = self.first.mean(state.first, context)
        second = self.second.mean(state.second, context)
        return (1.0 - self.share) * first + self.share * second


class Mixture(rg.policies.PolicySpec):
    """A coin chooses which of two policies decides; both learn.

    Parameters
    ----------
    first, second : PolicySpec
        The policies, or their names.
    share : float, default 0.3
        Probability that the second decides.
    """

    first: rg.policies.PolicySpec = Field(
        default=rg.policies.Greedy(), description="one policy"
    )
    second: rg.policies.PolicySpec = Field(
        default=rg.policies.LinearThompson(), description="another one"
    )
    share: float = Field(
        default=0.3, ge=0, le=1, description="how often the second decides"
    )

    def unused(self, problem: rg.Problem) -> dict[str, str]:
        members = {"first": self.first, "second": self.second}
        return {
            f"{name}.{setting}": reason
            for name, spec in members.items()
            for setting, reason in spec.unused(problem).items()
        }

    def build(self, problem: rg.Problem) -> MixturePolicy:
        """Return the policy for a problem."""
        first, second = (
            self.first.build(problem),
            self.second.build(problem),
        )
        return MixturePolicy(problem, first, second, number(self.share))


def member_view(index: int, decision: Decision) -> Decision:
    """Return the decision as one member sees it.

    A decision that the other one drew is one that was not sampled.
    """
    drawn = decision.member % 2 == index
    version = jnp.where(drawn, decision.version, NOT_SAMPLED)
    density = jnp.where(drawn, decision.log_density, jnp.nan)
    view: Decision = eqx.tree_at(
        lambda d: (d.version, d.log_density, d.member),
        decision,
        (version, density, decision.member // 2),
    )
    return view
