"""Learning algorithms: each is a specification, such as ``Adaptive()``, that is built for a problem.

>>> import jax, jax.numpy as jnp, regretless as rg
>>> problem = rg.Problem(rg.oracles.top_k(4, 2), context=3, feedback="bandit")
>>> policy = rg.policies.DFHPG(surrogate=rg.surrogates.SPOPlus()).build(problem)
>>> state = policy.init(jax.random.key(0))
>>> decision = policy.decide(jax.random.key(1), state, jnp.ones(3))
>>> seen = problem.observe(decision, cost=jnp.array([1.0, 2.0, 3.0, 4.0]))
>>> state, info = policy.learn(jax.random.key(2), state, decision, seen)
>>> int(state.version)
1
"""

from typing import TYPE_CHECKING

from regretless.policies.base import REGISTRY, Policy, PolicySpec
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.policies.adaptive.ensemble import Ensemble
    from regretless.policies.adaptive.policy import Adaptive
    from regretless.policies.dfhpg.specs import DFHPG, DFHPG0, DFHPG1, GenerativeTerm
    from regretless.policies.linear_thompson import LinearThompson
    from regretless.policies.regression import EpsilonGreedy, Greedy, Thompson
    from regretless.policies.scaling import Scaled, Unscaled, build_policy
    from regretless.schedules import MixingWeight

__all__ = [
    "DFHPG",
    "DFHPG0",
    "DFHPG1",
    "REGISTRY",
    "Adaptive",
    "Ensemble",
    "EpsilonGreedy",
    "GenerativeTerm",
    "Greedy",
    "LinearThompson",
    "MixingWeight",
    "Policy",
    "PolicySpec",
    "Scaled",
    "Thompson",
    "Unscaled",
    "build_policy",
    "parse",
    "register",
]

parse = REGISTRY.parse
"""Return a policy's specification from its name, such as ``"dfhpg"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a policy of your own under a name."""

__getattr__, __dir__ = lazy_exports(
    __name__,
    __all__,
    {
        **REGISTRY.locations,
        "GenerativeTerm": "regretless.policies.dfhpg.specs:GenerativeTerm",
        "MixingWeight": "regretless.schedules:MixingWeight",
        "Scaled": "regretless.policies.scaling:Scaled",
        "Unscaled": "regretless.policies.scaling:Unscaled",
        "build_policy": "regretless.policies.scaling:build_policy",
    },
)
