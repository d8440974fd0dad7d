"""DFHPG and its two ablations as settings. They are one algorithm with different mixing weights."""

import dataclasses
from typing import Any, ClassVar, Literal

import jax
import jax.numpy as jnp
from pydantic import Field

from regretless.errors import SettingsError
from regretless.models.base import GenerativeModelSpec, Model, ModelSpec, PointModelSpec
from regretless.models.gaussian import GaussianLinear
from regretless.models.nuisance import MLPNuisance, NuisanceSpec
from regretless.policies.base import PolicySpec
from regretless.policies.dfhpg.algorithm import DFHPGPolicy, GenerativeDFHPG, PointDFHPG
from regretless.policies.dfhpg.gradients import Orientation, ScenarioGradient
from regretless.problem import Problem
from regretless.schedules import MixingWeight, RateSpec
from regretless.spec import Spec, number
from regretless.surrogates.base import SurrogateSpec
from regretless.surrogates.direct import SPOPlus
from regretless.types import Key

SURROGATE_TERM = ("scenario_gradient", "kappa_dfl", "lambda_reg", "regulariser_at", "orientation")
"""Settings of ``GenerativeTerm`` that the plug-in variant does not use."""


class GenerativeTerm(Spec):
    """What DFHPG needs in addition for a generative model (the paper's Appendix on generative parameterisations).

    Parameters
    ----------
    scenarios : int, default 32
        K, scenarios per round.
    scenario_gradient : {"own", "averaged", "saa"}, default "own"
        Each scenario keeps its surrogate gradient, all take the average, or one call at their mean.
    kappa_dfl : float, default 1.0
        κ, weight of the surrogate in the (1 − α) term.
    lambda_reg : float, default 0.1
        λ, weight of the regulariser in the (1 − α) term.
    regulariser_at : {"prediction", "sample"}, default "prediction"
        Where the regulariser is evaluated: at the nuisance's prediction or at a fresh sample.
    orientation : {"minimise", "published"}, default "minimise"
        ``"published"`` hands costs to surrogates that maximise, as the authors' generative runs do.
    optimiser : {"adam", "sgd"}, default "adam"
        Optimiser of θ: Adam as in the published runs, or the paper's plain step.
    """

    namespace: ClassVar[str] = "rg.policies."

    scenarios: int = Field(default=32, ge=1)
    scenario_gradient: ScenarioGradient = "own"
    kappa_dfl: float = Field(default=1.0, ge=0)
    lambda_reg: float = Field(default=0.1, ge=0)
    regulariser_at: Literal["prediction", "sample"] = "prediction"
    orientation: Orientation = "minimise"
    optimiser: Literal["adam", "sgd"] = "adam"


