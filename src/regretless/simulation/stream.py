"""One replication as pure functions: the stream of rounds that every policy meets, and a policy's rounds on it.

A round is: see the context and sample; solve; see the feedback, or that of an earlier round; learn, which may need
solves too. A segment is a loop over rounds (``play_segment``): one program if the oracle is pure JAX; otherwise the
host runs the loop, with a program between two calls of the solver. Every segment has room for the same number of
rounds, of which the first ``count`` are played, so that one program serves every horizon.
"""

import dataclasses
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from regretless import draws
from regretless.benchmarks.base import Benchmark, Round
from regretless.draws import DECIDE, ENVIRONMENT, LEARN, MISSING, REFERENCES, START, STREAM, purpose_key
from regretless.errors import SettingsError
from regretless.policies.base import Policy, refit_if_due
from regretless.policies.guard import Guarded, is_policys
from regretless.results import DIAGNOSTICS_EVERY, Reference
from regretless.types import Cost, Decision, Feedback, Info, Key, Sample, Solution

SEGMENT_ROUNDS = 250
"""Rounds of a segment, at most."""

REFERENCE_ROUNDING = 1e-12
"""Relative difference of two sums that is attributed to rounding."""


class ReferenceTally(NamedTuple):
    """Sums over the rounds of one replication's segment, from which its reference lines are computed."""

    spent: Float[Array, " lines"]  # Σ c·w of the decisions for each line of ``StreamBatch.costs``; the first are best
    cost: Float[Array, " d"] | None  # Σ c, for the best fixed decision; None if the feasible set changes


def summarise_references(benchmark: Benchmark, total: ReferenceTally) -> list[Reference]:
    """Return the reference lines from the tally of the whole horizon, float64 with a leading axis of replications."""

    def further(key: Key) -> tuple[Cost | None, dict[str, Cost]]:
        environment, played = _first_round(benchmark, key)
        return played.mean, benchmark.predictions(environment, played)

    mean, predictions = jax.eval_shape(further, jax.random.key(0))
    best, random, *others = np.asarray(total.spent).T
    lines = [_reference_line("random", random, best)]
    if total.cost is not None:
        cost = np.asarray(total.cost, np.float64)
        fixed = np.asarray(benchmark.oracle.answer(cost, None).w, np.float64)
        lines.append(_reference_line("best_fixed", np.sum(cost * fixed, axis=1), best))
    names = [*([] if mean is None else ["clairvoyant"]), *predictions]
    return [*lines, *(_reference_line(name, spent, best) for name, spent in zip(names, others, strict=True))]


def _reference_line(name: str, spent: Any, best: Any) -> Reference:
    """Return the line of one decision maker; a difference of two sums within rounding is no regret."""
    regret = np.where(np.isclose(spent, best, rtol=REFERENCE_ROUNDING, atol=0.0), 0.0, spent - best)
    error = float(np.std(regret, ddof=1) / len(regret) ** 0.5) if len(regret) > 1 else float("nan")
    return Reference(name, float(np.mean(regret)), error)


class SimulationSpec(eqx.Module):
    """What is simulated: a benchmark, how its feedback arrives, and what is kept."""

    benchmark: Benchmark
    delay: int = eqx.field(static=True, default=0)
    missing: float = eqx.field(static=True, default=0.0)
    keep_decisions: bool = eqx.field(static=True, default=False)
    diagnostics_every: int = eqx.field(static=True, default=DIAGNOSTICS_EVERY)


class StreamSegment(NamedTuple):
    """Rounds after round ``start`` of one replication, of which the first ``count`` are played."""

    environment: PyTree  # the benchmark's, the same in all rounds
    rounds: Round  # leading axis of rounds
    best: Float[Array, " length"]  # min c·w of each round
    tally: ReferenceTally
    unusable: Int[Array, ""]  # first round that holds a non-finite number, 0 if none does


