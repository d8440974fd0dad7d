"""``regretless tune``: search for settings on validation seeds; the result is a preset for ``run --preset``."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer

from regretless.cli import console
from regretless.cli.console import Format, Imports, LiveProgress, clear_errors
from regretless.formatting import format_number
from regretless.startup import Device, configure

STOPPED = "finished trials are kept; the same command goes on from there"


def tune(
    benchmark: Annotated[str, typer.Argument(help="What to tune for; see 'regretless list benchmarks'.")],
    policy: Annotated[str, typer.Option(help="The policy whose settings are searched.")] = "dfhpg",
    model: Annotated[str, typer.Option(help="Model of the cost.")] = "gaussian_linear",
    feedback: Annotated[str, typer.Option(help="What a decision reveals.")] = "bandit",
    degree: Annotated[int | None, typer.Option(help="Degree of the costs or demand.  [default: 8]")] = None,
    trials: Annotated[int, typer.Option(min=1, help="Random configurations, over all workers and runs.")] = 200,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A setting that is fixed instead of searched; repeatable."),
    ] = None,
    import_: Imports = None,
    data_dir: Annotated[Path | None, typer.Option(help="Folder with the data of energy.")] = None,
    seeds: Annotated[int | None, typer.Option(min=1, help="Validation seeds.  [default: 10, energy: 5]")] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="First validation seed.")] = 100_000,
    horizon: Annotated[int | None, typer.Option(min=1, help="Rounds.  [default: 2000, as in the paper]")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random search.")] = 0,
    store: Annotated[Path, typer.Option(help="Folder of the results; the database and the record go there.")] = Path(
        "results"
    ),
    block: Annotated[int, typer.Option(min=1, help="Trials that a worker takes at once.")] = 256,
    finalists: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Two stages: so many of the best of three seeds are played on all seeds; 0: one stage.  [default: 10 for "
            "generative models, 0 for others]",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Preset file.  [default: BENCHMARK_MODEL.json; BENCHMARK_POLICY.json for others than dfhpg]"),
    ] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the outcome.")] = Format.table,
) -> None:
    """Random search over the settings of a policy by mean final regret on seeds that no reported run uses.

    Trials live in a database: stop and repeat the command to go on, start it several times to share the work.
    """
    with clear_errors(STOPPED):
        configure(device)
        from regretless import files, plugins
        from regretless.cli.run import writable_file
        from regretless.studies.store import Store
        from regretless.studies.tuning.search import task as make_task
        from regretless.studies.tuning.search import tune as search
        from regretless.studies.tuning.stages import SCREEN_SEEDS, tune_in_stages, usual_finalists

        for module in import_ or ():
            plugins.load(module)
        task = make_task(
            benchmark, policy, model=model, feedback=feedback, degree=degree, settings=console.parse_pairs(set_ or []),
            seeds=seeds, first_seed=first_seed, horizon=horizon, seed=seed,
            data_dir=None if data_dir is None else str(data_dir),
        )  # fmt: skip
        parts = [benchmark, model if policy == "dfhpg" else policy, *([] if feedback == "bandit" else [feedback])]
        name = "_".join(parts)
        preset = out or Path(f"{name}.json")
        writable_file(preset)
        folder = Store(store)
        folder.create()
        place = store / "tuning"
        with LiveProgress(f"tuning {policy} on {benchmark}") as progress:
            enough = len(task.experiment.seeds) > SCREEN_SEEDS
            chosen = (usual_finalists(model) if enough else 0) if finalists is None else finalists
            if chosen:
                outcome = tune_in_stages(task, trials, place / "trials.db", chosen, progress, block)
            else:
                outcome = search(task, trials, place / "trials.db", progress, block)
        files.write_text(preset, json.dumps(outcome.preset, indent=2) + "\n")
        files.write_text(place / f"{name}.json", json.dumps(outcome.record, indent=1))
        if format is Format.json:
            print(json.dumps({"preset": str(preset), **outcome.record}, indent=2))
            return
        record = outcome.record
        console.say(
            f"{len(record['trials'])} trials over {record['combinations']} combinations of static choices, "
            f"{record['seconds']:.0f} s, {record['compile_seconds']:.0f} s of it compiling {record['programs']} programs\n"
            f"best: trial {record['best']['number']} with mean final regret {format_number(record['best']['value'])}, "
            f"{record['best']['params']}\n"
            f"next: regretless run {benchmark} --policy {policy} --model {model} --feedback {feedback} "
            f"--preset {shlex.quote(str(preset))}"
        )
