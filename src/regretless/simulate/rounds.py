"""One replication as pure functions: the stream of rounds, the start of a policy, and a segment of play.

Random keys are folded from the seed by round and purpose; the environment's never depend on the policy.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from regretless.benchmarks.base import Benchmark, Round
from regretless.benchmarks.references import Tally, optimum, tally
from regretless.feedback import Measurement, observe
from regretless.policies.base import Policy
from regretless.trace import DIAGNOSTICS_EVERY
from regretless.types import Decision, Feedback, Info, Key

ENVIRONMENT, STREAM, MISSING, REFERENCES, START, DECIDE, LEARN = range(7)


def purpose_key(seed_key: Key, purpose: int, t: Int[Array, ""] | int = 0) -> Key:
    """``fold_in(seed, round, purpose)``."""
    return jax.random.fold_in(jax.random.fold_in(seed_key, t), purpose)


class Game(eqx.Module):
    """What is played: a benchmark, its feedback, and how that feedback travels."""

    benchmark: Benchmark
    rule: Measurement
    delay: int = eqx.field(static=True, default=0)
    missing: float = eqx.field(static=True, default=0.0)
    keep_decisions: bool = eqx.field(static=True, default=False)


class Segment(NamedTuple):
    """Rounds ``start + 1 … start + length`` of one replication's stream."""

    rounds: Round  # leading axis of rounds
    best: Float[Array, " length"]  # min c·w of each round
    tally: Tally
    unusable: Int[Array, ""]  # first round that holds a number that is not finite, 0 if none does


class Carry(eqx.Module):
    """What a replication takes from round to round."""

    state: Any
    pending: tuple[Decision, Feedback] | None  # the last ``delay`` decisions with their feedback, by round modulo delay
    diverged_at: Int[Array, ""]
    failed: Int[Array, ""]  # worst solver status so far


class Record(eqx.Module):
    """What a segment leaves behind."""

    regret: Float[Array, " length"]
    info: Info  # of rounds 10, 20, …: one entry more than the segment can have, the last may be a repetition
    w: Float[Array, "length d"] | None


def draw(game: Game, seed_key: Key, start: Int[Array, ""], length: int) -> Segment:
    """The stream's next ``length`` rounds after round ``start``, and what its reference lines need."""
    benchmark = game.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    rounds = jax.vmap(lambda t: benchmark.round(purpose_key(seed_key, STREAM, t), environment, t))(times)
    best = optimum(benchmark, rounds)
    finite = jnp.isfinite(best)
    for leaf in jax.tree.leaves((rounds.observation, rounds.cost, rounds.mean)):
        finite = finite & jnp.all(jnp.isfinite(leaf.reshape(length, -1)), axis=1)
    unusable = jnp.where(jnp.all(finite), 0, times[jnp.argmin(finite)])
    sums = tally(benchmark, purpose_key(seed_key, REFERENCES, start), environment, rounds, best)
    return Segment(rounds, best, sums, unusable)


def check_shapes(game: Game) -> None:
    """Refuses a benchmark whose rounds do not have the shapes that it promises."""
    benchmark = game.benchmark

    def first(key: Key) -> tuple[Any, Any]:
        environment, played, _ = _first(game, key)
        return benchmark.context(environment, played.observation), played.cost

    context, cost = jax.eval_shape(first, jax.random.key(0))
    for what, shape, promised in (
        ("context", context.shape, benchmark.context_shape),
        ("cost", cost.shape, (benchmark.oracle.dim,)),
    ):
        if shape != promised:
            raise ValueError(f"benchmark {benchmark.name!r}: expected a {what} of shape {promised}, got {shape}")


