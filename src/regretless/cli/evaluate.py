"""``regretless evaluate``: what policies would have paid in the rounds of a log, before they go live."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, Imports, clear_errors
from regretless.startup import Device, configure

EPILOG = """
Examples:

regretless evaluate plant.log --oracle plant:assignment                        would the default policy do better?

regretless evaluate plant.log --oracle plant:assignment --policy adaptive --policy greedy   two policies side by side

regretless evaluate old.csv --oracle plant:assignment --function plant:night_rule   a function of the context

regretless evaluate later.log --oracle plant:assignment --learner plant.rgl    a saved learner, as it is

A table has the columns that History.to_pandas writes: context_0, …, decision_0, …, total (or cost_0, …), and where they
are known propensity, time and instance_0, ….
"""


def evaluate(
    log: Annotated[
        Path, typer.Argument(help="A learner's log, or a table of rounds (.csv, .parquet).", show_default=False)
    ],
    oracle: Annotated[str, typer.Option(help="Your feasible set, as module:object.", show_default=False)],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy that learns from earlier rounds; repeatable.  [default: adaptive, if nothing else is named]"
        ),
    ] = None,
    learner: Annotated[
        list[Path] | None, typer.Option(help="A saved learner that is judged as it is; repeatable.")
    ] = None,
    function: Annotated[
        list[str] | None, typer.Option(help="A function from context to decision, as module:function; repeatable.")
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            help="What a policy is told of a round.  [default: bandit, semi_bandit where single costs are known]"
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The policy whose mean prediction is the regression of the cost.")
    ] = "linear_thompson",
    rewards: Annotated[bool, typer.Option("--rewards", help="The numbers of a table are rewards, not costs.")] = False,
    feature_rows: Annotated[
        bool, typer.Option("--feature-rows", help="A table's contexts are a row of features for each coordinate.")
    ] = False,
    import_: Imports = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the result.")] = Format.table,
) -> None:
    """Estimate what policies would have paid per round, beside what the log paid, with 95 % intervals.

    Where the log says with which probability each decision was drawn, estimates are doubly robust; where it does not,
    they come from rounds in which the log decided like the candidate. Where these are too few, or follow a rule, the
    answer is that it cannot be told, with the reason and, without an interval, what a model predicts.
    """
    with clear_errors():
        configure(device)
        from regretless import plugins
        from regretless.live.evaluation.evaluate import evaluate as judge
        from regretless.live.learner import Learner
        from regretless.studies.history import load_oracle

        for name in import_ or ():
            plugins.load(name)
        feasible = load_oracle(oracle)
        history = read(log, rewards, feature_rows)
        chosen: dict[str, Any] = {path.name: Learner.load(path, feasible) for path in learner or ()}
        chosen |= {where: plugins.load_object(where, "--function") for where in function or ()}
        chosen |= {name: name for name in policy or ([] if chosen else ["adaptive"])}
        found = judge(chosen, history, oracle=feasible, feedback=feedback, model=model)
        if format is Format.json:
            print(json.dumps(found.to_dict(), indent=2))
        else:
            show(found)


def read(path: Path, rewards: bool, feature_rows: bool) -> Any:
    """The history in a learner's log, or in a table with the columns that ``History.to_pandas`` writes."""
    from regretless.errors import SettingsError
    from regretless.live import tables
    from regretless.live.history import History

    kinds = {".csv": tables.csv, ".parquet": tables.parquet}
    if path.suffix not in kinds:
        if rewards or feature_rows:
            raise SettingsError(f"--rewards and --feature-rows are for tables; the log {path} tells these itself")
        if not path.is_file():
            raise SettingsError(f"cannot read {path}: expected a learner's log or a table (.csv, .parquet)")
        return History.from_log(path)
    frame = kinds[path.suffix](path)
    several = {
        part: [name for name in map(str, frame.columns) if name.rpartition("_")[0] == part]
        for part in ("context", "decision", "cost", "value", "instance")
    }
    for part in ("context", "decision"):
        if not several[part]:
            raise SettingsError(
                f"{path}: expected columns {part}_0, {part}_1, …, got {', '.join(map(str, frame.columns[:8]))}"
            )
    single = {name: name if name in frame.columns else None for name in ("total", "time", "propensity")}
    shape = None
    if feature_rows:
        rows, columns = len(several["decision"]), len(several["context"])
        if columns % rows:
            raise SettingsError(
                f"{path}: expected as many features for each of {rows} coordinates, got {columns} columns"
            )
        shape = (rows, columns // rows)
    return History.from_pandas(
        frame, contexts=several["context"], decisions=several["decision"], costs=several["cost"] or None,
        values=several["value"] or None, instance=several["instance"] or None, context_shape=shape,
        sense="maximise" if rewards else "minimise", **single,
    )  # fmt: skip


def show(found: Any) -> None:
    """Prints the table, then what cannot be told, and why."""
    from regretless.live.evaluation.report import CANNOT

    caption = (
        f"{found.word} per round over {found.rounds} rounds, 95 % intervals; predictions are a model's, without one"
    )
    table = Table(title="what would have been paid", caption=Text(caption), title_style="bold", caption_justify="left")
    for column in ("candidate", found.word, "against the log", "matches", "predicted"):
        first = column == "candidate"
        table.add_column(column, justify="left" if first else "right", no_wrap=not first, overflow="fold")
    for own in found.estimates:
        how = "" if own.method == "logged" else f"\n{own.method.replace('_', ' ')}"
        table.add_row(
            Text.assemble(own.candidate, (how, "dim")),
            "cannot be told" if own.cost is None else within(own.cost),
            "–" if own.difference is None else within(own.difference, "+"),
            f"{own.matches}\nworth {own.effective:.0f}",
            "–" if own.prediction is None else f"{own.prediction:.4g}",
        )
    console.out.print(table, highlight=False)
    for own in found.estimates:
        if own.reason:
            console.say(f"{own.candidate}: {CANNOT}: {own.reason}")


def within(found: Any, sign: str = "") -> str:
    """A mean with its interval below it."""
    return f"{found.mean:{sign}.4g}\n[{found.low:{sign}.4g}, {found.high:{sign}.4g}]"
