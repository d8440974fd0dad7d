"""Compiled programs over replications.

A program is a function ``fn(shared, mapped)``: ``shared`` is the same for every replication, ``mapped`` has a leading
axis of replications in every leaf. Replications are vmapped and split over the devices of the backend (on CPUs one
device per core, if the program that uses this library asked JAX for that), which run in parallel without waiting for
each other. A function that calls a solver on the host is compiled in parts (``host_calls``): one call solves for all
replications, and for all policies of a group.
"""

import gc
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from regretless.host_calls import BoundedDict, HostProgram
from regretless.oracles.base import Oracle
from regretless.oracles.host import without_solver
from regretless.policies.base import Policy
from regretless.startup import compiler_options, keep_programs, usable_cores

Body = Callable[[Any, Any], Any]
Call = tuple[Body, Any, Any]
Progress = Callable[[str, int, int], None]
"""Callback (task, done, total): what is being done, how much of it is finished, how much there is."""


def no_progress(task: str, done: int, total: int) -> None:
    """Ignore progress."""


AXIS = "replications"
MAX_MAPS_SHARE = 0.5
"""Share of the memory maps allowed by the system from which compiled programs are dropped."""

_cache = BoundedDict()
_shapes = BoundedDict()


class PolicyProgram(NamedTuple):
    """A policy, or several policies that are stacked along a leading axis of every leaf."""

    policy: Policy
    stacked: bool

    def apply(self, fn: Callable[..., Any], *arguments: Any) -> Any:
        """Return ``fn(policy, *arguments)``, for each policy of a stack with its part of the arguments."""
        return (jax.vmap(fn) if self.stacked else fn)(self.policy, *arguments)


class Replicas:
    """How replications are laid out: vmapped and split over devices, or one by one.

    ``on_host`` says that the oracle, or a part of a policy, calls Python; ``one_device`` that the program must not be
    split over devices.
    """

    def __init__(
        self,
        replications: int,
        oracle: Oracle,
        vectorized: bool = True,
        on_host: bool = False,
        one_device: bool = False,
    ):
        self.vectorized, self.oracle, self.on_host = vectorized, oracle, on_host or oracle.on_host
        several = vectorized and not self.on_host and not one_device
        devices = jax.local_devices()[: max(1, replications)] if several else jax.local_devices()[:1]
        self.mesh = Mesh(np.asarray(devices), (AXIS,), axis_types=(AxisType.Auto,))
        self.width = len(devices)
        self.options = compiler_options()
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
        return self.run_parts(fn, shared, [mapped])[0]

    def run_parts(self, fn: Body, shared: Any, several: Sequence[Any]) -> list[Any]:
        """Return ``fn`` for parts of the same shape; a solver on the host is called once for all of them."""
        self.prepare([(fn, shared, several[0])])
        parts = [_parts(shared, mapped) for mapped in several]
        program = _cache[self._cache_key(fn, *parts[0])]
        if self.on_host:
            return list(program.run_together(self.oracle, [arrays for arrays, _ in parts]))
        return [program(*arrays) for arrays, _ in parts]

    def prepare(self, calls: Sequence[Call], progress: Progress = no_progress) -> None:
        """Compile what these calls need and does not exist yet, in parallel; Ctrl-C is noticed meanwhile."""
        parts = [(fn, *_parts(shared, mapped)) for fn, shared, mapped in calls]
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
        self.compile_seconds += time.perf_counter() - began

    def _cache_key(self, fn: Body, arrays: Any, static: Any) -> Any:
        leaves, structure = jax.tree.flatten(static)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        layout = (self.vectorized, self.on_host, tuple(self.mesh.devices.flat), jax.config.read("jax_enable_x64"))
        return fn, tuple(leaves), structure, shapes, layout

    def shapes(self, fn: Body, shared: Any, mapped: Any) -> Any:
        """Return the shapes of ``fn`` of these arguments over all replications, to prepare other programs with."""
        arrays, static = _parts(shared, mapped)
        key = self._cache_key(fn, arrays, static)
        if key not in _shapes:
            shapes = jax.eval_shape(self._of_arrays(fn, static), *arrays)
            _shapes[key] = jax.tree.map(lambda leaf: self._shape(leaf.shape, leaf.dtype), shapes)
        return _shapes[key]

    def resized(self, shapes: Any, size: int) -> Any:
        """Return the shapes of ``size`` replications."""
        return jax.tree.map(lambda leaf: self._shape((size, *leaf.shape[1:]), leaf.dtype), shapes)

    def _shape(self, shape: tuple[int, ...], dtype: Any) -> jax.ShapeDtypeStruct:
        placed = NamedSharding(self.mesh, PartitionSpec(AXIS)) if self.vectorized else None
        return jax.ShapeDtypeStruct(shape, dtype, sharding=placed)

    def _compile(self, fn: Body, arrays: Any, static: Any) -> Any:
        if self.on_host:
            return HostProgram(self._of_arrays(fn, static), arrays, self.options).compile()
        return jax.jit(self._of_arrays(fn, static)).lower(*arrays).compile(compiler_options=self.options)


def _parts(shared: Any, mapped: Any) -> Any:
    """Return the arguments' arrays, and all else, in which equal feasible sets are equal whoever solves them."""
    return eqx.partition(without_solver((shared, mapped)), _is_array)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def leaf_bytes(tree: Any) -> int:
    """Return the memory of all arrays in a tree."""
    sized = eqx.filter(tree, lambda leaf: _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.number))
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(sized))


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
