"""Options of a Learner that belong together: who decides besides it, where it is kept, how long decisions wait."""

import dataclasses
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from regretless.errors import SettingsError, short_repr

Mode = Literal["act", "shadow"]


@dataclasses.dataclass(frozen=True, eq=False)
class Rollout:
    """Roll a learner out next to an incumbent: whoever or whatever decides today.

    Parameters
    ----------
    incumbent : sequence of float or callable
        A fixed decision ``w`` of ``d`` numbers, or a function that returns one: ``incumbent(context)``, and
        ``incumbent(context, instance)`` if the feasible set changes.
    budget : float, default 0.05
        The share, above 0 and below 1, by which the total cost may exceed the incumbent's, with 95 % confidence at all
        times. The learner decides only while that is certain.
    mode : {"act", "shadow"}, default "act"
        In the ``"shadow"`` the incumbent always decides, and ``Choice.proposed`` is what the learner would have done.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.Rollout([1.0, 0.0, 0.0, 1.0], budget=0.1)
    Rollout(incumbent=[1.0, 0.0, 0.0, 1.0], budget=0.1, mode='act')
    """

    incumbent: Sequence[float] | np.ndarray | Callable[..., Any]
    budget: float = 0.05
    mode: Mode = "act"

    def __post_init__(self) -> None:
        if self.incumbent is None:
            raise SettingsError(
                "rollout: expected an incumbent, fixed numbers or a function of the context, that decides wherever the "
                "learner "
                "may not, got None; without one there is no budget and no mode: leave rollout= out"
            )
        _require_number("rollout: budget", self.budget, 0.0, 1.0)
        if not 0.0 < self.budget < 1.0:
            raise SettingsError(
                f"rollout: expected a budget above 0 and below 1, such as 0.05 for 5 % more cost, got {self.budget!r}"
            )
        if self.mode not in ("act", "shadow"):
            raise SettingsError(f"rollout: expected mode 'act' or 'shadow', got {short_repr(self.mode)}")


@dataclasses.dataclass(frozen=True)
class Store:
    """Keep a learner in one file, an SQLite database: log, checkpoint and replay at once.

    Parameters
    ----------
    path : str or Path
        The file. Every call that changes the learner is committed to it before it returns; other processes may read it
        meanwhile. While the learner runs, there are files next to it that end in ``-wal``, ``-shm`` and ``-owner``.
    sync : bool, default False
        Whether a call returns only after the disk has its record. Without it, nothing is lost when the process is
        killed, but the last records may be when the machine loses power.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.Store("plant.db", sync=True)
    Store(path='plant.db', sync=True)
    """

    path: str | Path
    sync: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not str(self.path):
            raise SettingsError(f"store: expected the path of a file, got {short_repr(self.path)}")
        if not isinstance(self.sync, bool):
            raise SettingsError(f"store: expected sync to be True or False, got {short_repr(self.sync)}")


@dataclasses.dataclass(frozen=True)
class Pending:
    """Limit how many decisions wait for feedback, and how long.

    Parameters
    ----------
    limit : int, default 1000
        Decisions that wait at most; the oldest expires first. As many learned ones are remembered, to recognise
        repeated feedback.
    max_age : int, optional
        Further decisions after which a waiting one expires.
    max_age_seconds : float, optional
        Seconds by the learner's clock after which a waiting decision expires.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.Pending(limit=100, max_age_seconds=86_400)
    Pending(limit=100, max_age=None, max_age_seconds=86400)
    """

    limit: int = 1000
    max_age: int | None = None
    max_age_seconds: float | None = None

    def __post_init__(self) -> None:
        _require_integer("pending: limit", self.limit, 1, 10**7)
        if self.max_age is not None:
            _require_integer("pending: max_age", self.max_age, 0, 2**31)
        if self.max_age_seconds is not None:
            _require_number("pending: max_age_seconds", self.max_age_seconds, 0.0, math.inf)


def _require_integer(name: str, value: Any, low: int, high: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not low <= value <= high:
        raise SettingsError(f"{name}: expected an integer from {low} to {high}, got {short_repr(value)}")


def _require_number(name: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not low <= value <= high:
        limits = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingsError(f"{name}: expected a number {limits}, got {short_repr(value)}")
