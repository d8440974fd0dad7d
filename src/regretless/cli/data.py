"""``regretless data``: download data that is not part of the program."""

from pathlib import Path
from typing import Annotated

import typer

from regretless.cli import console
from regretless.cli.console import clear_errors

app = typer.Typer(cls=console.PlainGroup, help="Download data that is not part of the program.", no_args_is_help=True)


@app.callback()
def data() -> None:
    """Download data that is not part of the program."""


@app.command(cls=console.PlainCommand)
def fetch(
    what: Annotated[str, typer.Argument(help="Whose data: energy.")],
    data_dir: Annotated[
        Path | None, typer.Option(help="Folder to put the files in.", show_default="the user's cache")
    ] = None,
    origin: Annotated[
        str | None, typer.Option(help="Where to download from.", show_default="the public repository")
    ] = None,
) -> None:
    """Download the electricity prices and scheduling instances of the energy benchmark, and verify their checksums.

    Files that are there already and complete stay as they are. Exit code 1 if the origin cannot be reached.
    """
    with clear_errors():
        from regretless.benchmarks import energy_data
        from regretless.errors import SettingsError
        from regretless.registry import require_known

        require_known("data", what, ["energy"])
        folder = data_dir or energy_data.cache_folder()
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise SettingsError(f"cannot write to {folder}: {error.strerror}") from None
        try:
            paths = energy_data.fetch(folder, origin or energy_data.ORIGIN, console.log)
        except (OSError, ValueError) as error:
            console.complain(
                f"{error}\nWithout a network, copy {', '.join(energy_data.FILES)} into a folder and name it with "
                "--data-dir or REGRETLESS_DATA; without the files, energy plays on synthetic data."
            )
            raise typer.Exit(1) from None
        console.say(f"{len(paths)} files in {folder}")
