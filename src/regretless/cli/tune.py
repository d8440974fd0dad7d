"""``regretless tune``: search for settings on validation seeds; the result is a preset for ``run --preset``."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli import console
from regretless.cli.console import Format, LiveProgress, clear_errors
from regretless.report.words import number
from regretless.startup import Device, configure

STOPPED = "finished trials are kept; the same command goes on from there"


def tune(
    benchmark: Annotated[str, typer.Argument(help="What to tune DFHPG for; see 'regretless list benchmarks'.")],
    model: Annotated[str, typer.Option(help="Model of the cost.")] = "gaussian_linear",
    feedback: Annotated[str, typer.Option(help="What a decision reveals.")] = "bandit",
    degree: Annotated[int | None, typer.Option(help="Degree of the costs or demand.  [default: 8]")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Random configurations, over all workers and runs.")] = 200,
    seeds: Annotated[int | None, typer.Option(min=1, help="Validation seeds.  [default: 10, energy: 5]")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="First validation seed.")] = 100_000,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds.  [default: 2000, as in the paper]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random search.")] = 0,
    store: Annotated[Path, typer.Option(help="Folder of the results; the database and the record go there.")] = Path(
        "results"
    ),
    block: Annotated[int, typer.Option(min=1, help="Trials that a worker takes at once.")] = 256,
    out: Annotated[Path | None, typer.Option(help="Preset file.  [default: BENCHMARK_MODEL.json]")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Random search over the settings of DFHPG by mean final regret on seeds that no reported run uses.

    Trials live in a database: stop and repeat the command to go on, start it several times to share the work.
    """
    with clear_errors(STOPPED):
        configure(device)
        from regretless import files
        from regretless.studies.store import Store
        from regretless.studies.tuning.search import Task
        from regretless.studies.tuning.search import tune as search

        task = Task(benchmark, model, feedback, degree, seeds, first_seed, horizon, seed)
        folder = Store(store)
        folder.create()
        place = store / "tuning"
        with LiveProgress(f"tuning {benchmark}, {model}") as progress:
            outcome = search(task, trials, place / "trials.db", progress, block)
        name = f"{benchmark}_{model}" if feedback == "bandit" else f"{benchmark}_{model}_{feedback}"
        preset = out or Path(f"{name}.json")
        files.write_text(preset, json.dumps(outcome.settings.model_dump(), indent=2) + "\n")
        files.write_text(place / f"{name}.json", json.dumps(outcome.record, indent=1))
        if format is Format.json:
            print(json.dumps({"preset": str(preset), **outcome.record}, indent=2))
            return
        record = outcome.record
        console.out.print(
            f"{len(record['trials'])} trials over {record['combinations']} combinations of static choices, "
            f"{record['seconds']:.0f} s, {record['compile_seconds']:.0f} s of it compiling {record['programs']} programs\n"
            f"best: trial {record['best']['number']} with mean final regret {number(record['best']['value'])}, "
            f"{record['best']['params']}\n"
            f"next: regretless run {benchmark} --model {model} --feedback {feedback} --preset {shlex.quote(str(preset))}",
            highlight=False,
            soft_wrap=True,
        )
