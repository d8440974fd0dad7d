"""What is set up before JAX starts: devices, and a cache of compiled programs between runs."""

import contextlib
import os
from typing import Literal

from regretless.folders import cache_directory

Device = Literal["auto", "cpu", "gpu"]


def configure(device: Device = "auto", compilation_cache: bool = True, cores: int | None = None) -> None:
    """Chooses the backend, gives JAX one device per core (or ``cores``) on CPUs, and turns the compilation cache on."""
    import jax

    from regretless.errors import SettingsError

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
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
