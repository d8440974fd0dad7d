"""``regretless status``: what is done, running, failed and missing in a store, and what to type next."""

import json
import shlex
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, clear_errors


def status(
    store: Annotated[Path, typer.Option(help="Folder of the results.")] = Path("results"),
    old: Annotated[bool, typer.Option("--old", help="List results that this version would not use.")] = False,
    remove_old: Annotated[bool, typer.Option("--remove-old", help="Delete them.")] = False,
    format: Annotated[Format, typer.Option(help="How to print.")] = Format.table,
) -> None:
    """Show how far the campaigns of a store are, and the command that resumes each."""
    with clear_errors():
        from regretless.errors import SettingsError
        from regretless.studies.store import Store

        if not store.is_dir():
            raise SettingsError(f"no store at {store}: 'regretless reproduce --store {store}' makes one")
        told = examine(Store(store), remove_old)
        if format is Format.json:
            print(json.dumps(told, indent=2))
        else:
            show(told, old)


def examine(store: Any, remove_old: bool) -> dict[str, Any]:
    """The state of every campaign, and of what is left from other versions."""
    from regretless.studies.identity import code_version

    outdated = store.old()
    size = sum(entry.size for entry in outdated)
    listed = [
        {
            "key": entry.key,
            "name": entry.record["name"] if entry.record else None,
            "code": entry.record["code"] if entry.record else entry.problem,
            "bytes": entry.size,
        }
        for entry in outdated
    ]
    if remove_old:
        for entry in outdated:
            store.remove(entry)
    return {
        "code": code_version(),
        "campaigns": [campaign(plan, store) for plan in store.written_plans()],
        "old": {"results": len(outdated), "bytes": size, "removed": remove_old, "list": listed},
    }


def campaign(plan: Any, store: Any) -> dict[str, Any]:
    """How far one campaign is."""
    cells = dict(plan.cells)
    cells |= {
        key: f"{plan.cells[first]} (second range of seeds)"
        for first, key in plan.second.items()
        if store.has(key) or store.running(key) or store.failure(key)
    }
    states: dict[str, list[str]] = {"done": [], "running": [], "failed": [], "missing": []}
    errors = {}
    for key, name in cells.items():
        failure = store.failure(key)
        if store.has(key):
            states["done"].append(name)
        elif store.running(key):
            states["running"].append(name)
        elif failure is not None:
            states["failed"].append(name)
            errors[name] = failure.error.strip().splitlines()[-1]
        else:
            states["missing"].append(name)
    return {
        "command": plan.command,
        "studies": [study.name for study in plan.studies],
        "code": plan.code,
        "cells": len(cells),
        **{name: len(members) for name, members in states.items()},
        "running_cells": states["running"],
        "errors": errors,
    }


def show(told: dict[str, Any], old: bool) -> None:
    """Prints the state of the store."""
    table = Table(title="campaigns", title_style="bold")
    for column in ("studies", "cells", "done", "running", "failed", "missing"):
        table.add_column(column, justify="left" if column == "studies" else "right")
    for each in told["campaigns"]:
        numbers = (str(each[name]) for name in ("cells", "done", "running", "failed", "missing"))
        table.add_row(Text(" ".join(each["studies"])), *numbers)
    console.out.print(table)
    for each in told["campaigns"]:
        for name, error in each["errors"].items():
            console.say(f"{name}: {error}", "failed: ")
        for name in each["running_cells"]:
            console.say(f"running: {name}")
        if each["done"] < each["cells"]:
            if each["code"] != told["code"]:
                console.say("the code has changed since: what it changed is computed anew")
            console.say(f"resume with: {each['command']}")
    past = told["old"]
    if past["results"]:
        word = "removed" if past["removed"] else "delete them with: regretless status --remove-old"
        console.say(f"{past['results']} results of other versions or damaged, {past['bytes'] / 2**20:.1f} MiB: {word}")
    if old:
        for each in past["list"]:
            console.say(
                f"{each['key'][:12]}  {each['code']}  {each['bytes'] / 2**20:.1f} MiB  {shlex.quote(each['name'] or '?')}"
            )
