"""``regretless bench``: measure the program itself."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from regretless.cli import console
from regretless.cli.console import Format, LiveProgress, clear_errors
from regretless.startup import Device, configure

LABELS = {
    "microseconds": "µs",
    "run_seconds": "run s",
    "compile_seconds": "compile s",
    "authors_microseconds": "authors' µs",
    "highs_microseconds": "HiGHS µs",
    "largest_difference": "difference",
    "always_packs": "packs",
    "ratio": "times faster",
    "first_seconds": "first s",
}

CAPTION = "µs: per replication and round, compilation apart"

app = typer.Typer(help="Measure speed and growth on this machine.", no_args_is_help=True)


@app.command()
def speed(
    benchmark: Annotated[
        list[str] | None, typer.Option(help="A benchmark to measure; repeatable.  [default: all three]")
    ] = None,
    model: Annotated[
        str | None, typer.Option(help="flow or diffusion: time DFHPG with this model instead.  [default: all policies]")
    ] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Replications.  [default: 30; with --model 8]")] = None,
    horizon: Annotated[
        int | None, typer.Option(min=10, help="Rounds, policy by policy.  [default: 500; with --model 100]")
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.table,
) -> None:
    """Time every policy on every benchmark: all cells of the bandit table together, then policy by policy.

    The first figure starts from a cold compilation cache, as a first 'regretless run' does; the others leave
    compilation out. With --model the cells are those of DFHPG with that generative model, beside the authors' figures
    for it.
    """
    with clear_errors():
        configure(device, compilation_cache=False)
        from regretless import benchmarks as known
        from regretless.registry import require_known
        from regretless.studies.speed import simulations as measure

        for name in benchmark or ():
            require_known("benchmark", name, known.REGISTRY)
        if model is not None:
            require_known("generative model", model, measure.AUTHORS_GENERATIVE)
            with LiveProgress(f"dfhpg with {model}") as progress:
                chosen = benchmark or list(measure.AUTHORS_GENERATIVE[model])
                rows = list(measure.generative_cells(model, chosen, seeds or 8, horizon or 100, progress))
            report({"cells": rows, "machine": measure.machine()}, "cells", format)
            return
        chosen, seeds, horizon = benchmark or list(measure.BENCHMARKS), seeds or 30, horizon or 500
        with LiveProgress("all cells") as progress:
            together = measure.all_cells(chosen, seeds, progress)
        with LiveProgress("policy by policy") as progress:
            rows = list(measure.each_cell(chosen, seeds, horizon, progress))
        report({"all_cells": together, "cells": rows, "machine": measure.machine()}, "cells", format)


@app.command()
def scale(
    horizon: Annotated[int, typer.Option(min=10, help="Rounds per measurement.")] = 50,
    replications: Annotated[
        list[int] | None, typer.Option(min=1, help="A number of replications; repeatable.  [default: 1 3 10 30 100]")
    ] = None,
    replication_horizon: Annotated[int, typer.Option(min=10, help="Rounds per number of replications.")] = 500,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.table,
) -> None:
    """Time DFHPG as the problem grows (top-k to 10,000 items, grids to 100 × 100) and as replications are added."""
    with clear_errors():
        configure(device, compilation_cache=False)
        from regretless.studies.speed import simulations as measure

        with LiveProgress("number of coordinates") as progress:
            rows = list(measure.sizes(horizon, 2, progress))
        with LiveProgress("number of replications") as progress:
            counts = replications or [1, 3, 10, 30, 100]
            rows += measure.replications(counts, replication_horizon, progress)
        report({"rows": rows, "machine": measure.machine()}, "rows", format)


@app.command()
def learner(
    benchmark: Annotated[str, typer.Option(help="Whose feasible set and preset to use.")] = "topk",
    policy: Annotated[
        list[str] | None,
        typer.Option(help="A policy to measure; repeatable.  [default: adaptive, linear_thompson, dfhpg]"),
    ] = None,
    rounds: Annotated[int, typer.Option(min=10, help="Rounds to measure after 50 of warm-up.")] = 1000,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.table,
) -> None:
    """Time 'decide' and 'learn' of a live learner: median and 99th percentile in microseconds, compilation apart."""
    with clear_errors():
        configure(device, compilation_cache=False)
        from regretless import benchmarks as known
        from regretless import policies
        from regretless.registry import require_known
        from regretless.studies.speed import learner as latency
        from regretless.studies.speed.simulations import machine

        require_known("benchmark", benchmark, known.REGISTRY)
        for name in policy or ():
            require_known("policy", name, policies.REGISTRY)
        rows = list(latency.latencies(benchmark, policy or latency.POLICIES, rounds))
        report(
            {"rows": rows, "machine": machine()},
            "rows",
            format,
            "median, p99, limit: µs per call; times: processor time of a batch over one decision (limit 5); first call with "
            "compilation: s",
        )


@app.command()
def oracle(
    instance: Annotated[
        list[str] | None, typer.Option(help="An instance to measure; repeatable.  [default: load1 load2 load3]")
    ] = None,
    vectors: Annotated[int, typer.Option(min=1, help="Random price vectors per instance.")] = 200,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the energy data.")] = None,
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.table,
) -> None:
    """Compare the energy oracle with HiGHS on the whole programme: agreement, and how many times faster it is.

    Exit code 1 if some cost differs by more than 1e-6 of the sum of its absolute parts. Times are wall-clock of the
    same batch on the same cores; HiGHS shares its rows among them.
    """
    with clear_errors():
        configure("cpu", compilation_cache=False)
        from regretless.benchmarks.energy import INSTANCES
        from regretless.studies.speed import oracle as measure
        from regretless.studies.speed.simulations import machine

        rows = []
        for name in instance or INSTANCES:
            with LiveProgress(f"energy, {name}") as progress:
                rows.append(measure.compare(name, vectors, str(data_dir or ""), progress))
        report({"instances": rows, "machine": machine()}, "instances", format, "µs: per price vector")
        if not all(row["agrees"] for row in rows):
            raise typer.Exit(1)


@app.command()
def tuning(
    benchmark: Annotated[str, typer.Argument(help="What to tune DFHPG for.")] = "topk",
    model: Annotated[str, typer.Option(help="Model of the cost.")] = "gaussian_linear",
    trials: Annotated[int, typer.Option(min=1, help="Random configurations.")] = 200,
    seeds: Annotated[int | None, typer.Option(min=1, help="Validation seeds.  [default: 10, energy: 5]")] = None,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds.  [default: 2000, as in the paper]")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the figures.")] = Format.table,
) -> None:
    """Time a tuning against as many runs one after the other in one process that share compiled programs.

    Both start cold and play the same candidates. Exit code 1 if they disagree on the best one, or if the tuning
    compiled more than one program per combination of static choices.
    """
    with clear_errors():
        configure(device, compilation_cache=False)
        from regretless.studies.speed import tuning as measure
        from regretless.studies.speed.simulations import machine
        from regretless.studies.tuning.search import task as make_task

        with LiveProgress(f"tuning {benchmark}") as progress:
            task = make_task(benchmark, model=model, seeds=seeds, horizon=horizon)
            rows = measure.compare(task, trials, progress)
        caption = "programs: compiled; best: number of the best trial; times faster: what tuning gains"
        report({"rows": rows, "machine": machine()}, "rows", format, caption)
        if rows[0]["best"] != rows[1]["best"] or rows[0]["programs"] > rows[0]["combinations"]:
            raise typer.Exit(1)


def report(
    figures: dict[str, Any],
    rows: str,
    format: Format,
    caption: str = CAPTION,
) -> None:
    """Prints the figures."""
    if format is Format.json:
        print(json.dumps(figures, indent=2))
        return
    console.out.print(as_table(figures[rows], caption), highlight=False)
    for name, part in figures.items():
        if name != rows:
            told = ", ".join(f"{key} {value}" for key, value in part.items() if value is not None)
            console.say(f"{name}: {told}")


def as_table(rows: Iterable[dict[str, Any]], caption: str) -> Table:
    """Rows of figures."""
    rows = list(rows)
    table = Table(caption=caption, caption_justify="left")
    for key in rows[0]:
        left = key in ("how", "benchmark", "policy", "verb", "model", "instance", "data")
        table.add_column(LABELS.get(key, key), justify="left" if left else "right")
    for row in rows:
        table.add_row(*(_cell(value) for value in row.values()))
    return table


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.1e}" if isinstance(value, float) and 0 < value < 1e-3 else str(value)
