"""``regretless reproduce``: the paper's tables and figures with one command that can be stopped and repeated."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from regretless.cli import console
from regretless.cli.campaign_progress import CampaignProgress, span
from regretless.cli.console import Format, clear_errors
from regretless.cli.theory_table import show_theory
from regretless.startup import Device, configure, usable_cores

EPILOG = """
Examples:

regretless reproduce --quick             everything, few replications and rounds

regretless reproduce main semi_bandit    the paper's two tables, 30 replications

regretless reproduce --jobs 4            everything, four processes

Stop it whenever you like: the same command goes on where it stopped. Then: regretless report
"""
STOPPED = "finished cells are kept; the same command goes on from there"


def reproduce(
    study: Annotated[
        list[str] | None,
        typer.Argument(
            help="main, semi_bandit, convergence, models, surrogates, alpha, degree, feedback, theory.  [default: all]"
        ),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="3 replications of at most 200 rounds.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes over cells.")] = 1,
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    engine: Annotated[str, typer.Option(help="Where cells are computed: local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Ray: the cluster, or none to start one here.")] = None,
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
        from regretless.errors import SettingsError
        from regretless.registry import require_known
        from regretless.studies import campaign, definitions
        from regretless.studies.plan import Plan
        from regretless.studies.store import Store

        names = list(dict.fromkeys(study)) if study else list(definitions.REGISTRY)
        require_known("engine", engine, ("local", "ray"))
        if address is not None and engine != "ray":
            raise SettingsError("--address is for --engine ray")
        base = definitions.QUICK if quick else definitions.Scale()
        scale = definitions.Scale(seeds or base.seeds, first_seed, horizon or base.horizon)
        plan = Plan(names, scale, "regretless " + shlex.join(sys.argv[1:]))
        for line in unavailable(plan):
            console.err.print(f"[yellow]note:[/] {line}", highlight=False)
        target = Store(store)
        target.create()
        with CampaignProgress() as listener:
            summary = campaign.carry_out(plan, target, build_engine(engine, jobs, device, address), listener)
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
            console.out.print(
                f"{summary.cells} cells, {summary.computed} of them computed now in {span(summary.seconds)}, "
                f"{len(summary.failed)} failed; next: regretless report --store {shlex.quote(str(store))}",
                highlight=False,
                soft_wrap=True,
            )
        if summary.failed:
            raise typer.Exit(1)


def theory_result(plan: Any, store: Any) -> dict[str, Any] | None:
    """The claims of the theory study, if it was asked for and is finished."""
    from regretless.studies.cells import TheoryCell

    records = [store.record(item.key) for item in plan.planned() if isinstance(item.cell, TheoryCell)]
    return next((record["document"] for record in records if record is not None), None)


def unavailable(plan: Any) -> list[str]:
    """What the studies ask for and this build or this machine does not have."""
    wanted: dict[str, list[str]] = {}
    for study in plan.studies:
        for what in study.missing:
            wanted.setdefault(what, []).append(study.name)
    told = [f"{what} is not available in this build (left out of {', '.join(names)})" for what, names in wanted.items()]
    by_benchmark = {item.cell.benchmark: item.cell for item in plan.planned() if item.cell.kind == "simulation"}
    return told + [f"{name}: {word}" for name, cell in by_benchmark.items() for word in cell.data_notices()]


def build_engine(name: str, jobs: int, device: Device, address: str | None) -> Any:
    """The engine called ``name``."""
    if name == "ray":
        from regretless.studies.engines.cluster import RayEngine

        return RayEngine(address, device)
    if jobs == 1:
        from regretless.studies.campaign import InProcess

        return InProcess()
    from regretless.studies.engines.processes import Processes

    cores = max(1, usable_cores() // jobs)
    return Processes([sys.executable, "-m", "regretless.cli.worker", device, str(cores)], jobs)