class ScoreTermSpec(PolicySpec, RateSpec):
    """Base class of DFHPG's variants: settings of the score term.

    Parameters
    ----------
    policy_lr : float, default 0.05
        η_0 of θ.
    policy_schedule : {"shifted_inverse", "constant"}, default "shifted_inverse"
        How the policy's learning rate falls (the theorems keep it constant).
    clip : float, default 10.0
        Largest norm of a gradient.
    exploration_scale : float, default 0.1
        σ of the sampled cost, of point models.
    normalize_gradients : bool, default True
        Whether both gradients are scaled to norm 1 before mixing.
    baseline_momentum : float, default 0.95
        ψ of the moving-average baseline.
    late_clip : float, default 10.0
        Largest density ratio of a late score term.
    late_limit : float, default 100.0
        Age in learning steps beyond which a score term is left out.
    model : ModelSpec, default GaussianLinear()
        Model of the cost.
    generative : GenerativeTerm
        What a generative model needs in addition.
    """

    supports_generative: ClassVar[bool] = True

    policy_lr: float = Field(default=0.05, gt=0)
    policy_schedule: Literal["shifted_inverse", "constant"] = "shifted_inverse"
    clip: float = Field(default=10.0, gt=0)
    exploration_scale: float = Field(default=0.1, gt=0)
    normalize_gradients: bool = True
    baseline_momentum: float = Field(default=0.95, ge=0, lt=1)
    late_clip: float = Field(default=10.0, gt=0)
    late_limit: float = Field(default=100.0, ge=0)
    model: ModelSpec = GaussianLinear()
    generative: GenerativeTerm = GenerativeTerm()

    @property
    def is_generative(self) -> bool:
        """Whether the model is generative, as opposed to a point prediction with noise."""
        return isinstance(self.model, GenerativeModelSpec)

    def unused(self, problem: Problem) -> dict[str, str]:
        name = self.model.registered_name
        idle: dict[str, str] = {}
        if self.is_generative:
            idle["exploration_scale"] = f"the model {name!r} has its own spread"
        else:
            idle["generative."] = f"the model {name!r} is not generative"
        if self.policy_schedule == "constant":
            idle |= dict.fromkeys(("rate_offset", "rate_start"), "policy_schedule is 'constant'")
        return idle

    def assemble(self, problem: Problem, at: Literal["mean", "sample"], **parts: Any) -> DFHPGPolicy:
        """Return the algorithm around a model of either kind; ``parts`` are the remaining fields of ``DFHPGPolicy``.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        at : {"mean", "sample"}
            Where a point model takes the gradient of the surrogate.
        **parts : object
            Fields by name.
        """
        fields = {field.name for field in dataclasses.fields(DFHPGPolicy)} - {"model"}
        common = {name: value for name, value in self.hyperparameters().items() if name in fields} | parts
        if isinstance(self.model, PointModelSpec):
            point = self.model.build(problem.dim, problem.context_shape, self.exploration_scale)
            return PointDFHPG(problem, model=point, at=at, **common)
        assert isinstance(self.model, GenerativeModelSpec)
        model, term = self.model.build(problem.dim, problem.context_shape), self.generative.hyperparameters()
        sign = number(1.0 if term.pop("orientation") == "minimise" else -1.0)
        return GenerativeDFHPG(problem, model=model, sign=sign, **term, **common)


class DFHPG1(ScoreTermSpec):
    """DFHPG with α ≡ 1: only the score term learns, with the moving average as its baseline."""

    def build(self, problem: Problem) -> DFHPGPolicy:
        """Return the policy for a problem."""
        return self.assemble(
            problem,
            "mean",
            nuisance=None,
            surrogate=None,
            mixing=MixingWeight(max=1.0, min=1.0).build(),
            baseline="moving_average",
            score_only=True,
            nuisance_at="after",
            overwrite_seen=True,
            plug_in_baseline=True,
        )


