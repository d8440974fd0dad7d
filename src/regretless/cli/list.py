"""``regretless list``: what there is to choose from."""

import inspect
import json
from collections.abc import Mapping
from typing import Annotated

import typer
from rich.table import Table

from regretless.cli import console
from regretless.cli.console import Format, clear_errors

KINDS = ("benchmarks", "policies", "surrogates", "models", "feedback", "settings")


def list_(
    kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(KINDS)}.")] = "benchmarks",
    format: Annotated[Format, typer.Option(help="How to print the list.")] = Format.table,
) -> None:
    """Show the benchmarks, policies, surrogates, models, feedback regimes, or the settings that --set knows."""
    with clear_errors():
        from regretless.registry import require_known

        require_known("list", kind, KINDS)
        rows = entries(kind)
        if format is Format.json:
            print(json.dumps([{"name": name, "summary": summary} for name, summary in rows], indent=2))
            return
        table = Table(title=kind, title_style="bold", show_header=False)
        for name, summary in rows:
            table.add_row(name, summary)
        console.out.print(table, highlight=False)


def entries(kind: str) -> list[tuple[str, str]]:
    """Names with one line about each."""
    from regretless import benchmarks, feedback, models, policies, surrogates
    from regretless.settings import Settings

    if kind == "settings":
        return [
            (name, f"{field.description or ''} (default {field.get_default()})")
            for name, field in Settings.model_fields.items()
        ]
    if kind == "feedback":
        return [(name, first_line(type(rule))) for name, rule in feedback.REGISTRY.items()]
    registries: dict[str, Mapping[str, object]] = {
        "benchmarks": benchmarks.REGISTRY,
        "policies": policies.REGISTRY,
        "surrogates": surrogates.REGISTRY,
        "models": models.REGISTRY,
    }
    return [(name, first_line(thing)) for name, thing in registries[kind].items()]


def first_line(thing: object) -> str:
    """The first sentence of a docstring, without its markup."""
    text = (inspect.getdoc(thing) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())
