"""``regretless doctor`` and ``data``: check whether this machine is set up, and download what may be missing."""

import importlib.metadata
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

import regretless as rg
from regretless.cli import console
from regretless.cli.console import Format, clear_errors, option
from regretless.errors import RegretlessError, SettingsError
from regretless.registry import require_known
from regretless.startup import Device, configure, programs_directory, usable_cores

PACKAGES = ("regretless", "jax", "jaxlib", "equinox", "numpy", "pydantic", "highspy")
CARDS = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")


class Finding(NamedTuple):
    """What was found and what to do about it; ``is_problem`` if the program does not work until that is done."""

    message: str
    is_problem: bool = True


def doctor(
    device: Annotated[Device, option("Which backend to look at.")] = "auto",
    format: Annotated[Format, option("How to print the findings.")] = "table",
) -> None:
    """Check versions, devices, cache, data and solver, and play a few rounds; exit code 1 after a problem.

    Each problem comes with what to do about it; advice is about what works and could be better.
    """
    with clear_errors():
        facts, findings = examine(device)
        problems = [finding.message for finding in findings if finding.is_problem]
        advice = [finding.message for finding in findings if not finding.is_problem]
        if format == "json":
            console.say_json({**facts, "problems": problems, "advice": advice})
        else:
            facts = {name: ", ".join(value) if isinstance(value, list) else str(value) for name, value in facts.items()}
            console.say_table(list(facts.items()), title="regretless doctor")
            for message in advice:
                console.say(f"advice: {message}")
            for message in problems:
                console.say(message, "problem: ")
            if not problems:
                console.say("a small run succeeded: no problem was found")
    if problems:
        raise typer.Exit(1)


def examine(device: Device) -> tuple[dict[str, Any], list[Finding]]:
    """Return facts about this machine, and what the checks found."""
    findings: list[Finding] = [*cache(), *energy_files(), *solver()]
    devices: list[Any] = []
    try:
        configure(device)
        import jax

        devices = jax.devices()
    except (RuntimeError, RegretlessError) as error:
        findings += [*card(device, [])] or [Finding(f"no device: {error}")]
    else:
        findings += [*card(device, [backend.platform for backend in devices]), *try_out()]
    facts = {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": usable_cores(),
        "versions": [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES],
        "cache": str(programs_directory() or "off"),
        "devices": [f"{backend.platform}:{backend.id} {backend.device_kind}" for backend in devices],
    }
    return facts, findings


def cache() -> Iterator[Finding]:
    """Check whether compiled programs are kept, in a folder that can be written."""
    programs = programs_directory()
    if programs is None:
        message = "compiled programs are not kept (REGRETLESS_CACHE=off): every start compiles again"
        yield Finding(message, is_problem=False)
        return
    try:
        console.require_writable(programs)
    except SettingsError as error:
        yield Finding(f"{error}; compiled programs are kept there unless REGRETLESS_CACHE names another folder")


def energy_files() -> Iterator[Finding]:
    """Check whether the files of the energy benchmark are there, and as they were published."""
    from regretless.benchmarks import energy_data

    try:
        folder = energy_data.find_folder()
    except SettingsError as error:
        yield Finding(str(error))
        return
    if folder is None:
        message = "energy plays on synthetic data; 'regretless data fetch energy' downloads the real ones"
        yield Finding(message, is_problem=False)
        return
    for name in energy_data.FILES:
        try:
            energy_data.verify(folder / name)
        except SettingsError as error:
            yield Finding(str(error))


def solver() -> Iterator[Finding]:
    """Check HiGHS, which mixed-integer feasible sets need."""
    try:
        import highspy

        from regretless.oracles import highs

        highs.refuse_faulty(highspy.Highs().version())
    except ImportError as error:
        yield Finding(f"mixed-integer feasible sets: {error}; 'pip install --force-reinstall highspy' repairs them")
    except RegretlessError as error:
        yield Finding(f"mixed-integer feasible sets: {error}")


def card(device: Device, platforms: list[str]) -> Iterator[Finding]:
    """Check for a GPU that is there and not used, or asked for and not there; ``platforms`` are those of JAX."""
    present = [path for path in CARDS if os.path.exists(path)]
    asked = device == "gpu" or "cuda" in os.environ.get("JAX_PLATFORMS", "")
    if {"gpu", "cuda"} & set(platforms):
        return
    if present:
        advice = "check the driver with 'nvidia-smi', then 'pip install \"jax[cuda12]\"'"
        yield Finding(f"a GPU is there ({present[0]}), but JAX cannot use it: {advice}", is_problem=asked)
    elif asked:
        advice = "leave that out to use the CPU, or give the container its GPU"
        yield Finding(f"a GPU was asked for (--device gpu or JAX_PLATFORMS), but this machine shows none: {advice}")


def try_out() -> list[Finding]:
    """Play a few rounds and check that regret is finite and not negative."""
    result = rg.run(rg.Experiment("topk", "greedy", seeds=2, horizon=20))["greedy"]
    if result.diverged or not (result.regret >= -1e-3).all():
        return [Finding("a small run on top-k gave negative or non-finite regret: this JAX build computes wrongly")]
    return []


data = typer.Typer(cls=console.PlainGroup, no_args_is_help=True)


@data.callback()
def prepare() -> None:
    """Download data that is not part of the program."""


@data.command(cls=console.PlainCommand)
def fetch(
    what: Annotated[str, typer.Argument(help="Whose data: energy.")],
    data_dir: Annotated[Path | None, option("Folder to put the files in.", "the user's cache")] = None,
    origin: Annotated[str | None, option("Where to download from.", "the public repository")] = None,
) -> None:
    """Download the electricity prices and scheduling instances of the energy benchmark, and verify their checksums.

    Files that are there already and complete stay as they are. Exit code 1 if the origin cannot be reached.
    """
    with clear_errors():
        from regretless.benchmarks import energy_data

        require_known("data", what, ["energy"])
        folder = data_dir or energy_data.cache_folder()
        console.require_writable(folder)
        try:
            paths = energy_data.fetch(folder, origin or energy_data.ORIGIN, console.log)
        except (OSError, ValueError) as error:
            console.complain(
                f"{error}\nWithout a network, copy {', '.join(energy_data.FILES)} into a folder and name it with "
                "--data-dir or REGRETLESS_DATA; without the files, energy plays on synthetic data."
            )
            raise typer.Exit(1) from None
        console.say(f"{len(paths)} files in {folder}")
