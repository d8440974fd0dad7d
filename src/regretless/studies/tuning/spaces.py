"""Search spaces of the tuning, as data.

The paper names the protocol and the selected values, not its ranges. These cover every selected value of ``presets.csv``; the
pairs of ``alpha_max`` and ``alpha_min`` are those that occur there.
"""

from typing import Any, NamedTuple

from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

from regretless.settings import Settings
from regretless.studies.definitions import SURROGATES

GENERATIVE = ("flow", "diffusion")
STATIC = ("surrogate", "baseline", "normalize_gradients", "scenarios")
"""Choices that a program is compiled for; everything else is a number that it takes."""

ALPHA_PAIRS = ("0.1/0.05", "0.2/0.01", "0.3/0.02", "0.5/0.05")
ENERGY_ALPHA_PAIRS = ("0.1/0", "0.8/0.2", "0.8/0.05", "0/0")


class Protocol(NamedTuple):
    """How candidates are ranked: mean final regret over these rounds and seeds, which no reported run uses."""

    horizon: int
    seeds: int
    options: dict[str, str]  # of the benchmark


FIRST_VALIDATION_SEED = 100_000


def protocol(benchmark: str, model: str) -> Protocol:
    """The paper's: 10 seeds of 2,000 rounds (generative models: 5,000), on energy 5 of the 394 validation days."""
    if benchmark == "energy":
        return Protocol(394, 5, {"split": "validation"})
    return Protocol(5000 if model in GENERATIVE else 2000, 10, {})


def space(benchmark: str, model: str) -> dict[str, BaseDistribution]:
    """What is searched for this benchmark and model."""
    generative, energy = model in GENERATIVE, benchmark == "energy"
    found: dict[str, BaseDistribution] = {
        "policy_lr": FloatDistribution(1e-3, 0.05 if generative else 0.2, log=True),
        "nuisance_lr": FloatDistribution(5e-4, 0.1, log=True),
        "surrogate": CategoricalDistribution(SURROGATES),
        "alpha": CategoricalDistribution(ENERGY_ALPHA_PAIRS if energy else ALPHA_PAIRS),
        "baseline": CategoricalDistribution(("moving_average", "nuisance_induced")),
    }
    if generative:
        found["scenarios"] = CategoricalDistribution((32, 64, 128, 200))
        found["kappa_dfl"] = CategoricalDistribution((1.0, 3.0, 10.0))
        found["lambda_reg"] = CategoricalDistribution((0.03, 0.1, 0.3, 1.0))
    else:
        found["exploration_scale"] = FloatDistribution(1e-6, 3.0, log=True)
        found["normalize_gradients"] = CategoricalDistribution((True, False))
    if energy:
        found["alpha_time_scale"] = CategoricalDistribution((100.0, 500.0))
    return found


def settings(benchmark: str, model: str, values: dict[str, Any]) -> Settings:
    """A candidate's settings.

    >>> settings("topk", "gaussian_linear", {"policy_lr": 0.1, "alpha": "0.3/0.02"}).alpha_min
    0.02
    """
    chosen = dict(values)
    maximum, _, minimum = str(chosen.pop("alpha")).partition("/")
    fixed: dict[str, Any] = {"alpha_gate": "exponential" if benchmark == "energy" else "warmup"}
    if model == "diffusion" and benchmark == "energy":
        fixed |= {"diffusion_train_steps": 20, "diffusion_sample_steps": 8}
    return Settings.checked(alpha_max=float(maximum), alpha_min=float(minimum), **fixed, **chosen)
