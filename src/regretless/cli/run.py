"""``regretless run``: play policies on a benchmark and compare them with the published table."""

import json
import shlex
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.catalogue import complete
from regretless.cli.console import Format, Imports, LiveProgress, clear_errors
from regretless.formatting import format_mean, format_number
from regretless.startup import Device, configure

EPILOG = """
Examples:

regretless run topk                                    every policy, 30 seeds, 2000 rounds

regretless run pricing --policy dfhpg --policy greedy  two of them

regretless run topk --degree 4 --feedback semi_bandit  other data, richer feedback

regretless run topk --set surrogate=imle --set surrogate.draws=20 --set alpha.max=0.5   single settings changed

regretless run topk --set benchmark.k=3                another world

regretless run weather --import mine                   a benchmark or policy that mine.py registers

regretless run energy --data-dir DIR                   the electricity prices and instances in DIR

regretless run --contexts x.csv --costs c.csv --oracle plant:graph   your own history and feasible set

regretless list settings                               what --set knows
"""


def run(
    benchmark: Annotated[
        str | None,
        typer.Argument(
            help="What to play on; see 'regretless list benchmarks'.",
            show_default=False,
            autocompletion=complete("benchmarks"),
        ),
    ] = None,
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy to play; repeat for several.  [default: all that exist for the model]",
            autocompletion=complete("policies"),
        ),
    ] = None,
    feedback: Annotated[str, typer.Option(help="What a decision reveals; see 'regretless list feedback'.")] = "bandit",
    degree: Annotated[int | None, typer.Option(help="Degree of the polynomial costs or demand.  [default: 8]")] = None,
    model: Annotated[str, typer.Option(help="Model of the cost; see 'regretless list models'.")] = "gaussian_linear",
    seeds: Annotated[int, typer.Option(min=1, help="How many replications.")] = 30,
    first_seed: Annotated[int, typer.Option(min=0, help="Seed of the first replication; the others follow.")] = 0,
    horizon: Annotated[int | None, typer.Option(min=1, help="How many rounds.  [default: the benchmark's own]")] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Change one setting ('regretless list settings' has them); repeatable."
        ),
    ] = None,
    preset: Annotated[Path | None, typer.Option(help="JSON file of settings instead of the tuned preset.")] = None,
    import_: Imports = None,
    delay: Annotated[int, typer.Option(min=0, help="Rounds that feedback takes to arrive.")] = 0,
    missing: Annotated[
        float, typer.Option(min=0.0, max=0.99, help="Probability that a piece of feedback never arrives.")
    ] = 0.0,
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder with the data of energy.  [default: $REGRETLESS_DATA, then the cache]")
    ] = None,
    contexts: Annotated[Path | None, typer.Option(help="CSV of your own contexts, instead of a benchmark.")] = None,
    costs: Annotated[Path | None, typer.Option(help="CSV of the cost vectors that belong to them.")] = None,
    oracle: Annotated[str | None, typer.Option(help="Your feasible set, as module:object.")] = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    out: Annotated[Path | None, typer.Option(help="Folder for result.json, traces (Parquet) and a picture.")] = None,
    format: Annotated[Format, typer.Option(help="How to print the result.")] = Format.table,
) -> None:
    """Play policies on a benchmark: mean regret ± standard error over seeds, beside the published values.

    All policies meet the same contexts and costs. The reference lines say what random decisions, the best fixed
    decision in hindsight and a decision maker who knows the conditional mean would lose.
    """
    with clear_errors():
        configure(device)
        from regretless import plugins
        from regretless.studies import history, outcome, preparing, presets
        from regretless.studies.experiment import Experiment

        began = time.perf_counter()
        for name in import_ or ():
            plugins.load(name)
        files = own_files(benchmark, contexts, costs, oracle)
        values, notices = (None, []) if preset is None else presets.read_preset(preset)
        experiment = Experiment(
            benchmark=history.read_history(files) if files else benchmark,
            policies=tuple(dict.fromkeys(policy or ())),
            feedback=feedback,
            degree=degree,
            model=model,
            seeds=range(first_seed, first_seed + seeds),
            horizon=horizon,
            settings=console.parse_pairs(set_ or []),
            preset=values,
            delay=delay,
            missing=missing,
            data_dir=None if data_dir is None else str(data_dir),
        )
        prepared = preparing.prepare(experiment)
        if out is not None:
            writable(out)
        for notice in (*notices, *prepared.notices, *untuned(prepared)):
            console.note(notice)
        with LiveProgress(f"{experiment.benchmark_name}, {feedback} feedback") as progress:
            found = outcome.play_prepared(prepared, progress)
        result = found.to_dict()
        if format is Format.json:  # shown first: it was computed, whether or not it can be written
            print(json.dumps(result, indent=2))
        else:
            show(result)
        if out is not None:
            write(found, result, out, began, import_ or [])
            if format is not Format.json:
                console.say(
                    f"\nwritten to {out}: result.json, regret.png, the traces; next: regretless report --store "
                    f"{shlex.quote(str(out))}"
                )


