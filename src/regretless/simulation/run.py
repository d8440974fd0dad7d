"""A run: chunk after chunk of replications, all policies in step with one stream, segment by segment.

A run can be kept in a file: after a kill it continues where it was, bit for bit; a finished one is read instead of run
again. The file holds the request, which must equal the present one on the same devices with the same versions, the
finished segments, and the carries of the chunk that is being played.
"""

import functools
import hashlib
import importlib.metadata
import math
import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless.array_files import canonical, flatten_tree, read_arrays, restore_tree, write_arrays
from regretless.errors import CheckpointError, DamagedError, OracleError, SettingsError
from regretless.formatting import shorten
from regretless.oracles.host import in_units
from regretless.policies.base import Policy
from regretless.results import PACKAGES
from regretless.simulation import stream
from regretless.simulation.programs import Call, PolicyProgram, Progress, Replicas, leaf_bytes, no_progress
from regretless.simulation.stream import ReferenceTally, SegmentRecord, SimulationSpec
from regretless.types import SOLVED

CPU_BYTES = 24 * 2**20
"""States of replications that run together on a CPU: about what its caches hold."""

LANES, LANES_OF_LARGE_STATES = 30, 10
"""Replications of a compiled program, unless memory limits them; more are played in parts, fewer are padded."""

STREAM_BYTES = 2**28
"""Segments of the stream that are drawn together on a CPU."""

GPU_SHARE = 0.4
"""Share of a GPU's memory for the states and streams of replications that run together."""

LARGE_STATE = 2**16
"""Bytes of state from which running several policies, or many replications, at once gains nothing on a CPU."""

MEMORY_SHARE = 0.8
"""Share of the machine's memory that a run may take."""

DEFAULT_MEMORY = 8 * 2**30
"""Bytes of memory that are assumed if the system does not report them."""

KIND = "simulation by policy"
"""What a saved run is called in its file."""

MIN_INTERVAL_RATIO = 20.0
"""A file is written when this many times the duration of the last write has passed: writing costs 5 % of the time."""


class Metrics(NamedTuple):
    """A run after some rounds, as means over the replications that run together and are finite so far.

    Parameters
    ----------
    round : int
        Rounds played so far.
    horizon : int
        Rounds to play.
    seeds : tuple of int
        The replications that this describes; if memory is short, others follow.
    regret : dict of str to float
        Mean cumulative regret by policy.
    standard_error : dict of str to float
        Its standard error by policy.
    diagnostics : dict of str to dict
        By policy, the last ones that were kept.
    seconds : float
        Since the start.

    Examples
    --------
    >>> metrics = Metrics(50, 200, (0, 1), {"dfhpg": 12.0}, {"dfhpg": 1.5}, {"dfhpg": {"alpha": 0.25}}, 0.1)
    >>> metrics.flat()
    {'dfhpg/regret': 12.0, 'dfhpg/regret_standard_error': 1.5, 'dfhpg/alpha': 0.25}
    """

    round: int
    horizon: int
    seeds: tuple[int, ...]
    regret: dict[str, float]
    standard_error: dict[str, float]
    diagnostics: dict[str, dict[str, float]]
    seconds: float

    def flat(self) -> dict[str, float]:
        """Return every finite number under one name, for loggers."""
        values: dict[str, float] = {}
        for policy, regret in self.regret.items():
            values |= {f"{policy}/regret": regret, f"{policy}/regret_standard_error": self.standard_error[policy]}
            values |= {f"{policy}/{name}": value for name, value in self.diagnostics[policy].items()}
        return {name: value for name, value in values.items() if math.isfinite(value)}


Callback = Callable[[Metrics], Any]
"""Receives metrics; the run ends there if it returns True."""


class Outcome(NamedTuple):
    """What replications leave behind, by policy."""

    records: dict[str, SegmentRecord]
    diverged_at: dict[str, np.ndarray]
    tally: ReferenceTally


