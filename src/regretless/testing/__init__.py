"""Contract checks that a package with parts of its own runs in its tests; they need no test framework.

Each check exercises what a part declares, and raises AssertionError with a sentence that says what is wrong.

>>> from regretless import oracles, testing
>>> testing.check_oracle(oracles.top_k(5, 2))
>>> testing.check_registered("feedback", "semi_bandit")
"""

from regretless.testing.models import check_model, check_surrogate
from regretless.testing.policies import check_policy, check_registered
from regretless.testing.problems import check_benchmark, check_feedback, check_oracle

__all__ = [
    "check_benchmark",
    "check_feedback",
    "check_model",
    "check_oracle",
    "check_policy",
    "check_registered",
    "check_surrogate",
]