def untuned(prepared: Any) -> list[str]:
    """What must be said where nothing was tuned."""
    alone = [label for label, each in prepared.settled.items() if not each.tuned and each.settings is not None]
    if prepared.experiment.preset is not None or not alone:
        return []
    whom = "" if len(alone) == len(prepared.settled) else f" for {', '.join(alone)}"
    return [f"nothing was tuned{whom} on this benchmark: default settings are used, contexts and costs are scaled"]


def own_files(benchmark: str | None, contexts: Path | None, costs: Path | None, oracle: str | None) -> Any:
    """The files of a history, None for a benchmark; refuses anything between the two."""
    from regretless.errors import SettingsError
    from regretless.studies.history import Files

    own = {"--contexts": contexts, "--costs": costs, "--oracle": oracle}
    missing = [name for name, value in own.items() if value is None]
    if benchmark is not None and len(missing) < len(own):
        raise SettingsError(f"expected BENCHMARK or --contexts, --costs and --oracle, got {benchmark!r} and both")
    if benchmark is None and missing:
        raise SettingsError(
            f"expected BENCHMARK, or --contexts, --costs and --oracle together; {', '.join(missing)} missing"
        )
    if contexts is None or costs is None or oracle is None:
        return None
    return Files(contexts, costs, oracle)


def writable(folder: Path) -> None:
    """Refuses an output folder that cannot be written to, before anything runs."""
    from regretless.errors import SettingsError

    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise SettingsError(f"cannot write to {folder}: {error.strerror}") from None


def writable_file(path: Path) -> None:
    """Refuses a file that cannot be written, before anything runs."""
    from regretless.errors import SettingsError

    writable(path.parent)
    try:
        folder = path.is_dir()
        path.lstat()
    except FileNotFoundError:
        return
    except OSError as error:
        raise SettingsError(f"cannot write {path}: {error.strerror}") from None
    if folder:
        raise SettingsError(f"cannot write {path}: it is a folder, expected the name of a file")


def show(result: dict[str, Any]) -> None:
    """Prints the table."""
    title = f"{result['benchmark']}, {result['feedback']} feedback"
    if result["degree"] is not None:
        title += f", degree {result['degree']}"
    if result["data"] is not None:
        title += f", {result['data']} data"
    caption = (
        f"final regret over {result['horizon']} rounds, {result['seeds']} replications from seed {result['first_seed']}, "
        f"{result['model']}; compiled in {result['seconds']['compile']:.0f} s, ran in {result['seconds']['run']:.0f} s"
    )
    table = Table(title=Text(title), caption=Text(caption), title_style="bold", caption_justify="left")
    for column in ("policy", "mean ± s.e.", "median", "published", "z"):
        table.add_column(column, justify="left" if column == "policy" else "right")
    for row in result["results"]:
        note = f"  ({row['diverged']} diverged, first in round {row['diverged_rounds'][0]})" if row["diverged"] else ""
        table.add_row(
            Text(row["policy"]),
            format_mean(row["mean"], row["standard_error"]) + note,
            format_number(row["median"]),
            "–" if row["published_mean"] is None
            else format_mean(row["published_mean"], row["published_standard_error"]),
            "–" if row["z"] is None else f"{row['z']:+.2f}",
        )  # fmt: skip
    table.add_section()
    for line in result["references"]:
        name = f"{line['name']} ({line['world']})" if line["world"] else line["name"]
        table.add_row(Text(name, style="dim"), format_mean(line["mean"], line["standard_error"]))
    console.out.print(table)


def write(outcome: Any, result: dict[str, Any], folder: Path, began: float, imports: list[str]) -> None:
    """Leaves the result, a picture, and a store with the traces that 'regretless report' reads in ``folder``."""
    from regretless import files
    from regretless.report.curves import regret_curves
    from regretless.studies.compute import result_of
    from regretless.studies.plan import Plan
    from regretless.studies.store import Store
    from regretless.studies.study import Panel, Scale, Study

    experiment, store = outcome.prepared.experiment, Store(folder)
    title = f"{result['benchmark']}, {result['feedback']} feedback"
    stored = result_of(outcome, began)
    panels = (Panel("Final regret", (("", experiment),)), Panel("Regret per round", (("", experiment),), kind="curves"))
    study = Study(f"run_{stored.record['key'][:12]}", "table", experiment.where, "", panels)
    plan = Plan([study], Scale(), f"regretless {shlex.join(sys.argv[1:])}", imports)
    store.create()
    store.put(stored.record["key"], stored)
    plan.write(store)
    lines = {line["name"]: line["mean"] for line in result["references"] if line["mean"] is not None}
    regret_curves(outcome.traces, lines, f"{title}, {result['seeds']} replications", folder / "regret.png")
    files.write_text(folder / "result.json", json.dumps(result, indent=2) + "\n")
