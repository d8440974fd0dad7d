"""A learner's policy from names or objects, and the configuration that a checkpoint keeps of them."""

import dataclasses
import hashlib
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regretless import feedback as feedbacks
from regretless import models, policies, surrogates
from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.live.arrivals import FreeRows
from regretless.models.base import Model
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy
from regretless.problem import Problem
from regretless.registry import require_known
from regretless.settings import Settings
from regretless.surrogates.base import Surrogate


class Options(BaseModel):
    """The choices of a learner that are plain data."""

    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)

    context_shape: tuple[int, ...] = Field(min_length=1, max_length=2)
    scaling: bool = True
    may_miss: bool = True
    rows: int | None = Field(None, ge=1)
    max_pending: int = Field(1000, ge=1, le=10**7)
    max_age: int | None = Field(None, ge=0)
    on_failure: Literal["raise", "last"] = "raise"
    seed: int = Field(0, ge=0, lt=2**32)

    @classmethod
    def checked(cls, **values: Any) -> "Options":
        """Options from raw values; every problem is told in one SettingsError."""
        try:
            return cls(**values)
        except ValidationError as error:
            told = (f"{'.'.join(map(str, p['loc']))}: {p['msg']}, got {p['input']!r}" for p in error.errors())
            raise SettingsError("learner: " + "; ".join(told)) from None


def context_shape(oracle: Oracle, dim: int | None, shape: tuple[int, ...] | None) -> tuple[int, ...]:
    """``(p,)`` or ``(d, p)`` from whichever of the two was given."""
    if (dim is None) == (shape is None):
        raise SettingsError(
            "learner: expected context_dim=p for a context vector or context_shape=(d, p) for feature rows"
        )
    whole = (dim,) if shape is None else tuple(shape)
    if (
        not all(isinstance(n, int) and n >= 1 for n in whole)
        or (len(whole) == 2 and whole[0] != oracle.dim)
        or len(whole) > 2
    ):
        raise SettingsError(
            f"learner: expected a context of shape (p,) or ({oracle.dim}, p) with p ≥ 1, a row per cost coordinate, got {whole}"
        )
    return whole  # type: ignore[return-value]


def measurement(feedback: str | Measurement, rows: int | None) -> Measurement:
    """The feedback regime."""
    if isinstance(feedback, str):
        require_known("feedback", feedback, [*feedbacks.REGISTRY, "linear"])
        if (feedback == "linear") != (rows is not None):
            raise SettingsError(
                "learner: rows= is the most rows of one feedback with feedback='linear', and only then needed"
            )
        return FreeRows() if feedback == "linear" else feedbacks.REGISTRY[feedback]
    if not isinstance(feedback, Measurement) or rows is not None:
        raise SettingsError(
            f"learner: expected feedback to be a name or a Measurement (without rows=), got {feedback!r}"
        )
    return feedback


def build_policy(
    policy: str | Policy, settings: Settings | Mapping[str, Any] | None, problem: Problem,
    model: str | Model, surrogate: str | Surrogate | None,
) -> Policy:  # fmt: skip
    """The policy, with a model or a surrogate of the user's own put in place."""
    if isinstance(policy, Policy):
        if settings is not None or surrogate is not None or not isinstance(model, str):
            raise SettingsError(
                "learner: settings, model and surrogate are for a policy by name; this one is an object"
            )
        return policy
    chosen = settings if isinstance(settings, Settings) else Settings.checked(**(settings or {}))
    if isinstance(surrogate, str):
        require_known("surrogate", surrogate, surrogates.REGISTRY)
        chosen = chosen.updated(surrogate=surrogate)
    if isinstance(model, str):
        require_known("model", model, models.REGISTRY)
        problem = problem._replace(model_name=model)
    built = policies.build(policy, chosen, problem)
    own = {
        "model": None if isinstance(model, str) else model,
        "surrogate": None if isinstance(surrogate, str) else surrogate,
    }
    own = {name: thing for name, thing in own.items() if thing is not None}
    for name in own:
        if not hasattr(built, name):
            raise SettingsError(f"learner: policy {policy!r} has no {name} of its own to replace")
    return type(built)(**{**vars(built), **own}) if own else built


def spoken(thing: Any) -> Any:
    """A name as it is, an object as the mark that it was one."""
    if thing is None or isinstance(thing, str):
        return thing
    return {"object": f"{type(thing).__module__}.{type(thing).__qualname__}"}


def fingerprint(oracle: Oracle) -> dict[str, Any]:
    """What can be said of an oracle in plain data: its kind, its size, its choices."""
    print_: dict[str, Any] = {"kind": type(oracle).__name__}
    for field in dataclasses.fields(oracle):
        value = getattr(oracle, field.name)
        if isinstance(value, bool | int | float | str):
            print_[field.name] = value
        elif isinstance(value, tuple) and not any(callable(part) for part in value):
            print_[field.name] = hashlib.sha256(repr(value).encode()).hexdigest()[:16]
    return print_


def vector(what: str, values: Any, length: int) -> np.ndarray:
    """Numbers of this many coordinates."""
    try:
        array = np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise SettingsError(f"learner: expected numbers in {what}, got {values!r}") from None
    if array.shape != (length,) or not np.all(np.isfinite(array)):
        raise SettingsError(f"learner: expected {what} to be {length} finite numbers, got shape {array.shape}")
    return array
