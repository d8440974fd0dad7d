"""Whole runs: a scan over rounds, a vmap over replications and over hyper-parameter values.

The environment's stream is drawn once and shown to every policy, so that comparisons are paired. A long horizon runs in
segments: a compiled program plays some hundred rounds and hands its state to the next call, which is when progress is told
and where a run can be stopped. What happens in one replication stands in ``rounds.py``, how replications become one program
in ``programs.py``.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback as feedbacks
from regretless.benchmarks.base import Benchmark
from regretless.benchmarks.references import Reference, Tally, references
from regretless.feedback import Measurement, check_linkage
from regretless.policies.base import Policy
from regretless.simulate import rounds
from regretless.simulate.programs import Lanes, Progress, leaf_bytes
from regretless.trace import DIAGNOSTICS_EVERY, Trace
from regretless.types import SOLVED

SEGMENT = 250
CPU_BYTES = 24 * 2**20
GPU_SHARE = 0.4


class Simulation(NamedTuple):
    """Traces by policy name, the reference lines of the same stream, and where the time went."""

    traces: dict[str, Trace]
    references: list[Reference]
    seconds: dict[str, float]  # compile, run
    compiled: int  # programs of rounds that were not known yet


def simulate(policy: Policy, benchmark: Benchmark, **options: Any) -> Trace:
    """Plays one policy; the options are those of ``simulate_all``.

    >>> import regretless as rg
    >>> bench = rg.benchmarks.build("topk")
    >>> problem = rg.Problem(bench.oracle, bench.context_shape, bench.measurement("bandit"))
    >>> policy = rg.policies.build("greedy", rg.Settings(), problem)
    >>> rg.simulate(policy, bench, seeds=range(2), horizon=20).regret.shape
    (2, 20)
    """
    return simulate_all({"policy": policy}, benchmark, **options).traces["policy"]


def simulate_all(
    policies: Mapping[str, Policy],
    benchmark: Benchmark,
    *,
    feedback: str | Measurement = "bandit",
    seeds: Iterable[int] = range(30),
    horizon: int | None = None,
    delay: int = 0,
    missing: float = 0.0,
    vectorized: bool = True,
    keep_decisions: bool = False,
    chunk: int | None = None,
    precision: Literal["mixed", "single"] = "mixed",
    hasty: bool = False,
    config: Mapping[str, Any] | None = None,
    progress: Progress = lambda what, done, total: None,
) -> Simulation:
    """Plays several policies on the same stream of contexts and costs.

    Policies that differ in numbers only run in one compiled program. Feedback arrives ``delay`` rounds late, and each of its
    rows fails to arrive with probability ``missing``. ``vectorized=False`` runs every replication by itself, unbatched.
    ``chunk`` is the largest number of replications that run together (default: what suits the memory). ``precision="mixed"``
    computes policies in float64 around a float32 nuisance, as the published runs did; ``"single"`` all in float32.
    ``hasty`` compiles in less time to programs that round differently: for short runs that are compared with each other only.
    """
    seeds = tuple(seeds)
    horizon = benchmark.horizon if horizon is None else horizon
    _check(policies, seeds, horizon, delay, missing)
    if benchmark.longest is not None and horizon > benchmark.longest:
        raise ValueError(f"benchmark {benchmark.name!r} has {benchmark.longest} rounds, got a horizon of {horizon}")
    rule = benchmark.measurement(feedback) if isinstance(feedback, str) else feedback
    game = rounds.Game(benchmark, rule, delay, missing, keep_decisions)
    with jax.enable_x64(precision == "mixed"):
        rounds.check_shapes(game)
        if rule not in feedbacks.REGISTRY.values():
            _check_linkage(game)
        run = _Run(
            game,
            _groups(policies, merge=vectorized),
            _segments(horizon),
            len(seeds),
            vectorized,
            chunk,
            progress,
            hasty,
        )
        parts = [run.play(seeds[i : i + run.size], i, len(seeds)) for i in range(0, len(seeds), run.size)]
        lines = references(benchmark, _concatenated([part.tally for part in parts]))
    record = {
        "benchmark": benchmark.describe(), "feedback": rule.name, "delay": delay, "missing": missing, "precision": precision,
        **(config or {}),
    }  # fmt: skip
    traces = {}
    for name in policies:
        mine = _concatenated([part.outcomes[name] for part in parts])
        traces[name] = Trace(
            mine.regret, mine.diagnostics, mine.diverged_at, seeds, {"policy": name, **record}, mine.decisions
        )
    return Simulation(traces, lines, run.seconds, run.lanes.compiled[_play.__name__])


def _concatenated(parts: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


def _check(policies: Mapping[str, Policy], seeds: Sequence[int], horizon: int, delay: int, missing: float) -> None:
    if not policies:
        raise ValueError("expected at least one policy, got none")
    if not seeds or len(set(seeds)) != len(seeds) or min(seeds) < 0:
        raise ValueError(f"expected at least one seed, all different and not negative, got {list(seeds)[:10]}")
    if horizon < 1:
        raise ValueError(f"expected a horizon of at least 1 round, got {horizon}")
    if delay < 0 or not 0.0 <= missing < 1.0:
        raise ValueError(f"expected delay ≥ 0 and 0 ≤ missing < 1, got {delay} and {missing}")


def _check_linkage(game: rounds.Game) -> None:
    """Refuses a measurement from which the total cannot be recovered, on decisions of this very benchmark."""
    first = rounds.draw(game, jax.random.key(0), jnp.int32(0), 8).rounds
    check_linkage(game.rule, game.benchmark.oracle.solve(first.cost, first.instance))


class _Group(NamedTuple):
    """Policies of one structure, stacked along a leading axis if there are several."""

    names: tuple[str, ...]
    policy: Policy

    @property
    def program(self) -> "_Program":
        """What a compiled program depends on: not the names, so that other names of the same structure share it."""
        return self.policy, len(self.names) > 1


_Program = tuple[Policy, bool]
"""A policy, and whether it is several of them, stacked."""


def _groups(policies: Mapping[str, Policy], merge: bool) -> list[_Group]:
    by_structure: dict[Any, list[tuple[str, Policy]]] = {}
    for name, policy in policies.items():
        leaves, structure = jax.tree.flatten(policy)
        key = (structure, tuple(np.shape(leaf) for leaf in leaves)) if merge else name
        by_structure.setdefault(key, []).append((name, policy))
    groups = []
    for members in by_structure.values():
        names = tuple(name for name, _ in members)
        alike = [jax.tree.map(jnp.asarray, policy) for _, policy in members]
        groups.append(_Group(names, alike[0] if len(alike) == 1 else jax.tree.map(lambda *x: jnp.stack(x), *alike)))
    return groups


def _segments(horizon: int) -> list[int]:
    """Lengths of the segments: one length throughout if some divisor of the horizon suits, else a shorter last one."""
    if horizon <= SEGMENT:
        return [horizon]
    for length in range(SEGMENT, SEGMENT // 4, -1):
        if horizon % length == 0:
            return [length] * (horizon // length)
    return [SEGMENT] * (horizon // SEGMENT) + [horizon % SEGMENT]


def _memory_limit(groups: Sequence[_Group], game: rounds.Game, length: int) -> int:
    """How many replications may run together: on a CPU as many as keep their state in its cache, on a GPU in its memory."""
    key = jax.random.key(0)
    states = [jax.eval_shape(lambda key, group=group: _begin((group.program, game), key), key) for group in groups]
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return max(len(jax.local_devices()), CPU_BYTES // max(map(leaf_bytes, states)))
    stream = jax.eval_shape(lambda key: rounds.draw(game, key, jnp.int32(0), length), key)
    room = GPU_SHARE * (device.memory_stats() or {}).get("bytes_limit", 2**33)
    return max(1, int(room // (leaf_bytes(states) + leaf_bytes(stream))))


def _chunk_size(replications: int, limit: int, width: int) -> int:
    """Replications per chunk: at most ``limit``, the same in every chunk, a multiple of the devices, little padding."""
    fewest = math.ceil(replications / limit)
    sizes = [math.ceil(math.ceil(replications / n) / width) * width for n in range(fewest, fewest + 3)]
    return min(sizes, key=lambda size: (math.ceil(replications / size) * size, -size))


# The three programs of a run, as functions of (what is shared, what each replication has).


def _draw(shared: tuple[rounds.Game, Any, int], own: Any) -> rounds.Segment:
    game, start, length = shared
    return rounds.draw(game, own, start, length)


def _begin(shared: tuple[_Program, rounds.Game], own: Any) -> rounds.Carry:
    (policy, several), game = shared
    one = lambda policy: rounds.begin(policy, game, own)  # noqa: E731
    return jax.vmap(one)(policy) if several else one(policy)


def _play(shared: tuple[_Program, rounds.Game, Any], own: Any) -> tuple[rounds.Carry, rounds.Record]:
    (policy, several), game, start = shared
    seed_key, carry, segment = own
    one = lambda policy, carry: rounds.play(policy, game, carry, seed_key, segment, start)  # noqa: E731
    return jax.vmap(one)(policy, carry) if several else one(policy, carry)


class _Outcome(eqx.Module):
    """One policy's part of a trace, on the host."""

    regret: np.ndarray
    diagnostics: dict[str, np.ndarray]
    diverged_at: np.ndarray
    decisions: np.ndarray | None


