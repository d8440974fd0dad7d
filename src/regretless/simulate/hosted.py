"""Segments with a solver on the host: the steps of ``rounds.py`` as programs, and the solver called between them.

No program waits for the host, and the host never waits for a program that needs its threads: a solver, whatever it does, runs
while no program does. All replications (and all policies of a group) are solved in one call.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from regretless.keys import ENVIRONMENT, LEARN, purpose_key
from regretless.oracles.base import Oracle
from regretless.policies.base import Answer, Policy, Question, answer, ask
from regretless.simulate.programs import Replicas
from regretless.simulate.rounds import Arrival, Carry, Record, act, arrive, conclude, draw_sample, thinned
from regretless.simulate.stream import Drawn, Game, Segment
from regretless.simulate.stream import conclude as conclude_stream
from regretless.types import Sample, Solution

Program = tuple[Policy, bool]
"""A policy, and whether it is several of them, stacked."""


class Asked(NamedTuple):
    """A learning step halfway: what arrived, and what the policy asks."""

    arrival: Arrival
    question: Question


def _over(several: bool, fn: Callable[..., Any]) -> Callable[..., Any]:
    """``fn(policy, carry, …)`` of one policy, or of each of several that are stacked."""
    return jax.vmap(fn) if several else fn


def _sample(shared: tuple[Program, Game, Array], own: Any) -> Sample:
    (policy, several), game, t = shared
    key, carry, played = own
    environment = game.benchmark.environment(purpose_key(key, ENVIRONMENT))
    one = lambda policy, carry: draw_sample(policy, game, carry.state, key, environment, played, t)  # noqa: E731
    return _over(several, one)(policy, carry)


def _ask(shared: tuple[Program, Game, Array], own: Any) -> Asked:
    (policy, several), game, t = shared
    key, carry, played, sample, solution = own
    environment = game.benchmark.environment(purpose_key(key, ENVIRONMENT))

    def one(policy: Policy, carry: Carry, sample: Sample, solution: Solution) -> Asked:
        decision, feedback = act(policy, game, key, environment, played, sample, solution, t)
        arrival = arrive(game, carry, decision, feedback, t)
        question = ask(policy, purpose_key(key, LEARN, t), carry.state, arrival.decision, arrival.feedback)
        return Asked(arrival, question)

    return _over(several, one)(policy, carry, sample, solution)


def _answer(shared: tuple[Program, Game, Array], own: Any) -> tuple[Carry, Any]:
    (policy, several), game, t = shared
    carry, played, best, asked, given = own

    def one(policy: Policy, carry: Carry, asked: Asked, given: Answer) -> tuple[Carry, Any]:
        state, info = answer(policy, asked.question, given)
        return conclude(game, carry, asked.arrival, state, info, played, best, t)

    return _over(several, one)(policy, carry, asked, given)


def _thin(shared: tuple[Array, int, int], own: Any) -> Any:
    start, length, every = shared
    regret, info, w = own  # [length, (policies)]
    several = regret.ndim > 1
    thin = lambda info: thinned(info, start, length, every)  # noqa: E731
    lead = lambda leaf: jnp.moveaxis(leaf, 0, 1)  # noqa: E731
    if several:
        regret, info, w = jax.tree.map(lead, (regret, info, w))
        return Record(regret, jax.vmap(thin)(info), w)
    return Record(regret, thin(info), w)


def _conclude_stream(shared: Game, own: tuple[Drawn, Array]) -> Segment:
    return conclude_stream(shared, *own)


def solved_stream(replicas: Replicas, game: Game, drawn: Drawn) -> Segment:
    """A segment whose reference lines are solved on the host."""
    costs = np.asarray(drawn.costs, np.float64)  # [replications, lines, length, d]
    rows = costs.shape[:-1]
    instances = jax.tree.map(
        lambda leaf: np.broadcast_to(np.asarray(leaf)[:, None], (*rows, *leaf.shape[2:])), drawn.rounds.instance
    )
    w = batched(game.benchmark.oracle, costs, instances, lead=3).w
    return replicas.run(_conclude_stream, game, replicas.place((drawn, w.astype(drawn.costs.dtype))))


def play_on_host(
    replicas: Replicas, program: Program, game: Game, keys: Any, carry: Any, segment: Segment, start: int
) -> tuple[Any, Record]:
    """Plays a segment round by round; ``carry`` and ``segment`` have a leading axis of replications."""
    oracle, several = game.benchmark.oracle, program[1]
    lead = 2 if several else 1
    length = segment.best.shape[1]
    kept = []
    for i in range(length):
        t = jnp.int32(start + 1 + i)
        played, best = jax.tree.map(lambda leaf, i=i: leaf[:, i], (segment.rounds, segment.best))
        sample = replicas.run(_sample, (program, game, t), (keys, carry, played))
        instances = jax.tree.map(
            lambda leaf, rows=sample.cost.shape[:-1]: _spread(np.asarray(leaf), rows), played.instance
        )
        solution = batched(oracle, np.asarray(sample.cost), instances, lead)
        solution = replicas.place(jax.tree.map(lambda leaf, kind=sample.cost.dtype: _like(leaf, kind), solution))
        asked = replicas.run(_ask, (program, game, t), (keys, carry, played, sample, solution))
        given = replicas.place(answers(oracle, asked.question, lead))
        carry, record = replicas.run(_answer, (program, game, t), (carry, played, best, asked, given))
        kept.append(record)
    rounds = jax.tree.map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves], axis=1), *kept)
    return carry, replicas.run(_thin, (jnp.int32(start), length, game.diagnostics_every), replicas.place(rounds))


def answers(oracle: Oracle, question: Question, lead: int) -> Answer:
    """The answers to the questions of all replications; ``lead`` axes stand before a question's own."""
    costs, points = np.asarray(question.costs), np.asarray(question.points)
    w: Any = costs
    feasible: Any = np.ones(points.shape[:-1], bool)
    if costs.size:
        instances = jax.tree.map(lambda leaf: _within(np.asarray(leaf), lead, costs.shape[:-1]), question.instance)
        w = batched(oracle, costs, instances, lead + 1).w.astype(costs.dtype)
    if points.size:
        instances = jax.tree.map(lambda leaf: _within(np.asarray(leaf), lead, points.shape[:-1]), question.instance)
        flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[lead + 1 :]), instances)
        feasible = oracle.contained(points.reshape(-1, oracle.dim).astype(np.float64), flat).reshape(feasible.shape)
    return Answer(w, feasible)


