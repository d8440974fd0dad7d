"""Parts by family and name, and the plug-ins of the documentation."""

import equinox as eqx
import jax
import jax.numpy as jnp
import pytest

from regretless import feedback, policies, surrogates, testing
from regretless.benchmarks import Benchmark, Round
from regretless.errors import SettingsError
from regretless.oracles import top_k
from regretless.policies import Policy
from regretless.surrogates import Surrogate, SurrogateSpec
from regretless.testing.policies import FAMILIES
from regretless.types import Info, Sample


@pytest.mark.parametrize("name", feedback.REGISTRY)
def test_our_feedback_regimes_keep_the_contract(name):
    testing.check_registered("feedback", name)


def test_unknown_families_and_oracles_that_need_arguments_are_refused():
    with pytest.raises(SettingsError, match="unknown family 'policy'; did you mean 'policies'"):
        testing.check_registered("policy", "greedy")
    with pytest.raises(SettingsError, match="unknown surrogate 'spo'"):
        testing.check_registered("surrogates", "spo")
    with pytest.raises(SettingsError, match=r"'top_k' is made with arguments: build one and call check_oracle\(it\)"):
        testing.check_registered("oracles", "top_k")
    assert set(FAMILIES) == {"policies", "surrogates", "models", "oracles", "benchmarks", "feedback"}


class HalfSPOSurrogate(Surrogate):
    """``w*(c) − w*(2ĉ − c)``."""

    def queries(self, memory, prediction, target, noise):
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(self, memory, prediction, target, noise, solutions):
        return solutions[0] - solutions[1]


class HalfSPO(SurrogateSpec):
    """Half of SPO+."""

    def build(self, oracle):
        return HalfSPOSurrogate(oracle)


class LazyState(eqx.Module):
    cost: jax.Array
    version: jax.Array


class Lazy(Policy):
    """Draws one cost vector at the start and plays it always."""

    def init(self, key):
        return LazyState(jax.random.normal(key, (self.problem.dim,)), jnp.int32(0))

    def sample(self, key, state, context, instance):
        return Sample(state.cost, state.version)

    def learn(self, key, state, decision, feedback):
        y = feedback.total()
        info = Info(y - state.cost @ decision.w, y, feedback.complete(), jnp.asarray(True))
        return LazyState(state.cost, state.version + 1), info


class Weather(Benchmark):
    """Three activities whose cost depends on the weather."""

    def __init__(self):
        super().__init__("weather", top_k(3, 1), (2,), 200, False)

    def environment(self, key):
        return jax.random.normal(key, (3, 2))

    def round(self, key, environment, t):
        x = jax.random.normal(key, (2,))
        return Round(x, environment @ x, environment @ x)

    def context(self, environment, observation):
        return observation


def test_plug_ins_as_short_as_the_documentation_shows_them_pass(monkeypatch):
    testing.check_policy(Lazy)
    testing.check_benchmark(Weather)
    monkeypatch.setattr(surrogates.REGISTRY, "_parts", dict(surrogates.REGISTRY._parts))
    surrogates.register("half_spo", HalfSPO)
    testing.check_registered("surrogates", "half_spo")
    problem = Weather().problem()
    testing.check_policy(lambda each: policies.parse("dfhpg", {"surrogate": "half_spo"}).build(each), problem)
