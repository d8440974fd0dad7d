"""What is set up before JAX starts: devices, and a cache of compiled programs between runs."""

import contextlib
import os
import time
import warnings
import zlib
from pathlib import Path
from typing import Literal

from regretless.folders import cache_directory

Device = Literal["auto", "cpu", "gpu"]

ZLIB = 0x78
"""How a stream of zlib's begins."""


def configure(device: Device = "auto", compilation_cache: bool = True, cores: int | None = None) -> None:
    """Chooses the backend, gives JAX one device per core (or ``cores``) on CPUs, and turns the compilation cache on."""
    import jax

    from regretless.errors import SettingsError

    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")  # take what is needed: others share the GPU
    if device != "auto":
        jax.config.update("jax_platforms", "cuda" if device == "gpu" else "cpu")
    with contextlib.suppress(RuntimeError):  # JAX has started already: its devices stay as they are
        jax.config.update("jax_num_cpu_devices", cores or usable_cores())
    if device != "auto":
        try:
            jax.local_devices()
        except (RuntimeError, AssertionError):
            raise SettingsError(
                f"--device {device}: JAX finds no such device here; leave --device out to use what there is"
            ) from None
    if compilation_cache:
        programs = cache_directory() / "programs"
        remove_half_written(programs)
        # A program that cannot be kept, or read back, is compiled: nobody needs to know.
        warnings.filterwarnings("ignore", message="Error (reading|writing) persistent compilation cache entry")
        jax.config.update("jax_compilation_cache_dir", str(programs))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def remove_half_written(programs: Path) -> None:
    """Removes compiled programs of which only a part was written; JAX would stumble over them for ever.

    Those that are older than the last look, whose time is that of the file ``checked``, are left alone.
    """
    stamp = programs / "checked"
    with contextlib.suppress(OSError):
        last = stamp.stat().st_mtime_ns if stamp.exists() else 0
        now = time.time_ns() - 10**9  # the times of files lag behind a little
        for entry in os.scandir(programs):
            if entry.name.endswith("-cache") and entry.stat().st_mtime_ns >= last and not _whole(Path(entry)):
                os.unlink(entry)
        stamp.touch()
        os.utime(stamp, ns=(now, now))


def _whole(path: Path) -> bool:
    """Whether a file of JAX's cache is complete; one in another format than zlib's counts as such."""
    content = path.read_bytes()
    if content and content[0] != ZLIB:
        return True
    stream = zlib.decompressobj()
    try:
        stream.decompress(content)
    except zlib.error:
        return False
    return stream.eof


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
