"""The program's verbs in one place."""

import os
import sys
from typing import Annotated

import typer

from regretless import __version__
from regretless.cli import console
from regretless.cli.arena import EPILOG as ARENA_EPILOG
from regretless.cli.arena import arena
from regretless.cli.bench import app as bench
from regretless.cli.data import app as data
from regretless.cli.doctor import doctor
from regretless.cli.evaluate import EPILOG as EVALUATE_EPILOG
from regretless.cli.evaluate import evaluate
from regretless.cli.list import list_
from regretless.cli.report import report
from regretless.cli.reproduce import EPILOG as REPRODUCE_EPILOG
from regretless.cli.reproduce import reproduce
from regretless.cli.run import EPILOG, run
from regretless.cli.status import status
from regretless.cli.tune import tune

app = typer.Typer(
    name="regretless",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command("run", epilog=EPILOG)(run)
app.command("arena", epilog=ARENA_EPILOG)(arena)
app.command("reproduce", epilog=REPRODUCE_EPILOG)(reproduce)
app.command("report")(report)
app.command("status")(status)
app.command("tune")(tune)
app.command("evaluate", epilog=EVALUATE_EPILOG)(evaluate)
app.command("list")(list_)
app.command("doctor")(doctor)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")

PAGE = """\
regretless {version}: learn to decide. A solver minimises a cost that has to be
predicted, and you only ever see what your own decision cost.

  regretless run topk --seeds 4    every policy on a benchmark, beside the paper
  regretless list policies         what there is; also benchmarks, settings, …
  regretless arena --quick         policies as they come, on a handful of worlds
  regretless reproduce --quick     the paper in short; then: regretless report
  regretless doctor                is this machine set up? what to do if not

All commands: regretless --help      One of them: regretless run --help
In Python: import regretless as rg   Completion: regretless --install-completion
"""


@app.callback()
def start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Say which version this is.")] = False,
) -> None:
    """On-policy decision-focused learning: predict costs, solve, act, learn from partial feedback."""
    if version:
        print(f"regretless {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(PAGE.format(version=__version__), end="")


def main() -> None:
    """Entry point of the console script; where standard output cannot be written to, that is said once."""
    try:
        app()
        sys.stdout.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # what is left in its buffer goes nowhere  # noqa: SIM115
        if not isinstance(error, BrokenPipeError):
            console.complain(f"cannot write to standard output: {error.strerror or error}")
        sys.exit(1)
