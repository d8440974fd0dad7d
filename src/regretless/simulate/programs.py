"""Compiled programs over replications: how a function of one replication becomes one program for all of them.

A program is a function ``fn(shared, own)``: ``shared`` is the same for every replication, ``own`` has a leading axis of
replications in every leaf. Replications are vmapped, and split over the devices of the backend (on CPUs: one device per
core, if the program that uses this library asked JAX for that), which run side by side without waiting for each other.
"""

import gc
import os
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from regretless.startup import keep_programs, usable_cores

Body = Callable[[Any, Any], Any]
Call = tuple[Body, Any, Any]
Progress = Callable[[str, int, int], None]
"""Callback (task, done, total): what is being done, how much of it is finished, how much there is."""

AXIS = "replications"
CACHE_SIZE = 256
MAPS_SHARE = 0.5

_cache: OrderedDict[Any, Any] = OrderedDict()


CPU_OPTIONS: dict[str, str | bool] = {"xla_backend_optimization_level": "1", "xla_llvm_disable_expensive_passes": True}
"""On CPUs: half the compiling, programs as fast. Whoever sets a level in XLA_FLAGS gets that one."""


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

    def place(self, own: Any) -> Any:
        """Puts leaves with a leading replication axis on their devices."""
        if not self.vectorized:
            return own
        return jax.device_put(own, NamedSharding(self.mesh, PartitionSpec(AXIS)))

    def wrap(self, fn: Body) -> Body:
        """``fn`` over all replications."""
        if not self.vectorized:
            return fn
        body = jax.vmap(fn, in_axes=(None, 0))
        if self.width == 1:
            return body
        spec = PartitionSpec(AXIS)
        return jax.shard_map(body, mesh=self.mesh, in_specs=(PartitionSpec(), spec), out_specs=spec, check_vma=False)

    def run(self, fn: Body, shared: Any, own: Any) -> Any:
        """``fn`` of these arguments over all replications; compiles if no program for their shapes is known."""
        self.prepare([(fn, shared, own)])
        arrays, static = eqx.partition((shared, own), _is_array)
        return _cache[self._cache_key(fn, arrays, static)](*arrays)

    def prepare(self, calls: Sequence[Call], progress: Progress = lambda what, done, total: None) -> None:
        """Compiles what these calls need and is not known yet, side by side; Ctrl-C is heard while that goes on."""
        parts = [(fn, *eqx.partition((shared, own), _is_array)) for fn, shared, own in calls]
        asked = {self._cache_key(*part): part for part in reversed(parts)}  # rounds, the longest, first; each once
        missing = {key: part for key, part in asked.items() if key not in _cache}
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
        while len(_cache) > CACHE_SIZE:
            _cache.popitem(last=False)
        self.compile_seconds += time.perf_counter() - began

    def _cache_key(self, fn: Body, arrays: Any, static: Any) -> Any:
        leaves, structure = jax.tree.flatten(static)
        shapes = tuple((leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(arrays))
        layout = (self.vectorized, tuple(self.mesh.devices.flat), jax.config.read("jax_enable_x64"))
        return fn, tuple(leaves), structure, shapes, layout

    def shapes(self, fn: Body, shared: Any, own: Any) -> Any:
        """What ``fn`` of these arguments gives over all replications: shapes, which other programs can be prepared with."""
        arrays, static = eqx.partition((shared, own), _is_array)
        placed = NamedSharding(self.mesh, PartitionSpec(AXIS)) if self.vectorized else None
        found = jax.eval_shape(self._of_arrays(fn, static), *arrays)
        return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=placed), found)

    def _of_arrays(self, fn: Body, static: Any) -> Body:
        """``fn`` over all replications, of those parts of its arguments that are arrays."""
        static_shared, static_own = static
        return self.wrap(lambda s, o: fn(eqx.combine(s, static_shared), eqx.combine(o, static_own)))

    def _compile(self, fn: Body, arrays: Any, static: Any) -> Any:
        return jax.jit(self._of_arrays(fn, static)).lower(*arrays).compile(compiler_options=self.options or None)


def _is_array(leaf: Any) -> bool:
    return isinstance(leaf, jax.Array | np.ndarray | np.generic | jax.ShapeDtypeStruct)


def leaf_bytes(tree: Any) -> int:
    """Memory of all arrays in a tree."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(eqx.filter(tree, _has_size)))


def _has_size(leaf: Any) -> bool:
    return _is_array(leaf) and jnp.issubdtype(leaf.dtype, jnp.number)


def forget() -> None:
    """Drops every compiled program, so that the next run compiles anew."""
    _cache.clear()
    jax.clear_caches()


def make_room(used: float | None = None) -> bool:
    """Drops every compiled program if half of the memory maps that the system allows are taken; says whether it did.

    A program takes hundreds of maps, Linux allows a process 65,530, and a compilation that gets none ends the process.
    ``used`` is the share that is taken (default: what the system says).
    """
    share = _maps_in_use() if used is None else used
    if share <= MAPS_SHARE:
        return False
    forget()
    gc.collect()
    return True


def _maps_in_use() -> float:
    """Share of the allowed memory maps that this process has; 0 where the system does not tell."""
    try:
        limit = int(Path("/proc/sys/vm/max_map_count").read_text(encoding="ascii"))
        with Path("/proc/self/maps").open("rb") as file:
            return sum(1 for _ in file) / limit
    except (OSError, ValueError):
        return 0.0
