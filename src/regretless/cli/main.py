"""The program's verbs in one place."""

import os
import sys

import typer

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
    help="On-policy decision-focused learning: predict costs, solve, act, learn from partial feedback.",
    no_args_is_help=True,
    add_completion=False,
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
