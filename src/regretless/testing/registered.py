"""The contract checks of a registered part, by family and name."""

import inspect
from typing import Any

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.errors import SettingsError
from regretless.registry import Registry, require_known
from regretless.testing.benchmarks import check_benchmark
from regretless.testing.feedback import check_feedback
from regretless.testing.models import check_model
from regretless.testing.oracles import check_oracle
from regretless.testing.policies import check_policy
from regretless.testing.surrogates import check_surrogate

FAMILIES: dict[str, tuple[Registry[Any], Any]] = {
    "policies": (policies.REGISTRY, check_policy),
    "surrogates": (surrogates.REGISTRY, check_surrogate),
    "models": (models.REGISTRY, check_model),
    "oracles": (oracles.REGISTRY, check_oracle),
    "benchmarks": (benchmarks.REGISTRY, check_benchmark),
    "feedback": (feedback.REGISTRY, check_feedback),
}


def check_registered(family: str, name: str) -> None:
    """Runs the checks of a family on the part that is registered there, such as ``("surrogates", "spo_plus")``.

    An oracle is made without arguments; one that needs some is refused, because ``check_oracle`` takes what you made.
    """
    require_known("family", family, FAMILIES)
    registry, check = FAMILIES[family]
    part: Any = registry[name]
    if family == "oracles":
        needed = [p for p in inspect.signature(part).parameters.values() if p.default is p.empty and p.kind <= 1]
        if needed:
            raise SettingsError(f"oracle {name!r} is made with arguments: build one and call check_oracle(it)")
        part = part()
    check(part)
