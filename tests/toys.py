"""Small benchmarks that have everything hard in them: an oracle on the host, a feasible set that changes by round."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import oracles, policies
from regretless.benchmarks import Benchmark, Round
from regretless.policies import Problem
from regretless.settings import Settings

DIM, FEATURES = 4, 3


def pick_two(costs):
    order = np.argsort(costs, axis=1, kind="stable")[:, :2]
    return np.isin(np.arange(DIM), order).reshape(-1, DIM) if len(costs) == 1 else one_hot(order)


def one_hot(order):
    w = np.zeros((len(order), DIM))
    np.put_along_axis(w, order, 1.0, axis=1)
    return w


class Toy(Benchmark):
    """Costs linear in the context; with ``closures``, one item is unavailable in every round."""

    closures: bool = eqx.field(static=True)

    def __init__(self, oracle=None, closures=False):
        super().__init__("toy", oracle or oracles.top_k(DIM, 2), (FEATURES,), 60, False)
        self.closures = closures

    def environment(self, key):
        return jax.random.normal(key, (DIM, FEATURES)).astype(jnp.result_type(float))

    def round(self, key, environment, t):
        x = jax.random.normal(key, (FEATURES,)).astype(jnp.result_type(float))
        mean = environment @ x
        instance = jnp.arange(DIM) != t % DIM if self.closures else None
        return Round(x, mean + 0.1 * jnp.sin(37.0 * mean), mean, instance)

    def context(self, environment, observation):
        return observation


def make(name, benchmark, feedback="bandit", model="gaussian_linear", may_miss=False, **settings):
    rule = benchmark.measurement(feedback)
    problem = Problem(benchmark.oracle, benchmark.context_shape, rule, model, may_miss)
    values = {"surrogate": "pairwise_diff", "exploration_scale": 0.3, "nuisance_lr": 0.01, **settings}
    return policies.build(name, Settings(**values), problem)


def all_schedules(plant):
    """Load profiles of all starts and machines within the capacities."""
    tasks = range(len(plant.tasks))
    starts = itertools.product(*(range(task.earliest, task.latest - task.duration + 1) for task in plant.tasks))
    for chosen in starts:
        runs = [plant.runs(task, chosen[task]) for task in tasks]
        for machines in itertools.product(range(len(plant.capacities)), repeat=len(plant.tasks)):
            used = np.zeros((len(plant.capacities), plant.slots, len(plant.capacities[0])))
            for task in tasks:
                used[machines[task]] += np.outer(runs[task], plant.tasks[task].usage)
            if np.all(used <= np.array(plant.capacities)[:, None]):
                yield sum(plant.energy[task] * runs[task] for task in tasks)
                break
