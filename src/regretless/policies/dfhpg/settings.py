"""The settings of DFHPG and its two ablations, and which of them have no effect where."""

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from regretless import models
from regretless.models import REGISTRY as MODELS
from regretless.nuisance import REGISTRY as NUISANCES
from regretless.policies.dfhpg.scenarios import Orientation, Variant
from regretless.schedules import Mixing, RateSettings
from regretless.settings import Settings, choice, chosen_from
from regretless.surrogates import REGISTRY as SURROGATES

if TYPE_CHECKING:
    from regretless.problem import Problem


OF_SURROGATES = tuple(
    f"generative.{name}" for name in ("scenario_gradient", "kappa_dfl", "lambda_reg", "regulariser_at", "orientation")
)
"""Settings of generative models that the plug-in variant has no use for."""


class GenerativeSettings(Settings):
    """What a generative model adds."""

    scenarios: int = Field(32, ge=1, description="K, scenarios per round")
    scenario_gradient: Variant = Field(
        "own", description="each scenario keeps its surrogate gradient, all take the average, or one call at their mean"
    )
    kappa_dfl: float = Field(1.0, ge=0, description="κ, weight of the surrogate in the (1 − α) branch")
    lambda_reg: float = Field(0.1, ge=0, description="λ, weight of the regulariser in the (1 − α) branch")
    regulariser_at: Literal["prediction", "sample"] = Field(
        "prediction", description="where the regulariser is taken: nuisance prediction or fresh sample"
    )
    orientation: Orientation = Field(
        "minimise", description="published: hand costs to surrogates that maximise, as the authors' generative runs do"
    )
    optimiser: Literal["adam", "sgd"] = Field(
        "adam", description="of θ: the published runs', or the paper's plain step"
    )


class DFHPG1Settings(RateSettings):
    """What the score term alone needs."""

    policy_lr: float = Field(0.05, gt=0, description="η_0 of θ")
    policy_schedule: Literal["shifted_inverse", "constant"] = Field(
        "shifted_inverse", description="how the policy's learning rate falls (the theorems keep it constant)"
    )
    clip: float = Field(10.0, gt=0, description="largest norm of a gradient")
    exploration_scale: float = Field(0.1, gt=0, description="σ of the sampled cost")
    normalize_gradients: bool = Field(True, description="scale both gradients to norm 1 before mixing")
    baseline_momentum: float = Field(0.95, ge=0, lt=1, description="ψ of the moving-average baseline")
    late_clip: float = Field(10.0, gt=0, description="largest density ratio of a late score term")
    late_limit: float = Field(100.0, ge=0, description="age in learning steps beyond which a score term is left out")
    model: chosen_from(MODELS) = Field(  # type: ignore[valid-type]
        choice(MODELS, "gaussian_linear"), description="model of the cost"
    )
    generative: GenerativeSettings = GenerativeSettings()

    @property
    def is_generative(self) -> bool:
        """Whether the model is known by its samples."""
        return models.is_generative(self.model.name)

    def unused(self, problem: "Problem") -> dict[str, str]:
        name = self.model.name
        found: dict[str, str] = {}
        if self.is_generative:
            found |= dict.fromkeys(("exploration_scale",), f"the model {name!r} has its own spread")
        else:
            found["generative."] = f"the model {name!r} is not generative"
        if self.policy_schedule == "constant":
            found |= dict.fromkeys(("rate_offset", "rate_start"), "policy_schedule is 'constant'")
        return found


class DFHPG0Settings(DFHPG1Settings):
    """What the decision-focused term needs as well."""

    surrogate: chosen_from(SURROGATES) = Field(  # type: ignore[valid-type]
        choice(SURROGATES, "spo_plus"), description="surrogate loss of the decision-focused branch"
    )
    surrogate_at: Literal["mean", "sample"] = Field("mean", description="where the surrogate is evaluated")
    variant: Literal["surrogate", "plug_in"] = Field("surrogate", description="the (1 − α) branch of Algorithm 1")
    nuisance: chosen_from(NUISANCES) = Field(  # type: ignore[valid-type]
        choice(NUISANCES, "mlp"), description="the network of the published runs, or the theory's linear class"
    )
    nuisance_at: Literal["after", "before"] = Field(
        "after", description="φ of the (1 − α) branch: after this round's step, or before it as the paper writes"
    )
    overwrite_seen: bool = Field(
        True, description="costs that were seen one by one replace their predictions in the (1 − α) branch"
    )
    baseline: Literal["moving_average", "nuisance_induced", "none"] = Field(
        "moving_average", description="b of the score term"
    )
    plug_in_baseline: bool = Field(True, description="subtract b in the plug-in term too (the paper does not)")

    def unused(self, problem: "Problem") -> dict[str, str]:
        found = super().unused(problem)
        if not predicts(problem, self):
            found["nuisance_at"] = "the whole cost is seen, nothing has to be predicted"
            found |= dict.fromkeys(("nuisance", "nuisance."), "the whole cost is seen, nothing has to be predicted")
        if self.variant == "plug_in":
            found |= dict.fromkeys(("surrogate", "surrogate.", "surrogate_at", *OF_SURROGATES), "variant is 'plug_in'")
        else:
            found["plug_in_baseline"] = "variant is 'surrogate'"
        if not problem.feedback.separable or self.variant == "plug_in":
            found["overwrite_seen"] = "no cost is seen by itself, or variant is 'plug_in'"
        if self.is_generative:
            found["surrogate_at"] = f"the model {self.model.name!r} is evaluated at its scenarios"
        if self.baseline != "moving_average":
            found["baseline_momentum"] = f"baseline is {self.baseline!r}"
        return found


class DFHPGSettings(DFHPG0Settings):
    """Both terms and the weight between them."""

    alpha: Mixing.Settings = Mixing.Settings()
    nuisance_always: bool = Field(
        False, description="train the nuisance also where α stays at 1 (the published runs leave it at its start)"
    )

    def unused(self, problem: "Problem") -> dict[str, str]:
        found = super().unused(problem)
        if self.alpha.gate == "warmup":
            found["alpha.time_scale"] = "alpha.gate is 'warmup'"
        else:
            found["alpha.warmup"] = "alpha.gate is 'exponential'"
        if self.alpha.min < 1.0 or not predicts(problem, self):
            found["nuisance_always"] = "the nuisance learns anyway: alpha.min is below 1, or there is none"
        return found


def predicts(problem: "Problem", settings: DFHPG0Settings) -> bool:
    """Whether there is a nuisance: not where the whole cost arrives in every round and takes its place."""
    known = problem.feedback.reveals_all and not problem.may_miss
    return not (known and (settings.overwrite_seen or settings.variant == "plug_in"))
