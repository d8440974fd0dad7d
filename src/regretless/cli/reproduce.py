"""``regretless reproduce``: the paper's tables and figures with one command that can be stopped and repeated."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli import console
from regretless.cli.campaign_progress import CampaignProgress, span
from regretless.cli.console import Format, Imports, clear_errors
from regretless.cli.theory_table import show_theory
from regretless.startup import Device, configure, usable_cores

EPILOG = """
Examples:

regretless reproduce --quick             everything, few replications and rounds

regretless reproduce main semi_bandit    the paper's two tables, 30 replications

regretless reproduce --jobs 4            everything, four processes

regretless reproduce my_study.toml       a study of your own, in TOML or Python

Stop it whenever you like: the same command goes on where it stopped. Then: regretless report
"""
STOPPED = "finished cells are kept; the same command goes on from there"


def reproduce(
    study: Annotated[
        list[str] | None,
        typer.Argument(
            help="main, semi_bandit, convergence, models, surrogates, alpha, degree, feedback, theory, or the file of a study "
            "of your own.  [default: all of the paper]"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 replications of at most 200 rounds.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes over cells.")] = 1,
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    engine: Annotated[str, typer.Option(help="Where cells are computed: local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Ray: the cluster, or none to start one here.")] = None,
    import_: Imports = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Replications.  [default: 30, quick: 3]")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first replication.")] = 0,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds.  [default: the paper's, quick: 200]")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Run the paper's studies; finished work is never redone, and several processes may share a store.

    A published cell that is more than three standard errors away is run again with seeds from 1000; both are shown.
    """
    with clear_errors(STOPPED):
        configure(device)
        from regretless import plugins
        from regretless.errors import SettingsError
        from regretless.registry import require_known
        from regretless.studies import campaign, definitions, own
        from regretless.studies.plan import Plan
        from regretless.studies.store import Store
        from regretless.studies.study import QUICK, Scale

        require_known("engine", engine, ("local", "ray"))
        if address is not None and engine != "ray":
            raise SettingsError("--address is for --engine ray")
        imports = list(import_ or ())
        for name in imports:
            plugins.load(name)
        base = QUICK if quick else Scale()
        scale = Scale(seeds or base.seeds, first_seed, horizon or base.horizon)
        studies = []
        for word in dict.fromkeys(study) if study else definitions.REGISTRY:
            if own.is_file(word):
                found, more = own.read(Path(word), scale)
                studies.append(found)
                imports += [name for name in more if name not in imports]
            else:
                studies.append(definitions.study(word, scale))
        plan = Plan(studies, scale, "regretless " + shlex.join(sys.argv[1:]), imports)
        for line in about_data(plan):
            console.note(line)
        target = Store(store)
        target.create()
        with CampaignProgress() as listener:
            summary = campaign.carry_out(plan, target, build_engine(engine, jobs, device, address, imports), listener)
        claims = theory_result(plan, target)
        outcome = {
            "cells": summary.cells,
            "computed": summary.computed,
            "failed": summary.failed,
            "seconds": round(summary.seconds, 1),
            "store": str(store),
            "theory": claims,
        }
        if format is Format.json:
            print(json.dumps(outcome, indent=2))
        else:
            if claims is not None:
                show_theory(claims)
            console.say(
                f"{summary.cells} cells, {summary.computed} of them computed now in {span(summary.seconds)}, "
                f"{len(summary.failed)} failed; next: regretless report --store {shlex.quote(str(store))}"
            )
        if summary.failed:
            raise typer.Exit(1)


def theory_result(plan: Any, store: Any) -> dict[str, Any] | None:
    """The claims of the theory study, if it was asked for and is finished."""
    from regretless.studies.cells import TheoryCell

    records = [store.record(item.key) for item in plan.planned() if isinstance(item.cell, TheoryCell)]
    return next((record["document"] for record in records if record is not None), None)


def about_data(plan: Any) -> list[str]:
    """What must be said about the data that the studies are played on."""
    from regretless.studies.experiment import Experiment
    from regretless.studies.preparing import data_notices, prepare

    cells = {item.cell.benchmark_name: item.cell for item in plan.planned() if isinstance(item.cell, Experiment)}
    worlds = {name: prepare(cell).benchmark for name, cell in cells.items()}
    return [f"{name}: {word}" for name, world in worlds.items() for word in data_notices(world)]


def build_engine(name: str, jobs: int, device: Device, address: str | None, imports: list[str]) -> Any:
    """The engine called ``name``."""
    if name == "ray":
        from regretless.studies.engines.cluster import RayEngine

        return RayEngine(address, device, imports=imports)
    if jobs == 1:
        from regretless.studies.campaign import InProcess

        return InProcess()
    import jax

    from regretless.studies.engines.processes import Processes

    device = "cpu" if jax.default_backend() == "cpu" else device
    cores = max(1, usable_cores() // jobs)
    command = [sys.executable, "-P", "-m", "regretless.cli.worker", device, str(cores)]  # -P: not from this directory
    return Processes(command, jobs, imports)
