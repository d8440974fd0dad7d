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

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from regretless.policies.base import REGISTRY, Answer, AskingPolicy, Policy, PolicySpec, Question
from regretless.registry import lazy_attribute

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
    "Answer",
    "AskingPolicy",
    "Ensemble",
    "EpsilonGreedy",
    "GenerativeTerm",
    "Greedy",
    "LinearThompson",
    "MixingWeight",
    "Policy",
    "PolicySpec",
    "Question",
    "Scaled",
    "Thompson",
    "Unscaled",
    "build_policy",
    "parse",
    "register",
]

_LOCATIONS = {
    **REGISTRY.locations,
    "GenerativeTerm": "regretless.policies.dfhpg.specs:GenerativeTerm",
    "MixingWeight": "regretless.schedules:MixingWeight",
    "Scaled": "regretless.policies.scaling:Scaled",
    "Unscaled": "regretless.policies.scaling:Unscaled",
    "build_policy": "regretless.policies.scaling:build_policy",
}


def parse(name: str, settings: Mapping[str, Any] | None = None) -> PolicySpec:
    """Return a policy's specification from its name.

    Parameters
    ----------
    name : str
        A key of ``REGISTRY``, such as ``"dfhpg"``.
    settings : mapping, optional
        Settings by dotted name: ``"surrogate"`` chooses a part, ``"surrogate.draws"`` is a setting of it.

    Raises
    ------
    SettingsError
        If the name or a setting is unknown, or a value cannot be used.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.policies.parse("dfhpg", {"surrogate": "imle", "surrogate.draws": 20})
    rg.policies.DFHPG(surrogate=rg.surrogates.IMLE(draws=20))
    """
    spec: PolicySpec = REGISTRY.parse(name, settings)
    return spec


register = REGISTRY.register


def __getattr__(name: str) -> Any:
    return lazy_attribute(__name__, _LOCATIONS, name)


def __dir__() -> list[str]:
    return __all__
