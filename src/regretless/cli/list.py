"""``regretless list``: what there is to choose from."""

import inspect
import json
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import catalogue, console
from regretless.cli.console import Format, Imports, clear_errors

KINDS = ("benchmarks", "policies", "surrogates", "models", "oracles", "feedback", "worlds", "settings")


def list_(
    kind: Annotated[
        str, typer.Argument(help=f"One of: {', '.join(KINDS)}.", autocompletion=lambda: list(KINDS))
    ] = "benchmarks",
    import_: Imports = None,
    format: Annotated[Format, typer.Option(help="How to print the list.")] = Format.table,
) -> None:
    """Show the benchmarks, policies, surrogates, models, oracles, feedback regimes, worlds, or the settings that --set knows.

    Parts of other packages are shown with the name of their package.
    """
    with clear_errors():
        from regretless import plugins
        from regretless.registry import require_known

        for module in import_ or ():
            plugins.load(module)
        require_known("list", kind, KINDS)
        rows = catalogue.rows(kind) if catalogue.is_all() and not import_ else entries(kind)
        if format is Format.json:
            print(json.dumps([{"name": name, "summary": summary} for name, summary in rows], indent=2))
            return
        table = Table(title=kind, title_style="bold", show_header=False)
        for name, summary in rows:
            table.add_row(Text(name), Text(summary))
        console.out.print(table, highlight=False)


def entries(kind: str) -> list[tuple[str, str]]:
    """Names with one line about each."""
    from regretless import benchmarks, feedback, models, oracles, policies, surrogates
    from regretless.errors import SettingsError

    if kind == "settings":
        return settings()
    if kind == "worlds":
        from regretless.studies.arena.worlds import WORLDS

        return [(name, f"{world.about} ({world.group})") for name, world in WORLDS.usable().items()]
    registries: dict[str, Any] = {
        "benchmarks": benchmarks.REGISTRY,
        "policies": policies.REGISTRY,
        "surrogates": surrogates.REGISTRY,
        "models": models.REGISTRY,
        "oracles": oracles.REGISTRY,
        "feedback": feedback.REGISTRY,
    }
    registry = registries[kind]
    rows = []
    for name in registry:
        try:
            words = first_line(registry[name])
        except SettingsError as error:
            words = f"cannot be used: {error}"
        origin = registry.origin(name)
        rows.append((name, f"{words} [{origin}]" if origin else words))
    return rows


def settings() -> list[tuple[str, str]]:
    """Every setting by its dotted name, with its owners."""
    from regretless import benchmarks, models, policies, surrogates
    from regretless.models import nuisance
    from regretless.spec import Spec

    found: dict[str, tuple[str, list[str]]] = {}

    def tell(owner: str, name: str, field: Any, description: str) -> None:
        default = field.default
        words = f"{description} (default {default.registered_name if isinstance(default, Spec) else default})"
        found.setdefault(f"{name}\0{words}", (words, []))[1].append(owner)

    def collect(owner: str, model: Any, prefix: str) -> None:
        for name, field in model.model_fields.items():
            if isinstance(field.default, Spec) and field.default.registry is None:
                collect(owner, type(field.default), f"{prefix}{name}.")
            else:
                tell(owner, prefix + name, field, model.describe_settings().get(name, ""))

    for name, entry in policies.REGISTRY.usable().items():
        collect(name, entry, "")
    for head, registry in (
        ("surrogate", surrogates.REGISTRY), ("nuisance", nuisance.REGISTRY), ("model", models.REGISTRY),
        ("benchmark", benchmarks.REGISTRY),
    ):  # fmt: skip
        for name, part in registry.usable().items():
            collect(f"{head} {name}", part, f"{head}.")
    return [(key.partition("\0")[0], f"{words}: {', '.join(who)}") for key, (words, who) in found.items()]


def first_line(thing: object) -> str:
    """The first sentence of a docstring, without its markup."""
    whole = thing if isinstance(thing, type) or not hasattr(thing, "measure") else type(thing)
    text = (inspect.getdoc(whole) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())
