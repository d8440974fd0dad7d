"""A run: chunk after chunk of replications, all policies in step with one stream, segment by segment."""

import hashlib
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.policies.base import Policy
from regretless.simulation import stream
from regretless.simulation.programs import (
    Call,
    PolicyProgram,
    Progress,
    Replicas,
    leaf_bytes,
    play_on_host,
    solve_stream,
)
from regretless.simulation.stream import ReferenceTally, SimulationSpec
from regretless.types import SOLVED

if TYPE_CHECKING:
    from regretless.simulation.saving import Saving

CPU_BYTES = 24 * 2**20
"""States of replications that run together on a CPU: about what its caches hold."""

GPU_SHARE = 0.4
"""Share of a GPU's memory for the states and streams of replications that run together."""

LARGE_STATE = 2**16
"""Bytes of state from which running several policies at once gains nothing on a CPU."""

MEMORY_SHARE = 0.8
"""Share of the machine's memory that a run may take."""

DEFAULT_MEMORY = 8 * 2**30
"""Bytes of memory that are assumed if the system does not report them."""


class Metrics(NamedTuple):
    """A run after some rounds, as means over the replications that run together and are finite so far.

    >>> metrics = Metrics(50, 200, (0, 1), {"dfhpg": 12.0}, {"dfhpg": 1.5}, {"dfhpg": {"alpha": 0.25}}, 0.1)
    >>> metrics.flat()
    {'dfhpg/regret': 12.0, 'dfhpg/regret_standard_error': 1.5, 'dfhpg/alpha': 0.25}
    """

    round: int
    horizon: int
    seeds: tuple[int, ...]  # the replications that this describes; if memory is short, others follow
    regret: dict[str, float]  # by policy: mean cumulative regret
    standard_error: dict[str, float]
    diagnostics: dict[str, dict[str, float]]  # by policy: the last ones that were kept
    seconds: float  # since the start

    def flat(self) -> dict[str, float]:
        """Return every finite number under one name, for loggers."""
        values: dict[str, float] = {}
        for policy, regret in self.regret.items():
            values |= {f"{policy}/regret": regret, f"{policy}/regret_standard_error": self.standard_error[policy]}
            values |= {f"{policy}/{name}": value for name, value in self.diagnostics[policy].items()}
        return {name: value for name, value in values.items() if math.isfinite(value)}


Callback = Callable[[Metrics], Any]
"""Receives metrics; the run ends there if it returns True."""


class SegmentData(NamedTuple):
    """What a segment left behind, on the host."""

    regret: np.ndarray
    info: dict[str, np.ndarray]
    w: np.ndarray | None


class PolicyOutcome(eqx.Module):
    """One policy's part of a chunk, on the host."""

    regret: np.ndarray
    diagnostics: dict[str, np.ndarray]
    diverged_at: np.ndarray
    decisions: np.ndarray | None


class ChunkOutcome(NamedTuple):
    """The outcome of a chunk of replications."""

    outcomes: dict[str, PolicyOutcome]
    tally: ReferenceTally


