"""Files such as people have in their working directory: parts and studies that use them."""

MINE = '''
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import benchmarks, draws, oracles, policies, surrogates
from regretless.benchmarks import Benchmark, Round
from regretless.types import Info, Sample


class SteadyState(eqx.Module):
    """Learning steps."""

    version: Int[Array, ""]


class SteadyPolicy(policies.Policy):
    """Plays the first ones, or the last ones."""

    lean: Float[Array, ""]

    def init(self, key):
        return SteadyState(jnp.zeros((), jnp.int32))

    def sample(self, key, state, context, instance):
        return Sample(+1.0 * self.lean * jnp.arange(float(self.problem.dim)), state.version)

    def learn(self, key, state, decision, feedback):
        total = feedback.total()
        return SteadyState(state.version + 1), Info(total, total, feedback.complete(), jnp.isfinite(total))


class Steady(policies.PolicySpec):
    """Plays the first ones, or the last ones."""

    search_space: ClassVar = {"lean": ("log", 0.1, 10.0)}
    lean: float = Field(default=1.0, gt=0, description="how much it leans to one side")

    def build(self, problem):
        return SteadyPolicy(problem, **self.hyperparameters())


class HalfSPOSurrogate(surrogates.Surrogate):
    """Half of SPO+."""

    def queries(self, memory, prediction, target, noise):
        return jnp.stack([target, 2.0 * prediction - target])

    def gradient(self, memory, prediction, target, noise, solutions):
        return solutions[0] - solutions[1]


class HalfSPO(surrogates.SurrogateSpec):
    """Half of SPO+."""

    def build(self, oracle):
        return HalfSPOSurrogate(oracle)


class DrizzleBenchmark(Benchmark):
    """Costs that grow from item to item."""

    def __init__(self, settings):
        super().__init__("drizzle", oracles.top_k(settings.items, 2), (2,), 30, False)

    def environment(self, key):
        return None

    def round(self, key, environment, t):
        rain = draws.normal(key, (2,))
        return Round(rain, jnp.arange(float(self.oracle.dim)) + 0.1 * rain[0], None)

    def context(self, environment, observation):
        return observation


class Drizzle(benchmarks.BenchmarkSpec):
    """Costs that grow from item to item."""

    items: int = Field(default=6, ge=2, description="to choose from")

    def build(self):
        return DrizzleBenchmark(self)


policies.register("steady", Steady)
surrogates.register("half_spo", HalfSPO)
benchmarks.register("drizzle", Drizzle)
'''
STUDY = """
name = "leaning"
title = "Leaning [to] one side"
axis = "lean"
imports = ["mine"]

[defaults]
benchmark = "drizzle"
policies = ["steady"]
seeds = 2
horizon = 20

[[panels]]
kind = "lines"
sweep = {setting = "lean", values = [1.0, 2.0]}
"""
PYTHON_STUDY = """
import mine
from regretless.experiments import Arm, Cell, Experiment, Panel, Study

arms = [Arm(f"{items} items", "steady", settings={"benchmark.items": items}) for items in (6, 8)]
cell = Cell("", Experiment("drizzle", arms, seeds=2, horizon=20))
study = Study("sizes", (Panel("", (cell,)),), title="Sizes", kind="bars")
"""
SPY = (
    "import pathlib\npathlib.Path(__file__).with_name('executed').touch()\nraise ImportError('not the json you want')\n"
)
