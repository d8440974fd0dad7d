"""``regretless doctor``: is this machine set up, and what will the program use?"""

import contextlib
import importlib.metadata
import json
import platform
import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console, doctor_checks
from regretless.cli.console import Format, clear_errors
from regretless.cli.doctor_checks import Finding
from regretless.errors import SettingsError
from regretless.files import programs_directory
from regretless.startup import Device, configure, usable_cores

PACKAGES = ("regretless", "jax", "jaxlib", "equinox", "numpy", "pandas", "pyarrow", "pydantic", "highspy")


def doctor(
    device: Annotated[Device, typer.Option(help="Which backend to look at.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the findings.")] = Format.table,
) -> None:
    """Check versions, devices, memory, cache, data and solvers, and play a few rounds; exit code 1 if something is wrong.

    Each problem is told with what to do about it; advice is about what works and could be better.
    """
    with clear_errors():
        findings = examine(device)
        if format is Format.json:
            print(json.dumps(findings, indent=2))
        else:
            show(findings)
    if findings["problems"]:
        raise typer.Exit(1)


def _installed_versions() -> Iterator[str]:
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):  # a package of an extra
            yield f"{name} {importlib.metadata.version(name)}"


def examine(device: Device) -> dict[str, Any]:
    """What was found; ``problems`` lists what keeps the program from working, ``advice`` what could be better."""
    found: list[Finding] = [
        *doctor_checks.cache(), *doctor_checks.data(), *doctor_checks.solvers(), *doctor_checks.room()
    ]  # fmt: skip
    memory = doctor_checks.usable_memory()
    about: dict[str, Any] = {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": usable_cores(),
        "memory": "unknown" if memory is None else f"{memory / doctor_checks.GIB:.1f} GiB free",
        "versions": list(_installed_versions()),
        "cache": str(programs_directory() or "off"),
    }
    devices, platforms = [], []
    try:
        configure(device)
        import jax

        devices = [f"{each.platform}:{each.id} {each.device_kind}" for each in jax.devices()]
        platforms = [each.platform for each in jax.devices()]
    except (RuntimeError, SettingsError) as error:
        found += [*doctor_checks.card(device, [])] or [Finding(f"no device: {error}")]
    else:
        found += [*doctor_checks.card(device, platforms), *try_out()]
    return {
        **about,
        "devices": devices,
        "problems": [each.words for each in found if each.wrong],
        "advice": [each.words for each in found if not each.wrong],
    }


def try_out() -> list[Finding]:
    """Plays a few rounds and checks what must hold whatever the numbers."""
    import numpy as np

    from regretless.studies import Experiment, run

    trace = run(Experiment(benchmark="topk", policies=("greedy",), seeds=2, horizon=20)).traces["greedy"]
    if trace.diverged or not np.all(trace.regret >= -1e-3):
        return [Finding("a small run on top-k gave negative or non-finite regret: this JAX build computes wrongly")]
    return []


def show(findings: dict[str, Any]) -> None:
    """Prints the facts as a table, what is wrong below it, and a last word."""
    table = Table(title="regretless doctor", title_style="bold", show_header=False)
    for name, value in findings.items():
        if name not in ("problems", "advice"):
            table.add_row(name, Text(", ".join(value) if isinstance(value, list) else str(value)))
    console.out.print(table, highlight=False)
    for words in findings["advice"]:
        console.say(f"advice: {words}")
    for words in findings["problems"]:
        console.say(words, "problem: ")
    if not findings["problems"]:
        console.say("a small run went well: nothing is wrong here")
