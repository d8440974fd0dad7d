"""Policies from their names: the registry, and how settings by dotted name find their owner."""

from collections.abc import Mapping
from typing import Any

from regretless.errors import SettingsError
from regretless.models.base import Model
from regretless.policies.base import Policy, Recipe
from regretless.policies.dfhpg.settings import DFHPG0Settings, DFHPG1Settings, DFHPGSettings
from regretless.policies.dfhpg.variants import dfhpg, dfhpg_0, dfhpg_1
from regretless.policies.linear_thompson import LinearThompson
from regretless.policies.regression import (
    EpsilonGreedySettings,
    GreedySettings,
    ThompsonSettings,
    epsilon_greedy,
    greedy,
    thompson,
)
from regretless.problem import Problem
from regretless.registry import Later, Registry, have, require_known
from regretless.settings import Choice, Settings, merged
from regretless.surrogates.base import Surrogate

REGISTRY: Registry[Any] = Registry(
    "policy",
    "policies",
    {
        "adaptive": Later("regretless.policies.adaptive.building", "ADAPTIVE"),
        "greedy": Recipe(GreedySettings, greedy, ("model",)),
        "epsilon_greedy": Recipe(EpsilonGreedySettings, epsilon_greedy, ("model",)),
        "thompson": Recipe(ThompsonSettings, thompson, ("model",)),
        "dfhpg_1": Recipe(DFHPG1Settings, dfhpg_1, ("model",), generative=True),
        "dfhpg": Recipe(DFHPGSettings, dfhpg, ("model", "surrogate"), generative=True),
        "dfhpg_0": Recipe(DFHPG0Settings, dfhpg_0, ("model", "surrogate"), generative=True),
        "dfhpg_auto": Later("regretless.policies.dfhpg.auto_settings", "AUTO"),
        "linear_thompson": LinearThompson,
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