def batched(oracle: Oracle, costs: np.ndarray, instances: Any, lead: int) -> Solution:
    """One call of the solver for costs with ``lead`` leading axes; a row that is not finite is solved as zeros."""
    flat = np.asarray(costs, np.float64).reshape(-1, oracle.dim)
    flat = np.where(np.isfinite(flat).all(axis=1, keepdims=True), flat, 0.0)
    rows = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[lead:]), instances)
    found = oracle.answer(flat, rows)
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*costs.shape[:lead], *np.shape(leaf)[1:]), found)


def _spread(leaf: np.ndarray, rows: tuple[int, ...]) -> np.ndarray:
    """An instance of each replication, repeated for every policy."""
    if len(rows) == 1:
        return leaf
    return np.broadcast_to(leaf[:, None], (*rows, *leaf.shape[1:]))


def _within(leaf: np.ndarray, lead: int, rows: tuple[int, ...]) -> np.ndarray:
    """An instance of each question, repeated for every row that it asks about."""
    shape = leaf.shape[lead:]
    return np.broadcast_to(leaf.reshape(*leaf.shape[:lead], 1, *shape), (*rows, *shape))


def _like(leaf: Any, dtype: Any) -> np.ndarray:
    return leaf.astype(dtype) if np.issubdtype(leaf.dtype, np.floating) else leaf
