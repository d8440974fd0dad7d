"""``regretless arena``: policies with their defaults, without tuning, on many worlds."""

from pathlib import Path
from typing import Annotated, Any

import typer
from rich import box
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Address, CampaignProgress, EngineName, Format, Imports, Jobs, clear_errors
from regretless.cli.studies import STOPPED, data_notices, report_summary
from regretless.startup import Device, configure

EPILOG = """\
Examples:
  # five worlds, within five minutes
  regretless arena --quick
  # one policy on every world
  regretless arena --policy adaptive
  # two worlds
  regretless arena lin100 energy --policy greedy
  # a policy of your own
  regretless arena --import mine --policy my_policy

You can stop it at any time: the same command continues where it stopped.
Then: regretless report
"""

TITLES = {"all": "all worlds", "thirteen": "the first thirteen", "held_out": "held-out worlds"}


def arena(
    world: Annotated[
        list[str] | None,
        typer.Argument(help="Worlds; 'regretless list worlds' shows them.", show_default="all, quick: five"),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy or a reference; repeatable.", show_default="adaptive, linear_thompson, references"),
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Replications.", show_default="16, quick: 4")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first replication.")] = 0,
    quick: Annotated[bool, typer.Option("--quick", help="4 replications of at most 300 rounds, five worlds.")] = False,
    out: Annotated[Path, typer.Option(help="Folder of the results, to resume and to report from.")] = Path("results"),
    import_: Imports = None,
    jobs: Jobs = 1,
    engine: EngineName = "local",
    address: Address = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Play policies untuned on many worlds: regret on each, and over all of them the geometric mean relative to random.

    Finished work is never repeated. The interval is from resampled replications: it describes what other seeds would
    give.
    """
    with clear_errors(STOPPED):
        configure(device)
        console.check_engine(engine, address)
        from regretless.experiments import arena as definition
        from regretless.experiments.campaign import carry_out, choose_engine
        from regretless.experiments.store import ResultStore
        from regretless.experiments.study import Scale

        imports = console.load_imports(import_)
        base = definition.QUICK_ARENA if quick else Scale()
        scale = Scale(seeds or base.seeds or definition.REPLICATIONS, first_seed, base.horizon)
        worlds = definition.choose_worlds(world or (), quick)
        plan = definition.ArenaPlan(worlds, policy or definition.CONTENDERS, scale, console.command_line(), imports)
        for notice in data_notices(plan):
            console.note(notice)
        store = ResultStore(out)
        store.create()
        with CampaignProgress() as listener:
            # One arm at a time: each is timed alone.
            summary = carry_out(plan, store, choose_engine(engine, jobs, device, address, imports), listener, 1)
        scores = definition.summarise_arena(worlds, plan, store)
        if format is not Format.json:
            show(scores)
        report_summary(summary._replace(failed=scores.pop("failed")), {**scores, "store": str(out)}, format)


def show(scores: dict[str, Any]) -> None:
    """Print a block per world, then a line per policy over all of them."""
    table = Table(title="final regret relative to random's (* below the best fixed decision)")
    for head in ("world", "policy", "regret ± s.e.", "relative", "µs"):
        table.add_column(head, justify="left" if head in ("world", "policy") else "right")
    for world in scores["worlds"]:
        name = world["world"] + (" (median)" if world["judge"] == "median" else "")
        for row in sorted(world["results"], key=lambda row: row["relative"]):
            regret = f"{brief(row['regret'])} ± {brief(row['standard_error'])}"
            mark = "*" if row["below_best_fixed"] else " "
            relative = f"{row['relative']:.3f}{mark}"
            table.add_row(Text(name), Text(row["policy"]), regret, relative, brief(row["microseconds"]))
            name = ""
        for line in ("random", "best_fixed"):
            if world[line] is not None and world["random"]:
                share = f"{world[line] / world['random']:.3f} "
                table.add_row("", line, brief(world[line]), share, "", style="dim", end_section=line == "best_fixed")
    console.out.print(table, highlight=False)
    for part, rows in scores["overall"].items():
        if rows and (part == "all" or rows != scores["overall"]["all"]):
            show_overall(part, rows)
    for place, error in scores["failed"].items():
        console.say(f"{place}: {error}", "failed: ")


def show_overall(part: str, rows: list[dict[str, Any]]) -> None:
    """Print every policy over the worlds of one part."""
    table = Table(
        title=f"{TITLES[part]}: geometric mean of relative regret, 95 % over seeds",
        caption="µs per replication and round: the median over worlds",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
    )
    for head in ("policy", "worlds", "relative", "over\nlinear_old", "worst", "beats\nfixed", "µs"):
        table.add_column(head, justify="left" if head in ("policy", "worst") else "right")
    for row in sorted(rows, key=lambda row: row["relative"]):
        table.add_row(
            Text(row["policy"]),
            str(row["worlds"]),
            with_interval(row["relative"], row["interval"]),
            with_interval(row["ratio_to_linear_old"], row["ratio_interval"]),
            Text(f"{row['worst_world']}\n{row['worst_relative']:.2f}"),
            f"{row['below_best_fixed']}/{row['of_worlds_where_it_matters']}",
            brief(row["microseconds"]),
        )
    console.out.print(table, highlight=False)


def with_interval(value: float | None, interval: list[float] | None) -> str:
    """Return a geometric mean with its interval below it."""
    return "–" if value is None or interval is None else f"{value:.3f}\n{interval[0]:.2f}–{interval[1]:.2f}"


def brief(value: float | None) -> str:
    """Return a number in three digits; a dash for none."""
    return "–" if value is None else f"{value:.3g}".replace("e+0", "e").replace("e+", "e")
