"""Every registered policy keeps the contract, with every model that it can have, alone and in wrappers."""

import jax
import numpy as np
import pytest

from regretless import models, policies, testing
from regretless.policies.scaling import Offset, Scaled
from regretless.testing.policies import example_problems
from toys import DIM, SMALL, Toy, make

TOY = Toy()


@pytest.mark.parametrize("name", policies.REGISTRY)
def test_keeps_the_contract(name):
    testing.check_registered("policies", name)


@pytest.mark.parametrize("model", [name for name in models.REGISTRY if name != "gaussian_linear"])
def test_keeps_it_with_every_model(model):
    """On feature rows, with missing rows, with instances: together both kinds of contexts and two regimes."""
    settings = {"model": model, "surrogate": "map_c", **SMALL.get(model, {})}
    for problem in example_problems()[-3:]:
        testing.check_policy(lambda problem: policies.parse("dfhpg", settings).build(problem), problem)


@pytest.mark.parametrize(("name", "which"), [("greedy", -2), ("dfhpg", None), ("linear_thompson", -2)])
def test_keeps_it_in_wrappers(name, which):
    """Scaled, and with a known part of the cost; dfhpg on every problem, the others with missing rows."""

    def wrapped(problem):
        inner = policies.parse(name).build(problem)
        return Scaled(problem, Offset(problem, inner, jax.numpy.arange(float(DIM))))

    testing.check_policy(wrapped, None if which is None else example_problems()[which])


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
