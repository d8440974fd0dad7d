"""``regretless doctor`` and ``data``: check whether this machine is set up, and download what may be missing.

Every check gives problems, which keep the program from working, and advice; each says what was found and what to do.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, clear_errors
from regretless.errors import RegretlessError, SettingsError
from regretless.startup import Device, configure, half_written, programs_directory, usable_cores

PACKAGES = ("regretless", "jax", "jaxlib", "equinox", "numpy", "pandas", "pyarrow", "pydantic", "highspy")

GIB = 2**30
MIN_MEMORY, MIN_DISK = 1 * GIB, GIB // 4
CARDS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
CGROUP = Path("/sys/fs/cgroup")
MEMORY = Path("/proc/meminfo")
LOADING_ORDERS = (
    "import highspy, ortools.linear_solver.pywraplp as p; p.Solver.CreateSolver('GLOP')",
    "import ortools.linear_solver.pywraplp as p, highspy; highspy.Highs()",
)
"""Programs that load the two solver libraries in one process, in either order."""


class Finding(NamedTuple):
    """One sentence; ``is_problem`` if the program does not work until something is done."""

    message: str
    is_problem: bool = True


def doctor(
    device: Annotated[Device, typer.Option(help="Which backend to look at.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the findings.")] = Format.table,
) -> None:
    """Check versions, devices, memory, cache, data and solvers, and play a few rounds; exit code 1 after a problem.

    Each problem comes with what to do about it; advice is about what works and could be better.
    """
    with clear_errors():
        findings = examine(device)
        if format is Format.json:
            console.say_json(findings)
        else:
            show(findings)
    if findings["problems"]:
        raise typer.Exit(1)


def examine(device: Device) -> dict[str, Any]:
    """Return what was found: ``problems`` keep the program from working, ``advice`` says what could be better."""
    findings: list[Finding] = [*cache(), *energy_files(), *solvers(), *room()]
    memory = usable_memory()
    about: dict[str, Any] = {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": usable_cores(),
        "memory": "unknown" if memory is None else f"{memory / GIB:.1f} GiB free",
        "versions": [f"{name} {_version(name)}" for name in PACKAGES if _version(name) is not None],
        "cache": str(programs_directory() or "off"),
    }
    devices, platforms = [], []
    try:
        configure(device)
        import jax

        devices = [f"{each.platform}:{each.id} {each.device_kind}" for each in jax.devices()]
        platforms = [each.platform for each in jax.devices()]
    except (RuntimeError, RegretlessError) as error:
        findings += [*card(device, [])] or [Finding(f"no device: {error}")]
    else:
        findings += [*card(device, platforms), *try_out()]
    return {
        **about,
        "devices": devices,
        "problems": [finding.message for finding in findings if finding.is_problem],
        "advice": [finding.message for finding in findings if not finding.is_problem],
    }


def try_out() -> list[Finding]:
    """Play a few rounds and check what must hold whatever the numbers."""
    import numpy as np

    from regretless.experiments.experiment import Experiment
    from regretless.experiments.runner import run

    result = run(Experiment("topk", "greedy", seeds=2, horizon=20))["greedy"]
    if result.diverged or not np.all(result.regret >= -1e-3):
        return [Finding("a small run on top-k gave negative or non-finite regret: this JAX build computes wrongly")]
    return []


def show(findings: dict[str, Any]) -> None:
    """Print the facts as a table and the findings below it."""
    table = Table(title="regretless doctor", title_style="bold", show_header=False)
    for name, value in findings.items():
        if name not in ("problems", "advice"):
            table.add_row(name, Text(", ".join(value) if isinstance(value, list) else str(value)))
    console.out.print(table, highlight=False)
    for message in findings["advice"]:
        console.say(f"advice: {message}")
    for message in findings["problems"]:
        console.say(message, "problem: ")
    if not findings["problems"]:
        console.say("a small run succeeded: no problem was found")


def cache() -> Iterator[Finding]:
    """Check the folder of compiled programs: whether it can be written, has room, and holds complete files."""
    programs = programs_directory()
    if programs is None:
        yield Finding(
            "compiled programs are not kept (REGRETLESS_CACHE=off): every start compiles again", is_problem=False
        )
        return
    try:
        programs.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=programs):
            pass
    except OSError as error:
        yield Finding(
            f"the cache {programs} cannot be written ({error.strerror}): make it writable, or set "
            "REGRETLESS_CACHE to a folder that is"
        )
        return
    free = shutil.disk_usage(programs).free
    if free < MIN_DISK:
        yield Finding(
            f"the disk of the cache {programs} has {free / 2**20:.0f} MiB left: free some, or set REGRETLESS_CACHE"
        )
    broken = half_written(programs)
    for path in broken:
        path.unlink(missing_ok=True)
    if broken:
        yield Finding(f"half-written programs in {programs}, removed: {len(broken)}", is_problem=False)


def energy_files() -> Iterator[Finding]:
    """Check whether the files of the energy benchmark are there, and as they were published."""
    from regretless.benchmarks import energy_data

    try:
        folder = energy_data.find_folder()
    except SettingsError as error:
        yield Finding(str(error))
        return
    if folder is None:
        message = (
            "no data of the energy benchmark: it plays on synthetic ones; 'regretless data fetch energy' downloads them"
        )
        yield Finding(message, is_problem=False)
        return
    for name in energy_data.FILES:
        try:
            energy_data.verify(folder / name)
        except SettingsError as error:
            yield Finding(str(error))


def solvers() -> Iterator[Finding]:
    """Check HiGHS, which mixed-integer feasible sets need, alone and together with its copy in OR-Tools."""
    if not _runs("import highspy; highspy.Highs()"):
        yield Finding(
            "highspy cannot be imported: 'pip install --force-reinstall highspy' repairs mixed-integer feasible sets"
        )
        return
    have = _version("ortools")
    if have is not None and not all(map(_runs, LOADING_ORDERS)):
        yield Finding(
            f"highspy {_version('highspy')} and ortools {have} cannot be loaded in one process, because both bring a "
            "HiGHS: 'pip install \"highspy>=1.13,<1.14\"' gets along with it"
        )


def room() -> Iterator[Finding]:
    """Check the memory and cores that this process may use, including a container's limits."""
    memory = usable_memory()
    if memory is not None and memory < MIN_MEMORY:
        yield Finding(
            f"{memory / GIB:.1f} GiB of memory are free, compiling alone takes 1 GiB: end other programs "
            "or raise the limit"
        )
    cores, quota = usable_cores(), _quota()
    if quota is not None and quota < cores:
        yield Finding(
            f"{cores} cores are shown but a limit allows the time of {quota:.1f}: "
            f"'taskset -c 0-{max(0, round(quota) - 1)}' before the command keeps threads from waiting for each other",
            is_problem=False,
        )
    elif cores == 1:
        yield Finding(
            "one core: compiling and replications are not shared out, expect about twice the usual times",
            is_problem=False,
        )


