"""One replication as pure functions: the start of a policy, one round in steps, and a segment of play.

A round is: see the context and sample; solve; see the feedback, or that of some rounds ago; learn, which may ask for solves
too. Where the oracle is pure JAX, a scan over rounds does all of it in one program (``play_segment``); where it is not,
``hosted.py`` takes the same steps one program at a time.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from regretless.benchmarks.base import Round
from regretless.keys import DECIDE, LEARN, MISSING, START, purpose_key
from regretless.policies.base import Policy
from regretless.simulate.stream import Game, Segment, first_round
from regretless.types import Decision, Feedback, Info, Key, Sample, Solution


class Carry(eqx.Module):
    """What a replication takes from round to round."""

    state: Any
    pending: tuple[Decision, Feedback] | None  # the last ``delay`` decisions with their feedback, by round modulo delay
    diverged_at: Int[Array, ""]
    failed: Int[Array, ""]  # worst solver status so far


class Record(eqx.Module):
    """What a segment leaves behind."""

    regret: Float[Array, " length"]
    info: dict[str, Array]  # of rounds 10, 20, …: programs leave one entry more than there can be, perhaps a repetition
    w: Float[Array, "length d"] | None


class Arrival(NamedTuple):
    """The decision of this round, and the decision and feedback that arrive in it."""

    now: Decision
    decision: Decision
    feedback: Feedback
    arrived: Bool[Array, ""] | bool
    pending: Any


def begin(policy: Policy, game: Game, seed_key: Key) -> Carry:
    """The carry before the first round."""
    state = policy.init(purpose_key(seed_key, START))
    pending = None
    if game.delay:
        environment, played, t = first_round(game, seed_key)
        example = jax.eval_shape(lambda: _example(policy, game, state, seed_key, environment, played, t))
        pending = jax.tree.map(lambda leaf: jnp.zeros((game.delay, *leaf.shape), leaf.dtype), example)
    return Carry(state, pending, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def _example(
    policy: Policy, game: Game, state: Any, seed_key: Key, environment: PyTree, played: Round, t: Array
) -> tuple[Decision, Feedback]:
    sample = draw_sample(policy, game, state, seed_key, environment, played, t)
    form = policy.oracle.aux_form()
    aux = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form)
    solution = Solution(jnp.zeros(policy.problem.dim), jnp.zeros((), jnp.int32), aux)
    return act(policy, game, seed_key, environment, played, sample, solution, t)


def draw_sample(
    policy: Policy, game: Game, state: Any, seed_key: Key, environment: PyTree, played: Round, t: Array
) -> Sample:
    """What the policy wants solved in this round."""
    context = game.benchmark.context(environment, played.observation)
    return policy.sample(purpose_key(seed_key, DECIDE, t), state, context, played.instance)


def act(
    policy: Policy, game: Game, seed_key: Key, environment: PyTree, played: Round, sample: Sample, solution: Solution,
    t: Array,
) -> tuple[Decision, Feedback]:  # fmt: skip
    """The decision that the solution makes, and what it reveals."""
    context = game.benchmark.context(environment, played.observation)
    decision = policy.problem.record(sample, solution, context, played.instance, id=t)
    seen = None
    if game.missing:
        rows = policy.problem.observe(decision, played.cost).values.shape
        seen = jax.random.uniform(purpose_key(seed_key, MISSING, t), rows) >= game.missing
    return decision, policy.problem.observe(decision, played.cost, seen)


def arrive(game: Game, carry: Carry, decision: Decision, feedback: Feedback, t: Array) -> Arrival:
    """What there is to learn from in this round: its own feedback, or that of ``delay`` rounds ago."""
    now, pending = decision, carry.pending
    arrived: Bool[Array, ""] | bool = True
    if pending is not None:
        slot = t % game.delay
        arrived = t > game.delay
        fresh = decision, feedback
        # Until something has arrived, this round stands in for it: what is learnt then is thrown away.
        decision, feedback = jax.tree.map(lambda ring, leaf: jnp.where(arrived, ring[slot], leaf), pending, fresh)
        pending = jax.tree.map(lambda ring, leaf: ring.at[slot].set(leaf), pending, fresh)
    if game.missing:
        arrived = arrived & jnp.any(feedback.used())
    return Arrival(now, decision, feedback, arrived, pending)


def conclude(
    game: Game, carry: Carry, arrival: Arrival, state: Any, info: Info, played: Round, best: Array, t: Array
) -> tuple[Carry, Any]:
    """The carry after a round, and its record: regret, diagnostics, decision."""
    finite, now = info.finite, arrival.now
    if arrival.arrived is not True:
        state = jax.tree.map(lambda new, old: jnp.where(arrival.arrived, new, old), state, carry.state)
        finite = finite | ~arrival.arrived
    regret = game.benchmark.judged(played) @ now.w - best
    sampled = jnp.all(jnp.isfinite(now.cost_sample))
    finite = finite & jnp.isfinite(regret) & sampled
    diverged_at = jnp.where((carry.diverged_at == 0) & ~finite, t, carry.diverged_at)
    status = jnp.where(sampled, jnp.abs(now.status), 0)  # a non-finite sample has no solution, which is no failure
    failed = jnp.maximum(carry.failed, status.astype(jnp.int32))
    after = Carry(state, arrival.pending, diverged_at, failed)
    return after, (regret, {**info.scalars(), "finite": finite}, now.w if game.keep_decisions else None)


def play_segment(
    policy: Policy, game: Game, carry: Carry, seed_key: Key, segment: Segment, start: Int[Array, ""]
) -> tuple[Carry, Record]:
    """Plays a segment in one program, with an oracle that is pure JAX."""

    def one(carry: Carry, now: tuple[Array, Round, Array]) -> tuple[Carry, Any]:
        t, played, best = now
        sample = draw_sample(policy, game, carry.state, seed_key, segment.environment, played, t)
        solution = policy.oracle.solve_one(sample.cost, played.instance)
        decision, feedback = act(policy, game, seed_key, segment.environment, played, sample, solution, t)
        arrival = arrive(game, carry, decision, feedback, t)
        key = purpose_key(seed_key, LEARN, t)
        state, info = policy.learn(key, carry.state, arrival.decision, arrival.feedback)
        return conclude(game, carry, arrival, state, info, played, best, t)

    length = segment.best.shape[0]
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    carry, (regret, info, w) = jax.lax.scan(one, carry, (times, segment.rounds, segment.best))
    return carry, Record(regret, thinned(info, start, length, game.diagnostics_every), w)


def thinned(info: dict[str, Array], start: Int[Array, ""], length: int, every: int) -> dict[str, Array]:
    """Diagnostics of every so many rounds, in single precision."""
    chosen = (-1 - start) % every + every * jnp.arange(length // every + 1)
    return jax.tree.map(lambda leaf: leaf[jnp.minimum(chosen, length - 1)].astype(jnp.float32), info)
