"""Search spaces of the tuning, as data.

The paper names the protocol and the selected values for DFHPG, not its ranges. These hold all selected values of
``presets.csv``, and the pairs of ``alpha.max`` and ``alpha.min`` are those that occur there. Any other policy declares a
``search_space`` of its own, or is searched around the defaults of its settings.
"""

import typing
from collections.abc import Mapping
from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from regretless import models, policies
from regretless.errors import SettingsError
from regretless.policies.dfhpg.specs import DFHPG, ScoreTermSpec
from regretless.spec import Spec
from regretless.studies.definitions import SURROGATES

PAIR = "alpha"
"""The one parameter that stands for two settings: ``alpha.max/alpha.min``."""

ALPHA_PAIRS = ("0.1/0.05", "0.2/0.01", "0.3/0.02", "0.5/0.05")
GENERATIVE_ALPHA_PAIRS = ("0.2/0.01", "0.5/0.02", "0.1/0", "0/0")
ENERGY_ALPHA_PAIRS = ("0.1/0", "0.8/0.2", "0.8/0.05", "0/0")
WIDE = 30.0
"""A number that nobody declared a range for is searched up to this factor above and below its default."""


class Protocol(NamedTuple):
    """How candidates are ranked: mean final regret over these rounds and seeds, which no reported run uses."""

    horizon: int | None
    seeds: int
    settings: dict[str, str]  # of the benchmark


FIRST_VALIDATION_SEED = 100_000


def protocol(benchmark: str, model: str) -> Protocol:
    """The paper's: 10 seeds of 2,000 rounds (generative models: 5,000), on energy 5 of the 394 validation days."""
    if benchmark == "energy":
        return Protocol(394, 5, {"benchmark.split": "validation"})
    if benchmark in ("topk", "shortest_path", "pricing"):
        return Protocol(5000 if models.is_generative(model) else 2000, 10, {})
    return Protocol(None, 10, {})


def space(policy: str, benchmark: str, model: str, fixed: Mapping[str, Any]) -> dict[str, BaseDistribution]:
    """What is searched; settings in ``fixed`` are not."""
    entry = policies.REGISTRY[policy]
    declared = entry.search_space
    if declared is not None:
        found = {name: _distribution(name, spec) for name, spec in declared.items()}
    elif issubclass(entry, ScoreTermSpec):
        found = _paper(entry, benchmark, models.is_generative(model))
    else:
        found = _around(entry())
    taken = {*fixed, *((PAIR,) if {"alpha.max", "alpha.min"} & fixed.keys() else ())}
    left = {name: each for name, each in found.items() if name not in taken}
    if not left:
        raise SettingsError(f"policy {policy!r} has no setting that is not fixed: nothing to search")
    return left


def _paper(settings: type[Spec], benchmark: str, generative: bool) -> dict[str, BaseDistribution]:
    energy = benchmark == "energy"
    pairs = ENERGY_ALPHA_PAIRS if energy else GENERATIVE_ALPHA_PAIRS if generative else ALPHA_PAIRS
    found: dict[str, BaseDistribution] = {
        "policy_lr": FloatDistribution(1e-3, 0.05 if generative else 0.2, log=True),
        "nuisance.lr": FloatDistribution(5e-4, 0.1, log=True),
        "surrogate": CategoricalDistribution(SURROGATES),
        PAIR: CategoricalDistribution(pairs),
        "baseline": CategoricalDistribution(("moving_average", "nuisance_induced")),
    }
    if generative:
        found["generative.scenarios"] = CategoricalDistribution((32, 64, 100, 128, 200))
        found["generative.kappa_dfl"] = CategoricalDistribution((1.0, 3.0, 10.0))
        found["generative.lambda_reg"] = CategoricalDistribution((0.03, 0.1, 0.3, 1.0))
    else:
        found["exploration_scale"] = FloatDistribution(1e-6, 3.0, log=True)
        found["normalize_gradients"] = CategoricalDistribution((True, False))
    if energy:
        found["alpha.time_scale"] = CategoricalDistribution((100.0, 500.0))
    return {name: each for name, each in found.items() if name.partition(".")[0] in settings.model_fields}


def constants(policy: str, benchmark: str, model: str) -> dict[str, Any]:
    """Settings that the paper's protocol fixes."""
    found: dict[str, Any] = {}
    if issubclass(policies.REGISTRY[policy], DFHPG):
        found["alpha.gate"] = "exponential" if benchmark == "energy" else "warmup"
    if model == "diffusion" and benchmark == "energy":
        found |= {"model.train_steps": 20, "model.sample_steps": 8, "model.weights": "elbo"}
    return found


def candidate(values: Mapping[str, Any]) -> dict[str, Any]:
    """A candidate's settings by dotted name.

    >>> candidate({"policy_lr": 0.1, "alpha": "0.3/0.02"})
    {'policy_lr': 0.1, 'alpha.max': 0.3, 'alpha.min': 0.02}
    """
    chosen = dict(values)
    if "/" in str(chosen.get(PAIR, "")):  # another policy may have a number of that name
        maximum, _, minimum = str(chosen.pop(PAIR)).partition("/")
        chosen |= {"alpha.max": float(maximum), "alpha.min": float(minimum)}
    return chosen


def _distribution(name: str, spec: Any) -> BaseDistribution:
    """``("log", low, high)``, ``("uniform", low, high)``, ``("int", low, high)`` or ``("choice", …)``."""
    try:
        kind, *numbers = spec
        if kind == "choice":
            return CategoricalDistribution(numbers)
        low, high = numbers
        if kind == "int":
            return IntDistribution(low, high)
        return FloatDistribution(float(low), float(high), log={"log": True, "uniform": False}[kind])
    except (TypeError, ValueError, KeyError) as error:
        raise SettingsError(
            f"search_space of {name!r}: expected ('log', low, high), ('uniform', low, high), ('int', low, high) or "
            f"('choice', …), got {spec!r} ({error})"
        ) from None


def _around(settings: Spec, prefix: str = "") -> dict[str, BaseDistribution]:
    """A range around the default of every setting that is a number, and every choice among words."""
    found: dict[str, BaseDistribution] = {}
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        if isinstance(value, Spec):
            found |= {} if value.registry is not None else _around(value, f"{prefix}{name}.")
        elif isinstance(value, bool):
            found[prefix + name] = CategoricalDistribution((True, False))
        elif typing.get_origin(field.annotation) is typing.Literal:
            found[prefix + name] = CategoricalDistribution(typing.get_args(field.annotation))
        elif isinstance(value, int | float):
            found[prefix + name] = _range(value, *_bounds(field))
    return found


def _bounds(field: Any) -> tuple[float, float]:
    low, high = float("-inf"), float("inf")
    for each in field.metadata:
        low = max(
            low, *(float(v) for v in (getattr(each, "ge", None), getattr(each, "gt", None)) if v is not None), low
        )
        high = min(
            high, *(float(v) for v in (getattr(each, "le", None), getattr(each, "lt", None)) if v is not None), high
        )
    return low, high


def _range(value: float, low: float, high: float) -> BaseDistribution:
    if isinstance(value, int):
        return IntDistribution(int(max(1 if value > 0 else value, low)), int(min(max(4 * value, 4), high)))
    if value > 0:
        lower = max(value / WIDE, low) if low > 0 else value / WIDE
        return FloatDistribution(lower, min(value * WIDE, 0.999 * high if high < float("inf") else high), log=True)
    return FloatDistribution(max(low, -1.0), min(0.999 * high, 1.0))
