"""``regretless arena``: policies as they come, without tuning, on many worlds."""

import json
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.campaign_progress import CampaignProgress, span
from regretless.cli.console import Format, Imports, clear_errors
from regretless.cli.reproduce import STOPPED, about_data, build_engine
from regretless.startup import Device, configure

EPILOG = """
Examples:

regretless arena --quick                           a handful of worlds, within five minutes

regretless arena --policy adaptive                 one policy on every world

regretless arena lin100 energy --policy greedy     two worlds

regretless arena --import mine --policy my_policy  a policy of your own

Stop it whenever you like: the same command goes on where it stopped. Then: regretless report
"""

TITLES = {"all": "all worlds", "thirteen": "the first thirteen", "held_out": "worlds that no choice was made by"}


def arena(
    world: Annotated[
        list[str] | None,
        typer.Argument(help="Worlds; 'regretless list worlds' shows them.  [default: all, quick: five]"),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy or a reference; repeatable.  [default: adaptive, linear_thompson and the references]"
        ),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Replications.  [default: 16, quick: 4]")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first replication.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="4 replications of at most 300 rounds, five worlds.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results, to resume and to report from.")] = Path("results"),
    import_: Imports = None,
    jobs: Annotated[int, typer.Option(min=1, help="Processes over cells.")] = 1,
    engine: Annotated[str, typer.Option(help="Where cells are computed: local or ray.")] = "local",
    address: Annotated[str | None, typer.Option(help="Ray: the cluster, or none to start one here.")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Play policies untuned on many worlds: regret on each, and over all of them the geometric mean relative to random.

    Finished work is never redone. The interval is from resampled replications: it tells what other seeds would give.
    """
    with clear_errors(STOPPED):
        configure(device)
        from regretless import plugins
        from regretless.errors import SettingsError
        from regretless.registry import require_known
        from regretless.studies import campaign
        from regretless.studies.arena import contenders
        from regretless.studies.arena.outcome import outcome
        from regretless.studies.arena.plan import ArenaPlan
        from regretless.studies.arena.study import QUICK, REPLICATIONS, chosen, study
        from regretless.studies.store import Store
        from regretless.studies.study import Scale

        require_known("engine", engine, ("local", "ray"))
        if address is not None and engine != "ray":
            raise SettingsError("--address is for --engine ray")
        imports = list(import_ or ())
        for name in imports:
            plugins.load(name)
        base = QUICK if quick else Scale()
        scale = Scale(seeds or base.seeds or REPLICATIONS, first_seed, base.horizon)
        worlds, names = chosen(world or (), quick), list(dict.fromkeys(policy or contenders.DEFAULT))
        command = "regretless " + shlex.join(sys.argv[1:])
        plan = ArenaPlan([study(worlds, names, scale)], scale, command, imports)
        for line in about_data(plan):
            console.note(line)
        store = Store(out)
        store.create()
        with CampaignProgress() as listener:
            summary = campaign.carry_out(plan, store, build_engine(engine, jobs, device, address, imports), listener)
        told = outcome(worlds, names, scale, store)
        told |= {
            "cells": summary.cells,
            "computed": summary.computed,
            "seconds": round(summary.seconds, 1),
            "store": str(out),
        }
        if format is Format.json:
            print(json.dumps(told, indent=2, allow_nan=False))
        else:
            show(told)
            console.say(
                f"{summary.cells} cells, {summary.computed} of them computed now in {span(summary.seconds)}, "
                f"{len(told['failed'])} failed; next: regretless report --store {shlex.quote(str(out))}"
            )
        if told["failed"]:
            raise typer.Exit(1)


def show(told: dict[str, Any]) -> None:
    """The tables: a block per world, then a line per policy over all of them."""
    table = Table(title="final regret relative to random's (* below the best fixed decision)")
    for head in ("world", "policy", "regret ± s.e.", "relative", "µs"):
        table.add_column(head, justify="left" if head in ("world", "policy") else "right")
    for world in told["worlds"]:
        name = world["world"] + (" (median)" if world["judge"] == "median" else "")
        for each in world["results"]:
            regret = f"{brief(each['regret'])} ± {brief(each['standard_error'])}"
            mark = "*" if each["below_best_fixed"] else " "
            table.add_row(
                Text(name), Text(each["policy"]), regret, f"{each['relative']:.3f}{mark}", brief(each["microseconds"])
            )
            name = ""
        for line in ("random", "best_fixed"):
            if world[line] is not None and world["random"]:
                share = f"{world[line] / world['random']:.3f} "
                table.add_row("", line, brief(world[line]), share, "", style="dim", end_section=line == "best_fixed")
    console.out.print(table, highlight=False)
    for part, rows in told["overall"].items():
        if rows and (part == "all" or rows != told["overall"]["all"]):
            show_overall(part, rows)
    for place, error in told["failed"].items():
        console.say(f"{place}: {error}", "failed: ")


def show_overall(part: str, rows: list[dict[str, Any]]) -> None:
    """Every policy over the worlds of one part."""
    table = Table(
        title=f"{TITLES[part]}: geometric mean of relative regret, 95 % over seeds",
        caption="µs per replication and round: the median over worlds",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for head in ("policy", "worlds", "relative", "over\nlinear_old", "worst", "beats\nfixed", "µs"):
        table.add_column(head, justify="left" if head in ("policy", "worst") else "right")
    for row in rows:
        beaten = f"{row['below_best_fixed']}/{row['of_worlds_where_it_matters']}"
        worst = f"{row['worst_world']}\n{row['worst_relative']:.2f}"
        table.add_row(
            Text(row["policy"]), str(row["worlds"]), within(row["relative"], row["interval"]),
            within(row["ratio_to_linear_old"], row["ratio_interval"]), Text(worst), beaten, brief(row["microseconds"]),
        )  # fmt: skip
    console.out.print(table, highlight=False)


def within(value: float | None, interval: list[float] | None) -> str:
    """A geometric mean with its interval below it."""
    return "–" if value is None or interval is None else f"{value:.3f}\n{interval[0]:.2f}–{interval[1]:.2f}"


def brief(value: float | None) -> str:
    """A number in three digits; a dash for none."""
    return "–" if value is None else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