@dataclass(eq=False)
class Chunk:
    """Replications that run together; arrays on the host have a leading axis of replications, without padding.

    In a group of several policies, the next axis is that of the policies.
    """

    seeds: tuple[int, ...]
    segments: int = 0  # how many are finished
    carries: list[Any] = field(default_factory=list)  # by group; empty before the first segment and after the last one
    diverged_at: list[np.ndarray] = field(default_factory=list)  # by group
    records: list[list[SegmentData]] = field(default_factory=list)  # by group, one entry per segment
    tallies: list[ReferenceTally] = field(default_factory=list)  # one entry per segment
    totals: list[np.ndarray] = field(default_factory=list)  # regret so far, by group

    def add(
        self, records: Sequence[SegmentData], tally: ReferenceTally, carries: list[Any], diverged_at: list[np.ndarray]
    ) -> None:
        """Add a segment that all groups have finished."""
        self.records = self.records or [[] for _ in records]
        self.totals = self.totals or [np.zeros(record.regret.shape[:-1]) for record in records]
        for index, record in enumerate(records):
            self.records[index].append(record)
            self.totals[index] = self.totals[index] + record.regret.sum(axis=-1, dtype=np.float64)
        self.tallies.append(tally)
        self.carries, self.diverged_at = carries, diverged_at
        self.segments += 1

    def latest(self, group: int) -> dict[str, np.ndarray]:
        """Return the last diagnostics that were kept of a group; none before the first."""
        for record in reversed(self.records[group]):
            if any(values.shape[-1] for values in record.info.values()):
                return {name: values[..., -1] for name, values in record.info.items()}
        return {}

    def joined(self, group: int) -> SegmentData:
        """Return what all segments of a group left behind, in one piece."""
        records = self.records[group]
        if len(records) > 1:
            axis = records[0].regret.ndim - 1
            whole = jax.tree.map(lambda *leaves: np.concatenate(leaves, axis=axis), *records)
            self.records[group] = [whole]
        return self.records[group][0]

    def outcome(self, groups: "Sequence[PolicyGroup]", segments: int, rounds: int, every: int) -> ChunkOutcome:
        """Return the outcome if the first ``segments`` count, which are ``rounds`` rounds."""
        tally = jax.tree.map(lambda *parts: np.sum(parts, axis=0), *self.tallies[:segments])
        outcomes: dict[str, PolicyOutcome] = {}
        for index, group in enumerate(groups):
            whole, diverged = self.joined(index), self.diverged_at[index]
            diverged = np.where(diverged <= rounds, diverged, 0).astype(diverged.dtype)
            for name, part_of in group.parts():
                outcomes[name] = PolicyOutcome(
                    part_of(whole.regret)[:, :rounds],
                    {key: part_of(values)[:, : rounds // every] for key, values in whole.info.items()},
                    part_of(diverged),
                    None if whole.w is None else part_of(whole.w)[:, :rounds],
                )
        return ChunkOutcome(outcomes, tally)

    def metrics(self, groups: "Sequence[PolicyGroup]", round: int, horizon: int, seconds: float) -> Metrics:
        """Return the metrics after the last segment."""
        regret, errors, diagnostics = {}, {}, {}
        for index, group in enumerate(groups):
            last = self.latest(index)
            for name, part_of in group.parts():
                finite = part_of(self.diverged_at[index]) == 0
                totals = part_of(self.totals[index])[finite]
                regret[name] = float(totals.mean()) if len(totals) else math.nan
                errors[name] = float(totals.std(ddof=1) / len(totals) ** 0.5) if len(totals) > 1 else math.nan
                diagnostics[name] = {key: _mean(part_of(values)[finite]) for key, values in last.items()}
        return Metrics(round, horizon, self.seeds, regret, errors, diagnostics, seconds)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64)) if len(values) else math.nan


class PolicyGroup(NamedTuple):
    """Policies of one structure, stacked along a leading axis if there are several."""

    names: tuple[str, ...]
    policy: Policy

    @property
    def program(self) -> PolicyProgram:
        """What a compiled program depends on: not the names, so that other names of the same structure share it."""
        return self.policy, len(self.names) > 1

    def parts(self) -> list[tuple[str, Callable[[np.ndarray], np.ndarray]]]:
        """Return each policy's name with a function that takes its part from an array of the group."""
        if len(self.names) == 1:
            return [(self.names[0], lambda leaf: leaf)]
        return [(name, partial(_take_policy, place)) for place, name in enumerate(self.names)]


def _take_policy(place: int, leaf: np.ndarray) -> np.ndarray:
    return leaf[:, place]


def group_policies(policies: Mapping[str, Policy], merge: bool) -> list[PolicyGroup]:
    """Group policies that differ in numbers only if that is faster; alone they still share a program."""
    by_structure: dict[Any, list[tuple[str, Policy]]] = {}
    for name, policy in policies.items():
        leaves, structure = jax.tree.flatten(policy)
        together = merge and not _better_alone(policy)
        key = (structure, tuple(np.shape(leaf) for leaf in leaves)) if together else name
        by_structure.setdefault(key, []).append((name, policy))
    groups = []
    for members in by_structure.values():
        names = tuple(name for name, _ in members)
        alike = [jax.tree.map(jnp.asarray, policy) for _, policy in members]
        stacked = alike[0] if len(alike) == 1 else jax.tree.map(lambda *x: jnp.stack(x), *alike)
        groups.append(PolicyGroup(names, stacked))
    return groups


