"""The settings of ``dfhpg_auto``, which need no tuning, and the policy that they make."""

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field

from regretless.bypass import Bypassed
from regretless.policies.base import PolicySpec
from regretless.policies.dfhpg.actor import Actor
from regretless.policies.dfhpg.auto import AutoDFHPG
from regretless.policies.dfhpg.ensemble import NetworkEnsemble
from regretless.problem import Problem
from regretless.schedules import MixingWeight
from regretless.spec import number
from regretless.surrogates.base import SurrogateSpec
from regretless.surrogates.direct import SPOPlus

ROW_EXPLORATION = 1 / 3
"""How much of ``exploration`` there is with feature rows: the few coefficients that all of them share are soon known."""

SEARCH_SPACE = {
    "exploration": ("log", 0.01, 1.0),
    "rate": ("log", 3e-4, 3e-3),
    "hybrid_rate": ("log", 1e-4, 1e-2),
    "decay": ("uniform", 0.0, 0.3),
}
"""What tuning may try, for those who want to tune nevertheless."""


class DFHPGAuto(PolicySpec):
    """One configuration for every problem, in units of scaled contexts and costs."""

    by_default: ClassVar[bool] = False
    presets: ClassVar[bool] = False
    search_space: ClassVar[Mapping[str, Any] | None] = SEARCH_SPACE

    surrogate: SurrogateSpec = Field(default=SPOPlus(), description="surrogate loss of the decision-focused branch")
    alpha: MixingWeight = MixingWeight()
    baseline: Literal["moving_average", "nuisance_induced", "none"] = Field(
        default="nuisance_induced", description="b of the score term"
    )
    baseline_momentum: float = Field(default=0.95, ge=0, lt=1, description="ψ of the moving-average baseline")
    late_clip: float = Field(default=10.0, gt=0, description="largest density ratio of a late score term")
    late_limit: float = Field(
        default=100.0, ge=0, description="age in learning steps beyond which a score term is left out"
    )
    exploration: float = Field(
        default=0.3,
        gt=0,
        description="σ at the start, as a share of the predicted costs' spread; a third of it with feature rows",
    )
    exploration_rounds: float = Field(default=100.0, gt=0, description="τ of σ's fall, √(τ / (τ + t)), in rounds")
    width: int = Field(default=64, ge=1, description="units of both hidden layers of every network")
    members: int = Field(default=5, ge=1, description="networks of the nuisance")
    memory: int = Field(default=2048, ge=1, description="past rounds that are kept to train the nuisance on")
    contexts: int = Field(default=256, ge=1, description="past contexts that are kept to train the policy on")
    steps: int = Field(
        default=2, ge=1, description="training steps of the nuisance and of the policy's anchor per round"
    )
    early_steps: int = Field(default=8, ge=1, description="the same in the first rounds")
    early_rounds: int = Field(default=100, ge=0, description="how many rounds are the first")
    batch: int = Field(default=64, ge=1, description="rounds per training step of each network")
    context_batch: int = Field(default=32, ge=1, description="contexts per training step of the policy's anchor")
    rows_batch: int = Field(
        default=512,
        ge=1,
        description="feature rows per training step, where every coordinate has its own: fewer rounds then",
    )
    replayed: int = Field(
        default=1, ge=0, description="past contexts in addition to the present one in the decision-focused term"
    )
    rate: float = Field(default=1e-3, gt=0, description="Adam's rate for the nuisance and for the policy's anchor")
    rate_steps: float = Field(default=500.0, gt=0, description="S of its fall, √(S / (S + steps)), to 0.3 of itself")
    hybrid_rate: float = Field(default=1e-3, gt=0, description="Adam's rate for the hybrid gradient")
    decay: float = Field(default=0.1, ge=0, description="weight decay of all networks")
    linear_speed: float = Field(default=3.0, gt=0, description="how much faster the linear part of every network moves")
    error_floor: float = Field(
        default=0.3, gt=0, description="cost units added to the size that errors are relative to"
    )

    def unused(self, problem: Problem) -> dict[str, str]:
        moving = self.baseline == "moving_average"
        return {} if moving else {"baseline_momentum": f"baseline is {self.baseline!r}"}

    def build(self, problem: Problem) -> AutoDFHPG:
        """Return the policy for a problem."""
        rows = len(problem.context_shape) == 2
        measured = 1 if not rows else problem.oracle.support if problem.feedback.sparse else problem.dim
        net = Bypassed(problem.dim, problem.context_shape, self.width)
        return AutoDFHPG(
            problem,
            model=Actor(problem.dim, problem.context_shape, scale=number(1.0), size=number(1.0), net=net),
            nuisance=NetworkEnsemble(
                rate=number(self.rate), rate_steps=number(self.rate_steps), decay=number(self.decay),
                linear_speed=number(self.linear_speed),
                floor=number(self.error_floor), net=net, count=self.members,
                batch=_at_most(self.batch, self.rows_batch, measured),
            ),
            surrogate=self.surrogate.build(problem.oracle),
            mixing=self.alpha.build(),
            momentum=number(self.baseline_momentum),
            late_clip=number(self.late_clip),
            late_limit=number(self.late_limit),
            exploration=number(self.exploration * (ROW_EXPLORATION if rows else 1.0)),
            exploration_rounds=number(self.exploration_rounds),
            rate=number(self.hybrid_rate),
            baseline=self.baseline,
            kept_rounds=self.memory,
            kept_contexts=self.contexts,
            replayed=self.replayed,
            context_batch=_at_most(self.context_batch, self.rows_batch, problem.dim if rows else 1),
            steps=number(self.steps),
            early_steps=number(self.early_steps),
            early_rounds=number(self.early_rounds),
        )  # fmt: skip


def _at_most(batch: int, rows: int, each: int) -> int:
    """The batch of which no more than so many rows come, at least 4."""
    return min(batch, max(4, rows // each))
