"""Learning algorithms, by name: each is built from settings for a problem.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> problem = rg.Problem(rg.oracles.top_k(4, 2), context_shape=(3,), feedback=rg.feedback.Bandit())
>>> policy = rg.policies.build("dfhpg", rg.Settings(surrogate="spo_plus"), problem)
>>> state = policy.init(jax.random.key(0))
>>> decision = policy.decide(jax.random.key(1), state, jnp.ones(3), None)
>>> seen = rg.feedback.observe(problem.feedback, decision, cost=jnp.array([1.0, 2.0, 3.0, 4.0]))
>>> state, info = policy.learn(jax.random.key(2), state, decision, seen)
>>> int(state.version)
1
"""

from collections.abc import Callable

from regretless import models
from regretless.errors import SettingsError
from regretless.policies.base import Policy
from regretless.policies.dfhpg.algorithm import DFHPG
from regretless.policies.dfhpg.generative import GenerativeDFHPG
from regretless.policies.dfhpg.variants import dfhpg, dfhpg_0, dfhpg_1
from regretless.policies.linear_thompson import LinearThompson, linear_thompson
from regretless.policies.regression import RegressionBandit, epsilon_greedy, greedy, thompson
from regretless.problem import Problem
from regretless.settings import Settings, require_known

REGISTRY: dict[str, Callable[[Settings, Problem], Policy]] = {
    "greedy": greedy,
    "epsilon_greedy": epsilon_greedy,
    "thompson": thompson,
    "dfhpg_1": dfhpg_1,
    "dfhpg": dfhpg,
    "dfhpg_0": dfhpg_0,
    "linear_thompson": linear_thompson,
}


GENERATIVE = ("dfhpg_1", "dfhpg", "dfhpg_0")
"""The policies that generative models have; the others predict one cost vector and exist for point models only."""


def available(model_name: str) -> tuple[str, ...]:
    """The policies that exist for a model.

    >>> available("flow")
    ('dfhpg_1', 'dfhpg', 'dfhpg_0')
    """
    require_known("model", model_name, models.REGISTRY)
    return GENERATIVE if model_name in models.GENERATIVE else tuple(REGISTRY)


def build(name: str, settings: Settings, problem: Problem) -> Policy:
    """The policy called ``name``."""
    require_known("policy", name, REGISTRY)
    if name not in available(problem.model_name):
        raise SettingsError(
            f"policy {name!r} exists for point models only ({', '.join(models.POINT)}), got model {problem.model_name!r}; "
            f"choose from {', '.join(GENERATIVE)}"
        )
    return REGISTRY[name](settings, problem)


__all__ = [
    "DFHPG", "REGISTRY", "GenerativeDFHPG", "LinearThompson", "Policy", "Problem", "RegressionBandit", "available", "build",
]  # fmt: skip
