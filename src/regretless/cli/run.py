"""``regretless run``: play policies on a benchmark and compare them, with published values where there are any."""

import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

import regretless as rg
from regretless import files
from regretless.cli import console
from regretless.cli.console import Format, Imports, Names, clear_errors, option
from regretless.errors import MissingExtraError, SettingsError
from regretless.experiments.extension import find_published_of
from regretless.formatting import display_name, format_mean, format_number
from regretless.startup import Device, configure


def run(
    benchmark: Annotated[
        str | None, typer.Argument(help="What to play on; see 'regretless list benchmarks'.", show_default=False)
    ] = None,
    policy: Annotated[Names, option("A policy to play; repeatable.", "all for the model")] = None,
    feedback: Annotated[str, option("What a decision reveals; see 'regretless list feedback'.")] = "bandit",
    degree: console.Degree = None,
    model: console.Model = None,
    seeds: Annotated[int, option("How many replications.", min=1)] = 30,
    first_seed: Annotated[int, option("Seed of the first replication; the others follow.", min=0)] = 0,
    horizon: Annotated[int | None, option("How many rounds.", "the benchmark's own", min=1)] = None,
    set_: console.Settings = None,
    preset: Annotated[Path | None, option("JSON file of settings instead of the tuned preset.")] = None,
    import_: Imports = None,
    delay: Annotated[int, option("Rounds that feedback takes to arrive.", min=0)] = 0,
    missing: Annotated[float, option("Probability that a piece of feedback never arrives.", min=0.0, max=0.99)] = 0.0,
    data_dir: console.DataDir = None,
    contexts: Annotated[Path | None, option("CSV of your own contexts, instead of a benchmark.")] = None,
    costs: Annotated[Path | None, option("CSV of the cost vectors that belong to them.")] = None,
    oracle: Annotated[str | None, option("Your feasible set, as module:object.")] = None,
    device: Annotated[Device, option("Where to compute.")] = "auto",
    out: Annotated[Path | None, option("Folder for result.json, the results and a picture.")] = None,
    format: Annotated[Format, option("How to print the result.")] = "table",
) -> None:
    """Play policies on a benchmark: mean regret ± standard error over seeds, best policy first.

    All policies meet the same contexts and costs. The reference lines are the regret of random decisions, of the best
    fixed decision in hindsight, and of a decision maker who knows the conditional mean.

    Examples:
      # all policies, 30 seeds, 2000 rounds
      regretless run topk
      # two policies
      regretless run pricing --policy dfhpg --policy greedy
      # other data and feedback
      regretless run topk --degree 4 --feedback semi_bandit
      # other settings of the benchmark and of a policy ('regretless list settings' has them)
      regretless run topk --set benchmark.k=3 --set surrogate=imle --set surrogate.draws=20
      # a benchmark or policy that mine.py registers
      regretless run weather --import mine
      # the electricity prices and instances in a folder
      regretless run energy --data-dir DIR
      # your own history and feasible set
      regretless run --contexts x.csv --costs c.csv --oracle plant:graph
    """
    with clear_errors():
        configure(device)
        from regretless.cli.inputs import read_preset
        from regretless.experiments.runner import add_contextuality, collect, play, resolve

        imports = console.load_imports(import_)
        values, notices = (None, []) if preset is None else read_preset(preset)
        experiment = rg.Experiment(
            choose_benchmark(benchmark, contexts, costs, oracle),
            tuple(dict.fromkeys(policy or ())),
            feedback=feedback,
            seeds=range(first_seed, first_seed + seeds),
            horizon=horizon,
            settings={**console.parse_pairs(set_ or []), **world_settings(degree, model, data_dir)},
            preset=values,
            delay=delay,
            missing=missing,
        )
        runs = resolve(experiment)
        if out is not None:
            console.require_writable(out)
        notices += [notice for arm in runs for notice in arm.notices] + default_notices(experiment, runs)
        for notice in dict.fromkeys(notices):
            console.note(notice)
        with console.LiveProgress(f"{experiment.benchmark_name}, {feedback} feedback") as progress:
            played = play(runs, rg.simulation.Monitor(progress=progress))
            results = collect(add_contextuality(runs, played))
        record = to_record(experiment, runs, results, notices)
        if format == "json":  # printed first: it was computed, whether or not it can be written
            console.say_json(record)
        else:
            show(record, results)
        if out is not None:
            store_results(experiment, runs, results, out, imports)
            files.write_text(out / "result.json", json.dumps(record, indent=2) + "\n")
            picture = draw(results, out / "regret.png")
            if format != "json":
                then = f"regretless report --store {shlex.quote(str(out))}"
                console.say(f"\nwritten to {out}: result.json{picture} and the results; next: {then}")


def world_settings(degree: int | None, model: str | None, data_dir: Path | None) -> dict[str, Any]:
    """Return the options that are settings by other names."""
    named = {"benchmark.degree": degree, "model": model, "benchmark.data_dir": data_dir and str(data_dir)}
    return {name: value for name, value in named.items() if value is not None}


def choose_benchmark(benchmark: str | None, contexts: Path | None, costs: Path | None, oracle: str | None) -> Any:
    """Return the name of a benchmark, or recorded data; refuse anything between the two."""
    recorded = {"--contexts": contexts, "--costs": costs, "--oracle": oracle}
    missing = [name for name, value in recorded.items() if value is None]
    if benchmark is not None and len(missing) < len(recorded):
        raise SettingsError(f"expected BENCHMARK or --contexts, --costs and --oracle, got {benchmark!r} and both")
    if benchmark is not None:
        return benchmark
    if contexts is None or costs is None or oracle is None:
        raise SettingsError(
            f"expected BENCHMARK, or --contexts, --costs and --oracle together; {', '.join(missing)} missing"
        )
    from regretless.cli.inputs import read_recorded

    return read_recorded(contexts, costs, oracle)