def _better_alone(policy: Policy) -> bool:
    """Return whether a policy is large, on a CPU; a solver on the host is called less often for several at once."""
    if policy.oracle.on_host or jax.local_devices()[0].platform != "cpu":
        return False
    return leaf_bytes(jax.eval_shape(policy.init, jax.random.key(0))) >= LARGE_STATE


def _programs(groups: Sequence[PolicyGroup]) -> list[PolicyProgram]:
    return [group.program for group in groups]


def memory_limit(states: Sequence[Any], spec: SimulationSpec, length: int) -> int:
    """Return how many replications may run together: their states fit a CPU's cache, or a GPU's memory."""
    key = jax.random.key(0)
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return max(len(jax.local_devices()), CPU_BYTES // max(map(leaf_bytes, states)))
    batch = jax.eval_shape(lambda key: stream.draw(spec, key, jnp.int32(0), length), key)
    room = GPU_SHARE * (device.memory_stats() or {}).get("bytes_limit", 2**33)
    return max(1, int(room // (leaf_bytes(states) + leaf_bytes(batch))))


def chunk_size(replications: int, limit: int, width: int) -> int:
    """Return replications per chunk: at most ``limit``, equal chunks, a multiple of the devices, little padding."""
    fewest = math.ceil(replications / limit)
    sizes = [math.ceil(math.ceil(replications / n) / width) * width for n in range(fewest, fewest + 3)]
    return min(sizes, key=lambda size: (math.ceil(replications / size) * size, -size))


# The programs of a run, as functions of (what is shared, what each replication has).


def _draw(shared: tuple[SimulationSpec, Any, int], mapped: Any) -> stream.StreamBatch:
    spec, start, length = shared
    return stream.draw(spec, mapped, start, length)


def _draw_and_solve(shared: tuple[SimulationSpec, Any, int], mapped: Any) -> stream.StreamSegment:
    spec, start, length = shared
    return stream.draw_and_solve(spec, mapped, start, length)


def _begin(shared: tuple[list[PolicyProgram], SimulationSpec], mapped: Any) -> list[stream.Carry]:
    # One program for all groups: what they draw alike, such as a network's weights, is compiled and drawn once.
    programs, spec = shared
    one = lambda policy: stream.begin(policy, spec, mapped)  # noqa: E731
    return [jax.vmap(one)(policy) if stacked else one(policy) for policy, stacked in programs]


def _play(shared: tuple[PolicyProgram, SimulationSpec, Any], mapped: Any) -> tuple[stream.Carry, stream.SegmentRecord]:
    (policy, stacked), spec, start = shared
    seed_key, carry, segment = mapped
    one = lambda policy, carry: stream.play_segment(policy, spec, carry, seed_key, segment, start)  # noqa: E731
    return jax.vmap(one)(policy, carry) if stacked else one(policy, carry)


PLAY = _play.__name__
"""The name under which programs of rounds are counted."""


class SimulationRun:
    """Play chunk after chunk; ``chunk`` is the largest number of replications together (None: as memory allows)."""

    def __init__(
        self,
        spec: SimulationSpec,
        groups: list[PolicyGroup],
        lengths: list[int],
        replications: int,
        *,
        vectorized: bool,
        chunk: int | None,
        progress: Progress,
    ):
        self.began = time.perf_counter()
        self.spec, self.groups, self.lengths, self.progress = spec, groups, lengths, progress
        self.on_host = spec.benchmark.oracle.on_host
        vectorized = vectorized or self.on_host
        states = jax.eval_shape(lambda key: _begin((_programs(groups), spec), key), jax.random.key(0))
        limit = (chunk or memory_limit(states, spec, lengths[0])) if vectorized else 1
        policies = sum(len(group.names) for group in groups)
        numbers = 1 + (spec.benchmark.oracle.dim if spec.keep_decisions else 0)
        rounds = sum(lengths)
        _require_room(
            8.0 * replications * rounds * policies * numbers,
            f"{replications:,} replications of {rounds:,} rounds with {policies} policies",
        )
        together = min(replications, limit)
        size = sum(leaf_bytes(state) for state in states)
        _require_room(3.0 * size * together, f"the states of {together:,} replications (delay, sizes of the problem)")
        self.replicas = Replicas(together, vectorized)
        self.size = chunk_size(replications, limit, self.replicas.width)

    @property
    def seconds(self) -> dict[str, float]:
        """Where the time went so far."""
        compiling = self.replicas.compile_seconds
        return {"compile": compiling, "run": time.perf_counter() - self.began - compiling}

    def play(
        self, seeds: Sequence[int], callback: Callback | None, every: int, saving: "Saving | None"
    ) -> tuple[list[ChunkOutcome], int]:
        """Play all replications, or continue those that were saved; return outcomes and the number of rounds."""
        chunks = [Chunk(tuple(seeds[i : i + self.size])) for i in range(0, len(seeds), self.size)]
        last = len(self.lengths)
        if saving is not None:
            chunks, last = saving.load(len(self.groups), lambda: self._carry_shapes(seeds)) or (chunks, last)
        for chunk in chunks:
            if chunk.segments >= last:
                continue
            keys = self._keys(chunk.seeds)
            self._prepare(keys)
            carries = [self.replicas.place(carry) for carry in chunk.carries] or self.replicas.run(
                *self._beginning(keys)
            )
            while chunk.segments < last:
                self._play_segment(keys, carries, chunk, chunks)
                if callback is not None and self._notify(callback, every, chunk):
                    last = chunk.segments
                if chunk.segments == last:
                    chunk.carries = []
                if saving is not None:
                    saving.save(chunks, last, now=chunk.segments == last)
        rounds = sum(self.lengths[:last])
        return [chunk.outcome(self.groups, last, rounds, self.spec.diagnostics_every) for chunk in chunks], rounds

    def _play_segment(self, keys: Any, carries: list[Any], chunk: Chunk, chunks: list[Chunk]) -> None:
        """Play a chunk's next segment with every group and add it; ``carries`` are updated."""
        length, start = self.lengths[chunk.segments], sum(self.lengths[: chunk.segments])
        segment = self._segment(keys, start, length)
        records: list[SegmentData] = []
        before = sum(len(earlier.seeds) for earlier in chunks[: chunks.index(chunk)])
        total = sum(len(part.seeds) for part in chunks)
        for index, group in enumerate(self.groups):
            if self.on_host:
                carries[index], record = play_on_host(
                    self.replicas, group.program, self.spec, keys, carries[index], segment, start
                )
            else:
                shared = (group.program, self.spec, jnp.int32(start))
                carries[index], record = self.replicas.run(_play, shared, (keys, carries[index], segment))
            records.append(_trim(self._unpadded(record, len(chunk.seeds)), start, self.spec.diagnostics_every))
            if np.any(np.asarray(carries[index].failed) != SOLVED):
                raise OracleError("the feasible set is empty for at least one instance")
            done = before * sum(self.lengths) + len(chunk.seeds) * (start + length * (index + 1) // len(self.groups))
            self.progress("running", done, total * sum(self.lengths))
        tally = self._unpadded(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), segment.tally), len(chunk.seeds))
        diverged = [self._unpadded(carry.diverged_at, len(chunk.seeds)) for carry in carries]
        chunk.add(records, tally, list(carries), diverged)

    def _notify(self, callback: Callback, every: int, chunk: Chunk) -> bool:
        """Call the callback if it is due; return whether it wants the run to end here."""
        played, horizon = sum(self.lengths[: chunk.segments]), sum(self.lengths)
        if played % every and played < horizon:
            return False
        return callback(chunk.metrics(self.groups, played, horizon, time.perf_counter() - self.began)) is True

    def _carry_shapes(self, seeds: Sequence[int]) -> list[Any]:
        return self.replicas.shapes(*self._beginning(self._keys(seeds[:1])))

    def describe(self) -> dict[str, Any]:
        """Return everything that the bits of a run depend on, as JSON data."""
        return {
            "policies": {", ".join(group.names): fingerprint(group.policy) for group in self.groups},
            "benchmark": {**self.spec.benchmark.describe(), "fingerprint": fingerprint(self.spec)},
            "segments": self.lengths,
            "replications together": self.size,
            "devices": [f"{device.platform} {device.device_kind}" for device in self.replicas.mesh.devices.flat],
            "vectorized": self.replicas.vectorized,
            "compiler options": self.replicas.options,
        }

    def _keys(self, seeds: Sequence[int]) -> Any:
        """Return the keys of a chunk, padded to its size."""
        padded = [*seeds, *[seeds[-1]] * (self.size - len(seeds))]
        keys = self.replicas.place(jax.vmap(jax.random.key)(np.asarray(padded, np.uint32)))
        return keys if self.replicas.vectorized else keys[0]

    def _beginning(self, keys: Any) -> Call:
        """Return the program call that begins every group."""
        return _begin, (_programs(self.groups), self.spec), keys

    def _prepare(self, keys: Any) -> None:
        """Compile all programs of a chunk in parallel, from the shapes of what they pass to each other.

        Those of a run with a solver on the host are compiled when they are needed.
        """
        if self.on_host:
            return
        start = jnp.int32(0)
        begin = self._beginning(keys)
        carries = self.replicas.shapes(*begin)
        calls: list[Call] = [begin]
        for length in dict.fromkeys(self.lengths):
            draw = (_draw_and_solve, (self.spec, start, length), keys)
            segment = self.replicas.shapes(*draw)
            calls.append(draw)
            for group, carry in zip(self.groups, carries, strict=True):
                calls.append((_play, (group.program, self.spec, start), (keys, carry, segment)))
        self.replicas.prepare(calls, self.progress)

    def _segment(self, keys: Any, start: int, length: int) -> stream.StreamSegment:
        """Return the next rounds of the stream; refuse a benchmark that draws non-finite numbers."""
        shared = (self.spec, jnp.int32(start), length)
        batch: Any = self.replicas.run(_draw if self.on_host else _draw_and_solve, shared, keys)
        bad = np.asarray(batch.unusable)
        if np.any(bad):
            raise SettingsError(
                f"benchmark {self.spec.benchmark.name!r}: expected finite contexts and costs, "
                f"but round {bad[bad > 0].min()} holds a number that is not finite"
            )
        return solve_stream(self.replicas, self.spec, batch) if self.on_host else batch

    def _unpadded(self, tree: Any, count: int) -> Any:
        """Return the requested replications on the host, with their leading axis and without the padding."""
        if not self.replicas.vectorized:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], tree)


def _trim(record: Any, start: int, every: int) -> SegmentData:
    """Return a record with as many diagnostics as the segment after round ``start`` has; programs leave one more."""
    length = record.regret.shape[-1]
    count = (start + length) // every - start // every
    return SegmentData(record.regret, {name: values[..., :count] for name, values in record.info.items()}, record.w)


def fingerprint(tree: Any) -> str:
    """Return a hash of everything in a tree: its structure, its static choices and its numbers."""
    leaves, structure = jax.tree.flatten(tree)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(structure)).encode())
    for leaf in leaves:
        array = np.asarray(leaf)
        digest.update(f"{array.shape}{array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]


def machine_memory() -> int:
    """Return the bytes of memory that this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT_MEMORY


def _require_room(needed: float, subject: str) -> None:
    """Refuse what would take more memory than there is."""
    if needed > MEMORY_SHARE * machine_memory():
        raise SettingsError(
            f"{subject} would need about {_format_bytes(needed)} of memory, "
            f"this machine has {_format_bytes(machine_memory())}: choose smaller numbers"
        )


def _format_bytes(size: float) -> str:
    return f"{size / 2**30:,.1f} GiB" if size >= 2**30 else f"{size / 2**20:,.0f} MiB"
