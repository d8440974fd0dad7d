"""The command ``regretless`` with all of its verbs."""

import inspect
import os
import sys
from typing import Annotated

import typer

from regretless import __version__
from regretless.cli import console
from regretless.cli.bench import app as bench
from regretless.cli.console import PlainCommand, PlainGroup
from regretless.cli.doctor import data, doctor
from regretless.cli.fit import fit_
from regretless.cli.list import list_
from regretless.cli.live import demo, evaluate, rehearse, serve, token, watch
from regretless.cli.run import run
from regretless.cli.studies import arena, report, reproduce, status
from regretless.cli.tune import tune

app = typer.Typer(
    name="regretless",
    cls=PlainGroup,
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
live = (evaluate, rehearse, serve, watch, demo, token)
for command in (run, arena, reproduce, report, status, tune, fit_, *live, list_, doctor):
    app.command(command.__name__.rstrip("_"), cls=PlainCommand)(command)
app.add_typer(bench, name="bench")
app.add_typer(data, name="data")


@app.callback()
def start(
    context: typer.Context, version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False
) -> None:
    """Learn to decide: predict costs, solve, act, learn from partial feedback.

    Examples:
      regretless run topk --seeds 4    play all policies on a benchmark
      regretless list policies         list policies; also benchmarks, settings, …
      regretless arena --quick         play policies without tuning on five worlds
      regretless reproduce --quick     compute studies; then: regretless report
      regretless serve plant.toml      learners over HTTP, with a page to watch them
      regretless demo                  the page on a simulated workshop
      regretless fit DATA --oracle …   train on a table of contexts and costs
      regretless doctor                check this machine, and what to do if needed

    All commands: regretless --help      One of them: regretless run --help
    In Python: import regretless as rg   Completion: regretless --install-completion
    """
    if version:
        print(f"regretless {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(f"regretless {__version__}\n\n{inspect.cleandoc(start.__doc__ or '')}")


def main() -> None:
    """Run the command; report once if standard output cannot be written."""
    try:
        app()
        sys.stdout.flush()
    except OSError as error:
        sys.stdout = open(os.devnull, "w")  # what is left in its buffer is dropped  # noqa: SIM115
        if not isinstance(error, BrokenPipeError):
            console.complain(f"cannot write to standard output: {error.strerror or error}")
        sys.exit(1)
