"""Search spaces of the tuning as data.

A space maps names of settings to ``("log", low, high)``, ``("uniform", low, high)``, ``("int", low, high)`` or
``("choice", …)``. The DFHPG paper names its protocol and the selected values, not the ranges: the ranges here contain
every selected value, and the pairs of ``alpha.max`` and ``alpha.min`` are those that it selected. Another policy
declares a ``search_space``, or is searched around its defaults.
"""

import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from regretless import models, policies
from regretless.errors import SettingsError
from regretless.policies import DFHPG, PolicySpec
from regretless.policies.dfhpg.specs import ScoreTermSpec
from regretless.spec import Spec

Range = tuple[Any, ...]

PAIR = "alpha"
"""The one parameter that stands for two settings: ``alpha.max/alpha.min``."""

ALPHA_PAIRS = ("0.1/0.05", "0.2/0.01", "0.3/0.02", "0.5/0.05")
GENERATIVE_ALPHA_PAIRS = ("0.2/0.01", "0.5/0.02", "0.1/0", "0/0")
ENERGY_ALPHA_PAIRS = ("0.1/0", "0.8/0.2", "0.8/0.05", "0/0")
SURROGATES = (
    *("spo_plus", "mse_spo_plus", "dbb", "imle", "aimle", "nid", "pfyl", "dpo", "pg", "nce", "nce_c"),
    *("contrastive_map", "map_c", "pointwise_ltr", "pairwise_diff", "pairwise_ltr", "listwise_ltr", "spo_caching"),
)

WIDTH = 30.0
"""A number without a declared range is searched up to this factor above and below its default."""

MAX_FRACTION = 0.999
"""The largest share of a bound that is searched, because the bound itself may be excluded."""

FIRST_VALIDATION_SEED = 100_000


class Protocol(NamedTuple):
    """How candidates are ranked: mean final regret over these rounds and seeds."""

    horizon: int | None
    seeds: int
    settings: dict[str, str]  # of the benchmark


def protocol(benchmark: str, model: str) -> Protocol:
    """Return the paper's protocol: 10 seeds of 2,000 rounds (generative models: 5,000), 5 of 394 days on energy."""
    if benchmark == "energy":
        return Protocol(394, 5, {"benchmark.split": "validation"})
    if benchmark in ("topk", "shortest_path", "pricing"):
        return Protocol(5000 if models.is_generative(model) else 2000, 10, {})
    return Protocol(None, 10, {})


def search_space(policy: str, benchmark: str, model: str, fixed: Mapping[str, Any]) -> dict[str, Range]:
    """Return what is searched for a policy; settings in ``fixed`` are left out."""
    entry = policies.REGISTRY[policy]
    if entry.search_space is not None:
        space = {name: _check_range(name, values) for name, values in entry.search_space.items()}
    elif issubclass(entry, ScoreTermSpec):
        space = _paper_space(entry, benchmark, models.is_generative(model))
    else:
        space = _space_around(entry())
    taken = {*fixed, *((PAIR,) if {"alpha.max", "alpha.min"} & fixed.keys() else ())}
    free = {name: values for name, values in space.items() if name not in taken}
    if not free:
        raise SettingsError(f"policy {policy!r} has no setting that is not fixed: there is nothing to search")
    return free


def _paper_space(spec: type[PolicySpec], benchmark: str, generative: bool) -> dict[str, Range]:
    energy = benchmark == "energy"
    pairs = ENERGY_ALPHA_PAIRS if energy else GENERATIVE_ALPHA_PAIRS if generative else ALPHA_PAIRS
    space: dict[str, Range] = {
        "policy_lr": ("log", 1e-3, 0.05 if generative else 0.2),
        "nuisance.lr": ("log", 5e-4, 0.1),
        "surrogate": ("choice", *SURROGATES),
        PAIR: ("choice", *pairs),
        "baseline": ("choice", "moving_average", "nuisance_induced"),
    }
    if generative:
        space["generative.scenarios"] = ("choice", 32, 64, 100, 128, 200)
        space["generative.kappa_dfl"] = ("choice", 1.0, 3.0, 10.0)
        space["generative.lambda_reg"] = ("choice", 0.03, 0.1, 0.3, 1.0)
    else:
        space["exploration_scale"] = ("log", 1e-6, 3.0)
        space["normalize_gradients"] = ("choice", True, False)
    if energy:
        space["alpha.time_scale"] = ("choice", 100.0, 500.0)
    return {name: values for name, values in space.items() if name.partition(".")[0] in spec.model_fields}


