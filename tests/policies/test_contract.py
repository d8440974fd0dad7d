"""Every registered policy keeps the contract, with every model that it can have, bare and wrapped."""

import jax
import numpy as np
import pytest

from regretless import models, policies, testing
from regretless.policies.offset import Offset
from regretless.policies.scaling import Scaled
from toys import DIM, SMALL, Toy, make

TOY = Toy()


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_keeps_the_contract(name):
    testing.check_registered("policies", name)


@pytest.mark.parametrize("model", [name for name in models.REGISTRY if name != "gaussian_linear"])
def test_keeps_it_with_every_model(model):
    settings = {"model": model, "surrogate": "map_c", **SMALL.get(model, {})}
    testing.check_policy(lambda problem: policies.build("dfhpg", problem, settings))


@pytest.mark.parametrize("name", ["greedy", "dfhpg", "linear_thompson"])
def test_keeps_it_in_wrappers(name):
    """Scaled, and with a part of the cost that is known beforehand."""

    def wrapped(problem):
        inner = policies.build(name, problem)
        return Scaled(problem, Offset(problem, inner, jax.numpy.arange(float(DIM))))

    testing.check_policy(wrapped)


def test_dfhpg_and_dfhpg_0_share_a_program_and_so_do_the_regressions():
    structure = {name: jax.tree.structure(make(name, TOY)) for name in policies.REGISTRY}
    assert structure["dfhpg"] == structure["dfhpg_0"] != structure["dfhpg_1"]
    assert structure["greedy"] == structure["epsilon_greedy"] == structure["thompson"]


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_learns_something(name):
    policy, x = make(name, TOY), jax.numpy.ones(3)

    @jax.jit
    def before_and_after(key):
        state = policy.init(key)
        decision = policy.decide(key, state, x)
        after, _ = policy.learn(key, state, decision, policy.problem.observe(decision, jax.numpy.arange(4.0)))
        return policy.mean(state, x), policy.mean(after, x)

    assert not np.array_equal(*before_and_after(jax.random.key(0)))
