"""Each check of a benchmark can fail."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import feedback, testing
from regretless.benchmarks import Round
from toys import DIM, Toy

COUNTER = itertools.count()


class Noisy(Toy):
    """Costs with noise around their conditional mean."""

    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        noise = jax.random.normal(jax.random.fold_in(key, 1), (DIM,))
        return Round(played.observation, played.mean + noise, played.mean, played.instance)


class Constant(Noisy):
    """The mean over all contexts, which is not the conditional one."""

    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return eqx.tree_at(lambda r: r.mean, played, jnp.zeros(DIM))


class Biased(Noisy):
    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return eqx.tree_at(lambda r: r.mean, played, played.mean + 0.2)


class Misshapen(Noisy):
    def context(self, environment, observation):
        return observation[:2]


class ShortCosts(Noisy):
    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return Round(played.observation, played.cost[:2])


class NotFinite(Noisy):
    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return eqx.tree_at(lambda r: r.cost, played, jnp.where(t == 3, jnp.nan, played.cost))


class NoMean(Noisy):
    def __init__(self):
        super().__init__()
        self.regret_on_mean = True

    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return Round(played.observation, played.cost)


class Moody(Noisy):
    def environment(self, key):
        return super().environment(key) + float(next(COUNTER))


class AnyFeedback(Noisy):
    def measurement(self, name):
        return feedback.Bandit()


class WrongLinkage(Noisy):
    def measurement(self, name):
        rule = super().measurement(name)
        wrong = feedback.Linear(lambda w, aux: jnp.ones((1, DIM)), lambda w, aux: jnp.ones(1), label="everything")
        return wrong if name == "bandit" else rule


class Unprintable(Noisy):
    def describe(self):
        return {"name": np.zeros(2)}


class ShortPrediction(Noisy):
    def predictions(self, environment, played):
        return {"guess": jnp.zeros(2)}


class TooShort(Noisy):
    @property
    def longest(self):
        return 5


def test_sound_benchmarks_pass():
    testing.check_benchmark(Noisy())
    testing.check_benchmark(Noisy(closures=True))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Constant, "mean is not the conditional mean of the cost"),
        (Biased, "mean is not the conditional mean of the cost"),
        (Misshapen, r"expected contexts of shape \(3,\), got \(2,\)"),
        (ShortCosts, r"expected costs of shape \(4,\), got \(2,\)"),
        (NotFinite, "costs hold numbers that are not finite"),
        (NoMean, "counts regret on the conditional mean, but its rounds have none"),
        (Moody, "the same keys must give the same rounds"),
        (AnyFeedback, "accepts a feedback regime that does not exist"),
        (WrongLinkage, "'everything': expected H"),
        (Unprintable, "describe must return JSON data"),
        (ShortPrediction, "the prediction 'guess' must be a finite cost"),
        (TooShort, "its horizon is longer than the 5 rounds it has"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_benchmark_raises_with_the_reason(broken, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_benchmark(broken())
