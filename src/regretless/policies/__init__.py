"""Learning algorithms, by name: each is built for a problem, with settings of its own.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> problem = rg.Problem(rg.oracles.top_k(4, 2), context=3, feedback="bandit")
>>> policy = rg.policies.build("dfhpg", problem, surrogate="spo_plus")
>>> state = policy.init(jax.random.key(0))
>>> decision = policy.decide(jax.random.key(1), state, jnp.ones(3))
>>> seen = problem.observe(decision, cost=jnp.array([1.0, 2.0, 3.0, 4.0]))
>>> state, info = policy.learn(jax.random.key(2), state, decision, seen)
>>> int(state.version)
1
"""

from typing import TYPE_CHECKING, Any

from regretless.policies.base import Answer, AskingPolicy, Policy, Question, Recipe
from regretless.policies.building import REGISTRY, build, settings_for
from regretless.registry import Later, late_name

if TYPE_CHECKING:
    from regretless.policies.dfhpg.algorithm import DFHPG
    from regretless.policies.linear_thompson import LinearThompson
    from regretless.policies.regression import RegressionBandit
    from regretless.policies.scaling import Scaled

_LATE: dict[str, Later[Any]] = {
    "DFHPG": Later("regretless.policies.dfhpg.algorithm", "DFHPG"),
    "LinearThompson": Later("regretless.policies.linear_thompson", "LinearThompson"),
    "RegressionBandit": Later("regretless.policies.regression", "RegressionBandit"),
    "Scaled": Later("regretless.policies.scaling", "Scaled"),
}


def __getattr__(name: str) -> Any:
    return late_name(__name__, _LATE, name)


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "DFHPG", "REGISTRY", "Answer", "AskingPolicy", "LinearThompson", "Policy", "Question", "Recipe", "RegressionBandit",
    "Scaled", "build", "settings_for",
]  # fmt: skip
