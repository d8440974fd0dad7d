"""The paper's contextual-bandit baselines: a point regression of the cost, and three ways to explore with it.

They share one program, because they differ in two numbers only: it plays ``w*(f_θ(x) + σ ε)``, and with probability
``epsilon`` ``w*(ε)`` instead (the paper's Algorithms 2 to 4: GreedyCB, ε-GreedyCB and TSCB). The published runs train
all three on the squared error; ``thompson_loss="likelihood"`` is what Algorithm 4 prints.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

import regretless.models.networks as networks
from regretless import draws
from regretless.errors import SettingsError
from regretless.models.base import PointModel, PointModelSpec
from regretless.models.gaussian import GaussianLinear
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.schedules import RateSpec, shifted_inverse
from regretless.spec import number
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample


class RegressionState(eqx.Module):
    """The regression's parameters and the number of learning steps."""

    theta: Any
    version: Int[Array, ""]


class RegressionPolicy(Policy):
    """Fit ``f_θ`` by SGD on the loss of what was seen; explore by σ (``scale``) and ``epsilon``.

    ``loss``: the squared error ``(f·w − v)²`` of a total, of several rows half the mean (``squares``, the published
    runs) or the sum (``sum``, the paper); ``likelihood`` is ``−log q(v)`` with ``q = N(f·w, σ² ‖w‖²)``, the
    distribution of the total of a sampled cost.
    """

    model: PointModel
    policy_lr: Float[Array, ""]
    rate_offset: Float[Array, ""]
    rate_start: Float[Array, ""]
    clip: Float[Array, ""]
    scale: Float[Array, ""]
    epsilon: Float[Array, ""]
    loss: Literal["squares", "sum", "likelihood"] = eqx.field(static=True, default="squares")

    def init(self, key: Key) -> RegressionState:
        return RegressionState(self.model.init(jax.random.split(key)[0]), jnp.zeros((), jnp.int32))

    def mean(self, state: RegressionState, context: Context) -> Cost:
        return self.model.mean(state.theta, context)

    def sample(self, key: Key, state: RegressionState, context: Context, instance: Instance) -> Sample:
        noise_key, coin_key = jax.random.split(key)
        explore = draws.uniform(coin_key) < self.epsilon
        return self.sample_with(draws.normal(noise_key, (self.problem.dim,)), explore, state, context)

    def sample_with(self, noise: Cost, explore: Bool[Array, ""], state: RegressionState, context: Context) -> Sample:
        """Return the sample that this noise and this coin give."""
        cost = jnp.where(explore, noise, self.model.mean(state.theta, context) + self.scale * noise)
        certain = (self.scale == 0) & (self.epsilon == 0)
        return Sample(cost, state.version, noise, log_probability=jnp.where(certain, 0.0, jnp.nan))

    def learn(
        self, key: Key, state: RegressionState, decision: Decision, feedback: Feedback
    ) -> tuple[RegressionState, Info]:
        prediction = self.model.mean(state.theta, decision.context)
        version, norm = state.version + 1, jnp.zeros(())
        theta = self.model.refit(state.theta, decision, feedback)
        if theta is None:
            grad = self.model.pullback(state.theta, decision.context, self._slope(prediction, decision, feedback))
            norm = networks.tree_norm(grad)
            rate = shifted_inverse(self.policy_lr, version, self.rate_offset, self.rate_start)
            theta = networks.sgd_step(state.theta, grad, rate, self.clip)
        y = feedback.total()
        info = Info(y - prediction @ decision.w, y, feedback.complete(), jnp.isfinite(norm), {"gradient_norm": norm})
        return RegressionState(theta, version), info

    def _slope(self, prediction: Cost, decision: Decision, feedback: Feedback) -> Cost:
        """Return the loss's gradient in the prediction."""
        if self.loss == "likelihood":
            variance = jnp.square(self.scale) * jnp.sum(jnp.square(decision.w))
            return feedback.loss_gradient(prediction) / jnp.maximum(variance, 1e-30)
        if self.loss == "sum":
            return feedback.sum_gradient(prediction)
        # (f·w − v)² for the total, halves for everything else
        return feedback.loss_gradient(prediction) * (2.0 if self.problem.feedback.total_only else 1.0)


