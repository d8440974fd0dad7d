"""Contract checks of a registered part, by family and name."""

import inspect
from typing import Any

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.errors import SettingsError
from regretless.registry import Registry, require_known
from regretless.testing.models import check_model, check_surrogate
from regretless.testing.policies import check_policy
from regretless.testing.problems import check_benchmark, check_feedback, check_oracle

FAMILIES: dict[str, tuple[Registry[Any], Any]] = {
    "policies": (policies.REGISTRY, check_policy),
    "surrogates": (surrogates.REGISTRY, check_surrogate),
    "models": (models.REGISTRY, check_model),
    "oracles": (oracles.REGISTRY, check_oracle),
    "benchmarks": (benchmarks.REGISTRY, check_benchmark),
    "feedback": (feedback.REGISTRY, check_feedback),
}


def check_registered(family: str, name: str) -> None:
    """Run the checks of a family on a registered part.

    Parameters
    ----------
    family : str
        One of "policies", "surrogates", "models", "oracles", "benchmarks" and "feedback".
    name : str
        The name in the registry of the family. An oracle is made without arguments.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    SettingsError
        If the family or name is unknown, or an oracle needs arguments; build one and call ``check_oracle``.
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
