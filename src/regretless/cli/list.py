"""``regretless list``: what there is to choose from.

The library's own parts are also in ``catalogue.json``, so that lists and completion need not import JAX. ``python -m
regretless.cli.list`` writes the file, and a test compares it with the registries.
"""

import functools
import importlib
import importlib.metadata
import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from regretless.cli import console
from regretless.cli.console import Format, Imports, clear_errors

KINDS = ("benchmarks", "policies", "surrogates", "models", "oracles", "feedback", "worlds", "settings", "studies")
CATALOGUE = Path(__file__).with_name("catalogue.json")
FAMILIES = {
    "": "policies",
    "surrogate": "surrogates",
    "nuisance": "models.nuisance",
    "model": "models",
    "benchmark": "benchmarks",
}
"""How the settings of parts are called, and the modules with the parts."""

NOT_LISTED = ("regretless.presets", "regretless.report", "regretless.studies")
"""Groups of entry points that add nothing to the catalogue."""


def list_(
    kind: Annotated[
        str, typer.Argument(help=f"One of: {', '.join(KINDS)}.", autocompletion=lambda: list(KINDS))
    ] = "benchmarks",
    import_: Imports = None,
    format: Annotated[Format, typer.Option(help="How to print the list.")] = Format.table,
) -> None:
    """Show benchmarks, policies, surrogates, models, oracles, feedback, worlds, studies, or the settings for --set.

    Parts of other packages are shown with the name of their package.
    """
    with clear_errors():
        from regretless.registry import require_known

        imports = console.load_imports(import_)
        require_known("list", kind, KINDS)
        known = kind != "studies" and not imports and not has_plug_ins()
        rows = read_catalogue(kind) if known else list_entries(kind)
        if format is Format.json:
            console.say_json([{"name": name, "summary": summary} for name, summary in rows])
            return
        table = Table(title=kind, title_style="bold", show_header=False)
        for name, summary in rows:
            table.add_row(Text(name), Text(summary))
        console.out.print(table, highlight=False)
        if kind == "studies" and not rows:
            from regretless.experiments.extension import STUDIES_HINT

            console.note(STUDIES_HINT)


@functools.cache
def read_catalogue(kind: str) -> list[tuple[str, str]]:
    """Return the library's own parts of one kind with a line about each."""
    return [(name, summary) for name, summary in json.loads(CATALOGUE.read_text(encoding="utf-8"))[kind]]


def has_plug_ins() -> bool:
    """Return whether another package offers parts, so that the catalogue is not complete."""
    groups = importlib.metadata.entry_points().groups
    return any(group.startswith("regretless.") and group not in NOT_LISTED for group in groups)


def list_entries(kind: str, plug_ins: bool = True) -> list[tuple[str, str]]:
    """Return names with one line about each, those of ``plug_ins`` included."""
    from regretless.errors import SettingsError

    if kind == "settings":
        return list_settings(plug_ins)
    if kind == "worlds":
        from regretless.experiments.arena import WORLDS

        return [(name, f"{world.about} ({world.group})") for name, world in WORLDS.usable().items()]
    if kind == "studies":
        from regretless.experiments.extension import STUDIES
        from regretless.experiments.study import Scale

        made = {name: make(Scale()) for name, make in STUDIES.usable().items()}
        ordered = sorted(made.items(), key=lambda item: (item[1].collection, item[1].order))
        return [(name, f"{study.title} [{STUDIES.origin(name)}]") for name, study in ordered]
    registry = importlib.import_module(f"regretless.{kind}").REGISTRY
    rows = []
    for name in filter(lambda name: plug_ins or name in registry.built_in_names, registry):
        try:
            summary = first_line(registry[name])
        except SettingsError as error:
            summary = f"cannot be used: {error}"
        origin = registry.origin(name)
        rows.append((name, f"{summary} [{origin}]" if origin else summary))
    return rows


def list_settings(plug_ins: bool = True) -> list[tuple[str, str]]:
    """Return every setting by its dotted name, with its default and the parts that have it."""
    from regretless.spec import Spec

    owners: dict[tuple[str, str], list[str]] = {}

    def collect(owner: str, spec: Any, prefix: str) -> None:
        for name, field in spec.model_fields.items():
            default = field.default
            if isinstance(default, Spec) and default.registry is None:
                collect(owner, type(default), f"{prefix}{name}.")
                continue
            shown = default.registered_name if isinstance(default, Spec) else default
            summary = f"{spec.describe_settings().get(name, '')} (default {shown})"
            owners.setdefault((prefix + name, summary), []).append(owner)

    for family, module in FAMILIES.items():
        registry = importlib.import_module(f"regretless.{module}").REGISTRY
        for name in filter(lambda name: plug_ins or name in registry.built_in_names, registry.usable()):
            collect(f"{family} {name}".strip(), registry[name], f"{family}." if family else "")
    return [(name, f"{summary}: {', '.join(parts)}") for (name, summary), parts in owners.items()]


def first_line(thing: object) -> str:
    """Return the first paragraph of a docstring, without its markup."""
    documented = thing if isinstance(thing, type) or not hasattr(thing, "measure") else type(thing)
    text = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())


def catalogue_text() -> str:
    """Return what the catalogue must hold."""
    kinds = [kind for kind in KINDS if kind != "studies"]
    return json.dumps({kind: list_entries(kind, plug_ins=False) for kind in kinds}, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    CATALOGUE.write_text(catalogue_text(), encoding="utf-8")