class _Part(NamedTuple):
    """What a chunk of replications comes to."""

    outcomes: dict[str, _Outcome]
    tally: Tally


class _Run:
    """Plays chunk after chunk of replications, all policies in step with one stream."""

    def __init__(
        self,
        game: rounds.Game,
        groups: list[_Group],
        lengths: list[int],
        replications: int,
        vectorized: bool,
        chunk: int | None,
        progress: Progress,
        hasty: bool,
    ):
        self.began = time.perf_counter()
        self.game, self.groups, self.lengths, self.progress = game, groups, lengths, progress
        limit = (chunk or _memory_limit(groups, game, lengths[0])) if vectorized else 1
        self.lanes = Lanes(min(replications, limit), vectorized, hasty)
        self.size = _chunk_size(replications, limit, self.lanes.width)
        game.benchmark.oracle.take_failure()  # one of an earlier run is none of this one's

    @property
    def seconds(self) -> dict[str, float]:
        """Where the time went so far."""
        compiling = self.lanes.compile_seconds
        return {"compile": compiling, "run": time.perf_counter() - self.began - compiling}

    def play(self, seeds: Sequence[int], before: int, total: int) -> _Part:
        """One chunk; ``before`` of ``total`` replications are finished."""
        padded = [*seeds, *[seeds[-1]] * (self.size - len(seeds))]
        keys = self.lanes.place(jax.vmap(jax.random.key)(np.asarray(padded, np.uint32)))
        if not self.lanes.vectorized:
            keys = keys[0]
        carries = [self.lanes.run(_begin, (group.program, self.game), keys) for group in self.groups]
        records: list[list[rounds.Record]] = [[] for _ in self.groups]
        tallies, start = [], 0
        for length in self.lengths:
            segment = self.lanes.run(_draw, (self.game, jnp.int32(start), length), keys)
            bad = np.asarray(segment.unusable)
            self._raise_failure()
            if np.any(bad):
                raise ValueError(
                    f"benchmark {self.game.benchmark.name!r}: expected finite contexts and costs, "
                    f"but round {bad[bad > 0].min()} holds a number that is not"
                )
            calls = [
                (_play, (group.program, self.game, jnp.int32(start)), (keys, carry, segment))
                for group, carry in zip(self.groups, carries, strict=True)
            ]
            self.lanes.prepare(calls, self.progress)
            for index, call in enumerate(calls):
                carries[index], record = self.lanes.run(*call)
                records[index].append(jax.tree.map(np.asarray, record))
                if np.any(np.asarray(carries[index].failed) != SOLVED):
                    self.game.benchmark.oracle.raise_failure()
                self._raise_failure()
                done = before * sum(self.lengths) + len(seeds) * (start + length * (index + 1) // len(calls))
                self.progress("running", done, total * sum(self.lengths))
            tallies.append(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), segment.tally))
            start += length
        tally = jax.tree.map(lambda *parts: np.sum(parts, axis=0), *tallies)
        outcomes: dict[str, _Outcome] = {}
        for group, carry, parts in zip(self.groups, carries, records, strict=True):
            diverged_at = self._own(carry.diverged_at, len(seeds))
            outcomes |= _outcomes(group, diverged_at, [self._own(part, len(seeds)) for part in parts])
        return _Part(outcomes, self._own(tally, len(seeds)))

    def _raise_failure(self) -> None:
        """Raises a failed solve that no decision shows: one for a reference line, a surrogate or a baseline."""
        failure = self.game.benchmark.oracle.take_failure()
        if failure is not None:
            raise failure

    def _own(self, tree: Any, count: int) -> Any:
        """The replications that were asked for, with their leading axis and without the padding."""
        if not self.lanes.vectorized:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], tree)


def _outcomes(group: _Group, diverged_at: np.ndarray, records: list[rounds.Record]) -> dict[str, _Outcome]:
    """A chunk's results, policy by policy: leading axes are replications and, in a group of several, policies."""
    several = len(group.names) > 1
    axis = 2 if several else 1
    outcomes = {}
    start, diagnostics = 0, []
    for record in records:
        length = record.regret.shape[axis]
        count = (start + length) // DIAGNOSTICS_EVERY - start // DIAGNOSTICS_EVERY
        diagnostics.append({key: value[..., :count] for key, value in record.info.items()})
        start += length
    joined = lambda parts: jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=axis), *parts)  # noqa: E731
    whole = (
        joined([record.regret for record in records]),
        joined(diagnostics),
        joined([record.w for record in records]),
    )
    for position, name in enumerate(group.names):
        mine = jax.tree.map(lambda leaf, i=position: leaf[:, i] if several else leaf, (*whole, diverged_at))
        regret, sparse, decisions, at = mine
        outcomes[name] = _Outcome(regret, sparse, at, decisions)
    return outcomes
