"""A run: chunk after chunk of replications, all policies in step with one stream, segment by segment."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import OracleError, SettingsError
from regretless.policies.base import Policy
from regretless.simulate import hosted, rounds, stream
from regretless.simulate.chunks import Chunk, Kept, Part, part, trimmed
from regretless.simulate.hosted import Program
from regretless.simulate.metrics import Watch, measured
from regretless.simulate.programs import Call, Progress, Replicas, leaf_bytes
from regretless.simulate.saving import Saving, fingerprint
from regretless.simulate.sizes import require_room_for_run
from regretless.simulate.stream import Game
from regretless.types import SOLVED

CPU_BYTES = 24 * 2**20
GPU_SHARE = 0.4
LARGE = 2**16
"""Bytes of state from which on a CPU gains nothing by playing several policies at once."""


class Group(NamedTuple):
    """Policies of one structure, stacked along a leading axis if there are several."""

    names: tuple[str, ...]
    policy: Policy

    @property
    def program(self) -> Program:
        """What a compiled program depends on: not the names, so that other names of the same structure share it."""
        return self.policy, len(self.names) > 1


def groups(policies: Mapping[str, Policy], merge: bool) -> list[Group]:
    """Policies that differ in numbers only, together where that is quicker; alone they share a program, too."""
    by_structure: dict[Any, list[tuple[str, Policy]]] = {}
    for name, policy in policies.items():
        leaves, structure = jax.tree.flatten(policy)
        together = merge and not _better_alone(policy)
        key = (structure, tuple(np.shape(leaf) for leaf in leaves)) if together else name
        by_structure.setdefault(key, []).append((name, policy))
    found = []
    for members in by_structure.values():
        names = tuple(name for name, _ in members)
        alike = [jax.tree.map(jnp.asarray, policy) for _, policy in members]
        found.append(Group(names, alike[0] if len(alike) == 1 else jax.tree.map(lambda *x: jnp.stack(x), *alike)))
    return found


def _better_alone(policy: Policy) -> bool:
    """Whether a policy is large, on a CPU; a solver on the host is called less often for several at once."""
    if policy.oracle.on_host or jax.local_devices()[0].platform != "cpu":
        return False
    return leaf_bytes(jax.eval_shape(policy.init, jax.random.key(0))) >= LARGE


def _programs(members: Sequence[Group]) -> list[Program]:
    return [group.program for group in members]


def carries_of(members: Sequence[Group], game: Game) -> list[Any]:
    """Shapes and types of what one replication of each group takes from round to round."""
    return jax.eval_shape(lambda key: _begin((_programs(members), game), key), jax.random.key(0))


def memory_limit(states: Sequence[Any], game: Game, length: int) -> int:
    """How many replications may run together: on a CPU as many as keep their state in its cache, on a GPU in its memory."""
    key = jax.random.key(0)
    device = jax.local_devices()[0]
    if device.platform == "cpu":
        return max(len(jax.local_devices()), CPU_BYTES // max(map(leaf_bytes, states)))
    drawn = jax.eval_shape(lambda key: stream.draw(game, key, jnp.int32(0), length), key)
    room = GPU_SHARE * (device.memory_stats() or {}).get("bytes_limit", 2**33)
    return max(1, int(room // (leaf_bytes(states) + leaf_bytes(drawn))))


def chunk_size(replications: int, limit: int, width: int) -> int:
    """Replications per chunk: at most ``limit``, the same in every chunk, a multiple of the devices, little padding."""
    fewest = math.ceil(replications / limit)
    sizes = [math.ceil(math.ceil(replications / n) / width) * width for n in range(fewest, fewest + 3)]
    return min(sizes, key=lambda size: (math.ceil(replications / size) * size, -size))


# The programs of a run, as functions of (what is shared, what each replication has).


def _draw(shared: tuple[Game, Any, int], own: Any) -> stream.Drawn:
    game, start, length = shared
    return stream.draw(game, own, start, length)


def _draw_and_solve(shared: tuple[Game, Any, int], own: Any) -> stream.Segment:
    game, start, length = shared
    return stream.draw_and_solve(game, own, start, length)


def _begin(shared: tuple[list[Program], Game], own: Any) -> list[rounds.Carry]:
    # One program for all groups: what they draw alike, such as a network's weights, is compiled and drawn once.
    programs, game = shared
    one = lambda policy: rounds.begin(policy, game, own)  # noqa: E731
    return [jax.vmap(one)(policy) if several else one(policy) for policy, several in programs]


def _play(shared: tuple[Program, Game, Any], own: Any) -> tuple[rounds.Carry, rounds.Record]:
    (policy, several), game, start = shared
    seed_key, carry, segment = own
    one = lambda policy, carry: rounds.play_segment(policy, game, carry, seed_key, segment, start)  # noqa: E731
    return jax.vmap(one)(policy, carry) if several else one(policy, carry)


PLAYED = _play.__name__
"""The name under which programs of rounds are counted."""


class Run:
    """Plays chunk after chunk; ``chunk`` is the largest number of replications together (None: what suits the memory)."""

    def __init__(
        self,
        game: Game,
        members: list[Group],
        lengths: list[int],
        replications: int,
        vectorized: bool,
        chunk: int | None,
        progress: Progress,
    ):
        self.began = time.perf_counter()
        self.game, self.groups, self.lengths, self.progress = game, members, lengths, progress
        self.on_host = game.benchmark.oracle.on_host
        vectorized = vectorized or self.on_host
        states = carries_of(members, game)
        limit = (chunk or memory_limit(states, game, lengths[0])) if vectorized else 1
        policies = sum(len(group.names) for group in members)
        kept = game.benchmark.oracle.dim if game.keep_decisions else 0
        require_room_for_run(states, replications, min(replications, limit), sum(lengths), policies, kept)
        self.replicas = Replicas(min(replications, limit), vectorized)
        self.size = chunk_size(replications, limit, self.replicas.width)

    @property
    def seconds(self) -> dict[str, float]:
        """Where the time went so far."""
        compiling = self.replicas.compile_seconds
        return {"compile": compiling, "run": time.perf_counter() - self.began - compiling}

    def play(self, seeds: Sequence[int], watch: Watch | None, saving: Saving | None) -> tuple[list[Part], int]:
        """Plays all replications, or goes on with those that were saved; returns what came out and how many rounds it took."""
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
                if watch is not None and self._told(watch, chunk):
                    last = chunk.segments
                if chunk.segments == last:
                    chunk.carries = []
                if saving is not None:
                    saving.save(chunks, last, now=chunk.segments == last)
        rounds, names = sum(self.lengths[:last]), [group.names for group in self.groups]
        return [part(chunk, names, last, rounds, self.game.diagnostics_every) for chunk in chunks], rounds

    def _play_segment(self, keys: Any, carries: list[Any], chunk: Chunk, chunks: list[Chunk]) -> None:
        """Plays a chunk's next segment with every group and takes it in; ``carries`` are those of after it, then."""
        length, start = self.lengths[chunk.segments], sum(self.lengths[: chunk.segments])
        segment = self._segment(keys, start, length)
        records: list[Kept] = []
        before = sum(len(each.seeds) for each in chunks[: chunks.index(chunk)])
        total = sum(len(each.seeds) for each in chunks)
        for index, group in enumerate(self.groups):
            if self.on_host:
                carries[index], record = hosted.play_on_host(
                    self.replicas, group.program, self.game, keys, carries[index], segment, start
                )
            else:
                shared = (group.program, self.game, jnp.int32(start))
                carries[index], record = self.replicas.run(_play, shared, (keys, carries[index], segment))
            records.append(trimmed(self._own(record, len(chunk.seeds)), start, self.game.diagnostics_every))
            if np.any(np.asarray(carries[index].failed) != SOLVED):
                raise OracleError("the feasible set is empty for at least one instance")
            done = before * sum(self.lengths) + len(chunk.seeds) * (start + length * (index + 1) // len(self.groups))
            self.progress("running", done, total * sum(self.lengths))
        tally = self._own(jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), segment.tally), len(chunk.seeds))
        diverged = [self._own(carry.diverged_at, len(chunk.seeds)) for carry in carries]
        chunk.add(records, tally, list(carries), diverged)

    def _told(self, watch: Watch, chunk: Chunk) -> bool:
        """Tells the callback if it is time; whether it wants the run to end here."""
        played, horizon = sum(self.lengths[: chunk.segments]), sum(self.lengths)
        if played % watch.every and played < horizon:
            return False
        names = [group.names for group in self.groups]
        return watch.callback(measured(chunk, names, played, horizon, time.perf_counter() - self.began)) is True

    def _carry_shapes(self, seeds: Sequence[int]) -> list[Any]:
        return self.replicas.shapes(*self._beginning(self._keys(seeds[:1])))

    def describe(self) -> dict[str, Any]:
        """What a saved run must have been asked for to be this one: everything that its bits depend on."""
        return {
            "policies": {", ".join(group.names): fingerprint(group.policy) for group in self.groups},
            "benchmark": {**self.game.benchmark.describe(), "fingerprint": fingerprint(self.game)},
            "segments": self.lengths,
            "replications together": self.size,
            "devices": [f"{device.platform} {device.device_kind}" for device in self.replicas.mesh.devices.flat],
            "vectorized": self.replicas.vectorized,
            "compiler options": self.replicas.options,
        }

    def prepare(self) -> None:
        """Compiles every program of this run, and runs none."""
        self._prepare(self._keys([0]))

    def _keys(self, seeds: Sequence[int]) -> Any:
        """The keys of a chunk, padded to its size."""
        padded = [*seeds, *[seeds[-1]] * (self.size - len(seeds))]
        keys = self.replicas.place(jax.vmap(jax.random.key)(np.asarray(padded, np.uint32)))
        return keys if self.replicas.vectorized else keys[0]

    def _beginning(self, keys: Any) -> Call:
        """The program that begins every group's play."""
        return _begin, (_programs(self.groups), self.game), keys

    def _prepare(self, keys: Any) -> None:
        """Compiles all programs of a chunk side by side, from the shapes of what they hand to each other.

        Those of a run with a solver on the host are compiled when they are needed.
        """
        if self.on_host:
            return
        start = jnp.int32(0)
        begin = self._beginning(keys)
        carries = self.replicas.shapes(*begin)
        calls: list[Call] = [begin]
        for length in dict.fromkeys(self.lengths):
            draw = (_draw_and_solve, (self.game, start, length), keys)
            segment = self.replicas.shapes(*draw)
            calls.append(draw)
            for group, carry in zip(self.groups, carries, strict=True):
                calls.append((_play, (group.program, self.game, start), (keys, carry, segment)))
        self.replicas.prepare(calls, self.progress)

    def _segment(self, keys: Any, start: int, length: int) -> stream.Segment:
        """The next rounds of the stream; refuses a benchmark that draws non-finite numbers."""
        shared = (self.game, jnp.int32(start), length)
        drawn: Any = self.replicas.run(_draw if self.on_host else _draw_and_solve, shared, keys)
        bad = np.asarray(drawn.unusable)
        if np.any(bad):
            raise SettingsError(
                f"benchmark {self.game.benchmark.name!r}: expected finite contexts and costs, "
                f"but round {bad[bad > 0].min()} holds a number that is not"
            )
        return hosted.solved_stream(self.replicas, self.game, drawn) if self.on_host else drawn

    def _own(self, tree: Any, count: int) -> Any:
        """The replications that were asked for, with their leading axis and without the padding."""
        if not self.replicas.vectorized:
            return jax.tree.map(lambda leaf: np.asarray(leaf)[None], tree)
        return jax.tree.map(lambda leaf: np.asarray(leaf)[:count], tree)
