"""Hyper-parameters by name, checked at the edge: an unknown key or a value out of range is an error before anything runs."""

import difflib
from collections.abc import Iterable
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from regretless.errors import SettingsError


class Settings(BaseModel):
    """What a policy needs to know; the defaults are those of the published runs.

    >>> Settings.checked(policy_lr=0.07, surogate="dbb")
    Traceback (most recent call last):
    ...
    regretless.settings.SettingsError: unknown setting 'surogate'; did you mean 'surrogate'?
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    policy_lr: float = Field(
        0.05, gt=0, description="η_0 of θ (and of the regression in greedy, epsilon_greedy, thompson)"
    )
    policy_schedule: Literal["shifted_inverse", "constant"] = Field(
        "shifted_inverse", description="how the policy's learning rate falls (the theorems keep it constant)"
    )
    nuisance_lr: float = Field(0.01, ge=0, description="η_0 of φ")
    surrogate: str = Field("spo_plus", description="surrogate loss of the decision-focused branch")
    exploration_scale: float = Field(0.1, gt=0, description="σ of the sampled cost")
    alpha_max: float = Field(0.3, ge=0, le=1, description="largest weight of the score term")
    alpha_min: float = Field(0.02, ge=0, le=1, description="smallest weight of the score term")
    alpha_gate: Literal["warmup", "exponential"] = Field("warmup", description="when α may begin to fall")
    alpha_time_scale: float = Field(100.0, gt=0, description="τ of the exponential gate, in rounds")
    alpha_target: Literal["reliability", "minimum"] = Field(
        "reliability", description="where α goes: with the nuisance's error, or simply to alpha_min"
    )
    baseline: Literal["moving_average", "nuisance_induced", "none"] = Field(
        "moving_average", description="b of the score term"
    )
    normalize_gradients: bool = Field(True, description="scale both gradients to norm 1 before mixing")
    surrogate_at: Literal["mean", "sample"] = Field("mean", description="where the surrogate is evaluated")
    variant: Literal["surrogate", "plug_in"] = Field("surrogate", description="the (1 − α) branch of Algorithm 1")
    nuisance: Literal["mlp", "linear_adaptive", "linear_constant"] = Field(
        "mlp", description="the network of the published runs, or the theory's linear class with one of its step sizes"
    )
    nuisance_precision: Literal["single", "double"] = Field("single", description="of the nuisance network")
    nuisance_radius: float = Field(1e4, gt=0, description="radius of the ball that the linear nuisance is projected on")
    epsilon: float = Field(0.1, ge=0, le=1, description="probability of a random decision in epsilon_greedy")
    thompson_scale: float | None = Field(None, gt=0, description="σ of thompson; none: exploration_scale")
    posterior_scale: float = Field(
        0.1, ge=0, description="spread of linear_thompson's draws, in residual standard deviations"
    )
    forgetting: float = Field(
        0.0, ge=0, lt=1, description="share of what it learnt that linear_thompson forgets per learning step"
    )
    late_clip: float = Field(10.0, gt=0, description="largest density ratio of a late score term")
    late_limit: float = Field(100.0, ge=0, description="age in learning steps beyond which a score term is left out")

    scenarios: int = Field(32, ge=1, description="K, scenarios per round of a generative model")
    scenario_gradient: Literal["own", "averaged", "saa"] = Field(
        "own", description="each scenario keeps its surrogate gradient, all take the average, or one call at their mean"
    )
    kappa_dfl: float = Field(1.0, ge=0, description="κ, weight of the surrogate in a generative model's (1 − α) branch")
    lambda_reg: float = Field(
        0.1, ge=0, description="λ, weight of the regulariser in a generative model's (1 − α) branch"
    )
    regulariser_at: Literal["prediction", "sample"] = Field(
        "prediction", description="where a generative model's regulariser is taken: nuisance prediction or fresh sample"
    )
    orientation: Literal["minimise", "published"] = Field(
        "minimise", description="published: hand costs to surrogates that maximise, as the authors' generative runs do"
    )
    diffusion_train_steps: int = Field(50, ge=2, description="noise levels of the diffusion")
    diffusion_sample_steps: int = Field(50, ge=1, description="steps that sample the diffusion")
    diffusion_weights: Literal["root", "elbo"] = Field(
        "root", description="weights of the denoising loss: √(1 − ᾱ), or those of the variational bound without t = 0"
    )

    @model_validator(mode="after")
    def _ordered(self) -> "Settings":
        if self.alpha_min > self.alpha_max:
            raise ValueError(f"expected alpha_min ≤ alpha_max, got {self.alpha_min} and {self.alpha_max}")
        return self

    @classmethod
    def checked(cls, **values: Any) -> "Settings":
        """Settings from raw values; every problem is told in one SettingsError."""
        for key in values:
            require_known("setting", key, cls.model_fields)
        try:
            return cls(**values)
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors())) from None

    def updated(self, **values: Any) -> "Settings":
        """These settings with some of them replaced, checked again."""
        return Settings.checked(**{**self.model_dump(), **values})


def _explain(problem: Any) -> str:
    place = ".".join(map(str, problem["loc"]))
    message = problem["msg"].removeprefix("Value error, ")
    return f"setting {place!r}: {message}, got {problem['input']!r}" if place else message


def require_known(kind: str, name: str, valid: Iterable[str]) -> None:
    """Raises SettingsError unless ``name`` is one of ``valid``; names the nearest one."""
    choices = sorted(valid)
    if name in choices:
        return
    near = difflib.get_close_matches(name, choices, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(choices)}"
    raise SettingsError(f"unknown {kind} {name!r}; {hint}")
