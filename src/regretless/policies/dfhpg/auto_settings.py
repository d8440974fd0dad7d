"""The settings of ``dfhpg_auto``, which nobody has to touch, and the policy that they make."""

from typing import Literal

from pydantic import Field

from regretless.bypass import Bypassed
from regretless.parts import number
from regretless.policies.base import Recipe
from regretless.policies.dfhpg.actor import Actor
from regretless.policies.dfhpg.auto import AutoDFHPG
from regretless.policies.dfhpg.ensemble import Ensemble
from regretless.problem import Problem
from regretless.schedules import Mixing
from regretless.settings import Settings, choice, chosen_from
from regretless.surrogates import REGISTRY as SURROGATES
from regretless.surrogates.base import Surrogate


class AutoSettings(Settings):
    """One configuration for every problem, in units of scaled contexts and costs."""

    surrogate: chosen_from(SURROGATES) = Field(  # type: ignore[valid-type]
        choice(SURROGATES, "spo_plus"), description="surrogate loss of the decision-focused branch"
    )
    alpha: Mixing.Settings = Mixing.Settings()
    baseline: Literal["moving_average", "nuisance_induced", "none"] = Field(
        "nuisance_induced", description="b of the score term"
    )
    baseline_momentum: float = Field(0.95, ge=0, lt=1, description="ψ of the moving-average baseline")
    late_clip: float = Field(10.0, gt=0, description="largest density ratio of a late score term")
    late_limit: float = Field(100.0, ge=0, description="age in learning steps beyond which a score term is left out")
    exploration: float = Field(
        0.3,
        gt=0,
        description="σ at the start, as a share of the predicted costs' spread; a third of it with feature rows",
    )
    exploration_rounds: float = Field(100.0, gt=0, description="τ of σ's fall, √(τ / (τ + t)), in rounds")
    width: int = Field(64, ge=1, description="units of both hidden layers of every network")
    members: int = Field(5, ge=1, description="networks of the nuisance")
    memory: int = Field(2048, ge=1, description="past rounds that are kept to train the nuisance on")
    contexts: int = Field(256, ge=1, description="past contexts that are kept to train the policy on")
    steps: int = Field(2, ge=1, description="training steps of the nuisance and of the policy's anchor per round")
    early_steps: int = Field(8, ge=1, description="the same in the first rounds")
    early_rounds: int = Field(100, ge=0, description="how many rounds are the first")
    batch: int = Field(64, ge=1, description="rounds per training step of each network")
    context_batch: int = Field(32, ge=1, description="contexts per training step of the policy's anchor")
    rows_batch: int = Field(
        512, ge=1, description="feature rows per training step, where every coordinate has its own: fewer rounds then"
    )
    replayed: int = Field(1, ge=0, description="past contexts beside the present one in the decision-focused term")
    rate: float = Field(1e-3, gt=0, description="Adam's rate for the nuisance and for the policy's anchor")
    rate_steps: float = Field(500.0, gt=0, description="S of its fall, √(S / (S + steps)), to 0.3 of itself")
    hybrid_rate: float = Field(1e-3, gt=0, description="Adam's rate for the hybrid gradient")
    decay: float = Field(0.1, ge=0, description="weight decay of all networks")
    linear_speed: float = Field(3.0, gt=0, description="how much faster the linear part of every network moves")
    error_floor: float = Field(0.3, gt=0, description="cost units added to the size that errors are relative to")

    def unused(self, problem: Problem) -> dict[str, str]:
        found: dict[str, str] = {}
        if self.baseline != "moving_average":
            found["baseline_momentum"] = f"baseline is {self.baseline!r}"
        return found


ROW_EXPLORATION = 1 / 3
"""How much of ``exploration`` there is with feature rows: the few coefficients that all of them share are soon known."""

SEARCH_SPACE = {
    "exploration": ("log", 0.01, 1.0),
    "rate": ("log", 3e-4, 3e-3),
    "hybrid_rate": ("log", 1e-4, 1e-2),
    "decay": ("uniform", 0.0, 0.3),
}
"""What tuning may try, for those who want to tune nevertheless."""


def dfhpg_auto(problem: Problem, settings: AutoSettings, surrogate: Surrogate | None = None) -> AutoDFHPG:
    """DFHPG without presets: a nuisance trained on replay, a policy in units of its own."""
    chosen, rows = settings.surrogate, len(problem.context_shape) == 2
    measured = 1 if not rows else problem.oracle.support if problem.feedback.sparse else problem.dim
    net = Bypassed(problem.dim, problem.context_shape, settings.width)
    return AutoDFHPG(
        problem,
        model=Actor(problem.dim, problem.context_shape, scale=number(1.0), size=number(1.0), net=net),
        nuisance=Ensemble(
            rate=number(settings.rate), rate_steps=number(settings.rate_steps), decay=number(settings.decay),
            linear_speed=number(settings.linear_speed),
            floor=number(settings.error_floor), net=net, count=settings.members,
            batch=_at_most(settings.batch, settings.rows_batch, measured),
        ),
        surrogate=surrogate or SURROGATES[chosen.name].build(problem.oracle, chosen.settings),
        mixing=Mixing.build(settings.alpha),
        momentum=number(settings.baseline_momentum),
        late_clip=number(settings.late_clip),
        late_limit=number(settings.late_limit),
        exploration=number(settings.exploration * (ROW_EXPLORATION if rows else 1.0)),
        exploration_rounds=number(settings.exploration_rounds),
        rate=number(settings.hybrid_rate),
        baseline=settings.baseline,
        kept_rounds=settings.memory,
        kept_contexts=settings.contexts,
        replayed=settings.replayed,
        context_batch=_at_most(settings.context_batch, settings.rows_batch, problem.dim if rows else 1),
        steps=number(settings.steps),
        early_steps=number(settings.early_steps),
        early_rounds=number(settings.early_rounds),
    )  # fmt: skip


def _at_most(batch: int, rows: int, each: int) -> int:
    """The batch of which no more than so many rows come, at least 4."""
    return min(batch, max(4, rows // each))


AUTO = Recipe(AutoSettings, dfhpg_auto, ("surrogate",), by_default=False, presets=False, search_space=SEARCH_SPACE)
"""Its entry among the policies."""
