"""Policies from their names: the registry, and how settings by dotted name find their owner."""

from collections.abc import Mapping
from typing import Any

from regretless.errors import SettingsError
from regretless.models.base import Model
from regretless.policies.base import Policy
from regretless.problem import Problem
from regretless.registry import Later, Registry, have, require_known
from regretless.settings import Choice, Settings, merged
from regretless.surrogates.base import Surrogate

REGISTRY: Registry[Any] = Registry(
    "policy",
    "policies",
    {
        "adaptive": Later("regretless.policies.adaptive.building", "ADAPTIVE"),
        "greedy": Later("regretless.policies.regression", "GREEDY"),
        "epsilon_greedy": Later("regretless.policies.regression", "EPSILON_GREEDY"),
        "thompson": Later("regretless.policies.regression", "THOMPSON"),
        "dfhpg_1": Later("regretless.policies.dfhpg.variants", "SCORE_ONLY"),
        "dfhpg": Later("regretless.policies.dfhpg.variants", "HYBRID"),
        "dfhpg_0": Later("regretless.policies.dfhpg.variants", "DECISION_FOCUSED"),
        "dfhpg_auto": Later("regretless.policies.dfhpg.auto_settings", "AUTO"),
        "linear_thompson": Later("regretless.policies.linear_thompson", "LinearThompson"),
        "ensemble": Later("regretless.policies.adaptive.ensemble", "Ensemble"),
    },
    ("Settings", "build"),
    "a class that subclasses regretless.Policy, or a regretless.policies.Recipe",
)
"""Policies by name: a Recipe, or a Policy class, which has ``Settings`` and ``build`` too."""


def settings_for(name: str, values: Mapping[str, Any] | None = None) -> Settings:
    """The settings of the policy called ``name``, from dotted names.

    >>> settings_for("dfhpg", {"surrogate": "imle", "surrogate.draws": 20}).names()["surrogate.draws"]
    20
    """
    owner: type[Settings] = REGISTRY[name].Settings
    for key in values or {}:
        if key.partition(".")[0] not in owner.model_fields:
            having = owners(key)
            if having:
                raise SettingsError(f"policy {name!r} has no setting {key!r}; {have(having)} it")
            require_known("setting", key, owner.model_fields, f" of policy {name!r}")
    return owner(**(values or {}))


def owners(key: str) -> list[str]:
    """The policies that have a setting of this name, whichever part of theirs it belongs to."""
    head, _, rest = key.partition(".")
    found = []
    for name, entry in REGISTRY.usable().items():
        field = entry.Settings.model_fields.get(head)
        nested = field is not None and isinstance(field.default, Settings | Choice)
        if field is not None and (not rest or nested):
            found.append(name)
    return found


def build(
    name: str,
    problem: Problem,
    settings: Settings | Mapping[str, Any] | None = None,
    *,
    surrogate: str | Surrogate | None = None,
    model: str | Model | None = None,
) -> Policy:
    """The policy called ``name`` for a problem.

    ``settings`` are the policy's own, by dotted name or as its settings object; a setting that would have no effect is refused.
    ``surrogate`` and ``model`` choose these parts by name, or are objects of your own.
    """
    entry = REGISTRY[name]
    given = settings.names() if isinstance(settings, Settings) else dict(settings or {})
    chosen = {part: value for part, value in (("surrogate", surrogate), ("model", model)) if value is not None}
    for part in chosen:
        if part not in entry.Settings.model_fields:
            having = [other for other, each in REGISTRY.usable().items() if part in each.Settings.model_fields]
            raise SettingsError(f"policy {name!r} has no {part}; {have(having)} one")
    names = {part: value for part, value in chosen.items() if isinstance(value, str)}
    objects = {part: value for part, value in chosen.items() if not isinstance(value, str)}
    for part in objects:
        if part not in getattr(entry, "parts", ()):
            raise SettingsError(f"policy {name!r} takes no {part} object: give its name")
    own = settings_for(name, merged(given, names))
    if not isinstance(settings, Settings):
        require_effect(name, own, given, problem)
    return entry.build(problem, own, **objects)


def require_effect(name: str, settings: Settings, given: Mapping[str, Any], problem: Problem) -> None:
    """Refuses a setting that was given and would change nothing."""
    for key in given:
        for idle, why in settings.unused(problem).items():
            if key == idle or (idle.endswith(".") and key.startswith(idle)):
                raise SettingsError(f"setting {key!r} has no effect on policy {name!r} here: {why}")
