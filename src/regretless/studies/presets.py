"""Preset files: settings by dotted name, one JSON object. Files of version 0.1, with flat names, are converted."""

import json
from pathlib import Path
from typing import Any

from regretless.errors import SettingsError

RENAMED = {
    "nuisance_lr": "nuisance.lr",
    "nuisance_precision": "nuisance.precision",
    "nuisance_radius": "nuisance.radius",
    "alpha_max": "alpha.max",
    "alpha_min": "alpha.min",
    "alpha_gate": "alpha.gate",
    "alpha_time_scale": "alpha.time_scale",
    "alpha_target": "alpha.target",
    "scenarios": "generative.scenarios",
    "scenario_gradient": "generative.scenario_gradient",
    "kappa_dfl": "generative.kappa_dfl",
    "lambda_reg": "generative.lambda_reg",
    "regulariser_at": "generative.regulariser_at",
    "orientation": "generative.orientation",
    "diffusion_train_steps": "model.train_steps",
    "diffusion_sample_steps": "model.sample_steps",
    "diffusion_weights": "model.weights",
}
"""Names of version 0.1 and what they are called now."""

NUISANCES = {"linear_adaptive": "adaptive", "linear_constant": "constant"}


def read_preset(path: Path) -> tuple[dict[str, Any], list[str]]:
    """The settings of a preset file, and what has to be said about it."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read preset {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SettingsError(f"preset {path}: expected one JSON object of settings, but {error}") from None
    if not isinstance(values, dict) or any(isinstance(value, dict | list) for value in values.values()):
        raise SettingsError(f"preset {path}: expected one JSON object of settings by dotted name")
    converted = convert(values)
    if converted != values:
        old = ", ".join(name for name in values if name not in converted) or "nuisance"
        return converted, [f"preset {path} has names of version 0.1, which were converted, without scaling: {old}"]
    if "scaling" not in values:
        return values, [f"preset {path} says nothing of 'scaling': contexts and costs are scaled"]
    return values, []


def convert(values: dict[str, Any]) -> dict[str, Any]:
    """Settings of version 0.1, which scaled nothing, by their present names; others stay as they are.

    >>> convert({"alpha_max": 0.3, "nuisance": "linear_constant"})
    {'alpha.max': 0.3, 'nuisance': 'linear', 'nuisance.rule': 'constant', 'scaling': False}
    """
    found: dict[str, Any] = {}
    for name, value in values.items():
        if name == "nuisance" and value in NUISANCES:
            found |= {"nuisance": "linear", "nuisance.rule": NUISANCES[value]}
        else:
            found[RENAMED.get(name, name)] = value
    if found.keys() == values.keys():
        return values
    found = {name: value for name, value in found.items() if value is not None}
    found.pop("nuisance.radius" if found.get("nuisance", "mlp") == "mlp" else "nuisance.precision", None)  # not its own
    return {**found, "scaling": False}
