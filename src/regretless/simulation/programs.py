"""Compiled programs over replications, and rounds with a solver on the host between them.

A program is a function ``fn(shared, mapped)``: ``shared`` is the same for every replication, ``mapped`` has a leading
axis of replications in every leaf. Replications are vmapped and split over the devices of the backend (on CPUs one
device per core, if the program that uses this library asked JAX for that), which run in parallel without waiting for
each other.

No program waits for the host, and the host never waits for a program that needs its threads: a solver runs only while
no program does. All replications, and all policies of a group, are solved in one call.
"""

import gc
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array

from regretless.draws import ENVIRONMENT, LEARN, purpose_key
from regretless.oracles.base import Oracle
from regretless.policies.base import Answer, Policy, Question, answer, ask
from regretless.simulation import stream
from regretless.simulation.stream import Carry, SegmentRecord, SimulationSpec, StreamBatch, StreamSegment
from regretless.startup import keep_programs, usable_cores
from regretless.types import Sample, Solution

Body = Callable[[Any, Any], Any]
Call = tuple[Body, Any, Any]
Progress = Callable[[str, int, int], None]
"""Callback (task, done, total): what is being done, how much of it is finished, how much there is."""


def no_progress(task: str, done: int, total: int) -> None:
    """Ignore progress."""


AXIS = "replications"
MAX_PROGRAMS = 256
MAX_MAPS_SHARE = 0.5
"""Share of the memory maps allowed by the system from which compiled programs are dropped."""

CPU_OPTIONS: dict[str, str | bool] = {"xla_backend_optimization_level": "1", "xla_llvm_disable_expensive_passes": True}
"""On CPUs: half the compile time, equally fast programs. A level set in XLA_FLAGS takes precedence."""

_cache: OrderedDict[Any, Any] = OrderedDict()
_shapes: OrderedDict[Any, Any] = OrderedDict()


class PolicyProgram(NamedTuple):
    """A policy, or several policies that are stacked along a leading axis of every leaf."""

    policy: Policy
    stacked: bool

    def apply(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``fn(policy, *arguments)``, for each policy of a stack with its part of the arguments."""
        return (jax.vmap(fn) if self.stacked else fn)(self.policy, *arguments)


class Replicas:
    """How replications are laid out: vmapped and split over devices, or one by one."""

    def __init__(self, replications: int, vectorized: bool = True):
        self.vectorized = vectorized
        devices = jax.local_devices()[: max(1, replications)] if vectorized else jax.local_devices()[:1]
        self.mesh = Mesh(np.asarray(devices), (AXIS,), axis_types=(AxisType.Auto,))
        self.width = len(devices)
        chosen = "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", "")
        self.options = CPU_OPTIONS if devices[0].platform == "cpu" and not chosen else {}
        self.compile_seconds = 0.0
        self.compiled: Counter[str] = Counter()  # programs by the name of their function

    def place(self, mapped: Any) -> Any:
        """Put leaves with a leading replication axis on their devices."""
        if not self.vectorized:
            return mapped
        return jax.device_put(mapped, NamedSharding(self.mesh, PartitionSpec(AXIS)))

    def _of_arrays(self, fn: Body, static: Any) -> Body:
        """Return ``fn`` over all replications as a function of those parts of its arguments that are arrays."""
        body: Body = lambda shared, mapped: fn(eqx.combine(shared, static[0]), eqx.combine(mapped, static[1]))  # noqa: E731
        if not self.vectorized:
            return body
        body = jax.vmap(body, in_axes=(None, 0))
        if self.width == 1:
            return body
        spec = PartitionSpec(AXIS)
        return jax.shard_map(body, mesh=self.mesh, in_specs=(PartitionSpec(), spec), out_specs=spec, check_vma=False)

    def run(self, fn: Body, shared: Any, mapped: Any) -> Any:
        """Return ``fn`` of these arguments over all replications; compile unless a program for their shapes exists."""
        self.prepare([(fn, shared, mapped)])
        arrays, static = eqx.partition((shared, mapped), _is_array)
        return _cache[self._cache_key(fn, arrays, static)](*arrays)

    def prepare(self, calls: Sequence[Call], progress: Progress = no_progress) -> None:
        """Compile what these calls need and does not exist yet, in parallel; Ctrl-C is noticed meanwhile."""
        parts = [(fn, *eqx.partition((shared, mapped), _is_array)) for fn, shared, mapped in calls]
        needed = {self._cache_key(*part): part for part in reversed(parts)}  # rounds, the longest, first; each once
        missing = {key: part for key, part in needed.items() if key not in _cache}
        if not missing:
            return
        keep_programs()
        began = time.perf_counter()
        x64 = jax.config.read("jax_enable_x64")

        def compile_one(fn: Body, arrays: Any, static: Any) -> Any:
            with jax.enable_x64(x64):  # a setting of the calling thread
                return self._compile(fn, arrays, static)

        pool = ThreadPoolExecutor(max_workers=max(2, usable_cores()))
        try:
            futures = [pool.submit(compile_one, *part) for part in missing.values()]
            waiting = set(futures)
            while waiting:
                progress("compiling", len(futures) - len(waiting), len(futures))
                _, waiting = wait(waiting, timeout=0.2)
            for (key, part), future in zip(missing.items(), futures, strict=True):
                _cache[key] = future.result()
                self.compiled[part[0].__name__] += 1
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        _shorten(_cache)
        self.compile_seconds += time.perf_counter() - began

    def _cache_key(self, fn: Body, arrays: Any, static: Any) -> Any:
        leaves, structure = jax.tree.flatten(static)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        layout = (self.vectorized, tuple(self.mesh.devices.flat), jax.config.read("jax_enable_x64"))
        return fn, tuple(leaves), structure, shapes, layout

    def shapes(self, fn: Body, shared: Any, mapped: Any) -> Any:
        """Return the shapes of ``fn`` of these arguments over all replications, to prepare other programs with."""
        arrays, static = eqx.partition((shared, mapped), _is_array)
        key = self._cache_key(fn, arrays, static)
        if key not in _shapes:
            shapes = jax.eval_shape(self._of_arrays(fn, static), *arrays)
            _shapes[key] = jax.tree.map(lambda leaf: self._shape(leaf.shape, leaf.dtype), shapes)
            _shorten(_shapes)
        return _shapes[key]

    def resized(self, shapes: Any, size: int) -> Any:
        """Return the shapes of ``size`` replications."""
        return jax.tree.map(lambda leaf: self._shape((size, *leaf.shape[1:]), leaf.dtype), shapes)

    def _shape(self, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        placed = NamedSharding(self.mesh, PartitionSpec(AXIS)) if self.vectorized else None
        return jax.ShapeDtypeStruct(shape, dtype, sharding=placed)

    def _compile(self, fn: Body, arrays: Any, static: Any) -> Any:
        return jax.jit(self._of_arrays(fn, static)).lower(*arrays).compile(compiler_options=self.options or None)


def _shorten(cache: OrderedDict[Any, Any]) -> None:
    """Drop the oldest entries beyond the largest number."""
    while len(cache) > MAX_PROGRAMS:
        cache.popitem(last=False)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def leaf_bytes(tree: Any) -> int:
    """Return the memory of all arrays in a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(eqx.filter(tree, _has_size)))


