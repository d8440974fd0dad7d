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

from regretless.policies.base import REGISTRY as REGISTRY
from regretless.policies.base import Policy as Policy
from regretless.policies.base import PolicySpec as PolicySpec
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.policies.adaptive.ensemble import Ensemble as Ensemble
    from regretless.policies.adaptive.policy import Adaptive as Adaptive
    from regretless.policies.dfhpg.specs import DFHPG as DFHPG
    from regretless.policies.dfhpg.specs import DFHPG0 as DFHPG0
    from regretless.policies.dfhpg.specs import DFHPG1 as DFHPG1
    from regretless.policies.dfhpg.specs import GenerativeTerm as GenerativeTerm
    from regretless.policies.eb_thompson import EBThompson as EBThompson
    from regretless.policies.epoch_spo import EpochSPO as EpochSPO
    from regretless.policies.host import Python as Python
    from regretless.policies.linear_confidence import OFUL as OFUL
    from regretless.policies.linear_confidence import CombLinTS as CombLinTS
    from regretless.policies.linear_confidence import CombLinUCB as CombLinUCB
    from regretless.policies.linear_confidence import LinUCB as LinUCB
    from regretless.policies.linear_confidence import SquareCB as SquareCB
    from regretless.policies.linear_thompson import LinearThompson as LinearThompson
    from regretless.policies.regression import EpsilonGreedy as EpsilonGreedy
    from regretless.policies.regression import Greedy as Greedy
    from regretless.policies.regression import Thompson as Thompson
    from regretless.policies.scaling import Scaled as Scaled
    from regretless.policies.scaling import Unscaled as Unscaled
    from regretless.policies.scaling import build_policy as build_policy
    from regretless.schedules import MixingWeight as MixingWeight

parse = REGISTRY.parse
"""Return a policy's specification from its name, such as ``"dfhpg"``, and settings by dotted name."""

register = REGISTRY.register
"""Add a policy of your own under a name."""

__all__, __getattr__, __dir__ = lazy_exports(__name__, "parse", "register")
