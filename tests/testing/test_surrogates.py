"""Each check of a surrogate can fail."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import pytest

from regretless import settings, testing
from regretless.surrogates.base import Surrogate
from regretless.surrogates.direct import SPOPlus
from regretless.surrogates.ranking import PointwiseLTR


class Ascends(SPOPlus):
    def gradient(self, *given):
        return -super().gradient(*given)


class Nothing(SPOPlus):
    def gradient(self, *given):
        return 0.0 * super().gradient(*given)


class Scalar(SPOPlus):
    def gradient(self, *given):
        return jnp.zeros(())


class Single(SPOPlus):
    def gradient(self, *given):
        return super().gradient(*given).astype(jnp.float32)


class Divides(SPOPlus):
    """Fine in every step of a descent, but not where the prediction is the target."""

    def gradient(self, memory, prediction, target, noise, solutions, instance):
        slope = super().gradient(memory, prediction, target, noise, solutions, instance)
        return slope / jnp.sum(jnp.square(prediction - target))


class Grows(SPOPlus):
    def init(self):
        return ()

    def adapt(self, memory, gradient):
        return (*memory, gradient) if len(memory) < 1 else memory


class Flat(SPOPlus):
    def queries(self, memory, prediction, target, noise):
        return target


class Moody(SPOPlus):
    """Its noise is not a function of its key."""

    def draw(self, key):
        return jnp.asarray(float(next(COUNTER)))


class StaticShare(SPOPlus):
    class Settings(settings.Settings):
        share: float = 0.5

    share: float = eqx.field(static=True, converter=float)


class ForgetsItsForm(PointwiseLTR):
    def available(self, memory, feasible):
        return memory.decisions


COUNTER = itertools.count()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Ascends, "does not lower the task cost on TopK .* check the sign"),
        (Nothing, "does not lower the task cost"),
        (Scalar, "expected a gradient of shape"),
        (Single, "in the type of the prediction"),
        (Divides, "not finite where the prediction is the target"),
        (Grows, "memory must keep its form"),
        (Flat, r"queries must return cost vectors \[q, 6\], got shape \(6,\)"),
        (Moody, "draw must depend on its key alone"),
        (StaticShare, "changing the setting 'share' .* array leaf"),
        (ForgetsItsForm, "available must keep the form"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_surrogate_is_told_what_is_wrong(broken, message, monkeypatch):
    if broken not in (Ascends, Nothing):
        monkeypatch.setattr("regretless.testing.surrogates._check_descent", lambda who, surrogate: None)
    with pytest.raises(AssertionError, match=message):
        testing.check_surrogate(broken)


def test_a_surrogate_that_is_none():
    with pytest.raises(AssertionError, match="expected a Surrogate, got int"):
        testing.check_surrogate(lambda oracle: 3)
    assert issubclass(SPOPlus, Surrogate)
