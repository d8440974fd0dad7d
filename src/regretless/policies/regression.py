"""The paper's contextual-bandit baselines: a point regression of the cost, and three ways to explore with it.

They share one program, because they differ in two numbers only: plays ``w*(f_θ(x) + σ ε)``, and with probability ``epsilon``
``w*(ε)`` instead (the paper's Algorithms 2 to 4: GreedyCB, ε-GreedyCB and TSCB). The published runs train all three on the
squared error; ``thompson_loss="likelihood"`` is what Algorithm 4 prints.
"""

from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from regretless import draws, models, nets
from regretless.errors import SettingsError
from regretless.models.base import Model, PointModel
from regretless.parts import number
from regretless.policies.base import Policy, Recipe
from regretless.problem import Problem
from regretless.schedules import RateSettings, shifted_inverse
from regretless.settings import choice, chosen_from
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample


class GreedySettings(RateSettings):
    """What the regression needs."""

    policy_lr: float = Field(0.05, gt=0, description="η_0 of θ")
    clip: float = Field(10.0, gt=0, description="largest norm of a gradient")
    model: chosen_from(models.REGISTRY) = Field(  # type: ignore[valid-type]
        choice(models.REGISTRY, "gaussian_linear"), description="model of the cost"
    )
    loss: Literal["squares", "sum"] = Field(
        "squares", description="of several rows: half the mean of squares, or the sum that the paper writes"
    )

    def unused(self, problem: Problem) -> dict[str, str]:
        return (
            {"loss": "only the total is seen, and its squared error is one row"} if problem.feedback.total_only else {}
        )


class EpsilonGreedySettings(GreedySettings):
    """The regression's, and the probability of a random decision."""

    epsilon: float = Field(0.1, ge=0, le=1, description="probability of a random decision")


class ThompsonSettings(GreedySettings):
    """The regression's, and the size of the noise."""

    exploration_scale: float = Field(0.1, gt=0, description="σ of the sampled cost")
    thompson_scale: float | None = Field(None, gt=0, description="σ of thompson; none: exploration_scale")
    thompson_loss: Literal["squares", "likelihood"] = Field(
        "squares", description="of thompson: the squared error, or −log density of the total as the paper writes"
    )

    def unused(self, problem: Problem) -> dict[str, str]:
        idle = {} if problem.feedback.total_only else {"thompson_loss": "the likelihood is that of the total alone"}
        return super().unused(problem) | idle


class RegressionState(eqx.Module):
    """The regression's parameters and the number of learning steps."""

    theta: Any
    version: Int[Array, ""]


class RegressionBandit(Policy):
    """Fits ``f_θ`` by SGD on the loss of what was seen; explores by σ (``scale``) and ``epsilon``.

    ``loss``: the squared error ``(f·w − v)²`` of a total, of several rows half the mean (``squares``, the published runs) or
    the sum (``sum``, the paper); ``likelihood`` is ``−log q(v)`` with ``q = N(f·w, σ² ‖w‖²)``, the distribution of the total
    of a sampled cost.
    """

    model: PointModel
    rate: Float[Array, ""]
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
        """The sample that this noise and this coin lead to."""
        cost = jnp.where(explore, noise, self.model.mean(state.theta, context) + self.scale * noise)
        return Sample(cost, state.version, noise)

    def learn(
        self, key: Key, state: RegressionState, decision: Decision, feedback: Feedback
    ) -> tuple[RegressionState, Info]:
        prediction = self.model.mean(state.theta, decision.context)
        grad = self.model.pullback(state.theta, decision.context, self._slope(prediction, decision, feedback))
        norm = nets.tree_norm(grad)
        version = state.version + 1
        rate = shifted_inverse(self.rate, version, self.rate_offset, self.rate_start)
        theta = nets.sgd_step(state.theta, grad, rate, self.clip)
        y = feedback.total()
        info = Info(y - prediction @ decision.w, y, feedback.complete(), jnp.isfinite(norm), {"gradient_norm": norm})
        return RegressionState(theta, version), info

    def _slope(self, prediction: Cost, decision: Decision, feedback: Feedback) -> Cost:
        """The loss's gradient in the prediction."""
        if self.loss == "likelihood":
            variance = jnp.square(self.scale) * jnp.sum(jnp.square(decision.w))
            return feedback.loss_gradient(prediction) / jnp.maximum(variance, 1e-30)
        if self.loss == "sum":
            return feedback.sum_gradient(prediction)
        # (f·w − v)² for the total, halves for everything else
        return feedback.loss_gradient(prediction) * (2.0 if self.problem.feedback.total_only else 1.0)


def greedy(problem: Problem, settings: GreedySettings, model: Model | None = None) -> RegressionBandit:
    """Always plays ``w*(f_θ(x))``."""
    return _build(problem, settings, model, scale=0.0, epsilon=0.0)


def epsilon_greedy(problem: Problem, settings: EpsilonGreedySettings, model: Model | None = None) -> RegressionBandit:
    """Plays ``w*(N(0, I))`` with probability ``epsilon``."""
    return _build(problem, settings, model, scale=0.0, epsilon=settings.epsilon)


def thompson(problem: Problem, settings: ThompsonSettings, model: Model | None = None) -> RegressionBandit:
    """Plays ``w*(f_θ(x) + σ ε)``."""
    scale = settings.exploration_scale if settings.thompson_scale is None else settings.thompson_scale
    likely = settings.thompson_loss == "likelihood"
    if likely and not problem.feedback.total_only:
        raise SettingsError(
            "thompson_loss 'likelihood' is that of the total alone: expected bandit feedback, got "
            f"{problem.feedback.name!r}, with which the paper takes squared errors (thompson_loss 'squares', loss 'sum')"
        )
    return _build(problem, settings, model, scale=scale, epsilon=0.0, likely=likely)


def _build(
    problem: Problem, settings: GreedySettings, model: Model | None, scale: float, epsilon: float, likely: bool = False
) -> RegressionBandit:
    if model is None:
        kind = models.REGISTRY[settings.model.name]
        if not issubclass(kind, PointModel):
            points = [name for name in models.REGISTRY if not models.is_generative(name)]
            raise SettingsError(f"expected a point model ({', '.join(points)}), got {settings.model.name!r}")
        model = kind.build(problem.dim, problem.context_shape, settings=settings.model.settings)
    if not isinstance(model, PointModel):
        raise SettingsError(f"expected a point model, got {type(model).__name__}")
    return RegressionBandit(
        problem,
        model,
        number(settings.policy_lr),
        number(settings.rate_offset),
        number(settings.rate_start),
        number(settings.clip),
        number(scale),
        number(epsilon),
        "likelihood" if likely else settings.loss,
    )


GREEDY = Recipe(GreedySettings, greedy, ("model",))
EPSILON_GREEDY = Recipe(EpsilonGreedySettings, epsilon_greedy, ("model",))
THOMPSON = Recipe(ThompsonSettings, thompson, ("model",))
"""Their entries among the policies."""
