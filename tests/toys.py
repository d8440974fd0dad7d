"""Small benchmarks that have everything hard in them: an oracle on the host, a feasible set that changes by round."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import models, oracles, policies
from regretless.benchmarks import Benchmark, Round

DIM, FEATURES = 4, 3


def cheapest_two(costs, available=None):
    """What ``top_k(DIM, 2)`` answers, as a function for ``external``, batched."""
    shown = costs if available is None else np.where(available, costs, np.inf)
    w = np.zeros((len(costs), DIM))
    np.put_along_axis(w, np.argsort(shown, axis=1, kind="stable")[:, :2], 1.0, axis=1)
    return w


def are_two(w, available=None):
    """Whether a decision chooses two items that are available."""
    return bool(w.sum() == 2 and np.all((w == 0) | ((w == 1) & (True if available is None else available))))


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


SMALL = {
    "flow": {"generative.scenarios": 4},
    "diffusion": {"generative.scenarios": 4, "model.train_steps": 6, "model.sample_steps": 3},
}
"""Generative models of a size for tests."""


PARTS_ONLY = {"comb_lin_ucb", "comb_lin_ts"}
"""Policies for costs that are seen one by one; ``make`` builds them so."""


def make(name, benchmark, feedback="bandit", model="gaussian_linear", may_miss=False, **settings):
    """A policy for a benchmark, with settings that learn fast; those that it has not are left out."""
    wanted = {"surrogate": "pairwise_diff", "exploration_scale": 0.3, "nuisance.lr": 0.01, "model": model}
    known = policies.REGISTRY[name].model_fields
    given = {key: value for key, value in wanted.items() if key.partition(".")[0] in known}
    feedback = "semi_bandit" if name in PARTS_ONLY and feedback == "bandit" else feedback
    problem = benchmark.problem(feedback, may_miss=may_miss)
    return policies.parse(name, {**given, **settings}).build(problem)


def models_of(name):
    """The models that a policy can have; a policy without a choice has one model."""
    if "model" not in policies.REGISTRY[name].model_fields:
        return ["gaussian_linear"]
    return [model for model in models.REGISTRY if "dfhpg" in name or not models.is_generative(model)]


def all_schedules(plant):
    """Load profiles of all starts and machines within the capacities."""
    tasks = range(len(plant.tasks))
    starts = itertools.product(*(range(task.earliest, task.latest - task.duration + 1) for task in plant.tasks))
    for chosen in starts:
        runs = plant.running(np.array(chosen))
        for machines in itertools.product(range(len(plant.capacities)), repeat=len(plant.tasks)):
            used = np.zeros((len(plant.capacities), plant.slots, len(plant.capacities[0])))
            for task in tasks:
                used[machines[task]] += np.outer(runs[task], plant.tasks[task].usage)
            if np.all(used <= np.array(plant.capacities)[:, None]):
                yield sum(plant.energy[task] * runs[task] for task in tasks)
                break
