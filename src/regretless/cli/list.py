"""``regretless list``: what there is to choose from."""

import importlib
import inspect
from typing import Annotated, Any

import typer

import regretless as rg
from regretless.cli import console
from regretless.cli.console import Format, Imports, clear_errors, option
from regretless.errors import RegretlessError, SettingsError
from regretless.experiments.extension import STUDIES, STUDIES_HINT
from regretless.formatting import LABELS
from regretless.registry import require_known

KINDS = ("benchmarks", "policies", "surrogates", "models", "oracles", "feedback", "worlds", "settings", "studies")
SETTINGS_OF = ("policies", "surrogates", "models.nuisance", "models", "benchmarks")
"""Modules of the parts that have settings; those of policies have no prefix."""


def list_(
    kind: Annotated[str, typer.Argument(help=f"One of: {', '.join(KINDS)}.")] = "benchmarks",
    import_: Imports = None,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure what the context of each benchmark is worth.")
    ] = False,
    format: Annotated[Format, option("How to print the list.")] = "table",
) -> None:
    """Show benchmarks, policies, surrogates, models, oracles, feedback, worlds, studies, or the settings for --set.

    Parts of other packages are shown with the name of their package.
    """
    with clear_errors():
        console.load_imports(import_)
        require_known("list", kind, KINDS)
        if measure and kind != "benchmarks":
            raise SettingsError(f"--measure is for benchmarks, got {kind}")
        if kind == "worlds":
            show_worlds(format)
            return
        rows = measure_benchmarks() if measure else list_entries(kind)
        uses = [LABELS.get(name, {}).get("use", "") if kind == "policies" else "" for name, _ in rows]
        if format == "json":
            used = [{"use_when": use} if kind == "policies" else {} for use in uses]
            console.say_json(
                [{"name": name, "summary": text, **more} for (name, text), more in zip(rows, used, strict=True)]
            )
        elif kind == "policies":
            lines = [(name, use, text) for (name, text), use in zip(rows, uses, strict=True)]
            console.say_table(lines, ("policy", "use it when", "what it is"), "Which policy should I use?")
            console.say("Without a reason for another one: adaptive.")
        else:
            console.say_table(rows, title=kind)
        if kind == "studies" and not rows:
            console.note(STUDIES_HINT)


def show_worlds(format: Format) -> None:
    """Print the worlds of the arena with their group and what they are."""
    from regretless.experiments.arena import WORLDS

    worlds = WORLDS.usable()
    if format == "json":
        fields = ("group", "part", "benchmark", "horizon", "feedback")
        about = {name: {field: getattr(world, field) for field in fields} for name, world in worlds.items()}
        console.say_json([{"name": name, "summary": worlds[name].about, **about[name]} for name in worlds])
        return
    groups = dict.fromkeys(world.group for world in worlds.values())
    lines = []
    for group in groups:
        members = [(name, world) for name, world in worlds.items() if world.group == group]
        lines += [
            (group if not i else "", name + " †" * world.held_out, world.about)
            for i, (name, world) in enumerate(members)
        ]
    caption = "† held out: for reporting, not for choosing; 'regretless arena GROUP' plays a group"
    console.say_table(lines, ("group", "world", "what it is"), "worlds", caption)


def list_entries(kind: str) -> list[tuple[str, str]]:
    """Return names with one line about each."""
    if kind == "settings":
        return list_settings()
    if kind == "studies":
        made = {name: make(rg.experiments.Scale()) for name, make in STUDIES.usable().items()}
        ordered = sorted(made.items(), key=lambda item: (item[1].collection, item[1].order))
        return [(name, f"{study.title} [{STUDIES.origin(name)}]") for name, study in ordered]
    registry = importlib.import_module(f"regretless.{kind}").REGISTRY
    rows = []
    for name in registry:
        try:
            summary = first_line(registry[name])
        except SettingsError as error:
            summary = f"cannot be used: {error}"
        origin = registry.origin(name)
        rows.append((name, f"{summary} [{origin}]" if origin else summary))
    return rows


def measure_benchmarks() -> list[tuple[str, str]]:
    """Return a line about the context of each benchmark with its default settings."""
    rows = []
    for name in rg.benchmarks.REGISTRY:
        try:
            rows.append((name, str(rg.benchmarks.contextuality(name, seeds=2, rounds=100))))
        except RegretlessError as error:
            rows.append((name, f"cannot be measured: {error}"))
    return rows


def list_settings() -> list[tuple[str, str]]:
    """Return every setting by its dotted name, with its default and the parts that have it."""
    owners: dict[tuple[str, str], list[str]] = {}

    def collect(owner: str, spec: Any, prefix: str) -> None:
        for name, field in spec.model_fields.items():
            default = field.default
            if isinstance(default, rg.Spec) and default.registry is None:
                collect(owner, type(default), f"{prefix}{name}.")
                continue
            shown = default.registered_name if isinstance(default, rg.Spec) else default
            summary = f"{spec.describe_settings().get(name, '')} (default {'none' if shown in (None, '') else shown})"
            owners.setdefault((prefix + name, summary), []).append(owner)

    for module in SETTINGS_OF:
        registry = importlib.import_module(f"regretless.{module}").REGISTRY
        family = "" if module == "policies" else registry.kind
        for name, spec in registry.usable().items():
            collect(f"{family} {name}".strip(), spec, f"{family}." if family else "")
    return [(name, f"{summary}: {', '.join(parts)}") for (name, summary), parts in owners.items()]


def first_line(thing: object) -> str:
    """Return the first paragraph of a docstring, without its markup."""
    documented = thing if isinstance(thing, type) or not hasattr(thing, "measure") else type(thing)
    text = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return " ".join(text.replace("``", "").split())