def draw(
    spec: SimulationSpec, seed_key: Key, start: Int[Array, ""], count: Int[Array, ""], length: int = SEGMENT_ROUNDS
) -> StreamSegment:
    """Return ``length`` rounds after round ``start``, with the solutions of the first ``count`` rounds' lines."""
    benchmark = spec.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    rounds = draw_rounds(spec, seed_key, start, length)
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    played = jnp.arange(length) < count
    finite = jnp.ones(length, bool)
    for leaf in jax.tree.leaves((rounds.observation, rounds.cost, rounds.mean)):
        finite = finite & (~played | jnp.all(jnp.isfinite(leaf.reshape(length, -1)), axis=1))
    unusable = jnp.where(jnp.all(finite), 0, times[jnp.argmin(finite)])
    costs = jax.vmap(benchmark.regret_cost)(rounds)
    lines = [costs, draws.normal(purpose_key(seed_key, REFERENCES, start), costs.shape)]
    lines += [] if rounds.mean is None else [rounds.mean]
    predictions = jax.vmap(lambda played: benchmark.predictions(environment, played))(rounds)
    asked = jnp.stack([*lines, *predictions.values()])
    # What is not played is not solved: a solver on the host leaves out costs that are not finite.
    asked = jnp.where(played[:, None], asked, jnp.nan) if benchmark.oracle.on_host else asked
    w = jax.vmap(lambda rows: benchmark.oracle.solve(rows, rounds.instance).w)(asked)
    spent = jnp.where(played[:, None], costs * w, 0.0)
    fixed = jnp.sum(jnp.where(played[:, None], costs, 0.0), axis=0) if rounds.instance is None else None
    tally = ReferenceTally(jnp.sum(spent, axis=(1, 2)), fixed)
    return StreamSegment(environment, rounds, jnp.sum(spent[0], axis=1), tally, unusable)


def draw_rounds(spec: SimulationSpec, seed_key: Key, start: Int[Array, ""], length: int) -> Round:
    """Return the rounds after round ``start``."""
    benchmark = spec.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    return jax.vmap(lambda t: benchmark.round(purpose_key(seed_key, STREAM, t), environment, t))(times)


def check_shapes(spec: SimulationSpec) -> None:
    """Refuse a benchmark whose rounds do not have the shapes that it promises."""
    benchmark = spec.benchmark

    def first(key: Key) -> tuple[Array, Array]:
        environment, played = _first_round(spec.benchmark, key)
        return benchmark.context(environment, played.observation), played.cost

    promised = {"context": benchmark.context_shape, "cost": (benchmark.oracle.dim,)}
    for (part, shape), leaf in zip(promised.items(), jax.eval_shape(first, jax.random.key(0)), strict=True):
        if leaf.shape != shape:
            raise SettingsError(f"benchmark {benchmark.name!r}: expected a {part} of shape {shape}, got {leaf.shape}")


def _first_round(benchmark: Benchmark, key: Key) -> tuple[PyTree, Round]:
    """Return an environment and a round, to know their shapes."""
    environment = benchmark.environment(key)
    return environment, benchmark.round(key, environment, jnp.int32(1))


class Carry(eqx.Module):
    """What a replication takes from round to round."""

    state: Any
    pending: tuple[Decision, Feedback] | None  # the last ``delay`` decisions with their feedback, by round modulo delay
    diverged_at: Int[Array, ""]
    failed: Int[Array, ""]  # worst solver status so far


class SegmentRecord(NamedTuple):
    """What rounds leave behind, in a program or on the host."""

    regret: Any  # [rounds]
    info: dict[str, Any]  # diagnostics, in single precision: [rounds], on the host those that are kept
    w: Any  # [rounds, d], or None if decisions are not kept


class FeedbackArrival(NamedTuple):
    """The decision of this round, and the decision and feedback that arrive in it."""

    now: Decision
    decision: Decision
    feedback: Feedback
    arrived: Bool[Array, ""] | bool
    pending: Any


