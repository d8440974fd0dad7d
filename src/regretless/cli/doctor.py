"""``regretless doctor``: is this machine set up, and what will the program use?"""

import importlib.metadata
import json
import platform
import sys
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, clear_errors
from regretless.folders import cache_directory
from regretless.startup import Device, configure, usable_cores

PACKAGES = ("regretless", "jax", "jaxlib", "equinox", "numpy", "pandas", "pyarrow", "pydantic")


def doctor(
    device: Annotated[Device, typer.Option(help="Which backend to look at.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the findings.")] = Format.table,
) -> None:
    """Check versions, devices, the compilation cache and a small computation; exit code 1 if something is wrong."""
    with clear_errors():
        configure(device)
        findings = examine()
    if format is Format.json:
        print(json.dumps(findings, indent=2))
    else:
        table = Table(title="regretless doctor", title_style="bold", show_header=False)
        for name, value in findings.items():
            table.add_row(name, Text(", ".join(value) if isinstance(value, list) else str(value)))
        console.out.print(table, highlight=False)
    if findings["problems"]:
        raise typer.Exit(1)


def examine() -> dict[str, Any]:
    """What was found; ``problems`` lists what keeps the program from working."""
    problems: list[str] = []
    findings: dict[str, Any] = {
        "python": sys.version.split()[0],
        "platform": platform.platform(),
        "cores": usable_cores(),
        "versions": [f"{name} {importlib.metadata.version(name)}" for name in PACKAGES],
        "cache": str(cache_directory()),
    }
    try:
        import jax

        findings["devices"] = [f"{device.platform}:{device.id} {device.device_kind}" for device in jax.devices()]
    except RuntimeError as error:
        problems.append(f"no device: {error}")
    else:
        problems += try_out()
    try:
        cache_directory().mkdir(parents=True, exist_ok=True)
    except OSError as error:
        problems.append(f"the cache directory cannot be written ({error.strerror}): set REGRETLESS_CACHE")
    findings["problems"] = problems
    return findings


def try_out() -> list[str]:
    """Plays a few rounds and checks what must hold whatever the numbers."""
    import numpy as np

    from regretless.studies import Experiment, run

    trace = run(Experiment(benchmark="topk", policies=("greedy",), seeds=2, horizon=20)).traces["greedy"]
    if trace.diverged or not np.all(trace.regret >= -1e-3):
        return ["a small run on top-k gave negative or non-finite regret: this JAX build computes wrongly"]
    return []
