"""Set up JAX before it starts: devices, and a cache of compiled programs between runs.

The cache is on in Python as on the command line. The environment variable ``REGRETLESS_CACHE`` names another folder,
or is ``off``; a program that gave JAX a cache keeps that one.
"""

import contextlib
import functools
import os
import sys
import tempfile
import threading
import time
import warnings
import zlib
from pathlib import Path
from typing import Any, Literal

from regretless.errors import SettingsError

Device = Literal["auto", "cpu", "gpu"]

CACHE_OFF = "off"
"""The value of ``REGRETLESS_CACHE`` that keeps no compiled program."""

starting_processes = threading.Lock()
"""Held while worker processes are started; Ctrl-C waits for it, because a half-started one would report an error."""

ZLIB_HEADER = 0x78
"""First byte of a zlib stream."""


def configure(device: Device = "auto", compilation_cache: bool = True, cores: int | None = None) -> None:
    """Choose the backend, give JAX one device per core (or ``cores``) on CPUs, and turn the compilation cache on."""
    import jax

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # allocate as needed: others share the GPU
    if device != "auto":
        jax.config.update("jax_platforms", "cuda" if device == "gpu" else "cpu")
    with contextlib.suppress(RuntimeError):  # JAX has started already: its devices stay as they are
        jax.config.update("jax_num_cpu_devices", cores or usable_cores())
    settings: Any = jax.config
    if settings.jax_disable_jit:
        raise SettingsError("JAX_DISABLE_JIT is set, but simulations are compiled programs: unset it")
    try:
        jax.local_devices()
    except (RuntimeError, AssertionError):
        asked = f"--device {device}" if device != "auto" else f"JAX_PLATFORMS={os.environ.get('JAX_PLATFORMS', '')}"
        raise SettingsError(f"{asked}: JAX finds no such device here; leave it out to use an available one") from None
    programs = programs_directory()
    if not compilation_cache:
        jax.config.update("jax_enable_compilation_cache", False)
    elif programs is not None:
        _keep_in(programs)


@functools.cache
def keep_programs() -> None:
    """Keep compiled programs for the next start, unless switched off or done already; the first time, say so."""
    import jax

    programs = programs_directory()
    config: Any = jax.config
    if programs is None or config.jax_compilation_cache_dir or not config.jax_enable_compilation_cache:
        return
    try:
        first = not programs.exists()
        programs.mkdir(parents=True, exist_ok=True)
    except OSError:  # nowhere to keep them: 'regretless doctor' shows why
        return
    _keep_in(programs)
    if first:
        print(f"compiled programs are kept in {programs} (REGRETLESS_CACHE=off switches this off)", file=sys.stderr)


def _keep_in(programs: Path) -> None:
    """Make this folder JAX's cache."""
    import jax

    remove_half_written(programs)
    # A program that cannot be kept, or read back, is compiled: no warning needed.
    warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
    jax.config.update("jax_compilation_cache_dir", str(programs))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def remove_half_written(programs: Path) -> None:
    """Remove compiled programs of which only a part was written; JAX would fail on them every time.

    Programs older than the last check are skipped; its time is the modification time of the file ``checked``.
    """
    stamp = programs / "checked"
    with contextlib.suppress(OSError):
        last = stamp.stat().st_mtime_ns if stamp.exists() else 0
        now = time.time_ns() - 10**9  # file times lag behind a little
        for entry in os.scandir(programs):
            if entry.name.endswith("-cache") and entry.stat().st_mtime_ns >= last and not _is_complete(Path(entry)):
                os.unlink(entry)
        stamp.touch()
        os.utime(stamp, ns=(now, now))


def _is_complete(path: Path) -> bool:
    """Return whether a file of JAX's cache is complete; a file in another format than zlib counts as complete."""
    content = path.read_bytes()
    if content and content[0] != ZLIB_HEADER:
        return True
    stream = zlib.decompressobj()
    try:
        stream.decompress(content)
    except zlib.error:
        return False
    return stream.eof


def compiler_options() -> dict[str, Any] | None:
    """Return options for CPUs: half the compile time, equally fast programs; a level in XLA_FLAGS takes precedence."""
    import jax

    chosen = "xla_backend_optimization_level" in os.environ.get("XLA_FLAGS", "")
    if chosen or jax.local_devices()[0].platform != "cpu":
        return None
    return {"xla_backend_optimization_level": "1", "xla_llvm_disable_expensive_passes": True}


def usable_cores() -> int:
    """Return the number of cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def programs_directory() -> Path | None:
    """Return where compiled programs are kept; None if they are not (``REGRETLESS_CACHE=off``)."""
    return None if os.environ.get("REGRETLESS_CACHE") == CACHE_OFF else cache_directory() / "programs"


def cache_directory() -> Path:
    """Return the folder of compiled programs and downloads: ``$REGRETLESS_CACHE``, or one in the user's cache."""
    named, common = os.environ.get("REGRETLESS_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if named and named != CACHE_OFF:
        return Path(named)
    if common:
        return Path(common) / "regretless"
    try:
        return Path.home() / ".cache" / "regretless"
    except RuntimeError:  # a user without a name and without a home
        return Path(tempfile.gettempdir()) / f"regretless-{os.getuid()}"


def named_data_directory() -> Path | None:
    """Return the user's directory of data, ``$REGRETLESS_DATA``; None if it is not set."""
    named = os.environ.get("REGRETLESS_DATA", "")
    return Path(named) if named else None
