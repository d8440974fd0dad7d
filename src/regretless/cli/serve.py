"""``regretless serve`` and ``regretless token``: learners over HTTP, and who may use them."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from regretless.cli import console
from regretless.cli.console import clear_errors, option
from regretless.registry import load_attribute
from regretless.startup import Device, configure


def serve(
    config: Annotated[Path, typer.Argument(help="The configuration (TOML).", show_default=False)],
    host: Annotated[str | None, option("The address to listen on.", "the configuration's, or 127.0.0.1")] = None,
    port: Annotated[int | None, option("The port; 0 takes a free one.", "the configuration's, or 8000")] = None,
    check: Annotated[bool, option("Check the configuration and open no store.", flag="--check")] = False,
    device: Annotated[Device, option("Where to compute.")] = "auto",
) -> None:
    """Serve learners over HTTP, with a page to watch them.

    Every decision and its key are stored before they are returned; a restart continues all learners. Addresses other
    than this machine's need tokens ('regretless token') and TLS, or a reverse proxy. Needs the extra 'serve'.

    Examples:
      regretless serve plant.toml              then open http://127.0.0.1:8000
      regretless serve plant.toml --check      is the configuration right?
      regretless serve plant.toml --port 9000

    plant.toml:
      [learners.north]
      problem = "plant:problem"                # plant.py next to this file
      store = "north.db"
      [learners.north.rollout]
      incumbent = "plant:foreman"
    """
    with clear_errors(stopped="stores are complete"):
        configure(device)
        read = load_attribute("regretless.serve:read_config")
        settings = read(config)
        if check:
            load_attribute("regretless.serve:check_config")(settings)
            console.say(f"{config}: {len(settings.learners)} learners, {len(settings.templates)} templates, no errors")
            return
        load_attribute("regretless.serve:serve")(settings, host=host, port=port)


def token(
    name: Annotated[str, typer.Argument(help="Who uses it.", show_default=False)],
    role: Annotated[Literal["read", "decide", "admin"], option("What it allows.")] = "decide",
    days: Annotated[int | None, option("Days until it expires.", "never", min=1)] = None,
) -> None:
    """Make an access token for a service, and the lines for its configuration.

    The token is shown once; the configuration keeps a hash of it.

    Examples:
      regretless token dispatcher                    decide and report feedback
      regretless token grafana --role read           health, metrics, the page
      regretless token engineer --role admin --days 90
    """
    with clear_errors():
        made = load_attribute("regretless.serve:make_token")(name, role, days)
        console.note("the token, shown only now; clients send it as 'Authorization: Bearer TOKEN'")
        console.say(made.token)
        console.note("append to the configuration and restart the service:")
        console.say(made.text.rstrip())
