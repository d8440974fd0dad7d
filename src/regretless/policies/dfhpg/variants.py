"""DFHPG and its two ablations from settings. They are one algorithm with different mixing weights."""

from typing import Any

import jax
import jax.numpy as jnp

from regretless import models, nuisance, surrogates
from regretless.errors import SettingsError
from regretless.models.base import GenerativeModel, Model
from regretless.parts import number
from regretless.policies.base import Recipe
from regretless.policies.dfhpg.algorithm import DFHPG
from regretless.policies.dfhpg.point import PointDFHPG
from regretless.policies.dfhpg.settings import DFHPG0Settings, DFHPG1Settings, DFHPGSettings, predicts
from regretless.problem import Problem
from regretless.schedules import Mixing
from regretless.surrogates.base import Surrogate
from regretless.types import Key


def dfhpg(
    problem: Problem, settings: DFHPGSettings, model: Model | None = None, surrogate: Surrogate | None = None
) -> DFHPG:
    """The hybrid, as the settings say."""
    # At α ≡ 1 the nuisance has no say in the gradient and stays at its initial weights.
    idle = settings.alpha.min == 1.0 and not settings.nuisance_always
    return _hybrid(problem, settings, Mixing.build(settings.alpha), idle, model, surrogate)


def dfhpg_0(
    problem: Problem, settings: DFHPG0Settings, model: Model | None = None, surrogate: Surrogate | None = None
) -> DFHPG:
    """α ≡ 0: only the decision-focused term learns (the sample is still what is played)."""
    return _hybrid(problem, settings, constant(0.0), False, model, surrogate)


def dfhpg_1(problem: Problem, settings: DFHPG1Settings, model: Model | None = None) -> DFHPG:
    """α ≡ 1: only the score term learns, with the moving average as its baseline."""
    parts = {"nuisance": None, "surrogate": None, "mixing": constant(1.0), "baseline": "moving_average"}
    old = {
        "nuisance_at": "after",
        "overwrite_seen": True,
        "plug_in_baseline": True,
    }  # nothing to say without a plug-in term
    return _assembled(problem, settings, model, score_only=True, at="mean", **parts, **old)


def constant(alpha: float) -> Mixing:
    """A mixing weight that stays where it is."""
    return Mixing.build(Mixing.Settings(max=alpha, min=alpha))


def _hybrid(
    problem: Problem, settings: DFHPG0Settings, mixing: Mixing, idle_nuisance: bool, model: Model | None,
    surrogate: Surrogate | None,
) -> DFHPG:  # fmt: skip
    chosen, regression, plug_in = settings.surrogate, None, settings.variant == "plug_in"
    if predicts(problem, settings):
        own = settings.nuisance.settings
        own = own.updated({"lr": 0.0}) if idle_nuisance else own
        regression = nuisance.REGISTRY[settings.nuisance.name].build(problem, own)
    if surrogate is None and not plug_in:
        surrogate = surrogates.REGISTRY[chosen.name].build(problem.oracle, chosen.settings)
    parts = {"nuisance": regression, "surrogate": surrogate, "mixing": mixing, "baseline": settings.baseline}
    chosen_ways = {name: getattr(settings, name) for name in ("nuisance_at", "overwrite_seen", "plug_in_baseline")}
    made = _assembled(problem, settings, model, score_only=False, at=settings.surrogate_at, **parts, **chosen_ways)
    if plug_in and not has_density(made.model):
        raise SettingsError(
            "variant 'plug_in' needs a model with a density, whose score it weighs: gaussian_linear, gaussian_nn or flow; got "
            f"{type(made.model).__name__}"
        )
    return made


def has_density(model: Model) -> bool:
    """Whether a model can say how likely a cost is."""

    def density(key: Key) -> Any:
        return model.log_density(model.init(key), jnp.zeros(model.context_shape), jnp.zeros(model.dim))

    return jax.eval_shape(density, jax.random.key(0)) is not None


def _assembled(problem: Problem, settings: DFHPG1Settings, model: Model | None, at: Any, **parts: Any) -> DFHPG:
    """The algorithm around a model of either kind; ``model`` is an object of the user's own in place of the chosen one."""
    chosen, shape = models.REGISTRY[settings.model.name], (problem.dim, problem.context_shape)
    common: dict[str, Any] = {
        "problem": problem,
        "rate": number(settings.policy_lr),
        "rate_offset": number(settings.rate_offset),
        "rate_start": number(settings.rate_start),
        "clip": number(settings.clip),
        "momentum": number(settings.baseline_momentum),
        "late_clip": number(settings.late_clip),
        "late_limit": number(settings.late_limit),
        "normalise": settings.normalize_gradients,
        "constant_rate": settings.policy_schedule == "constant",
        **parts,
    }
    if isinstance(model, GenerativeModel) or (model is None and issubclass(chosen, GenerativeModel)):
        from regretless.policies.dfhpg.generative import GenerativeDFHPG

        own = settings.generative
        return GenerativeDFHPG(
            model=model or chosen.build(*shape, settings.model.settings),  # type: ignore[attr-defined]
            kappa=number(own.kappa_dfl),
            regularisation=number(own.lambda_reg),
            count=own.scenarios,
            scenario_gradient=own.scenario_gradient,
            regulariser_at=own.regulariser_at,
            sign=number(1.0 if own.orientation == "minimise" else -1.0),
            optimiser=own.optimiser,
            **common,
        )
    point: Any = model or chosen.build(*shape, settings.exploration_scale, settings.model.settings)  # type: ignore[attr-defined]
    return PointDFHPG(model=point, at=at, **common)


HYBRID = Recipe(DFHPGSettings, dfhpg, ("model", "surrogate"), generative=True)
DECISION_FOCUSED = Recipe(DFHPG0Settings, dfhpg_0, ("model", "surrogate"), generative=True)
SCORE_ONLY = Recipe(DFHPG1Settings, dfhpg_1, ("model",), generative=True)
"""Their entries among the policies."""