def begin(policy: Policy, game: Game, seed_key: Key) -> Carry:
    """The carry before the first round."""
    state = policy.init(purpose_key(seed_key, START))
    pending = None
    if game.delay:
        example = jax.eval_shape(lambda: _act(policy, game, state, seed_key, *_first(game, seed_key)))
        pending = jax.tree.map(lambda leaf: jnp.zeros((game.delay, *leaf.shape), leaf.dtype), example)
    return Carry(state, pending, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def play(
    policy: Policy, game: Game, carry: Carry, seed_key: Key, segment: Segment, start: Int[Array, ""]
) -> tuple[Carry, Record]:
    """Plays a segment: observe, decide, see the feedback, learn."""
    environment = game.benchmark.environment(purpose_key(seed_key, ENVIRONMENT))

    def one(carry: Carry, now: tuple[Array, Round, Array]) -> tuple[Carry, Any]:
        t, played, best = now
        decision, feedback = _act(policy, game, carry.state, seed_key, environment, played, t)
        judged = game.benchmark.judged(played)
        regret = judged @ decision.w - best
        carry, info = _learn(policy, game, carry, seed_key, decision, feedback, t)
        sampled = jnp.all(jnp.isfinite(decision.cost_sample))
        finite = info["finite"] & jnp.isfinite(regret) & sampled
        diverged_at = jnp.where((carry.diverged_at == 0) & ~finite, t, carry.diverged_at)
        status = jnp.where(
            sampled, jnp.abs(decision.status), 0
        )  # nothing can be solved for a sample that is not finite
        failed = jnp.maximum(carry.failed, status.astype(jnp.int32))
        carry = Carry(carry.state, carry.pending, diverged_at, failed)
        return carry, (regret, info, decision.w if game.keep_decisions else None)

    length = segment.best.shape[0]
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    carry, (regret, info, w) = jax.lax.scan(one, carry, (times, segment.rounds, segment.best))
    tenth = (-1 - start) % DIAGNOSTICS_EVERY + DIAGNOSTICS_EVERY * jnp.arange(length // DIAGNOSTICS_EVERY + 1)
    info = jax.tree.map(lambda leaf: leaf[jnp.minimum(tenth, length - 1)].astype(jnp.float32), info)
    return carry, Record(regret, info, w)


def _first(game: Game, seed_key: Key) -> tuple[PyTree, Round, Array]:
    environment = game.benchmark.environment(seed_key)
    return environment, game.benchmark.round(seed_key, environment, jnp.int32(1)), jnp.int32(1)


def _act(
    policy: Policy, game: Game, state: Any, seed_key: Key, environment: PyTree, played: Round, t: Array
) -> tuple[Decision, Feedback]:
    context = game.benchmark.context(environment, played.observation)
    decision = policy.decide(purpose_key(seed_key, DECIDE, t), state, context, played.instance)
    decision = eqx.tree_at(lambda d: d.id, decision, t)
    feedback = observe(game.rule, decision, played.cost)
    if game.missing:
        key = purpose_key(seed_key, MISSING, t)
        seen = jax.random.uniform(key, feedback.values.shape) >= game.missing
        feedback = Feedback(feedback.operator, feedback.linkage, feedback.values, seen)
    return decision, feedback


def _learn(
    policy: Policy, game: Game, carry: Carry, seed_key: Key, decision: Decision, feedback: Feedback, t: Array
) -> tuple[Carry, Info]:
    """Learns from this round's feedback, or from that of ``delay`` rounds ago while this round's is put aside."""
    pending = carry.pending
    arrived: Bool[Array, ""] | bool = True
    if pending is not None:
        slot = t % game.delay
        arrived = t > game.delay
        fresh = decision, feedback
        # Until something has arrived, this round stands in for it: what is learnt then is thrown away below.
        decision, feedback = jax.tree.map(lambda ring, leaf: jnp.where(arrived, ring[slot], leaf), pending, fresh)
        pending = jax.tree.map(lambda ring, leaf: ring.at[slot].set(leaf), pending, fresh)
    if feedback.seen is not None:
        arrived = arrived & jnp.any(feedback.used())
    state, info = policy.learn(purpose_key(seed_key, LEARN, t), carry.state, decision, feedback)
    if arrived is not True:
        state = jax.tree.map(lambda new, old: jnp.where(arrived, new, old), state, carry.state)
        info["finite"] = info["finite"] | ~arrived
    return Carry(state, pending, carry.diverged_at, carry.failed), info
