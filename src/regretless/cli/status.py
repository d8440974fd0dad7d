"""``regretless status``: what is done, running, failed and missing in a store, and what to type next."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, clear_errors

if TYPE_CHECKING:
    from regretless.experiments.store import Campaign, ResultStore


def status(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    old: Annotated[bool, typer.Option("--old", help="List results that this version would not use.")] = False,
    remove_old: Annotated[bool, typer.Option("--remove-old", help="Delete them.")] = False,
    format: Annotated[Format, typer.Option(help="How to print.")] = Format.table,
) -> None:
    """Show how far the campaigns of a store are, and the command that resumes each."""
    with clear_errors():
        from regretless.errors import SettingsError
        from regretless.experiments.store import ResultStore

        if not store.is_dir():
            raise SettingsError(f"no store at {store}: 'regretless reproduce --store {store}' makes one")
        state = examine(ResultStore(store), remove_old)
        if format is Format.json:
            console.say_json(state)
        else:
            show(state, old)


def examine(store: "ResultStore", remove_old: bool) -> dict[str, Any]:
    """Return the state of every campaign, and of what is left from other versions; delete the latter if asked to."""
    from regretless.experiments.resolve import code_version

    outdated = store.outdated()
    listed = [
        {
            "address": entry.address,
            "name": entry.record["extra"]["name"] if entry.record else None,
            "code": entry.record["extra"]["code"].get("regretless", "?") if entry.record else entry.problem,
            "bytes": entry.size,
        }
        for entry in outdated
    ]
    if remove_old:
        for entry in outdated:
            store.remove(entry)
    size = sum(entry.size for entry in outdated)
    return {
        "code": code_version(),
        "campaigns": [examine_campaign(campaign, store) for campaign in store.read_campaigns()],
        "old": {"results": len(outdated), "bytes": size, "removed": remove_old, "list": listed},
    }


def examine_campaign(campaign: "Campaign", store: "ResultStore") -> dict[str, Any]:
    """Return how far one campaign is."""
    second = {address for study in campaign.studies for cell in study.cells() for _, address in cell.second}
    states: dict[str, list[str]] = {"done": [], "running": [], "failed": [], "missing": []}
    errors: dict[str, str] = {}
    for address, name in campaign.names.items():
        failure = store.failure(address)
        if store.has(address):
            states["done"].append(name)
        elif store.running(address) is not None:
            states["running"].append(name)
        elif failure is not None:
            states["failed"].append(name)
            errors[name] = failure.last_line
        elif address not in second:  # a second range of seeds is played only where it is needed
            states["missing"].append(name)
    return {
        "command": campaign.command,
        "studies": [study.name for study in campaign.studies],
        "code": campaign.code,
        "arms": sum(map(len, states.values())),
        **{state: len(names) for state, names in states.items()},
        "running_arms": states["running"],
        "errors": errors,
    }


def show(state: dict[str, Any], old: bool) -> None:
    """Print the state of a store."""
    table = Table(title="campaigns", title_style="bold")
    for column in ("studies", "arms", "done", "running", "failed", "missing"):
        table.add_column(column, justify="left" if column == "studies" else "right")
    for campaign in state["campaigns"]:
        numbers = (str(campaign[name]) for name in ("arms", "done", "running", "failed", "missing"))
        table.add_row(Text(" ".join(campaign["studies"])), *numbers)
    console.out.print(table)
    for campaign in state["campaigns"]:
        for name, error in campaign["errors"].items():
            console.say(f"{name}: {error}", "failed: ")
        for name in campaign["running_arms"]:
            console.say(f"running: {name}")
        if campaign["done"] < campaign["arms"]:
            if campaign["code"] != state["code"]:
                console.say("the code has changed since: everything is computed again")
            console.say(f"resume with: {campaign['command']}")
    past = state["old"]
    if past["results"]:
        action = "removed" if past["removed"] else "delete them with: regretless status --remove-old"
        console.say(
            f"{past['results']} results of other versions or damaged, {past['bytes'] / 2**20:.1f} MiB: {action}"
        )
    if old:
        for entry in past["list"]:
            size, name = f"{entry['bytes'] / 2**20:.1f} MiB", shlex.quote(entry["name"] or "?")
            console.say(f"{entry['address'][:12]}  {entry['code']}  {size}  {name}")
