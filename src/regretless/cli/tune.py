"""``regretless tune``: search for settings on validation seeds; the result is a preset for ``run --preset``."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

import regretless as rg
from regretless import files
from regretless.cli import console
from regretless.cli.console import Format, Imports, clear_errors, option
from regretless.cli.run import world_settings
from regretless.formatting import format_number
from regretless.startup import Device, configure

STOPPED = "finished trials are kept; the same command continues from there"


def tune(
    benchmark: Annotated[str, typer.Argument(help="What to tune for; see 'regretless list benchmarks'.")],
    policy: Annotated[str, option("The policy whose settings are searched.")] = "dfhpg",
    model: console.Model = None,
    feedback: Annotated[str, option("What a decision reveals.")] = "bandit",
    degree: console.Degree = None,
    trials: Annotated[int, option("Candidates, over all workers and runs.", min=1)] = 200,
    sampler: Annotated[str, option("How candidates are drawn: random, tpe, gp or qmc.")] = "random",
    set_: console.Settings = None,
    import_: Imports = None,
    data_dir: console.DataDir = None,
    seeds: Annotated[int | None, option("Validation seeds.", "10, energy: 5", min=1)] = None,
    first_seed: Annotated[int, option("First validation seed.", min=0)] = 100_000,
    horizon: Annotated[int | None, option("Rounds.", "2000, as in the paper", min=1)] = None,
    seed: Annotated[int, option("Seed of the sampler.", min=0)] = 0,
    store: Annotated[Path, option("Folder for trials and the record.")] = Path("results"),
    storage: Annotated[str | None, option("A file (.db or .log) or URL for trials.", "STORE/tuning/trials.db")] = None,
    block: Annotated[int | None, option("Trials that a worker takes at once.", "256, not random: 16", min=1)] = None,
    finalists: Annotated[
        int | None, option("How many of the best of three seeds are played on all.", "generative models: 10", min=0)
    ] = None,
    out: Annotated[Path | None, option("Preset file.", "BENCHMARK_POLICY.json")] = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    format: Annotated[Format, option("How to print the outcome.")] = "table",
) -> None:
    """Search the settings of a policy for the lowest mean final regret on seeds that no reported run uses.

    Settings of --set are fixed instead of searched. Trials are kept: stop and repeat the command to continue, start it
    several times to share the work.

    Examples:
      # 200 settings of DFHPG, then a run with the best
      regretless tune topk
      regretless run topk --policy dfhpg --preset topk_dfhpg.json
      # another policy and sampler, with one setting fixed
      regretless tune pricing --policy greedy --sampler tpe --set clip=5
    """
    with clear_errors(STOPPED):
        configure(device)
        console.load_imports(import_)
        settings = {**console.parse_pairs(set_ or []), **world_settings(degree, model, data_dir)}
        experiment = rg.experiments.validation_experiment(
            benchmark, policy, feedback=feedback, settings=settings, seeds=seeds, first_seed=first_seed, horizon=horizon
        )
        parts = [benchmark, policy, *([] if model is None else [model]), *([] if feedback == "bandit" else [feedback])]
        name = "_".join(parts)
        preset = out or Path(f"{name}.json")
        console.require_writable_file(preset)
        folder = store / "tuning"
        console.require_writable(folder)
        with console.LiveProgress(f"tuning {policy} on {benchmark}") as progress:
            search: dict[str, Any] = {"sampler": sampler, "seed": seed, "finalists": finalists, "block": block}
            result = rg.tune(experiment, trials, storage=storage or folder / "trials.db", progress=progress, **search)
        result.save(preset)
        files.write_text(folder / f"{name}.json", json.dumps(result.record, indent=1))
        record = result.record
        if format == "json":
            console.say_json({"preset": str(preset), **record})
            return
        chosen = "" if model is None else f"--model {model} "
        console.say(
            f"{len(record['trials'])} trials over {record['combinations']} combinations of static choices, "
            f"{record['seconds']:.0f} s, {record['compile_seconds']:.0f} s of it compiling "
            f"{record['programs']} programs\n"
            f"best: trial {record['best']['number']} with mean final regret {format_number(record['best']['value'])}, "
            f"{record['best']['params']}\n"
            f"next: regretless run {benchmark} --policy {policy} {chosen}--feedback {feedback} "
            f"--preset {shlex.quote(str(preset))}"
        )
