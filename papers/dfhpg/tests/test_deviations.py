"""The list of deviations is tested like code: each option changes a run, and the page shows the list."""

import functools
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks, policies
from regretless.policies.scaling import require_effect
from regretless.spec import merge_names
from regretless_dfhpg.deviations import deviations, deviations_page
from regretless_dfhpg.presets import preset

DOCS = Path(__file__).parents[3] / "docs"
LIST = deviations()
OPTIONS = [each for each in LIST if each.option]

WORLDS = {
    "topk": {"items": 5, "k": 2, "features": 3},
    "pricing": {"products": 2, "levels": 3, "features": 3, "promotions": 1, "budget": 1},
}
SMALL = {
    "gaussian_linear": {},
    "flow": {"generative.scenarios": 3, "model.width": 8},
    "diffusion": {"generative.scenarios": 3, "model.width": 8, "model.train_steps": 6, "model.sample_steps": 4},
}
SMALL_PARTS = {"nuisance.width": 8, "surrogate.draws": 2}
POOLS = {128: 3, 6000: 20}
"""Pools of a size for twelve rounds: one that forgets, one that does not."""

ROUNDS = 12


@functools.cache
def world(name, given):
    """A small benchmark and its rounds: contexts, costs, and the costs that regret counts."""
    place = benchmarks.parse(name, {**WORLDS[name], **dict(given)}).build()
    environment = place.environment(jax.random.key(1))

    def one(t):
        played = place.round(jax.random.fold_in(jax.random.key(2), t), environment, t)
        return place.context(environment, played.observation), played.cost, place.regret_cost(played)

    return place, [
        jax.tree.map(np.asarray, each) for each in zip(*jax.vmap(one)(jnp.arange(1, ROUNDS + 1)), strict=True)
    ]


@eqx.filter_jit
def play(policy, state, context, cost):
    key = jax.random.fold_in(jax.random.key(3), state.version)
    decision = policy.decide(key, state, context, None)
    after, info = policy.learn(key, state, decision, policy.problem.observe(decision, cost))
    return after, decision.w, info.total


@functools.cache
def traced(name, model, benchmark, feedback, given):
    """Decisions, their costs and the parameters of some rounds, with the preset and some settings on top."""
    of_world = {key.removeprefix("benchmark."): each for key, each in given if key.startswith("benchmark.")}
    place, rounds = world(benchmark, tuple(of_world.items()))
    own = {key: each for key, each in given if not key.startswith("benchmark.")}
    tuned = preset(benchmark, 8, model, feedback).values
    base = merge_names({**tuned, "surrogate": "spo_plus", "model": model, **SMALL[model]}, own)
    known = policies.REGISTRY[name].model_fields
    settings = policies.parse(name, {key: v for key, v in base.items() if key.partition(".")[0] in known})
    there = settings.names()
    settings = settings.replace(**{key: each for key, each in SMALL_PARTS.items() if key in there})
    if "surrogate.pool" in there:
        settings = settings.replace(**{"surrogate.pool": POOLS[there["surrogate.pool"]]})
    policy = settings.build(place.problem(feedback))
    state, trace = policy.init(jax.random.key(0)), []
    for context, cost, judged in rounds:
        state, w, total = play(policy, state, context, cost)
        trace += [w, total, judged @ np.asarray(w), *jax.tree.leaves(state.theta)]
    return [np.asarray(each) for each in trace]


@pytest.mark.parametrize("each", OPTIONS, ids=lambda each: each.what.replace(" ", "_"))
def test_every_option_changes_a_trace(each):
    where = (each.policy, each.model, each.benchmark, each.feedback)
    default = traced(*where, tuple(each.requires.items()))
    other = traced(*where, tuple({**each.requires, **each.option}.items()))
    assert all(np.all(np.isfinite(leaf)) for leaf in (*default, *other))
    same = [a.shape == b.shape and np.array_equal(a, b) for a, b in zip(default, other, strict=False)]
    assert len(default) != len(other) or not all(same), f"{each.arguments} changed nothing"


@pytest.mark.parametrize("each", OPTIONS, ids=lambda each: each.what.replace(" ", "_"))
def test_the_command_line_takes_every_option(each):
    spec = benchmarks.parse(each.benchmark)
    place = spec.build()
    own = {key: value for key, value in {**each.requires, **each.option}.items() if not key.startswith("benchmark.")}
    tuned = preset(each.benchmark, 8, each.model, each.feedback).values
    known = policies.REGISTRY[each.policy].model_fields
    base = {key: value for key, value in {**tuned, "model": each.model}.items() if key.partition(".")[0] in known}
    settings = policies.parse(each.policy, merge_names(base, own))
    require_effect(settings, own, place.problem(each.feedback))
    world = {key.removeprefix("benchmark.") for key in each.option if key.startswith("benchmark.")}
    assert world <= set(type(spec).model_fields)


def test_every_line_says_what_it_must():
    assert len({each.what for each in LIST}) == len(LIST)
    for each in LIST:
        assert all((each.what, each.place, each.paper, each.here, each.why)), each.what
        assert bool(each.option) != bool(each.none), f"{each.what}: an option, or the reason why there is none"


def test_the_documentation_shows_this_list():
    assert (DOCS / "deviations.md").read_text(encoding="utf-8") == deviations_page(), "run: make pages"