class Replication(NamedTuple):
    """One replication of a policy: what stays the same from round to round."""

    policy: Policy
    spec: SimulationSpec
    seed_key: Key
    environment: PyTree

    def draw_sample(self, state: Any, played: Round, t: Array) -> Sample:
        """Return the policy's sample in this round, with the cost vector to solve."""
        context = self.spec.benchmark.context(self.environment, played.observation)
        return self.policy.sample(purpose_key(self.seed_key, DECIDE, t), state, context, played.instance)

    def act(self, played: Round, sample: Sample, solution: Solution, t: Array) -> tuple[Decision, Feedback]:
        """Return the decision that the solution makes, and what it reveals."""
        problem, context = self.policy.problem, self.spec.benchmark.context(self.environment, played.observation)
        decision = problem.record(sample, solution, context, played.instance, id=t)
        seen = None
        if self.spec.missing:
            rows = problem.observe(decision, played.cost).values.shape
            seen = jax.random.uniform(purpose_key(self.seed_key, MISSING, t), rows) >= self.spec.missing
        return decision, problem.observe(decision, played.cost, seen)

    def arrive(self, carry: Carry, decision: Decision, feedback: Feedback, t: Array) -> FeedbackArrival:
        """Return what there is to learn from in this round: its own feedback, or that of ``delay`` rounds ago."""
        now, pending = decision, carry.pending
        arrived: Bool[Array, ""] | bool = True
        if pending is not None:
            slot = t % self.spec.delay
            arrived = t > self.spec.delay
            fresh = decision, feedback
            # Until feedback arrives, this round takes its place, and what is learned from it is discarded.
            decision, feedback = jax.tree.map(lambda ring, leaf: jnp.where(arrived, ring[slot], leaf), pending, fresh)
            pending = jax.tree.map(lambda ring, leaf: ring.at[slot].set(leaf), pending, fresh)
        if self.spec.missing:
            arrived = arrived & jnp.any(feedback.used())
        return FeedbackArrival(now, decision, feedback, arrived, pending)

    def finish_round(
        self, carry: Carry, arrival: FeedbackArrival, state: Any, info: Info, played: Round, best: Array, t: Array
    ) -> tuple[Carry, SegmentRecord]:
        """Return the carry after a round, and its record."""
        finite, now = info.finite, arrival.now
        if arrival.arrived is not True:
            state = jax.tree.map(lambda new, old: jnp.where(arrival.arrived, new, old), state, carry.state)
            finite = finite | ~arrival.arrived
        if isinstance(self.policy, Guarded):
            waiting = 0 if arrival.pending is None else jnp.sum(is_policys(arrival.pending[0].member))
            state = self.policy.with_waiting(state, waiting)
        regret = self.spec.benchmark.regret_cost(played) @ now.w - best
        sampled = jnp.all(jnp.isfinite(now.cost_sample))
        finite = finite & jnp.isfinite(regret) & sampled
        diverged_at = jnp.where((carry.diverged_at == 0) & ~finite, t, carry.diverged_at)
        status = jnp.where(sampled, jnp.abs(now.status), 0)  # a non-finite sample has no solution, which is no failure
        failed = jnp.maximum(carry.failed, status.astype(jnp.int32))
        shown = {name: value.astype(jnp.float32) for name, value in {**info.scalars(), "finite": finite}.items()}
        after = Carry(state, arrival.pending, diverged_at, failed)
        return after, SegmentRecord(regret, shown, now.w if self.spec.keep_decisions else None)


def begin(policy: Policy, spec: SimulationSpec, seed_key: Key) -> Carry:
    """Return the carry before the first round."""
    state = policy.init(purpose_key(seed_key, START))

    def first() -> tuple[Decision, Feedback]:
        environment, played = _first_round(spec.benchmark, seed_key)
        replication = Replication(policy, spec, seed_key, environment)
        sample = replication.draw_sample(state, played, jnp.int32(1))
        aux = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), policy.oracle.aux_form())
        solution = Solution(jnp.zeros(policy.problem.dim), jnp.zeros((), jnp.int32), aux)
        return replication.act(played, sample, solution, jnp.int32(1))

    pending = None
    if spec.delay:
        ring = lambda leaf: jnp.zeros((spec.delay, *leaf.shape), leaf.dtype)  # noqa: E731
        pending = jax.tree.map(ring, jax.eval_shape(first))
    return Carry(state, pending, jnp.zeros((), jnp.int32), jnp.zeros((), jnp.int32))


def play_segment(
    policy: Policy,
    spec: SimulationSpec,
    carry: Carry,
    seed_key: Key,
    segment: StreamSegment,
    start: Int[Array, ""],
    count: Int[Array, ""],
) -> tuple[Carry, SegmentRecord]:
    """Play the first ``count`` rounds of a segment; the record has room for all of them."""
    replication = Replication(policy, spec, seed_key, segment.environment)

    @jax.jit  # traced once, for its shapes and in the loop
    def one(carry: Carry, t: Array, played: Round, best: Array) -> tuple[Carry, SegmentRecord]:
        sample = replication.draw_sample(carry.state, played, t)
        solution = policy.oracle.solve_one(sample.cost, played.instance)
        decision, feedback = replication.act(played, sample, solution, t)
        arrival = replication.arrive(carry, decision, feedback, t)
        key = purpose_key(seed_key, LEARN, t)
        state, info = policy.learn(key, carry.state, arrival.decision, arrival.feedback)
        return replication.finish_round(carry, arrival, state, info, played, best, t)

    def step(i: Array, playing: tuple[Carry, SegmentRecord]) -> tuple[Carry, SegmentRecord]:
        carry, records = playing
        played, best = jax.tree.map(lambda leaf: leaf[i], (segment.rounds, segment.best))
        carry, record = one(carry, start + 1 + i, played, best)
        key = purpose_key(seed_key, LEARN, start + 1 + i)
        carry = dataclasses.replace(carry, state=refit_if_due(policy, key, carry.state, start + 1 + i))
        return carry, jax.tree.map(lambda room, leaf: room.at[i].set(leaf), records, record)

    first = jax.tree.map(lambda leaf: leaf[0], (segment.rounds, segment.best))
    _, form = jax.eval_shape(one, carry, start + 1, *first)
    room = jax.tree.map(lambda leaf: jnp.zeros((len(segment.best), *leaf.shape), leaf.dtype), form)
    return jax.lax.fori_loop(0, count, step, (carry, room))
