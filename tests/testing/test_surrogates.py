"""Each check of a surrogate can fail."""

import itertools

import equinox as eqx
import jax.numpy as jnp
import pytest

from regretless import testing
from regretless.surrogates.base import Surrogate, SurrogateSpec
from regretless.surrogates.direct import SPOPlus, SPOPlusSurrogate
from regretless.surrogates.pool import PointwiseLTRSurrogate


class Ascends(SPOPlusSurrogate):
    def gradient(self, *given):
        return -super().gradient(*given)


class Nothing(SPOPlusSurrogate):
    def gradient(self, *given):
        return 0.0 * super().gradient(*given)


class Scalar(SPOPlusSurrogate):
    def gradient(self, *given):
        return jnp.zeros(())


class Single(SPOPlusSurrogate):
    def gradient(self, *given):
        return super().gradient(*given).astype(jnp.float32)


class Divides(SPOPlusSurrogate):
    """Fine in every step of a descent, but not where the prediction is the target."""

    def gradient(self, memory, prediction, target, noise, solutions):
        slope = super().gradient(memory, prediction, target, noise, solutions)
        return slope / jnp.sum(jnp.square(prediction - target))


class Grows(SPOPlusSurrogate):
    def init(self):
        return ()

    def adapt(self, memory, gradient, call):
        return (*memory, gradient) if len(memory) < 1 else memory


class Flat(SPOPlusSurrogate):
    def queries(self, memory, prediction, target, noise):
        return target


class Moody(SPOPlusSurrogate):
    """Its noise is not a function of its key."""

    def draw(self, key):
        return jnp.asarray(float(next(COUNTER)))


class StaticShareSurrogate(SPOPlusSurrogate):
    share: float = eqx.field(static=True, converter=float)


class StaticShare(SPOPlus):
    share: float = 0.5

    def build(self, oracle):
        return StaticShareSurrogate(oracle, self.share)


class ForgetsItsForm(PointwiseLTRSurrogate):
    def available(self, memory, feasible):
        return memory.decisions


COUNTER = itertools.count()


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Ascends, "does not lower the task cost on TopKOracle .* check the sign"),
        (Nothing, "does not lower the task cost"),
        (Scalar, "expected a gradient of shape"),
        (Single, "in the type of the prediction"),
        (Divides, "not finite where the prediction is the target"),
        (Grows, "memory must keep its form"),
        (Flat, r"queries must return cost vectors \[n, 6\], got shape \(6,\)"),
        (Moody, "draw must depend on its key alone"),
        (StaticShare, "changing the setting 'share' .* array leaf"),
        (ForgetsItsForm, "available must keep the form"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_broken_surrogate_raises_with_the_reason(broken, message, monkeypatch):
    if broken not in (Ascends, Nothing):
        monkeypatch.setattr("regretless.testing.models._check_descent", lambda who, surrogate: None)

    def build(oracle):
        return broken(oracle, pool=8) if issubclass(broken, PointwiseLTRSurrogate) else broken(oracle)

    with pytest.raises(AssertionError, match=message):
        testing.check_surrogate(broken if issubclass(broken, SurrogateSpec) else build)


def test_a_surrogate_of_the_wrong_type():
    with pytest.raises(AssertionError, match="expected a Surrogate, got int"):
        testing.check_surrogate(lambda oracle: 3)
    assert issubclass(SPOPlusSurrogate, Surrogate)
