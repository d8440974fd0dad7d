"""Each check of a model can fail."""

import jax
import jax.numpy as jnp
import pytest

from regretless import testing
from regretless.models import Model, PointModel
from regretless.models.flow import FlowModel
from regretless.models.gaussian import GaussianLinearModel
from regretless.spec import number


class OffMean(GaussianLinearModel):
    def mean(self, params, context):
        return super().mean(params, context)

    def sample(self, params, context, noise):
        return super().sample(params, context, noise) + 0.1


class WideDensity(GaussianLinearModel):
    def log_density(self, params, context, cost):
        return 0.5 * super().log_density(params, context, cost)


class WrongScore(GaussianLinearModel):
    def score(self, params, context, cost, noise, fresh):
        return jax.tree.map(jnp.negative, super().score(params, context, cost, noise, fresh))


class StaleNoise(GaussianLinearModel):
    def score(self, params, context, cost, noise, fresh):
        return super().score(params, context, cost, noise, jnp.asarray(True))


class WrongPullback(GaussianLinearModel):
    def pullback(self, params, context, cotangent):
        return jax.tree.map(lambda leaf: 2.0 * leaf, super().pullback(params, context, cotangent))


class ShortNoise(GaussianLinearModel):
    def draw(self, key):
        return super().draw(key)[:1]


class Single(GaussianLinearModel):
    def sample(self, params, context, noise):
        return super().sample(params, context, noise).astype(jnp.float32)


class OtherScenarios(FlowModel):
    def scenarios(self, params, context, noise):
        costs, back = super().scenarios(params, context, noise)
        return costs + 0.1, back


class NoWayBack(FlowModel):
    def scenarios(self, params, context, noise):
        costs, back = super().scenarios(params, context, noise)
        return costs, lambda cotangents: jax.tree.map(jnp.negative, back(cotangents))


class NotDescending(FlowModel):
    def loss_gradient(self, params, context, cost, drawn):
        return jax.tree.map(jnp.negative, super().loss_gradient(params, context, cost, drawn))


class WrongVolume(FlowModel):
    def log_density(self, params, context, cost):
        return super().log_density(params, context, cost) + 0.5


class Neither(Model):
    def init(self, key):
        return jnp.ones(3)

    def draw(self, key):
        return jax.random.normal(key, (self.dim,))

    def sample(self, params, context, noise):
        return noise

    def log_density(self, params, context, cost):
        return None


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (OffMean, "mean is not the mean of its samples"),
        (WideDensity, "log_density is not the density of its samples"),
        (WrongScore, "score must be the gradient of log_density"),
        (StaleNoise, "when the noise is not fresh"),
        (WrongPullback, "pullback must be the transposed Jacobian of mean"),
        (ShortNoise, "the noise needs one number per cost coordinate"),
        (Single, "in the program's type float64, got .* of float32"),
        (OtherScenarios, "scenarios must be the samples of each row of noise"),
        (NoWayBack, "pullback of scenarios is not their transposed Jacobian"),
        (NotDescending, "loss_gradient is not the gradient of loss"),
        (WrongVolume, "where the change of variables gives"),
        (Neither, "subclass PointModel .* or GenerativeModel"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_model_raises_with_the_reason(broken, message):
    def build(dim, shape):
        return broken(dim, shape, number(0.7)) if issubclass(broken, PointModel) else broken(dim, shape)

    with pytest.raises(AssertionError, match=message):
        testing.check_model(build)
