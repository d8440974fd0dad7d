"""DFHPG and its two ablations from settings. They are one algorithm with different mixing weights."""

from typing import Any, Literal

from regretless import surrogates
from regretless.errors import SettingsError
from regretless.feedback import Full
from regretless.nuisance import LinearNuisance, MLPNuisance, Nuisance
from regretless.policies.dfhpg.algorithm import DFHPG
from regretless.policies.dfhpg.generative import GenerativeDFHPG
from regretless.problem import Problem, number
from regretless.schedules import Mixing
from regretless.settings import Settings, require_known


def dfhpg(settings: Settings, problem: Problem) -> DFHPG:
    """The hybrid, as the settings say."""
    oracle, full = problem.oracle, isinstance(problem.feedback, Full) and not problem.may_miss
    require_known("surrogate", settings.surrogate, surrogates.REGISTRY)
    parts: dict[str, Any] = {
        "oracle": oracle,
        "nuisance": None if full else _nuisance(settings, problem),
        "surrogate": None if settings.variant == "plug_in" else surrogates.REGISTRY[settings.surrogate](oracle),
        "mixing": Mixing(
            number(settings.alpha_max),
            number(settings.alpha_min),
            number(settings.alpha_time_scale),
            settings.alpha_gate,
            settings.alpha_target,
        ),
        "rate": number(settings.policy_lr),
        "late_clip": number(settings.late_clip),
        "late_limit": number(settings.late_limit),
        "baseline": settings.baseline,
        "at": settings.surrogate_at,
        "normalise": settings.normalize_gradients,
        "constant_rate": settings.policy_schedule == "constant",
    }
    if not problem.generative:
        return DFHPG(model=problem.model(settings.exploration_scale), **parts)
    if settings.variant == "plug_in":
        raise SettingsError(
            "variant 'plug_in' exists for point models only: a generative model learns from kappa_dfl · surrogate + "
            f"lambda_reg · regulariser; got model {problem.model_name!r}"
        )
    if settings.surrogate_at == "sample":
        raise SettingsError(
            "surrogate_at 'sample' exists for point models only: a generative model's surrogate is evaluated at its scenarios; "
            f"got model {problem.model_name!r}"
        )
    return GenerativeDFHPG(
        model=problem.generative_model(settings),
        kappa=number(settings.kappa_dfl),
        regularisation=number(settings.lambda_reg),
        count=settings.scenarios,
        scenario_gradient=settings.scenario_gradient,
        regulariser_at=settings.regulariser_at,
        orientation=settings.orientation,
        **parts,
    )


def dfhpg_0(settings: Settings, problem: Problem) -> DFHPG:
    """α ≡ 0: only the decision-focused term learns (the sample is still what is played)."""
    return dfhpg(settings.updated(alpha_max=0.0, alpha_min=0.0), problem)


def dfhpg_1(settings: Settings, problem: Problem) -> DFHPG:
    """α ≡ 1: only the score term learns, with the moving average as its baseline whatever the settings say."""
    policy = dfhpg(
        settings.updated(alpha_max=1.0, alpha_min=1.0, baseline="moving_average", variant="surrogate"), problem
    )
    return type(policy)(**{**vars(policy), "nuisance": None, "surrogate": None, "score_only": True})


def _nuisance(settings: Settings, problem: Problem) -> Nuisance:
    oracle, shape = problem.oracle, problem.context_shape
    # At α ≡ 1 the nuisance has no say in the gradient and stays at its initial weights.
    rate = number(0.0 if settings.alpha_min == 1.0 else settings.nuisance_lr)
    if settings.nuisance == "mlp":
        support = oracle.support if problem.feedback.sparse else None
        return MLPNuisance(rate, oracle.dim, shape, support, settings.nuisance_precision == "double")
    rule: Literal["adaptive", "constant"] = "adaptive" if settings.nuisance == "linear_adaptive" else "constant"
    return LinearNuisance(rate, number(settings.nuisance_radius), oracle.dim, shape, rule)
