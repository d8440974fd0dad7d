"""Parts that are built from settings: their numbers become array leaves, their choices stay static."""

from typing import Any, ClassVar

import equinox as eqx
import numpy as np

from regretless.settings import Settings


def number(value: float) -> Any:
    """A hyper-parameter as an array leaf: its value may change without a new compilation."""
    return np.asarray(value, np.float64)


class Part(eqx.Module):
    """Something with settings of its own: a nested class ``Settings``, whose fields are fields of the part too."""

    Settings: ClassVar[type[Settings]] = Settings


def fields(settings: Settings) -> dict[str, Any]:
    """The settings as fields of a part: floats as numbers that a program takes, everything else as it is."""
    values = {name: getattr(settings, name) for name in type(settings).model_fields}
    return {name: number(value) if isinstance(value, float) else value for name, value in values.items()}