def _has_size(leaf: Any) -> bool:
    return _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.number)


def forget() -> None:
    """Drop every compiled program, so that the next run compiles again."""
    _cache.clear()
    _shapes.clear()
    jax.clear_caches()


def make_room() -> None:
    """Drop every compiled program if half of the allowed memory maps are taken.

    A program takes hundreds of maps, Linux allows a process 65,530, and a compilation that gets none ends the process.
    """
    try:
        limit = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
        with Path("/proc/self/maps").open("rb") as file:
            used = sum(1 for _ in file)
    except (OSError, ValueError):  # the system does not report it
        return
    if used > MAX_MAPS_SHARE * limit:
        forget()
        gc.collect()


PendingStep = tuple[stream.FeedbackArrival, Question]
"""A learning step that waits for the answers to a policy's questions."""


def _sample(shared: tuple[PolicyProgram, SimulationSpec, Array], mapped: Any) -> Sample:
    program, spec, t = shared
    key, carry, played = mapped
    environment = spec.benchmark.environment(purpose_key(key, ENVIRONMENT))
    one = lambda policy, carry: stream.draw_sample(policy, spec, carry.state, key, environment, played, t)  # noqa: E731
    return program.apply(one, carry)


def _ask(shared: tuple[PolicyProgram, SimulationSpec, Array], mapped: Any) -> PendingStep:
    program, spec, t = shared
    key, carry, played, sample, solution = mapped
    environment = spec.benchmark.environment(purpose_key(key, ENVIRONMENT))

    def one(policy: Policy, carry: Carry, sample: Sample, solution: Solution) -> PendingStep:
        decision, feedback = stream.act(policy, spec, key, environment, played, sample, solution, t)
        arrival = stream.arrive(spec, carry, decision, feedback, t)
        question = ask(policy, purpose_key(key, LEARN, t), carry.state, arrival.decision, arrival.feedback)
        return arrival, question

    return program.apply(one, carry, sample, solution)


