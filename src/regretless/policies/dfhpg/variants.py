"""DFHPG and its two ablations from settings. They are one algorithm with different mixing weights."""

from typing import Any

from regretless import models, nuisance, surrogates
from regretless.errors import SettingsError
from regretless.models.base import GenerativeModel, Model
from regretless.parts import number
from regretless.policies.dfhpg.algorithm import DFHPG
from regretless.policies.dfhpg.generative import GenerativeDFHPG
from regretless.policies.dfhpg.point import PointDFHPG
from regretless.policies.dfhpg.settings import DFHPG0Settings, DFHPG1Settings, DFHPGSettings, sees_all
from regretless.problem import Problem
from regretless.schedules import Mixing
from regretless.surrogates.base import Surrogate


def dfhpg(
    problem: Problem, settings: DFHPGSettings, model: Model | None = None, surrogate: Surrogate | None = None
) -> DFHPG:
    """The hybrid, as the settings say."""
    # At α ≡ 1 the nuisance has no say in the gradient and stays at its initial weights.
    return _hybrid(problem, settings, Mixing.build(settings.alpha), settings.alpha.min == 1.0, model, surrogate)


def dfhpg_0(
    problem: Problem, settings: DFHPG0Settings, model: Model | None = None, surrogate: Surrogate | None = None
) -> DFHPG:
    """α ≡ 0: only the decision-focused term learns (the sample is still what is played)."""
    return _hybrid(problem, settings, constant(0.0), False, model, surrogate)


def dfhpg_1(problem: Problem, settings: DFHPG1Settings, model: Model | None = None) -> DFHPG:
    """α ≡ 1: only the score term learns, with the moving average as its baseline."""
    parts = {"nuisance": None, "surrogate": None, "mixing": constant(1.0), "baseline": "moving_average"}
    return _assembled(problem, settings, model, score_only=True, at="mean", **parts)


def constant(alpha: float) -> Mixing:
    """A mixing weight that stays where it is."""
    return Mixing.build(Mixing.Settings(max=alpha, min=alpha))


def _hybrid(
    problem: Problem, settings: DFHPG0Settings, mixing: Mixing, idle_nuisance: bool, model: Model | None,
    surrogate: Surrogate | None,
) -> DFHPG:  # fmt: skip
    chosen, regression, plug_in = settings.surrogate, None, settings.variant == "plug_in"
    if not sees_all(problem):
        own = settings.nuisance.settings
        own = own.updated({"lr": 0.0}) if idle_nuisance else own
        regression = nuisance.REGISTRY[settings.nuisance.name].build(problem, own)
    if surrogate is None and not plug_in:
        surrogate = surrogates.REGISTRY[chosen.name].build(problem.oracle, chosen.settings)
    if plug_in and (isinstance(model, GenerativeModel) or settings.is_generative):
        raise SettingsError(
            "variant 'plug_in' exists for point models only: a generative model learns from generative.kappa_dfl · surrogate + "
            f"generative.lambda_reg · regulariser; got model {settings.model.name!r}"
        )
    parts = {"nuisance": regression, "surrogate": surrogate, "mixing": mixing, "baseline": settings.baseline}
    return _assembled(problem, settings, model, score_only=False, at=settings.surrogate_at, **parts)


def _assembled(problem: Problem, settings: DFHPG1Settings, model: Model | None, at: Any, **parts: Any) -> DFHPG:
    """The algorithm around a model of either kind; ``model`` is an object of the user's own in place of the chosen one."""
    chosen, shape = models.REGISTRY[settings.model.name], (problem.dim, problem.context_shape)
    common: dict[str, Any] = {
        "problem": problem,
        "rate": number(settings.policy_lr),
        "rate_offset": number(settings.rate_offset),
        "clip": number(settings.clip),
        "momentum": number(settings.baseline_momentum),
        "late_clip": number(settings.late_clip),
        "late_limit": number(settings.late_limit),
        "normalise": settings.normalize_gradients,
        "constant_rate": settings.policy_schedule == "constant",
        **parts,
    }
    if isinstance(model, GenerativeModel) or (model is None and issubclass(chosen, GenerativeModel)):
        own = settings.generative
        return GenerativeDFHPG(
            model=model or chosen.build(*shape, settings.model.settings),  # type: ignore[attr-defined]
            kappa=number(own.kappa_dfl),
            regularisation=number(own.lambda_reg),
            count=own.scenarios,
            scenario_gradient=own.scenario_gradient,
            regulariser_at=own.regulariser_at,
            orientation=own.orientation,
            **common,
        )
    point: Any = model or chosen.build(*shape, settings.exploration_scale, settings.model.settings)  # type: ignore[attr-defined]
    return PointDFHPG(model=point, at=at, **common)
