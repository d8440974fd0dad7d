"""Specifications show their settings to a type checker; wrong ones are errors before anything runs."""

import regretless as rg

policy = rg.policies.Adaptive(exploration=0.2)
exploration: float | None = policy.exploration
rg.policies.Adaptive(exploration="much")  # error: arg-type
rg.policies.Adaptive(explores=0.2)  # error: call-arg
method = rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=10.0), model=rg.models.GaussianNN())
rg.policies.DFHPG(surrogate=rg.models.GaussianNN())  # error: arg-type
rg.surrogates.DBB(lam="ten")  # error: arg-type

problem = rg.Problem(rg.oracles.top_k(4, 2), context=3)
running: rg.Policy = method.build(problem)
other: rg.Policy = rg.policies.build_policy("greedy", problem, scaling=False)
rg.Problem(rg.oracles.top_k(4, 2), context="three")  # error: arg-type