def default_notices(experiment: "rg.Experiment", runs: "Sequence[rg.experiments.Run]") -> list[str]:
    """Return what the user should know where no tuned preset is used."""
    untuned = [arm.label for arm in runs if not arm.tuned and not isinstance(arm.policy, rg.Policy)]
    if experiment.preset is not None or not untuned:
        return []
    whom = "" if len(untuned) == len(runs) else f" for {', '.join(untuned)}"
    return [f"there is no tuned preset{whom} on this benchmark: defaults are used, contexts and costs are scaled"]


def to_record(
    experiment: "rg.Experiment", runs: "Sequence[rg.experiments.Run]", results: "rg.Results", notices: Sequence[str]
) -> dict[str, Any]:
    """Return what is printed as JSON and written to result.json."""
    rows = []
    for arm, row in zip(runs, results.rows(), strict=True):
        published = find_published_of(results[arm.label])
        known = published is not None and row["standard_error"] is not None
        z = published.z(row["mean"], row["standard_error"]) if published is not None and known else None
        mean, error = published or (None, None)
        rows.append({**row, "published_mean": mean, "published_standard_error": error, "z": z})
    return {
        "benchmark": experiment.benchmark_name,
        "feedback": experiment.feedback,
        "degree": getattr(runs[0].benchmark, "degree", None),
        "data": runs[0].parts[1].data,
        "model": experiment.model,
        "horizon": runs[0].horizon,
        "seeds": len(runs[0].seeds),
        "first_seed": runs[0].seeds[0],
        "results": rows,
        "references": results.to_dict()["references"],
        "contextuality": results.contextuality,
        "seconds": {name: round(value, 3) for name, value in results.seconds.items()},
        "settings": {label: result.config["policy"].get("settings", {}) for label, result in results.items()},
        "notices": list(dict.fromkeys(notices)),
    }


def show(record: dict[str, Any], results: "rg.Results") -> None:
    """Print the table, the lowest regret first and reference lines in brackets, and one sentence about it."""
    title = f"{record['benchmark']}, {record['feedback']} feedback"
    title += "" if record["degree"] is None else f", degree {record['degree']}"
    title += "" if record["data"] is None else f", {record['data']} data"
    caption = (
        f"final regret over {record['horizon']} rounds, {record['seeds']} replications from seed "
        f"{record['first_seed']}; compiled in {record['seconds']['compile']:.0f} s, ran in "
        f"{record['seconds']['run']:.0f} s"
    )
    rows = [*record["results"], *({**line, "policy": None} for line in record["references"])]
    rows.sort(key=lambda row: float("inf") if row["mean"] is None else row["mean"])
    several = len(record["results"]) > 1
    best = min((row["mean"] for row in record["results"] if row["mean"] is not None), default=None)
    lines = []
    for row in rows:
        if row["policy"] is None:
            spread = format_mean(row["mean"], row["standard_error"])
            lines.append([f"({display_name(row['name'])})", spread, "", "", ""])
            continue
        note = f"  ({row['diverged']} diverged, first in round {row['diverged_rounds'][0]})" if row["diverged"] else ""
        spread = format_mean(row["mean"], row["standard_error"]) + note
        known = row["published_mean"] is not None
        published = format_mean(row["published_mean"], row["published_standard_error"]) if known else ""
        mark = console.BEST if several and row["mean"] == best else ""
        z = "" if row["z"] is None else f"{row['z']:+.2f}"
        lines.append([mark + row["policy"], spread, format_number(row["median"]), published, z])
    console.say_table(lines, ("policy", "mean ± s.e.", "median", "published", "z"), title, caption)
    for sentence in (results.conclude(), results.contextuality):
        if sentence:
            console.say(sentence)


def store_results(
    experiment: "rg.Experiment", runs: "list[rg.experiments.Run]", results: "rg.Results", out: Path, imports: list[str]
) -> None:
    """Leave a store with the results in a folder."""
    from regretless.experiments.runner import code_versions

    store = rg.experiments.ResultStore(out)
    store.create()
    try:
        addresses = [arm.address for arm in runs]
    except SettingsError as error:  # an object that a store cannot recognise
        console.note(f"the results are not stored: {error}")
        return
    for arm, address in zip(runs, addresses, strict=True):
        store.put(address, results[arm.label], arm.name, code_versions(arm.modules))
    cells = (rg.experiments.Cell("", experiment),)
    curves = rg.experiments.Panel("Regret per round", cells, kind="curves")
    panels = (rg.experiments.Panel("Final regret", cells), curves)
    study = rg.experiments.Study(f"run_{addresses[0][:12]}", panels, experiment.where)
    plan = rg.experiments.Plan([study], rg.experiments.Scale(), console.command_line(), imports)
    store.write_campaign(plan.campaign())


def draw(results: "rg.Results", path: Path) -> str:
    """Draw the regret per round into a file; return its name for a list, or nothing without Matplotlib."""
    try:
        from regretless.plots import save_figure

        finite = [result for result in results.values() if result.finished.any()]
        best = min(finite, key=lambda result: result.mean()).label if len(finite) > 1 else None
        save_figure(results.plot(highlight=best).figure, path)
    except MissingExtraError as error:
        console.note(f"no picture: {error}")
        return ""
    return f", {path.name}"
