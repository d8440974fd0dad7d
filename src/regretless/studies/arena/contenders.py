"""Who is played in the arena: policies by name with their defaults, and references whose settings are written down here."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from regretless import policies
from regretless.registry import require_known
from regretless.studies.arena.scores import REFERENCE
from regretless.studies.experiment import Arm


class Contender(NamedTuple):
    """A policy with settings that are not its defaults."""

    policy: str
    settings: Mapping[str, Any] = {}


REFERENCES: dict[str, Contender] = {
    REFERENCE: Contender("linear_thompson", {"intercept_ridge": 1.0, "slope_ridge": 1.0, "clipping": 0.0}),
    "linear_a": Contender("linear_thompson", {"intercept_ridge": 9.0, "slope_ridge": 81.0, "clipping": 4.0}),
    "linear_b": Contender(
        "linear_thompson", {"intercept_ridge": 9.0, "slope_ridge": 81.0, "clipping": 4.0, "forgetting": 0.005}
    ),
    "nets_c": Contender("ensemble"),
}
"""By label: linear regression as it was, with a stronger prior and clipped residuals, the same with fading memory, and nets."""

DEFAULT = ("adaptive", "linear_thompson", *REFERENCES)
"""Who is played where nobody is named."""


def arm(label: str) -> Arm:
    """The arm that plays the policy or reference called ``label``."""
    if label in REFERENCES:
        policy, settings = REFERENCES[label]
        return Arm(label=label, policy=policy, settings=dict(settings))
    require_known("policy", label, [*policies.REGISTRY, *REFERENCES])
    return Arm(label=label, policy=label)
