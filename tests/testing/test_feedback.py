"""Each check of a feedback regime can fail."""

import jax.numpy as jnp
import pytest

from regretless import feedback, testing
from regretless.benchmarks import Energy
from regretless.feedback import Bandit, Diagonal, Full, Linear, Rows, SemiBandit, Total


class Sums(Full):
    """Costs of two groups, that declares what it is given."""

    says: tuple = ()

    @property
    def name(self):
        return "sums"

    def measure(self, w, aux):
        groups = jnp.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
        return Rows(groups * w if "sparse" in self.says else groups), jnp.ones(2)


class Unweighted(feedback.Measurement):
    @property
    def name(self):
        return "unweighted"

    def measure(self, w, aux):
        return Rows(jnp.ones((1, w.shape[-1]))), jnp.ones(1)


class Skewed(Diagonal):
    def matvec(self, cost):
        return 2.0 * self.w * cost


class Blind(Diagonal):
    def informative(self):
        return jnp.ones(self.w.shape, bool)


class Long(Diagonal):
    def row_squares(self):
        return self.w + 1.0


class Invents(Diagonal):
    def overwrite(self, prediction, values, seen):
        return jnp.where(seen, values + 1.0, prediction)


class Unseen(Diagonal):
    def overwrite(self, prediction, values, seen):
        return jnp.where(self.w != 0, values, prediction)


def of(operator):
    """Semi-bandit feedback by another operator."""

    class Other(SemiBandit):
        def measure(self, w, aux):
            return operator(w), jnp.ones_like(w)

    return Other


class Ragged(feedback.Measurement):
    @property
    def name(self):
        return "ragged"

    def measure(self, w, aux):
        return (Total(w), jnp.ones(1)) if w[0] == 0 else (Diagonal(w), jnp.ones_like(w))


class Claims(SemiBandit):
    claim: str = "total_only"

    @property
    def total_only(self):
        return self.claim == "total_only"

    @property
    def reveals_all(self):
        return self.claim == "reveals_all"

    @property
    def max_rows(self):
        return 3 if self.claim == "max_rows" else None


class NotSparse(Full):
    @property
    def sparse(self):
        return True


class NotSeparable(Bandit):
    @property
    def separable(self):
        return True


def test_our_own_pass_also_with_start_times():
    for rule in (Bandit, SemiBandit, Full, feedback.ReportedRows(3)):
        testing.check_feedback(rule)
    energy = Energy().build()
    testing.check_feedback(energy.measurement("semi_bandit"), energy.oracle)
    groups = jnp.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]])
    testing.check_feedback(Linear(lambda w, aux: groups * w, lambda w, aux: jnp.ones(2), label="groups"))


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (Unweighted(), "'unweighted': expected H.*differ by 1"),
        (of(Skewed), "matvec and rmatvec are not each other's transpose"),
        (of(Blind), "informative must mark the rows of H that are not zero"),
        (of(Long), "row_squares must be"),
        (of(Invents), "overwrite must put the cost itself"),
        (of(Unseen), "overwrite changes a prediction although no row was seen"),
        (Ragged(), "measure cannot be compiled"),
        (Claims("total_only"), "says that only the total is seen"),
        (Claims("reveals_all"), "says that the whole cost is seen"),
        (Claims("max_rows"), "declares at most 3 rows, but has 6"),
        (NotSparse(), "says that it is sparse"),
        (NotSeparable(), "says that it is separable"),
        ("bandit", "expected a Measurement, got str"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_broken_regime_raises_with_the_reason(broken, message):
    with pytest.raises(AssertionError, match=message):
        testing.check_feedback(broken)