def card(device: Device, platforms: list[str]) -> Iterator[Finding]:
    """Check for a GPU that is there and not used, or asked for and not there; ``platforms`` are those of JAX."""
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
        yield Finding(f"a GPU is there ({present[0]}), but {what}", is_problem=asked)
    elif asked:
        yield Finding(
            "a GPU was asked for (--device gpu or JAX_PLATFORMS), but this machine shows none: leave that out to use "
            "the CPU, or give the container its GPU"
        )


def usable_memory() -> int | None:
    """Return the bytes that are free for this process; None where the system does not say."""
    limits = []
    try:
        lines = dict(line.split(":") for line in MEMORY.read_text(encoding="ascii").splitlines())
        limits.append(int(lines["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        pass
    try:
        limit, used = ((CGROUP / name).read_text().strip() for name in ("memory.max", "memory.current"))
        limits += [int(limit) - int(used)] if limit != "max" else []
    except (OSError, ValueError):
        pass
    return min(limits, default=None)


def _quota() -> float | None:
    """Return how many cores' time a container may use; None without such a limit."""
    try:
        allowed, period = (CGROUP / "cpu.max").read_text().split()
        return None if allowed == "max" else int(allowed) / int(period)
    except (OSError, ValueError):
        return None


def _runs(program: str) -> bool:
    """Return whether a Python program succeeds in another process: a clash of libraries may end it by a signal."""
    return subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, check=False).returncode == 0


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


data = typer.Typer(cls=console.PlainGroup, help="Download data that is not part of the program.", no_args_is_help=True)


@data.callback()
def prepare() -> None:
    """Download data that is not part of the program."""


@data.command(cls=console.PlainCommand)
def fetch(
    what: Annotated[str, typer.Argument(help="Whose data: energy.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder to put the files in.", show_default="the user's cache")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Where to download from.", show_default="the public repository")
    ] = None,
) -> None:
    """Download the electricity prices and scheduling instances of the energy benchmark, and verify their checksums.

    Files that are there already and complete stay as they are. Exit code 1 if the origin cannot be reached.
    """
    with clear_errors():
        from regretless.benchmarks import energy_data
        from regretless.registry import require_known

        require_known("data", what, ["energy"])
        folder = data_dir or energy_data.cache_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"cannot write to {folder}: {error.strerror}") from None
        try:
            paths = energy_data.fetch(folder, origin or energy_data.ORIGIN, console.log)
        except (OSError, ValueError) as error:
            console.complain(
                f"{error}\nWithout a network, copy {', '.join(energy_data.FILES)} into a folder and name it with "
                "--data-dir or REGRETLESS_DATA; without the files, energy plays on synthetic data."
            )
            raise typer.Exit(1) from None
        console.say(f"{len(paths)} files in {folder}")
