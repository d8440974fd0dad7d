"""A learner's problem and policy from names or objects, and the configuration that a checkpoint keeps of them."""

import inspect
from collections.abc import Collection, Mapping
from typing import Any, Literal, NamedTuple

import jax
import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from regretless import feedback as feedbacks
from regretless import policies
from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.feedback import Measurement, RowsTold
from regretless.live import inputs
from regretless.live.inputs import said
from regretless.live.kernel import Kernel
from regretless.models.base import ModelSpec
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.building import build_policy
from regretless.policies.guard import Guarded, guarded
from regretless.policies.offset import Offset
from regretless.policies.scaling import Scaled
from regretless.problem import Problem
from regretless.registry import nearest, require_known
from regretless.spec import Spec, merge_names
from regretless.surrogates.base import SurrogateSpec
from regretless.types import Instance


class Options(BaseModel):
    """The choices of a learner that are plain data."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    scaling: bool = True
    may_miss: bool = True
    rows: int | None = Field(None, ge=1, le=10**6)
    max_pending: int = Field(1000, ge=1, le=10**7)
    max_age: int | None = Field(None, ge=0)
    max_age_seconds: float | None = Field(None, ge=0, allow_inf_nan=False)
    sense: Literal["minimise", "maximise"] = "minimise"
    on_failure: Literal["raise", "last"] = "raise"
    seed: int = Field(0, ge=0, lt=2**32)
    budget: float = Field(0.05, ge=0, allow_inf_nan=False)
    mode: Literal["act", "shadow"] = "act"

    @classmethod
    def checked(cls, **values: Any) -> "Options":
        """Options from raw values; every problem is told in one SettingsError."""
        plain = {name: value.item() if isinstance(value, np.generic) else value for name, value in values.items()}
        try:
            return cls(**plain)
        except ValidationError as error:
            told = (f"{'.'.join(map(str, p['loc']))}: {p['msg']}, got {said(p['input'])}" for p in error.errors())
            raise SettingsError("learner: " + "; ".join(told)) from None


class Plan(NamedTuple):
    """Everything that a learner's programs are built from, but for the form of its instances."""

    oracle: Oracle
    context_shape: tuple[int, ...]
    rule: Measurement
    policy: str | Policy
    settings: PolicySpec | Mapping[str, Any] | None
    model: str | ModelSpec | None
    surrogate: str | SurrogateSpec | None
    offset: Any  # [d], costs; or None
    options: Options
    incumbent: Any = None  # a function, fixed decisions [d], or None
    columns: Columns | None = None  # of contexts by name

    def kernel(self, instance: Instance) -> Kernel:
        """The programs for instances like this one: the policy with scaling, the known costs and the guard around it."""
        may_miss = self.options.may_miss or self.rule.rows_told is not None
        problem = Problem(self.oracle, self.context_shape, self.rule, may_miss=may_miss, instance=instance)
        with jax.enable_x64(True):
            if isinstance(self.policy, Policy):
                self.policy.problem.require_played_on(problem, "learner: the policy object")
                policy, problem = self.policy, self.policy.problem
            else:
                policy = build_policy(self.spec(), problem, scaling=False)
            if self.options.scaling and not isinstance(policy, Scaled):
                policy = Scaled(problem, policy)
            if self.offset is not None:
                policy = Offset(problem, policy, self.offset)
            if self.incumbent is not None:
                policy = guarded(policy, None, budget=self.options.budget)
            return Kernel(policy, self.options.seed)

    def example(self, instance: Any) -> tuple[Instance, bool]:
        """An instance of the form of all of them, from the user or from the policy object; and whether that form is fixed."""
        own = None if instance is None else inputs.instance(self.oracle, instance)
        made = isinstance(self.policy, Policy)
        if isinstance(self.policy, Policy) and own is None:
            own = self.policy.problem.example_instance()
        return own, made or own is not None

    def config(self, feedback: str | Measurement) -> dict[str, Any]:
        """How a learner was made, as JSON data: ``offset`` in the user's units, objects as marks that they were ones."""
        parts = {"feedback": feedback, "policy": self.policy, "model": self.model, "surrogate": self.surrogate}
        fixed = isinstance(self.incumbent, np.ndarray)
        return {
            "oracle": self.oracle.fingerprint(),
            "context_shape": list(self.context_shape),
            **{name: config_entry(part) for name, part in parts.items()},
            "incumbent": self.incumbent.tolist() if fixed else config_entry(self.incumbent),
            "offset": None if self.offset is None else in_costs(self.offset, self.options.sense).tolist(),
            "columns": None if self.columns is None else self.columns.declaration(),
            "options": self.options.model_dump(),
        }

    def setting_names(self) -> dict[str, Any] | None:
        """Every setting of a policy by name, by dotted name; None for a policy object."""
        if isinstance(self.policy, Policy):
            return None
        objects = tuple(
            part for part, value in (("surrogate", self.surrogate), ("model", self.model)) if isinstance(value, Spec)
        )
        names = self.spec().names()
        return {name: value for name, value in names.items() if name.partition(".")[0] not in objects}

    def spec(self) -> PolicySpec:
        """Return the specification of a policy by name."""
        assert isinstance(self.policy, str)
        given = self.settings.names() if isinstance(self.settings, Spec) else dict(self.settings or {})
        chosen = {"surrogate": self.surrogate, "model": self.model}
        names = {part: name for part, name in chosen.items() if isinstance(name, str)}
        spec = policies.parse(self.policy, merge_names(given, names))
        return spec.replace(**{part: value for part, value in chosen.items() if isinstance(value, Spec)})


