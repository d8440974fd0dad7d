"""What can be wrong with a machine: each check gives problems, which keep the program from working, and advice.

Every sentence says what was found and what to do.
"""

import importlib.metadata
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from regretless.errors import SettingsError
from regretless.files import programs_directory
from regretless.startup import Device, half_written, usable_cores

GIB = 2**30
LEAST_MEMORY, LEAST_DISK = 1 * GIB, GIB // 4
CARDS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
CGROUP = Path("/sys/fs/cgroup")
MEMORY = Path("/proc/meminfo")
TOGETHER = (
    "import highspy, ortools.linear_solver.pywraplp as p; p.Solver.CreateSolver('GLOP')",
    "import ortools.linear_solver.pywraplp as p, highspy; highspy.Highs()",
)
"""The two solver libraries in one process, in either order."""


class Finding(NamedTuple):
    """One sentence; ``wrong`` if the program does not work until something is done."""

    words: str
    wrong: bool = True


def cache() -> Iterator[Finding]:
    """The folder of compiled programs: can it be written, is there room, is everything in it whole?"""
    programs = programs_directory()
    if programs is None:
        yield Finding("compiled programs are not kept (REGRETLESS_CACHE=off): every start compiles anew", wrong=False)
        return
    try:
        programs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=programs):
            pass
    except OSError as error:
        yield Finding(
            f"the cache {programs} cannot be written ({error.strerror}): make it writable, or set REGRETLESS_CACHE to a "
            "folder that is"
        )
        return
    free = shutil.disk_usage(programs).free
    if free < LEAST_DISK:
        yield Finding(
            f"the disk of the cache {programs} has {free / 2**20:.0f} MiB left: free some, or set REGRETLESS_CACHE"
        )
    broken = half_written(programs)
    for path in broken:
        path.unlink(missing_ok=True)
    if broken:
        yield Finding(f"half-written programs in {programs}, removed: {len(broken)}", wrong=False)


def data() -> Iterator[Finding]:
    """The files of the energy benchmark: there, and as they were published?"""
    from regretless.benchmarks import energy_data

    try:
        folder = energy_data.find_folder()
    except SettingsError as error:
        yield Finding(str(error))
        return
    if folder is None:
        words = (
            "no data of the energy benchmark: it plays on synthetic ones; 'regretless data fetch energy' downloads them"
        )
        yield Finding(words, wrong=False)
        return
    for name in energy_data.FILES:
        try:
            energy_data.verify(folder / name)
        except SettingsError as error:
            yield Finding(str(error))
        except OSError as error:
            yield Finding(
                f"{folder / name}: {error.strerror}; 'regretless data fetch energy --data-dir {folder}' downloads it"
            )


def solvers() -> Iterator[Finding]:
    """HiGHS, which mixed-integer feasible sets need, alone and beside the copy of it in OR-Tools."""
    if not _runs("import highspy; highspy.Highs()"):
        yield Finding(
            "highspy cannot be imported: 'pip install --force-reinstall highspy' mends mixed-integer feasible sets"
        )
        return
    have = _version("ortools")
    if have is not None and not all(map(_runs, TOGETHER)):
        yield Finding(
            f"highspy {_version('highspy')} and ortools {have} cannot be loaded in one process, because both bring a HiGHS: "
            "'pip install \"highspy>=1.13,<1.14\"' gets along with it"
        )


def room() -> Iterator[Finding]:
    """Memory and cores that this process may use, a container's limits included."""
    memory = usable_memory()
    if memory is not None and memory < LEAST_MEMORY:
        yield Finding(
            f"{memory / GIB:.1f} GiB of memory are free, compiling alone takes 1 GiB: end other programs or raise the limit"
        )
    cores, quota = usable_cores(), _quota()
    if quota is not None and quota < cores:
        yield Finding(
            f"{cores} cores are shown but a limit allows the time of {quota:.1f}: 'taskset -c 0-{max(0, round(quota) - 1)}' "
            "before the command keeps threads from waiting for each other",
            wrong=False,
        )
    elif cores == 1:
        yield Finding(
            "one core: compiling and replications are not shared out, expect twice the times told", wrong=False
        )


def card(device: Device, platforms: list[str]) -> Iterator[Finding]:
    """A GPU that is there and not used, or asked for and not there; ``platforms`` are those of JAX's devices."""
    if "gpu" in platforms or "cuda" in platforms:
        return
    present = [path for path in CARDS if os.path.exists(path)]
    asked = device == "gpu" or "cuda" in os.environ.get("JAX_PLATFORMS", "")
    if present:
        plug_in = next((name for name in ("jax-cuda13-plugin", "jax-cuda12-plugin") if _version(name)), None)
        what = (
            f"JAX has {plug_in} but cannot use it: does 'nvidia-smi' work, and does the driver suit it?" if plug_in
            else "this JAX cannot use it: 'pip install \"jax[cuda12]\"'"
        )  # fmt: skip
        yield Finding(f"a GPU is there ({present[0]}), but {what}", wrong=asked)
    elif asked:
        yield Finding(
            "a GPU was asked for (--device gpu or JAX_PLATFORMS), but this machine shows none: leave that out to use the CPU, "
            "or give the container its GPU"
        )


def usable_memory() -> int | None:
    """Bytes that are free for this process; None where the system does not tell."""
    found = []
    try:
        lines = dict(line.split(":") for line in MEMORY.read_text(encoding="ascii").splitlines())
        found.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        pass
    try:
        limit, used = ((CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        found += [int(limit) - int(used)] if limit != "max" else []
    except (OSError, ValueError):
        pass
    return min(found, default=None)


def _quota() -> float | None:
    """Cores' worth of time that a container may use; None without such a limit."""
    try:
        allowed, period = (CGROUP / "cpu.max").read_text().split()
        return None if allowed == "max" else int(allowed) / int(period)
    except (OSError, ValueError):
        return None


def _runs(program: str) -> bool:
    """Whether a Python program ends well, in a process of its own: a clash of libraries may end it by a signal."""
    return subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=False).returncode == 0


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