@dataclass(eq=False)
class Chunk:
    """Replications that run together; arrays on the host have a leading axis of replications, without padding."""

    seeds: tuple[int, ...]
    segments: int = 0  # how many are finished
    carries: list[Any] = field(default_factory=list)  # by group and part; empty before the first segment and at the end
    records: list[dict[str, SegmentRecord]] = field(default_factory=list)  # by policy, in one or several parts
    tallies: list[ReferenceTally] = field(default_factory=list)  # one entry per segment
    diverged_at: dict[str, np.ndarray] = field(default_factory=dict)
    totals: dict[str, np.ndarray] = field(default_factory=dict)  # regret so far

    def add(
        self, records: dict[str, SegmentRecord], tallies: list[ReferenceTally], diverged_at: dict[str, np.ndarray]
    ) -> None:
        """Add segments that all policies have finished; there is one tally of each."""
        self.records.append(records)
        self.tallies += tallies
        self.diverged_at = diverged_at
        self.segments += len(tallies)
        for name, record in records.items():
            self.totals[name] = self.totals.get(name, 0.0) + record.regret.sum(axis=1, dtype=np.float64)

    def restore(
        self, place: int, content: Any, names: Sequence[str], arrays: dict[str, np.ndarray], carries: Callable[[], Any]
    ) -> None:
        """Add what was saved of this chunk, the one in this ``place``."""
        records, tally, diverged_at = jax.tree.map(lambda number: arrays[f"{place}/{number}"], content)
        tallies = [ReferenceTally(spent, cost) for spent, cost in zip(tally[0], tally[1], strict=True)]
        self.add({name: SegmentRecord(*records[name]) for name in names}, tallies, diverged_at)
        if any(name.startswith(f"{place}/carry/") for name in arrays):
            templates = enumerate(carries())
            self.carries = [restore_tree(f"{place}/carry/{group}", template, arrays) for group, template in templates]

    def joined(self) -> dict[str, SegmentRecord]:
        """Return the records of all segments, joined."""
        if len(self.records) > 1:
            self.records = [jax.tree.map(lambda *parts: np.concatenate(parts, axis=1), *self.records)]
        return self.records[0] if self.records else {}

    def outcome(self, segments: int, rounds: int, every: int) -> Outcome:
        """Return the outcome if the first ``segments`` count, which are ``rounds`` rounds."""
        cut = lambda length, tree: jax.tree.map(lambda leaf: leaf[:, :length], tree)  # noqa: E731
        records = {
            name: SegmentRecord(cut(rounds, regret), cut(rounds // every, info), cut(rounds, w))
            for name, (regret, info, w) in self.joined().items()
        }
        diverged_at = {name: at * (at <= rounds) for name, at in self.diverged_at.items()}
        return Outcome(
            records, diverged_at, jax.tree.map(lambda *parts: np.sum(parts, axis=0), *self.tallies[:segments])
        )

    def metrics(self, round: int, horizon: int, seconds: float) -> Metrics:
        """Return the metrics after the last segment."""
        regret, errors, diagnostics = {}, {}, {}
        for name, total in self.totals.items():
            finite = self.diverged_at[name] == 0
            totals = total[finite]
            regret[name] = _mean(totals)
            errors[name] = float(totals.std(ddof=1) / len(totals) ** 0.5) if len(totals) > 1 else math.nan
            infos = (part[name].info for part in reversed(self.records))
            kept = (info for info in infos if any(values.shape[1] for values in info.values()))
            diagnostics[name] = {key: _mean(values[finite, -1]) for key, values in next(kept, {}).items()}
        return Metrics(round, horizon, self.seeds, regret, errors, diagnostics, seconds)


def _mean(values: np.ndarray) -> float:
    return float(np.mean(values, dtype=np.float64)) if len(values) else math.nan


class Saving:
    """Where a run is kept; ``request`` is what was asked for, as plain data."""

    def __init__(self, path: str | os.PathLike[str], request: dict[str, Any]):
        self.path = path
        self.request = {**request, "versions": {name: importlib.metadata.version(name) for name in PACKAGES}}
        self.next = 0.0

    def save(self, chunks: Sequence[Chunk], last: int, now: bool = False) -> None:
        """Write the run if it is due, or ``now``; ``last`` is how many segments count."""
        began = time.monotonic()
        if not now and began < self.next:
            return
        arrays: dict[str, np.ndarray] = {}
        contents = []
        for place, chunk in enumerate(chunks):
            tally = jax.tree.map(lambda *parts: np.stack(parts), *chunk.tallies) if chunk.segments else None
            leaves, structure = jax.tree.flatten((chunk.joined(), tally, chunk.diverged_at))
            arrays |= {f"{place}/{number}": leaf for number, leaf in enumerate(leaves)}
            contents.append(jax.tree.unflatten(structure, range(len(leaves))))  # numbers in place of arrays: JSON data
            for group, carry in enumerate(chunk.carries):
                arrays |= flatten_tree(f"{place}/carry/{group}", carry)
        seeds = [chunk.seeds for chunk in chunks]
        record = {"kind": KIND, "request": self.request, "seeds": seeds, "contents": contents, "last": last}
        write_arrays(self.path, arrays, record)
        done = time.monotonic()
        self.next = done + MIN_INTERVAL_RATIO * (done - began)

    def load(self, names: Sequence[str], carries: Callable[[], Any]) -> tuple[list[Chunk], int] | None:
        """Return the chunks and how many segments count; None without a file. ``carries`` gives shapes by group."""
        if not os.path.exists(self.path):
            return None
        try:
            arrays, record = read_arrays(self.path)
        except (OSError, DamagedError) as error:
            raise CheckpointError(f"cannot read {self.path}: {error}") from None
        if record.get("kind") != KIND:
            raise CheckpointError(
                f"{self.path}: expected a saved simulation, got another file of this program: choose another file"
            )
        saved = record["request"]
        differ = [name for name in self.request if canonical(self.request[name]) != canonical(saved.get(name))]
        if differ:
            now, then = shorten(str(self.request[differ[0]])), shorten(str(saved.get(differ[0])))
            raise SettingsError(
                f"{self.path} holds another run: {', '.join(differ)} differ ({differ[0]}: {now} now, {then} in the "
                "file); choose another file, or remove this one to begin again"
            )
        try:
            chunks = [Chunk(tuple(seeds)) for seeds in record["seeds"]]
            for place, (chunk, content) in enumerate(zip(chunks, record["contents"], strict=True)):
                if content[0]:
                    chunk.restore(place, content, names, arrays, carries)
            return chunks, int(record["last"])
        except (KeyError, TypeError, ValueError) as error:
            raise CheckpointError(f"{self.path}: the saved simulation cannot be understood: {error!r}") from None


class PolicyGroup(NamedTuple):
    """Policies of one structure, stacked along a leading axis if there are several."""

    names: tuple[str, ...]
    program: PolicyProgram  # does not depend on the names: others of the same structure share what is compiled

    def split(self, tree: Any) -> dict[str, Any]:
        """Return each policy's part of arrays with axes of replications and, in a stack, of policies."""
        if not self.program.stacked:
            return {self.names[0]: tree}
        return {name: jax.tree.map(lambda leaf, i=i: leaf[:, i], tree) for i, name in enumerate(self.names)}


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
        groups.append(PolicyGroup(names, PolicyProgram(stacked, len(names) > 1)))
    return groups


def _better_alone(policy: Policy) -> bool:
    """Return whether a policy is large, on a CPU; a solver on the host is called less often for several at once."""
    if policy.on_host or jax.local_devices()[0].platform != "cpu":
        return False
    return leaf_bytes(jax.eval_shape(policy.init, jax.random.key(0))) >= LARGE_STATE


def stream_limit(spec: SimulationSpec, replications: int) -> int:
    """Return how many replications' segments are drawn together: all of them, if the memory allows it."""
    rough = 8 * stream.SEGMENT_ROUNDS * (8 * spec.benchmark.oracle.dim + math.prod(spec.benchmark.context_shape))
    memory = _device_memory()
    room = STREAM_BYTES if memory is None else GPU_SHARE * memory
    return replications if rough * replications <= room else max(1, int(room // _segment_bytes(spec)))


def state_limit(state: Any, spec: SimulationSpec) -> int:
    """Return how many replications of policies run together: their states fit a CPU's cache, or a GPU's memory."""
    memory, size = _device_memory(), leaf_bytes(state)
    if memory is None:
        return min(LANES if size < LARGE_STATE else LANES_OF_LARGE_STATES, CPU_BYTES // size)
    return int(GPU_SHARE * memory // (size + _segment_bytes(spec)))


def _segment_bytes(spec: SimulationSpec) -> int:
    first = jnp.int32(0)
    return leaf_bytes(jax.eval_shape(lambda key: stream.draw(spec, key, first, first), jax.random.key(0)))


def _device_memory() -> int | None:
    """Return the bytes of a GPU's memory, None on a CPU."""
    device = jax.local_devices()[0]
    return None if device.platform == "cpu" else (device.memory_stats() or {}).get("bytes_limit", 2**33)


# The programs of a run, as functions of (what is shared, what each replication has).


def _draw(shared: tuple[SimulationSpec, Any, Any], mapped: Any) -> stream.StreamSegment:
    spec, start, count = shared
    seed_key, wanted = mapped
    return stream.draw(spec, seed_key, start, count if wanted is None else jnp.where(wanted, count, 0))


def _begin(shared: tuple[list[PolicyProgram], SimulationSpec], mapped: Any) -> list[stream.Carry]:
    # One program for all groups: what they draw alike, such as a network's weights, is compiled and drawn once.
    programs, spec = shared
    return [program.apply(lambda policy: stream.begin(policy, spec, mapped)) for program in programs]


def _play(shared: tuple[PolicyProgram, SimulationSpec, Any, Any], mapped: Any) -> tuple[stream.Carry, SegmentRecord]:
    program, spec, start, count = shared
    seed_key, wanted, carry, segment = mapped

    def play(policy: Policy, carry: stream.Carry) -> tuple[stream.Carry, SegmentRecord]:
        if wanted is not None:  # costs that are not finite are not solved
            policy = in_units(policy, jnp.where(wanted, 1.0, jnp.nan))
        return stream.play_segment(policy, spec, carry, seed_key, segment, start, count)

    return program.apply(play, carry)


PLAY = _play.__name__
"""The name under which programs of rounds are counted."""


class SimulationRun:
    """Play chunk after chunk; ``chunk`` is the largest number of replications together (None: as memory allows).

    Programs are for ``width`` replications, or fewer for a group with large states (``sizes``): a chunk is drawn and
    played in parts, of which the last one is padded. The width does not depend on the number of replications, so that
    any number of them is played by the same programs, with the same rounding.
    """

    def __init__(
        self,
        spec: SimulationSpec,
        groups: list[PolicyGroup],
        lengths: list[int],
        replications: int,
        progress: Progress = no_progress,
        *,
        vectorized: bool = True,
        chunk: int | None = None,
    ):
        self.began = time.perf_counter()
        self.spec, self.groups, self.lengths, self.progress = spec, groups, lengths, progress
        self.replications, self.rounds = replications, sum(lengths)
        python = any(group.program.policy.calls_python for group in groups)
        on_host = spec.benchmark.oracle.on_host or python
        vectorized = vectorized or on_host
        self._known_keys: dict[Any, Any] = {}
        self.keep_states, self.states = False, dict[str, list[Any]]()
        begin = lambda key: _begin(([group.program for group in groups], spec), key)  # noqa: E731
        states = jax.eval_shape(begin, jax.random.key(0))
        limit = min(chunk or replications, stream_limit(spec, replications))
        policies = sum(len(group.names) for group in groups)
        numbers = 1 + (spec.benchmark.oracle.dim if spec.keep_decisions else 0)
        subject = f"{replications:,} replications of {self.rounds:,} rounds with {policies} policies"
        _require_room(8.0 * replications * self.rounds * policies * numbers, subject)
        together = min(replications, limit)
        subject = f"the states of {together:,} replications (delay, sizes of the problem)"
        _require_room(3.0 * leaf_bytes(states) * together, subject)
        lanes = LANES_OF_LARGE_STATES if on_host else LANES
        if _device_memory() is not None:  # a GPU has room for all
            lanes = max(lanes, 1 << (limit - 1).bit_length())
        lanes = limit if python else lanes  # Python is not called for padding
        most = min(chunk or lanes, stream_limit(spec, lanes))
        # A branch with a factorisation, such as a refit, never ends on two CPU devices at once (jaxlib 0.10).
        refits = _device_memory() is None and any(group.program.policy.refit_every for group in groups)
        self.replicas = Replicas(most, spec.benchmark.oracle, vectorized, on_host, one_device=refits)
        devices = self.replicas.width
        self.width = math.ceil(most / devices) * devices if vectorized else 1
        whole = math.ceil if limit == replications else math.floor  # memory is a limit, the number of seeds is not
        self.size = max(1, whole(limit / self.width)) * self.width if vectorized else 1
        parts = [size for size in range(devices, self.width + 1, devices) if self.width % size == 0]
        fitting = [[size for size in parts if size <= state_limit(state, spec)] for state in states]
        self.sizes = [max(sizes, default=devices) for sizes in fitting]

    @property
    def seconds(self) -> dict[str, float]:
        """Where the time went so far."""
        compiling = self.replicas.compile_seconds
        return {"compile": compiling, "run": time.perf_counter() - self.began - compiling}

    def play(
        self, seeds: Sequence[int], callback: Callback | None, every: int, saving: Saving | None
    ) -> tuple[Outcome, int]:
        """Play all replications, or continue those that were saved; return the outcome and the number of rounds."""
        chunks = [Chunk(tuple(seeds[i : i + self.size])) for i in range(0, len(seeds), self.size)]
        last = len(self.lengths)
        if saving is not None:
            names = [name for group in self.groups for name in group.names]
            saved = saving.load(names, lambda: self._begin(tuple(seeds[:1]), self.replicas.shapes))
            chunks, last = saved or (chunks, last)
        for place, chunk in enumerate(chunks):
            if chunk.segments >= last:
                continue
            self._prepare(chunk.seeds)
            placed = [[self.replicas.place(carry) for carry in parts] for parts in chunk.carries]
            chunk.carries = placed or self._begin(chunk.seeds, self.replicas.run)
            while chunk.segments < last:
                self._play_segment(chunk, place * self.size)
                if callback is not None and self._notify(callback, every, chunk):
                    last = chunk.segments
                if chunk.segments == last:
                    self._keep_states(chunk)
                    chunk.carries = []
                if saving is not None:
                    saving.save(chunks, last, now=chunk.segments == last)
        rounds = sum(self.lengths[:last])
        outcomes = [chunk.outcome(last, rounds, self.spec.diagnostics_every) for chunk in chunks]
        return jax.tree.map(lambda *parts: np.concatenate(parts), *outcomes), rounds

    def _keep_states(self, chunk: Chunk) -> None:
        """Add the final states of a chunk's replications, if they are to be kept."""
        for group, parts in zip(self.groups, chunk.carries if self.keep_states else (), strict=False):
            states = self._unpadded([carry.state for carry in parts], len(chunk.seeds))
            for name, state in group.split(states).items():
                self.states.setdefault(name, []).append(state)

    def _play_segment(self, chunk: Chunk, before: int) -> None:
        """Play a chunk's next segment with every group, after ``before`` replications of earlier chunks."""
        length, start, count = self.lengths[chunk.segments], sum(self.lengths[: chunk.segments]), len(chunk.seeds)
        every = self.spec.diagnostics_every
        segments = self._segments(chunk.seeds, start, length)
        records: dict[str, SegmentRecord] = {}
        diverged_at: dict[str, np.ndarray] = {}
        cut = functools.cache(functools.partial(self._parts, segments, count))
        for index, group in enumerate(self.groups):
            shared = (group.program, self.spec, jnp.int32(start), jnp.int32(length))
            size = self.sizes[index]
            parts = zip(self._part_keys(chunk.seeds, size), chunk.carries[index], cut(size), strict=True)
            mapped = [(*keys, carry, part) for keys, carry, part in parts]
            results = self.replicas.run_parts(_play, shared, mapped)
            chunk.carries[index] = [carry for carry, _ in results]
            if any(np.any(np.asarray(carry.failed) != SOLVED) for carry, _ in results):
                raise OracleError("the feasible set is empty for at least one instance")
            record = self._unpadded([record for _, record in results], count)
            rounds = 2 if group.program.stacked else 1  # the axis of rounds
            regret, info, w = jax.tree.map(lambda leaf, axis=rounds: leaf.take(range(length), axis), record)
            kept = {name: values[..., (-1 - start) % every :: every].copy() for name, values in info.items()}
            records |= group.split(SegmentRecord(regret, kept, w))
            diverged_at |= group.split(self._unpadded([carry.diverged_at for carry, _ in results], count))
            played = before * self.rounds + count * (start + length * (index + 1) // len(self.groups))
            self.progress("running", played, self.replications * self.rounds)
        tallies = [jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), segment.tally) for segment in segments]
        tally = self._unpadded(tallies, count)
        chunk.add(records, [tally], diverged_at)

    def _notify(self, callback: Callback, every: int, chunk: Chunk) -> bool:
        """Call the callback if it is due; return whether it wants the run to end here."""
        played = sum(self.lengths[: chunk.segments])
        if played % every and played < self.rounds:
            return False
        return callback(chunk.metrics(played, self.rounds, time.perf_counter() - self.began)) is True

    def describe(self) -> dict[str, Any]:
        """Return everything that the bits of a run depend on, as JSON data."""
        return {
            "policies": {", ".join(group.names): fingerprint(group.program.policy) for group in self.groups},
            "benchmark": {**self.spec.benchmark.describe(), "fingerprint": fingerprint(self.spec)},
            "segments": self.lengths,
            "replications together": [self.size, self.width, *self.sizes],
            "devices": [f"{device.platform} {device.device_kind}" for device in self.replicas.mesh.devices.flat],
            "vectorized": self.replicas.vectorized,
            "compiler options": self.replicas.options,
        }

    def _keys(self, seeds: tuple[int, ...], size: int, first: int = 0) -> Any:
        """Return the keys of ``size`` replications of a chunk from the ``first`` on; the last one fills the rest.

        With a solver on the host a flag follows for each: whether it is wanted, or padding that must not be solved.
        """
        if (seeds, size, first) not in self._known_keys:
            places = np.arange(first, first + size)
            rows = np.minimum(places, len(seeds) - 1)
            keys = self.replicas.place(jax.vmap(jax.random.key)(np.asarray(seeds, np.uint32)[rows]))
            wanted = places < len(seeds) if self.replicas.oracle.on_host else None
            self._known_keys[seeds, size, first] = keys if self.replicas.vectorized else keys[0], wanted
        return self._known_keys[seeds, size, first]

    def _part_keys(self, seeds: tuple[int, ...], size: int) -> list[Any]:
        """Return the keys of the parts in which a group plays a chunk, or in which it is drawn."""
        return [self._keys(seeds, size, first) for first in range(0, len(seeds), size)]

    def _parts(self, segments: Sequence[stream.StreamSegment], count: int, size: int) -> Sequence[stream.StreamSegment]:
        """Return a segment of a chunk of ``count`` replications in parts of ``size``."""
        if size == self.width:
            return segments
        whole = jax.tree.map(lambda *leaves: np.concatenate(leaves), *segments)
        rows = [np.minimum(np.arange(first, first + size), count - 1) for first in range(0, count, size)]
        return [self.replicas.place(jax.tree.map(lambda leaf, part=part: leaf[part], whole)) for part in rows]

    def _begin(self, seeds: tuple[int, ...], run: Callable[..., Any]) -> list[list[Any]]:
        """Return the carries before the first round by group and part, as ``run`` gives them."""
        carries: list[list[Any]] = [[] for _ in self.groups]
        for size in dict.fromkeys(self.sizes):
            places = [place for place, other in enumerate(self.sizes) if other == size]
            for keys, _ in self._part_keys(seeds, size):
                for place, carry in zip(places, run(*self._begin_call(places, keys)), strict=True):
                    carries[place].append(carry)
        return carries

    def _begin_call(self, places: Sequence[int], keys: Any) -> Call:
        """Return the program call that begins some of the groups."""
        return _begin, ([self.groups[place].program for place in places], self.spec), keys

    def _prepare(self, seeds: tuple[int, ...]) -> None:
        """Compile all programs of a chunk in parallel, from the shapes of what they pass to each other."""
        start = jnp.int32(0)
        calls: list[Call] = []
        carries: dict[int, Any] = {}
        for size in dict.fromkeys(self.sizes):
            places = [place for place, other in enumerate(self.sizes) if other == size]
            calls.append(self._begin_call(places, self._keys(seeds, size)[0]))
            carries |= dict(zip(places, self.replicas.shapes(*calls[-1]), strict=True))
        draw = _draw, (self.spec, start, start), self._keys(seeds, self.width)
        segment = self.replicas.shapes(*draw)
        calls.append(draw)
        for place, group in enumerate(self.groups):
            size = self.sizes[place]
            part = segment if size == self.width else self.replicas.resized(segment, size)
            mapped = *self._keys(seeds, size), carries[place], part
            calls.append((_play, (group.program, self.spec, start, start), mapped))
        self.replicas.prepare(calls, self.progress)

    def _segments(self, seeds: tuple[int, ...], start: int, length: int) -> list[stream.StreamSegment]:
        """Return the next rounds of the stream in parts; refuse a benchmark that draws non-finite numbers."""
        shared = self.spec, jnp.int32(start), jnp.int32(length)
        segments = self.replicas.run_parts(_draw, shared, self._part_keys(seeds, self.width))
        bad = np.concatenate([np.ravel(segment.unusable) for segment in segments])
        if np.any(bad):
            raise SettingsError(
                f"benchmark {self.spec.benchmark.name!r}: expected finite contexts and costs, "
                f"but round {bad[bad > 0].min()} holds a number that is not finite"
            )
        return segments

    def _unpadded(self, parts: Sequence[Any], count: int) -> Any:
        """Return the requested replications of all parts on the host, with their leading axis, without the padding."""
        if not self.replicas.vectorized:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], parts[0])
        return jax.tree.map(lambda *leaves: np.concatenate(leaves)[:count], *parts)


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
    """Refuse a run that would take more memory than the machine has."""
    memory = machine_memory()
    if needed > MEMORY_SHARE * memory:
        sizes = f"{needed / 2**30:,.1f} GiB of memory, this machine has {memory / 2**30:,.1f} GiB"
        raise SettingsError(f"{subject} would need about {sizes}: choose smaller numbers")