class RegressionSpec(PolicySpec, RateSpec):
    """Base class of the three baselines: settings of the regression.

    Parameters
    ----------
    policy_lr : float, default 0.05
        η_0 of θ.
    clip : float, default 10.0
        Largest norm of a gradient.
    model : PointModelSpec, default GaussianLinear()
        Model of the cost.
    loss : {"squares", "sum"}, default "squares"
        Loss of several rows: half the mean of squares, or the sum that the paper writes.
    """

    policy_lr: float = Field(default=0.05, gt=0)
    clip: float = Field(default=10.0, gt=0)
    model: PointModelSpec = GaussianLinear()
    loss: Literal["squares", "sum"] = "squares"

    def unused(self, problem: Problem) -> dict[str, str]:
        total_only = problem.feedback.total_only
        return {"loss": "only the total is seen, and its squared error is one row"} if total_only else {}

    def assemble(self, problem: Problem, scale: float, epsilon: float, likelihood: bool = False) -> RegressionPolicy:
        """Return the regression that explores by σ (``scale``) and ``epsilon``.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        scale : float
            σ of the sampled cost; 0 for the prediction itself.
        epsilon : float
            Probability of a random decision.
        likelihood : bool, default False
            Whether the loss is −log density of the total.
        """
        model, loss = self.model.build_for(problem), "likelihood" if likelihood else self.loss
        rates = {name: number(getattr(self, name)) for name in ("policy_lr", "rate_offset", "rate_start", "clip")}
        return RegressionPolicy(problem, model, **rates, scale=number(scale), epsilon=number(epsilon), loss=loss)


class Greedy(RegressionSpec):
    """GreedyCB (Algorithm 2 of the paper): always plays ``w*(f_θ(x))``."""

    def build(self, problem: Problem) -> RegressionPolicy:
        """Return the policy for a problem."""
        return self.assemble(problem, scale=0.0, epsilon=0.0)


class EpsilonGreedy(RegressionSpec):
    """ε-GreedyCB (Algorithm 3 of the paper): plays ``w*(N(0, I))`` with probability ``epsilon``.

    Parameters
    ----------
    epsilon : float, default 0.1
        Probability of a random decision.
    """

    epsilon: float = Field(default=0.1, ge=0, le=1)

    def build(self, problem: Problem) -> RegressionPolicy:
        """Return the policy for a problem."""
        return self.assemble(problem, scale=0.0, epsilon=self.epsilon)


class Thompson(RegressionSpec):
    """TSCB (Algorithm 4 of the paper): plays ``w*(f_θ(x) + σ ε)``.

    Parameters
    ----------
    exploration_scale : float, default 0.1
        σ of the sampled cost.
    thompson_scale : float, optional
        σ in place of ``exploration_scale``, which presets share with other policies.
    thompson_loss : {"squares", "likelihood"}, default "squares"
        The squared error, or −log density of the total as the paper writes.
    """

    exploration_scale: float = Field(default=0.1, gt=0)
    thompson_scale: float | None = Field(default=None, gt=0)
    thompson_loss: Literal["squares", "likelihood"] = "squares"

    def unused(self, problem: Problem) -> dict[str, str]:
        total_only = problem.feedback.total_only
        idle = {} if total_only else {"thompson_loss": "the likelihood is that of the total alone"}
        return super().unused(problem) | idle

    def build(self, problem: Problem) -> RegressionPolicy:
        """Return the policy for a problem."""
        likelihood = self.thompson_loss == "likelihood"
        if likelihood and not problem.feedback.total_only:
            raise SettingsError(
                "thompson_loss 'likelihood' is that of the total alone: expected bandit feedback, got "
                f"{problem.feedback.name!r}; use thompson_loss 'squares' with loss 'sum', as the paper does"
            )
        scale = self.exploration_scale if self.thompson_scale is None else self.thompson_scale
        return self.assemble(problem, scale=scale, epsilon=0.0, likelihood=likelihood)
