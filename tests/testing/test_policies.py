"""Each check of a policy can fail: a sound one passes, and every broken version raises what is wrong with it."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from regretless import testing
from regretless.errors import SettingsError
from regretless.oracles import external, top_k
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.spec import number
from regretless.types import Info, Sample
from toys import DIM, are_two, cheapest_two

PROBLEM = Problem(top_k(DIM, 2), (3,), "semi_bandit", may_miss=True)


class State(eqx.Module):
    """The average of what was seen of each cost."""

    mean: jax.Array
    version: jax.Array


class Average(Policy):
    """Plays the items that were cheapest on average, with some noise."""

    noise: jax.Array

    def init(self, key):
        return State(jnp.zeros(self.problem.dim), jnp.zeros((), jnp.int32))

    def sample(self, key, state, context, instance):
        return Sample(state.mean + self.noise * jax.random.normal(key, state.mean.shape), state.version)

    def learn(self, key, state, decision, feedback):
        y = feedback.total()
        mean = state.mean - 0.1 * feedback.loss_gradient(state.mean)
        info = Info(y - state.mean @ decision.w, y, feedback.complete(), jnp.all(jnp.isfinite(mean)))
        return State(mean, state.version + 1), info

    def mean(self, state, context):
        return state.mean


class AverageSpec(PolicySpec):
    """``Average`` with its number."""

    noise: float = 0.3

    def build(self, problem):
        return Average(problem, number(self.noise))


def test_a_sound_policy_passes():
    testing.check_policy(AverageSpec)
    testing.check_policy(lambda problem: Average(problem, number(0.1)), PROBLEM)


def test_a_solver_on_the_host_is_called_between_the_halves():
    oracle = external(cheapest_two, DIM, batched=True, contains=are_two)
    testing.check_policy(AverageSpec, Problem(oracle, (3,), "bandit"))


class NoVersion(Average):
    def init(self, key):
        return {"mean": jnp.zeros(self.problem.dim)}


class FloatVersion(Average):
    def init(self, key):
        return State(jnp.zeros(self.problem.dim), jnp.zeros(()))


class RandomStart(Average):
    def init(self, key):
        RandomStart.calls = getattr(RandomStart, "calls", 0) + 1
        return State(jnp.full(self.problem.dim, float(RandomStart.calls)), jnp.zeros((), jnp.int32))


class StandsStill(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(after.mean, state.version), info


class Grows(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(jnp.concatenate([after.mean, jnp.zeros(1)]), after.version), info


class LosesPrecision(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(after.mean.astype(jnp.float32), after.version), info


class Explodes(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(after.mean / (state.version < 3), after.version), info


class Dictionary(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return after, info.scalars()


class WrongTotal(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return after, eqx.tree_at(lambda i: i.total, info, info.total + 1.0)


class Vectors(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return after, Info(info.residual, info.total, info.complete, info.finite, {"mean": after.mean})


class AlwaysComplete(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return after, eqx.tree_at(lambda i: i.complete, info, jnp.asarray(True))


class Gullible(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(after.mean + 0.01 * jnp.sum(feedback.values), after.version), info


class OldSamples(Average):
    def sample(self, key, state, context, instance):
        return Sample(super().sample(key, state, context, instance).cost, state.version - 1)


class NeedsTheSample(Average):
    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        unknown = jnp.where(decision.sampled(), 0.0, decision.log_density)
        return State(after.mean + unknown, after.version), info


class Forgetful(Average):
    def __init__(self, problem, noise):
        self.problem, self.noise = Problem(problem.oracle, problem.context_shape, "full"), noise


class HalfMean(Average):
    def mean(self, state, context):
        return state.mean[:2]


class StaticNumber(Average):
    noise: float = eqx.field(static=True, converter=float)


class StaticSpec(AverageSpec):
    def build(self, problem):
        return StaticNumber(problem, self.noise)


class Idle(AverageSpec):
    patience: float = 0.5


class TwoMinds(Average):
    """It learns something else where the solver runs on the host."""

    def learn(self, key, state, decision, feedback):
        after, info = super().learn(key, state, decision, feedback)
        return State(after.mean + (1.0 if self.oracle.on_host else 0.0), after.version), info


class Infeasible(Average):
    def decide(self, key, state, context, instance=None):
        decision = super().decide(key, state, context, instance)
        return eqx.tree_at(lambda d: d.w, decision, jnp.ones(DIM))


class Refuses(AverageSpec):
    def build(self, problem):
        raise SettingsError("not this one")


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (NoVersion, "its state needs a field version"),
        (FloatVersion, "needs a field version, .* an integer array"),
        (RandomStart, "init must depend on its key alone"),
        (StandsStill, "count its steps in state.version: expected 1, got 0"),
        (Grows, r"a state of the form that init gives, but .mean has shape \(5,\) instead of \(4,\)"),
        (LosesPrecision, "but .mean has type float32 instead of float64"),
        (Explodes, "not finite after round 4"),
        (Dictionary, r"learn must return \(state, Info\), got dict"),
        (WrongTotal, "Info.total must be the cost of what was done"),
        (Vectors, "Info holds scalars, but 'mean' has shape"),
        (AlwaysComplete, "Info.complete must be False when a row"),
        (Gullible, "learns from the value of a row that did not arrive"),
        (OldSamples, r"must carry the version of the state that it was drawn from \(0\), got -1"),
        (NeedsTheSample, "cannot learn from a decision that was not sampled"),
        (Forgetful, "must keep the problem that it is built for, but they differ: feedback: 'full' and 'semi_bandit'"),
        (HalfMean, r"mean must be a finite cost of shape \(4,\), got \(2,\)"),
        (StaticSpec, "changing the setting 'noise' .* changes what would be compiled"),
        (Idle, "changing the setting 'patience' .* changes nothing"),
        (TwoMinds, "with a solver on the host it must come to the state that it comes to in one program"),
        (Infeasible, "decide must be sample, solve and Problem.record"),
        (Refuses, "refuses every problem"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_policy_raises_with_the_reason(broken, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_policy(broken if issubclass(broken, PolicySpec) else lambda p: broken(p, number(0.3)), PROBLEM)


def test_a_policy_of_the_wrong_type():
    with pytest.raises(AssertionError, match="expected a Policy, got int"):
        testing.check_policy(lambda problem: 3)