def _answer(shared: tuple[PolicyProgram, SimulationSpec, Array], mapped: Any) -> tuple[Carry, Any]:
    program, spec, t = shared
    carry, played, best, step, answers = mapped

    def one(policy: Policy, carry: Carry, step: PendingStep, answers: Answer) -> tuple[Carry, Any]:
        arrival, question = step
        state, info = answer(policy, question, answers)
        return stream.finish_round(spec, carry, arrival, state, info, played, best, t)

    return program.apply(one, carry, step, answers)


def _solve_references(shared: SimulationSpec, mapped: tuple[StreamBatch, Array]) -> StreamSegment:
    return stream.solve_references(shared, *mapped)


def solve_stream(replicas: Replicas, spec: SimulationSpec, batch: StreamBatch) -> StreamSegment:
    """Return a segment whose reference lines are solved on the host."""
    lines = batch.costs.shape[1]  # of [replications, lines, length, d]
    repeat = lambda leaf: np.repeat(np.asarray(leaf)[:, None], lines, axis=1)  # noqa: E731
    w = solve_batch(spec.benchmark.oracle, batch.costs, jax.tree.map(repeat, batch.rounds.instance), lead=3).w
    return replicas.run(_solve_references, spec, replicas.place((batch, w.astype(batch.costs.dtype))))


def play_on_host(
    replicas: Replicas,
    shared: tuple[PolicyProgram, SimulationSpec, Array],
    keys: Any,
    carry: Any,
    segment: StreamSegment,
) -> tuple[Any, SegmentRecord]:
    """Play the segment after round ``shared[2]``; ``carry`` and ``segment`` have a leading axis of replications."""
    program, spec, start = shared
    oracle, lead = spec.benchmark.oracle, 2 if program.stacked else 1
    records = []
    for i in range(segment.best.shape[1]):
        shared = (program, spec, start + (1 + i))
        played, best = jax.tree.map(lambda leaf, i=i: leaf[:, i], (segment.rounds, segment.best))
        sample = replicas.run(_sample, shared, (keys, carry, played))
        solution = solve_batch(oracle, sample.cost, played.instance, lead=1)
        solution = replicas.place(jax.tree.map(lambda leaf, kind=sample.cost.dtype: _like(leaf, kind), solution))
        step = replicas.run(_ask, shared, (keys, carry, played, sample, solution))
        answers = replicas.place(answer_questions(oracle, step[1], lead))
        carry, record = replicas.run(_answer, shared, (carry, played, best, step, answers))
        records.append(record)
    return carry, jax.tree.map(lambda *leaves: np.stack(leaves, axis=lead), *records)


def answer_questions(oracle: Oracle, question: Question, lead: int) -> Answer:
    """Return the answers to the questions of all replications, whose arrays have ``lead`` leading axes."""
    costs, points = np.asarray(question.costs), np.asarray(question.points)
    w: Any = costs
    feasible: Any = np.ones(points.shape[:-1], bool)
    if costs.size:
        w = solve_batch(oracle, costs, question.instance, lead).w.astype(costs.dtype)
    if points.size:
        flat = _one_per_row(question.instance, lead, feasible.shape)
        feasible = oracle.contained(points.reshape(-1, oracle.dim).astype(np.float64), flat).reshape(feasible.shape)
    return Answer(w, feasible)


def solve_batch(oracle: Oracle, costs: Any, instances: Any, lead: int) -> Solution:
    """Call the solver once for all costs; a row that is not finite is solved as zeros.

    Instances have the ``lead`` first axes of the costs; each is that of all rows below it.
    """
    rows = costs.shape[:-1]
    flat = np.asarray(costs, np.float64).reshape(-1, oracle.dim)
    flat = np.where(np.isfinite(flat).all(axis=1, keepdims=True), flat, 0.0)
    solution = oracle.answer(flat, _one_per_row(instances, lead, rows))
    return jax.tree.map(lambda leaf: np.asarray(leaf).reshape(*rows, *np.shape(leaf)[1:]), solution)


def _one_per_row(instances: Any, lead: int, rows: tuple[int, ...]) -> Any:
    """Return instances with ``lead`` leading axes, repeated for every row and with one axis of rows."""

    def spread(leaf: Any) -> np.ndarray:
        shape = leaf.shape[lead:]
        aligned = np.asarray(leaf).reshape(*leaf.shape[:lead], *[1] * (len(rows) - lead), *shape)
        return np.broadcast_to(aligned, (*rows, *shape)).reshape(-1, *shape)

    return jax.tree.map(spread, instances)


def _like(leaf: Any, dtype: Any) -> np.ndarray:
    return leaf.astype(dtype) if np.issubdtype(leaf.dtype, np.floating) else leaf