def fixed_settings(policy: str, benchmark: str, model: str) -> dict[str, Any]:
    """Return the settings that the paper's protocol fixes."""
    fixed: dict[str, Any] = {}
    if issubclass(policies.REGISTRY[policy], DFHPG):
        fixed["alpha.gate"] = "exponential" if benchmark == "energy" else "warmup"
    if model == "diffusion" and benchmark == "energy":
        fixed |= {"model.train_steps": 20, "model.sample_steps": 8, "model.weights": "elbo"}
    return fixed


def candidate_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a candidate's settings by dotted name.

    >>> candidate_settings({"policy_lr": 0.1, "alpha": "0.3/0.02"})
    {'policy_lr': 0.1, 'alpha.max': 0.3, 'alpha.min': 0.02}
    """
    settings = dict(values)
    if "/" in str(settings.get(PAIR, "")):  # another policy may have a number of that name
        maximum, _, minimum = str(settings.pop(PAIR)).partition("/")
        settings |= {"alpha.max": float(maximum), "alpha.min": float(minimum)}
    return settings


def _check_range(name: str, values: Any) -> Range:
    """Return a declared range; refuse what is none."""
    try:
        kind, *numbers = values
        if kind == "choice" and numbers:
            return ("choice", *numbers)
        low, high = (int if kind == "int" else float)(numbers[0]), (int if kind == "int" else float)(numbers[1])
        if kind not in ("log", "uniform", "int") or len(numbers) != 2 or low > high or (kind == "log" and low <= 0):
            raise ValueError("no such range")
    except (TypeError, ValueError, IndexError) as error:
        raise SettingsError(
            f"search_space of {name!r}: expected ('log', low, high), ('uniform', low, high), ('int', low, high) or "
            f"('choice', …), got {values!r} ({error})"
        ) from None
    return kind, low, high


def _space_around(spec: Spec, prefix: str = "") -> dict[str, Range]:
    """Return a range around the default of every setting that is a number, and every choice among words."""
    space: dict[str, Range] = {}
    for name, field in type(spec).model_fields.items():
        value = getattr(spec, name)
        if isinstance(value, Spec):
            space |= {} if value.registry is not None else _space_around(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            space[prefix + name] = ("choice", True, False)
        elif typing.get_origin(field.annotation) is typing.Literal:
            space[prefix + name] = ("choice", *typing.get_args(field.annotation))
        elif isinstance(value, int | float):
            space[prefix + name] = _range_around(value, *_bounds(field))
    return space


def _bounds(field: Any) -> tuple[float, float]:
    """Return the lowest and the highest value that a field declares."""
    lows = [getattr(limit, name, None) for limit in field.metadata for name in ("ge", "gt")]
    highs = [getattr(limit, name, None) for limit in field.metadata for name in ("le", "lt")]
    return (
        max((float(low) for low in lows if low is not None), default=float("-inf")),
        min((float(high) for high in highs if high is not None), default=float("inf")),
    )


def _range_around(value: float, low: float, high: float) -> Range:
    if isinstance(value, int):
        return "int", int(max(1 if value > 0 else value, low)), int(min(max(4 * value, 4), high))
    if value > 0:
        lower = max(value / WIDTH, low) if low > 0 else value / WIDTH
        return "log", lower, min(value * WIDTH, MAX_FRACTION * high)
    return "uniform", max(low, -1.0), min(MAX_FRACTION * high, 1.0)