def refuse_unknown(given: Collection[str], made: type) -> None:
    """Refuses arguments that a class does not take; names the nearest one and lists all."""
    valid = [name for name in inspect.signature(made).parameters if name != "unknown"]
    for name in given:
        near = nearest(name, valid)
        hint = f"did you mean {near!r}? " if near is not None else ""
        raise SettingsError(f"learner: unknown argument {name!r}; {hint}Expected some of {', '.join(valid)}")


def offset(given: Any, oracle: Oracle, sense: str) -> np.ndarray | None:
    """The part of the cost that is known; None where none is."""
    return None if given is None else in_costs(inputs.vector("offset", given, oracle.dim), sense)


def in_costs(numbers: np.ndarray, sense: str) -> np.ndarray:
    """The user's numbers as costs, or costs as the user's numbers."""
    return numbers if sense == "minimise" else -numbers


def context_shape(dim: Any, shape: Any, columns: Any, oracle: Oracle) -> tuple[Any, ...]:
    """``(p,)`` or ``(d, p)`` from whichever of the three was given."""
    if sum(given is not None for given in (dim, shape, columns)) != 1:
        raise SettingsError(
            "learner: expected context_dim=p for a context vector, context_shape=(d, p) for feature rows, or columns= for "
            "contexts by name, and only one of them"
        )
    if columns is not None:
        if not isinstance(columns, Columns):
            raise SettingsError(f"learner: expected columns to be rg.Columns(...), got {said(columns)}")
        return (oracle.dim, columns.width) if columns.per_coordinate else (columns.width,)
    found = (dim,) if shape is None else tuple(shape) if isinstance(shape, tuple | list) else (shape, None)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in found):
        raise SettingsError(f"learner: expected whole numbers for the shape of a context, got {said(shape or dim)}")
    return found


def measurement(feedback: Any, rows: int | None) -> Measurement:
    """The feedback regime."""
    if isinstance(feedback, str):
        require_known("feedback", feedback, [*feedbacks.REGISTRY, "linear"])
        if (feedback == "linear") != (rows is not None):
            raise SettingsError(
                "learner: rows= is the most rows of one feedback with feedback='linear', and only then needed"
            )
        return feedbacks.regime(feedback) if rows is None else RowsTold(rows)
    if not isinstance(feedback, Measurement) or rows is not None:
        raise SettingsError(
            f"learner: expected feedback to be a name or a Measurement (without rows=), got {said(feedback)}"
        )
    return feedback


def require_parts(oracle: Any, policy: Any, settings: Any, model: Any, surrogate: Any, incumbent: Any) -> None:
    """Refuses parts of the wrong type, and parts of a policy that is an object."""
    if not isinstance(oracle, Oracle):
        raise SettingsError(f"learner: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
    for name, given, kinds in (
        ("policy", policy, (str, Policy)),
        ("settings", settings, (PolicySpec, Mapping, type(None))),
        ("model", model, (str, ModelSpec, type(None))),
        ("surrogate", surrogate, (str, SurrogateSpec, type(None))),
    ):
        if not isinstance(given, kinds):
            words = {"settings": "the policy's specification, or a dictionary of its settings by dotted name"}
            raise SettingsError(
                f"learner: expected {words.get(name, f'{name} to be a name or an object')}, got {said(given)}"
            )
    if isinstance(policy, Guarded) and incumbent is not None:
        raise SettingsError("learner: expected an incumbent, or a policy object that is guarded already, got both")
    if isinstance(policy, Policy) and not (settings is None and model is None and surrogate is None):
        raise SettingsError("learner: settings, model and surrogate are for a policy by name; this one is an object")


def objects(
    feedback: Any, policy: Any, model: Any, surrogate: Any, incumbent: Any, columns: Any = None
) -> dict[str, Any]:
    """What has to be given again to a learner that is loaded or replayed, where it was an object."""
    parts = {"feedback": feedback, "policy": policy, "model": model, "surrogate": surrogate, "incumbent": incumbent}
    return {**parts, "columns": columns}


def config_entry(thing: Any) -> Any:
    """A name as it is, an object as the mark that it was one."""
    if thing is None or isinstance(thing, str):
        return thing
    return {"object": f"{type(thing).__module__}.{type(thing).__qualname__}"}
