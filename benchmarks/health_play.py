"""Plays a policy on a world of the arena, and keeps of every round what a live learner's books would have of it."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import policies
from regretless.keys import ENVIRONMENT, LEARN, purpose_key
from regretless.policies.scaling import Scaled
from regretless.simulation import stream
from regretless.simulation.programs import CPU_OPTIONS
from regretless.studies.arena.world import World


class Played(NamedTuple):
    """Runs of one policy on one world, with leading axes of seeds and rounds; in a round decision ``id`` is learnt from."""

    contexts: np.ndarray
    decisions: np.ndarray
    means: np.ndarray  # the mean costs, which nobody sees
    at_random: np.ndarray  # solutions of random costs
    instances: Any
    id: np.ndarray  # 1, 2, …; 0: nothing arrived
    residual: np.ndarray
    total: np.ndarray


def play(world: World, policy: str, seeds: list[int], horizon: int | None = None, scaling: bool = True) -> Played:
    """The runs of these seeds in one program; the policy is scaled as a live learner's is."""
    benchmark = world.make() if horizon is None else _shortened(world, horizon)
    length = horizon or world.horizon or benchmark.horizon
    game = stream.SimulationSpec(benchmark, world.delay, world.missing)
    problem = benchmark.problem(world.feedback, may_miss=world.missing > 0)
    with jax.enable_x64(True):
        own = policies.build(policy, problem)
        whole = jax.tree.map(jnp.asarray, Scaled(problem, own) if scaling else own)
        keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
        found = _runs(whole, game, length, keys)
        return Played(*jax.tree.map(np.asarray, found))


def _runs(policy: Any, game: stream.SimulationSpec, length: int, keys: Any) -> Any:
    """All runs in one program that is compiled in little time."""
    numbers, static = eqx.partition((policy, game), eqx.is_array)

    def every(numbers: Any, keys: Any) -> Any:
        own, played = eqx.combine(numbers, static)
        return jax.vmap(lambda key: _run(own, played, length, key))(keys)

    return jax.jit(every).lower(numbers, keys).compile(CPU_OPTIONS)(numbers, keys)


def _shortened(world: World, horizon: int) -> Any:
    return world._replace(horizon=horizon).make()


def _run(policy: Any, game: stream.SimulationSpec, length: int, seed_key: Any) -> tuple[Any, ...]:
    """One run."""
    benchmark = game.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    segment = stream.draw(game, seed_key, jnp.int32(0), length)
    played = segment.rounds
    at_random = benchmark.oracle.solve(segment.costs[1], played.instance).w
    best = jnp.zeros(length)

    def one(carry: Any, now: Any) -> Any:
        t, own, least = now
        sample = stream.draw_sample(policy, game, carry.state, seed_key, environment, own, t)
        solution = policy.oracle.solve_one(sample.cost, own.instance)
        decision, feedback = stream.act(policy, game, seed_key, environment, own, sample, solution, t)
        arrival = stream.arrive(game, carry, decision, feedback, t)
        state, info = policy.learn(purpose_key(seed_key, LEARN, t), carry.state, arrival.decision, arrival.feedback)
        carry, _ = stream.conclude(game, carry, arrival, state, info, own, least, t)
        known = info.complete & arrival.arrived
        return carry, (decision.w, jnp.where(known, arrival.decision.id, 0), info.residual, info.total)

    times = 1 + jnp.arange(length, dtype=jnp.int32)
    _, (w, id, residual, total) = jax.lax.scan(one, stream.begin(policy, game, seed_key), (times, played, best))
    contexts = jax.vmap(lambda seen: benchmark.context(environment, seen))(played.observation)
    means = jax.vmap(benchmark.judged)(played)
    return contexts, w, means, at_random, played.instance, id, residual, total
