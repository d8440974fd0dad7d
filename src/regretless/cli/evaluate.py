"""``regretless evaluate``: what policies would have cost in the rounds of a log, before they go live."""

import os
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, Imports, clear_errors
from regretless.startup import Device, configure

EPILOG = """\
Examples:
  # would the default policy do better?
  regretless evaluate plant.db --oracle plant:assignment
  # two policies
  regretless evaluate plant.db --oracle plant:assignment \\
    --policy adaptive --policy greedy
  # a function of the context
  regretless evaluate old.csv --oracle plant:assignment \\
    --function plant:night_rule
  # a stored learner, as it is
  regretless evaluate later.db --oracle plant:assignment --learner plant.db

The columns of a table are found by the names that History.to_pandas writes,
in any order: context_0, … (context_0_0, … for a row of features for each
coordinate), decision_0, …, total or cost_0, …, and where they are known
propensity, time, instance_0, ….
"""


def evaluate(
    source: Annotated[
        Path, typer.Argument(help="A learner's store, or a table of rounds (.csv, .parquet).", show_default=False)
    ],
    oracle: Annotated[str, typer.Option(help="Your feasible set, as module:object.", show_default=False)],
    policy: Annotated[
        list[str] | None,
        typer.Option(
            help="A policy that learns from earlier rounds; repeatable.  [default: adaptive, if nothing else is named]"
        ),
    ] = None,
    learner: Annotated[
        list[Path] | None, typer.Option(help="A learner's store, evaluated as it is; repeatable.")
    ] = None,
    function: Annotated[
        list[str] | None, typer.Option(help="A function from context to decision, as module:function; repeatable.")
    ] = None,
    feedback: Annotated[
        str | None,
        typer.Option(
            help="What a policy observes of a round.  [default: bandit, semi_bandit where single costs are known]"
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="The policy whose mean prediction is the regression of the cost.")
    ] = "linear_thompson",
    rewards: Annotated[bool, typer.Option("--rewards", help="The numbers of a table are rewards, not costs.")] = False,
    import_: Imports = None,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = "auto",
    format: Annotated[Format, typer.Option(help="How to print the result.")] = Format.table,
) -> None:
    """Estimate what policies would have cost per round, compared with the log, with 95 % intervals.

    Where the log has the probability of each decision, estimates are doubly robust; where it does not, they come from
    rounds in which the log decided like the candidate. Where these are too few, or follow a rule, the log is
    inconclusive: the reason and, without an interval, a model's prediction are shown.
    """
    with clear_errors():
        configure(device)
        from regretless import plugins
        from regretless.cli.inputs import load_oracle
        from regretless.live.evaluation import evaluate as evaluate_candidates
        from regretless.live.learner import Learner

        for name in import_ or ():
            plugins.load(name)
        feasible = load_oracle(oracle)
        history = read_history(source, rewards)
        names = policy or ([] if learner or function else ["adaptive"])
        labels = label_learners(learner or [], [*(function or ()), *names])
        candidates: dict[str, Any] = {
            label: Learner.open(path, feasible, read_only=True) for label, path in labels.items()
        }
        candidates |= {place: plugins.load_object(place, "--function") for place in function or ()}
        candidates |= {name: name for name in names}
        evaluation = evaluate_candidates(candidates, history, oracle=feasible, feedback=feedback, model=model)
        if format is Format.json:
            console.say_json(evaluation.to_dict())
        else:
            show(evaluation)


def read_history(path: Path, rewards: bool) -> Any:
    """Return the history in a learner's store, or in a table with the columns that ``History.to_pandas`` writes."""
    from regretless.errors import SettingsError
    from regretless.live.history import History

    readers = {".csv": History.from_csv, ".parquet": History.from_parquet}
    reader = readers.get(path.suffix.lower())
    if reader is not None:
        return reader(path, sense="max" if rewards else "min")
    if rewards:
        raise SettingsError(f"--rewards is for tables; the store {path} records it itself")
    if not path.is_file():
        raise SettingsError(f"cannot read {path}: expected a learner's store or a table (.csv, .parquet)")
    return History.from_store(path)


def label_learners(paths: list[Path], others: list[str]) -> dict[str, Path]:
    """Return stored learners by the name of their file, by its whole path where two candidates have the same name.

    >>> list(label_learners([Path("/a/plant.db"), Path("/b/plant.db"), Path("/b/old.db")], ["adaptive"]))
    ['/a/plant.db', '/b/plant.db', 'old.db']
    """
    from regretless.errors import SettingsError

    counts = Counter([*(path.name for path in paths), *others])
    labels = {path.name if counts[path.name] == 1 else os.path.abspath(path): path for path in paths}
    if len(labels) < len(paths) or len(set(others)) < len(others):
        raise SettingsError("expected every candidate once, got one of them twice")
    return labels


def show(evaluation: Any) -> None:
    """Print the table, then for which candidates the log is inconclusive, and why."""
    from regretless.live.evaluation import INCONCLUSIVE

    caption = (
        f"{evaluation.quantity} per round over {evaluation.rounds} rounds, 95 % intervals; predictions are a model's"
    )
    table = Table(title="estimated performance", caption=Text(caption), title_style="bold", caption_justify="left")
    for column in ("candidate", evaluation.quantity, "against the log", "matches", "predicted"):
        first = column == "candidate"
        table.add_column(column, justify="left" if first else "right", no_wrap=not first, overflow="fold")
    for estimate in evaluation.estimates:
        method = "" if estimate.method == "logged" else f"\n{estimate.method.replace('_', ' ')}"
        table.add_row(
            Text.assemble(estimate.candidate, (method, "dim")),
            "inconclusive" if estimate.cost is None else format_cell(estimate.cost),
            "–" if estimate.difference is None else format_cell(estimate.difference, "+"),
            f"{estimate.matches}\nworth {estimate.effective:.0f}",
            "–" if estimate.prediction is None else f"{estimate.prediction:.4g}",
        )
    console.out.print(table, highlight=False)
    for estimate in evaluation.estimates:
        if estimate.reason:
            console.say(f"{estimate.candidate}: {INCONCLUSIVE}: {estimate.reason}")


def format_cell(interval: Any, sign: str = "") -> str:
    """Return a mean with its interval below it."""
    return f"{interval.mean:{sign}.4g}\n[{interval.low:{sign}.4g}, {interval.high:{sign}.4g}]"