class PlugInTermSpec(ScoreTermSpec):
    """Base class of the variants with a decision-focused plug-in term.

    Parameters
    ----------
    surrogate : SurrogateSpec, default SPOPlus()
        Surrogate loss of the decision-focused branch.
    surrogate_at : {"mean", "sample"}, default "mean"
        Where the surrogate is evaluated, of point models.
    variant : {"surrogate", "plug_in"}, default "surrogate"
        The (1 − α) branch of Algorithm 1.
    nuisance : NuisanceSpec, default MLPNuisance()
        The regression ``f_φ``, such as the network of the published runs.
    nuisance_at : {"after", "before"}, default "after"
        φ of the (1 − α) branch: after this round's step, or before it as the paper writes.
    overwrite_seen : bool, default True
        Whether costs that were seen one by one replace their predictions in the (1 − α) branch.
    baseline : {"moving_average", "nuisance_induced", "none"}, default "moving_average"
        b of the score term.
    plug_in_baseline : bool, default True
        Whether b is subtracted in the plug-in term too (not in the paper).
    """

    surrogate: SurrogateSpec = SPOPlus()
    surrogate_at: Literal["mean", "sample"] = "mean"
    variant: Literal["surrogate", "plug_in"] = "surrogate"
    nuisance: NuisanceSpec = MLPNuisance()
    nuisance_at: Literal["after", "before"] = "after"
    overwrite_seen: bool = True
    baseline: Literal["moving_average", "nuisance_induced", "none"] = "moving_average"
    plug_in_baseline: bool = True

    def predicts(self, problem: Problem) -> bool:
        """Return whether there is a nuisance: not where the whole cost arrives in every round and replaces it.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        """
        known = problem.feedback.reveals_all and not problem.may_miss
        return not (known and (self.overwrite_seen or self.variant == "plug_in"))

    def unused(self, problem: Problem) -> dict[str, str]:
        idle = super().unused(problem)
        if not self.predicts(problem):
            reason = "the whole cost is seen, no prediction is needed"
            idle |= dict.fromkeys(("nuisance_at", "nuisance", "nuisance."), reason)
        if self.variant == "plug_in":
            term = (f"generative.{name}" for name in SURROGATE_TERM)
            idle |= dict.fromkeys(("surrogate", "surrogate.", "surrogate_at", *term), "variant is 'plug_in'")
        else:
            idle["plug_in_baseline"] = "variant is 'surrogate'"
        if not problem.feedback.separable or self.variant == "plug_in":
            idle["overwrite_seen"] = "no cost is seen by itself, or variant is 'plug_in'"
        if self.is_generative:
            idle["surrogate_at"] = f"the model {self.model.registered_name!r} is evaluated at its scenarios"
        if self.baseline != "moving_average":
            idle["baseline_momentum"] = f"baseline is {self.baseline!r}"
        return idle

    def assemble_hybrid(self, problem: Problem, alpha: MixingWeight, idle_nuisance: bool) -> DFHPGPolicy:
        """Return the algorithm with a mixing weight; an idle nuisance stays at its initial weights.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        alpha : MixingWeight
            The mixing weight.
        idle_nuisance : bool
            Whether the nuisance does not learn.
        """
        nuisance = self.nuisance.replace(lr=0.0) if idle_nuisance else self.nuisance
        plug_in = self.variant == "plug_in"
        policy = self.assemble(
            problem,
            self.surrogate_at,
            nuisance=nuisance.build(problem) if self.predicts(problem) else None,
            surrogate=None if plug_in else self.surrogate.build(problem.oracle),
            mixing=alpha.build(),
            score_only=False,
        )
        if plug_in and not has_density(policy.model):
            raise SettingsError(
                "variant 'plug_in' needs a model with a density: expected gaussian_linear, gaussian_nn or flow, "
                f"got {self.model.registered_name}"
            )
        return policy


class DFHPG0(PlugInTermSpec):
    """DFHPG with α ≡ 0: only the decision-focused plug-in term learns (what is played is still the sample)."""

    def build(self, problem: Problem) -> DFHPGPolicy:
        """Return the policy for a problem."""
        return self.assemble_hybrid(problem, MixingWeight(max=0.0, min=0.0), idle_nuisance=False)


class DFHPG(PlugInTermSpec):
    """DFHPG, Algorithm 1 of the paper: score term and decision-focused plug-in term, mixed by α.

    Parameters
    ----------
    alpha : MixingWeight
        Weight α of the score term and its schedule.
    nuisance_always : bool, default False
        Whether the nuisance is trained also where α stays at 1 (the published runs leave it at its initial weights).

    Examples
    --------
    >>> import regretless as rg
    >>> rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0), alpha=rg.policies.MixingWeight(max=0.5))
    rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0), alpha=rg.policies.MixingWeight(max=0.5))
    """

    alpha: MixingWeight = MixingWeight()
    nuisance_always: bool = False

    def unused(self, problem: Problem) -> dict[str, str]:
        idle = super().unused(problem)
        if self.alpha.gate == "warmup":
            idle["alpha.time_scale"] = "alpha.gate is 'warmup'"
        else:
            idle["alpha.warmup"] = "alpha.gate is 'exponential'"
        if self.alpha.min < 1.0 or not self.predicts(problem):
            idle["nuisance_always"] = "the nuisance learns anyway: alpha.min is below 1, or there is no nuisance"
        return idle

    def build(self, problem: Problem) -> DFHPGPolicy:
        """Return the policy for a problem."""
        # At α ≡ 1 the nuisance does not enter the gradient and stays at its initial weights.
        idle = self.alpha.min == 1.0 and not self.nuisance_always
        return self.assemble_hybrid(problem, self.alpha, idle)


def has_density(model: Model) -> bool:
    """Return whether a model has a log-density."""

    def density(key: Key) -> Any:
        return model.log_density(model.init(key), jnp.zeros(model.context_shape), jnp.zeros(model.dim))

    return jax.eval_shape(density, jax.random.key(0)) is not None
