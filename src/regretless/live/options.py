"""Options of a learner, and how it was made: checked, described as JSON for a store, and restored from there."""

import dataclasses
import json
import math
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import numpy as np

from regretless import feedback as feedbacks
from regretless.columns import Columns
from regretless.errors import OracleError, RegretlessError, SettingsError, StoreError, short_repr
from regretless.live.engine import Engine, with_solution
from regretless.live.feedback_parser import parse_instance, parse_integer, parse_vector
from regretless.oracles.base import Oracle
from regretless.policies.base import REGISTRY, Policy, PolicySpec
from regretless.policies.guard import INCUMBENT, Budget, Guarded
from regretless.policies.scaling import Unscaled, require_effect
from regretless.problem import Problem, form_of
from regretless.types import Decision, Instance

MAX_CONTEXT_NUMBERS = 10**6
"""Numbers in a context that a file may ask memory for."""

Mode = Literal["act", "shadow"]


@dataclasses.dataclass(frozen=True, eq=False)
class Rollout:
    """Roll a learner out next to an incumbent: the person, rule or program that decides today.

    Parameters
    ----------
    incumbent : sequence of float or callable
        A fixed decision ``w`` of ``d`` numbers, or a function that returns one: ``incumbent(context)``, and
        ``incumbent(context, instance)`` if the feasible set changes.
    budget : float or Budget, default 0.05
        What the total cost may exceed the incumbent's by, with 95 % confidence at all times: a share above 0 and below
        1, or ``rg.Budget(amount=2000.0, per=100)``. The learner decides only while that is certain.
    mode : {"act", "shadow"}, default "act"
        With ``"shadow"`` the incumbent always decides, and ``Choice.proposed`` is what the learner would have done.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.Rollout([1.0, 0.0, 0.0, 1.0], budget=0.1)
    Rollout(incumbent=[1.0, 0.0, 0.0, 1.0], budget=0.1, mode='act')
    """

    incumbent: Sequence[float] | np.ndarray | Callable[..., Any]
    budget: float | Budget = 0.05
    mode: Mode = "act"

    def __post_init__(self) -> None:
        if self.incumbent is None:
            raise SettingsError(
                "rollout: expected an incumbent, fixed numbers or a function of the context, that decides wherever the "
                "learner may not, got None; without one there is no budget and no mode: leave rollout= out"
            )
        try:
            Budget.coerce(self.budget)
        except SettingsError as error:
            raise SettingsError(f"rollout: {error}") from None
        if self.mode not in ("act", "shadow"):
            raise SettingsError(f"rollout: expected mode 'act' or 'shadow', got {short_repr(self.mode)}")


class Incumbent:
    """Decide as before: by fixed numbers, or by a function of the context (and of the instance, if there are any)."""

    def __init__(self, given: Any, problem: Problem):
        self.problem, self.given = problem, given
        if not callable(given):
            self.given = parse_vector("incumbent", given, problem.dim)
            require_support(problem.oracle, self.given, "incumbent")
            if not problem.has_instances and not self._contained(problem.oracle, self.given, None):
                raise SettingsError(
                    f"incumbent: expected a feasible decision, got {short_repr(self.given.tolist())}, which the "
                    f"feasible set {problem.oracle.kind} does not contain"
                )

    def describe(self) -> Any:
        """Return the incumbent as JSON data: its numbers, or the mark that it is a function."""
        return "function" if callable(self.given) else self.given.tolist()

    def replace(
        self, engine: Engine, draft: Any, *, certain: bool, member: int = INCUMBENT, plan: Any = None
    ) -> Decision:
        """Return the incumbent's decision in place of a draft, with the probability with which it decides.

        Its ``plan`` is what ``plan`` returned for this round, if that was asked already.
        """
        if isinstance(plan, RegretlessError):
            raise plan
        w = self._decide(engine, np.asarray(draft.context), draft.instance) if plan is None else plan
        zeros = np.zeros_like(draft.cost_sample)
        return with_solution(
            draft,
            w,
            jax.tree.map(np.zeros_like, draft.aux),
            cost_sample=zeros,
            noise=zeros,
            member=np.asarray(member, draft.member.dtype),
            log_density=np.zeros_like(draft.log_density) if certain else draft.log_density,
            log_probability=_probability_of_replacement(draft, certain, member),
        )

    def plan(self, engine: Engine, context: np.ndarray, instance: Instance) -> np.ndarray | RegretlessError:
        """Return the incumbent's decision in this round, or the error that it raises."""
        try:
            return self._decide(engine, context, instance)
        except RegretlessError as error:
            return error

    def _decide(self, engine: Engine, context: np.ndarray, instance: Instance) -> np.ndarray:
        has_instances, oracle = engine.problem.has_instances, engine.oracle
        if not callable(self.given):
            if has_instances and not self._contained(oracle, self.given, instance):
                raise OracleError(
                    "incumbent: the fixed decision is not feasible now; give a function of context and instance instead"
                )
            return self.given
        columns = self.problem.columns
        shown = context if columns is None else columns.decode(context)
        try:
            returned = self.given(shown, instance) if has_instances else self.given(shown)
        except Exception as error:
            raise OracleError(f"incumbent: its function failed: {type(error).__name__}: {error}") from error
        w = parse_vector("the incumbent's decision", returned, self.problem.dim)
        require_support(oracle, w, "incumbent")
        return w

    @staticmethod
    def _contained(oracle: Oracle, w: np.ndarray, instance: Instance) -> bool:
        return bool(oracle.contained(w[None], jax.tree.map(lambda leaf: leaf[None], instance))[0])


def _probability_of_replacement(draft: Any, certain: bool, member: int) -> Any:
    """Return the logarithm of the probability of an incumbent's decision; unknown where a solver failed."""
    if member != INCUMBENT:
        return np.full_like(draft.log_probability, np.nan)
    return np.zeros_like(draft.log_probability) if certain else draft.log_probability


def require_support(oracle: Oracle, w: np.ndarray, name: str) -> None:
    """Refuse a decision with more coordinates other than zero than any of the feasible set has."""
    if np.count_nonzero(w) > oracle.support:
        raise SettingsError(
            f"{name}: expected at most {oracle.support} coordinates other than zero, as in every decision of this "
            f"feasible set, got {np.count_nonzero(w)}"
        )


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
        if not isinstance(self.path, str | os.PathLike) or not str(self.path) or "\0" in str(self.path):
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
        parse_integer("pending: limit", self.limit, 1, 10**7)
        if self.max_age is not None:
            parse_integer("pending: max_age", self.max_age, 0, 2**31)
        if self.max_age_seconds is not None:
            _require_number("pending: max_age_seconds", self.max_age_seconds, 0.0, math.inf)


def _require_number(name: str, value: Any, low: float, high: float) -> None:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not low <= value <= min(high, sys.float_info.max):
        limits = f"of at least {low:g}" if high == math.inf else f"from {low:g} to {high:g}"
        raise SettingsError(f"{name}: expected a number {limits}, got {short_repr(value)}")


def complete_problem(given: Any, context: Any, feedback: Any) -> Problem:
    """Return the problem of a learner, from a Problem or from an oracle and what else is known."""
    if isinstance(given, Problem):
        if context is not None or feedback is not None:
            raise SettingsError("learner: context= and feedback= belong to the Problem; give them with an oracle only")
        problem = given
    elif isinstance(given, Oracle):
        if context is None:
            raise SettingsError(
                "learner: expected context=p for a context of p numbers, context=(d, p) for feature rows, or "
                "rg.Columns(…)"
            )
        problem = Problem(given, context, "bandit" if feedback is None else feedback)
    else:
        raise SettingsError(f"learner: expected a Problem or an oracle (see rg.oracles), got {short_repr(given)}")
    if problem.may_miss is None or problem.feedback.max_rows is not None:
        problem = problem.with_missing(True)
    if problem.has_instances:  # in the types that the oracle makes of what a user gives
        problem = problem.with_instance(parse_instance(problem.oracle, problem.example_instance()))
    return problem


def require_options(rollout: Any, pending: Any, on_failure: Any, seed: Any) -> None:
    """Refuse options of the wrong kind."""
    for name, given, kind in (("rollout", rollout, Rollout), ("pending", pending, Pending)):
        if given is not None and not isinstance(given, kind):
            raise SettingsError(f"learner: expected {name} to be rg.{kind.__name__}(…), got {short_repr(given)}")
    if on_failure not in ("raise", "last", "incumbent"):
        expected = "'raise', 'last' or 'incumbent'"
        raise SettingsError(f"learner: expected on_failure {expected}, got {short_repr(on_failure)}")
    if on_failure == "incumbent" and rollout is None:
        raise SettingsError(
            "learner: on_failure='incumbent' expects an incumbent; give rollout=rg.Rollout(…), with mode='act'"
        )
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not 0 <= seed < 2**32:
        raise SettingsError(f"learner: expected a seed from 0 to {2**32 - 1}, got {short_repr(seed)}")


def parse_policy(policy: Any, rollout: Rollout | None) -> PolicySpec | Policy:
    """Return the policy as a specification or an object."""
    if policy is None:
        policy = "adaptive"
    if isinstance(policy, Guarded) and rollout is not None:
        raise SettingsError("learner: expected a rollout, or a policy object that is guarded already, got both")
    if isinstance(policy, Policy):
        return policy
    if not isinstance(policy, str | PolicySpec):
        raise SettingsError(
            "learner: expected policy to be a specification such as rg.policies.Adaptive(), its name or a policy, "
            f"got {short_repr(policy)}"
        )
    spec: PolicySpec = PolicySpec.coerce(policy)
    return spec


def _inner(policy: Any) -> Any:
    """Return the specification inside ``Unscaled``."""
    return policy.policy if isinstance(policy, Unscaled) else policy


def setting_names(policy: Any) -> dict[str, Any]:
    """Return the settings of a policy by dotted name; those of an object are not known."""
    return {} if isinstance(policy, Policy) else dict(_inner(policy).names())


def replace_settings(policy: Any, changes: Mapping[str, Any]) -> Any:
    """Return a specification with other settings."""
    changed = _inner(policy).replace(**changes)
    return Unscaled(changed) if isinstance(policy, Unscaled) else changed


def describe_policy(policy: Any) -> dict[str, Any]:
    """Return a policy as JSON data: name and settings, or the mark that it was an object."""
    if isinstance(policy, Policy):
        return {"object": f"{type(policy).__module__}.{type(policy).__qualname__}"}
    spec = _inner(policy)
    return {"name": spec.registered_name, "settings": spec.names(), "scaling": not isinstance(policy, Unscaled)}


def restore_policy(stored: Mapping[str, Any], given: Any) -> PolicySpec | Policy:
    """Return the policy of a store, from its description or from the object that is given again."""
    if "object" in stored:
        if not isinstance(given, Policy) or describe_policy(given) != dict(stored):
            raise StoreError(f"it was stored with a policy object ({stored['object']}): give it as policy=")
        return given
    spec: Any = None
    if given is not None:
        spec = parse_policy(given, None)
        described = describe_policy(spec)
        if any(described.get(part) != stored[part] for part in ("name", "scaling")):
            got = described.get("name", described.get("object"))
            raise StoreError(
                f"it was stored with the policy {stored['name']!r}{'' if stored['scaling'] else ' (unscaled)'}, got "
                f"{got!r}; another policy is a new learner (learn_from its History)"
            )
        before = json.loads(json.dumps(described["settings"]))
        differing = [name for name in before if before[name] != stored["settings"].get(name)]
        if differing:
            name = differing[0]
            warnings.warn(
                f"the policy's settings stay those of the store ({name}: {stored['settings'].get(name)!r}, not "
                f"{before[name]!r}); settings= of Learner.open, or update, changes them",
                stacklevel=5,
            )
        return replace_settings(spec, {name: stored["settings"][name] for name in differing}) if differing else spec
    try:
        spec = REGISTRY.parse(stored["name"], stored["settings"])
    except SettingsError as error:
        raise StoreError(f"it was stored with the policy {stored['name']!r}: give it as policy= ({error})") from None
    return spec if stored["scaling"] else Unscaled(spec)


def restore_rollout(stored: Mapping[str, Any] | None, given: Rollout | None) -> Rollout | None:
    """Return the rollout of a store; its incumbent is given again if it is a function."""
    if stored is None:
        if given is not None:
            raise StoreError("it was stored without an incumbent: give no rollout= (another rollout is a new learner)")
        return None
    budget, mode, incumbent = stored["budget"], stored["mode"], stored["incumbent"]
    if given is None:
        if isinstance(incumbent, str):
            raise StoreError("it was stored with a function as its incumbent: give it as rollout=rg.Rollout(function)")
        return Rollout(incumbent, from_data(budget), mode)
    if not isinstance(given, Rollout):
        raise SettingsError(f"learner: expected rollout to be rg.Rollout(…), got {short_repr(given)}")
    budget = from_data(budget)
    if (Budget.coerce(given.budget), given.mode) != (Budget.coerce(budget), mode):
        warnings.warn(
            f"budget {budget} and mode {mode!r} stay those of the store (got {given.budget} and {given.mode!r}); "
            "settings= of Learner.open, or update, changes them",
            stacklevel=5,
        )
    return Rollout(given.incumbent, budget, mode)


def from_data(budget: Any) -> Any:
    """Return a budget from its JSON data: a number, or a Budget."""
    return Budget(**budget) if isinstance(budget, dict) else budget


def describe_problem(problem: Problem) -> dict[str, Any]:
    """Return a problem as JSON data, without the form of its instances; a measurement of the user only by its type."""
    rule = problem.feedback
    feedback: Any = {"object": f"{type(rule).__module__}.{type(rule).__qualname__}"}
    if rule.max_rows is not None:
        feedback = {"rows": rule.max_rows}
    elif rule.name in feedbacks.REGISTRY and feedbacks.regime(rule.name) == rule:
        feedback = rule.name
    return {
        "oracle": json.loads(json.dumps(problem.oracle.fingerprint())),
        "context": list(problem.context_shape),
        "columns": None if problem.columns is None else problem.columns.declaration(),
        "feedback": feedback,
        "may_miss": problem.may_miss,
        "sense": problem.sense,
        "offset": None if problem.offset is None else list(problem.offset),
    }


def restore_problem(stored: dict[str, Any], given: Problem | Oracle) -> Problem:
    """Return the problem of a store, checked against the one that is given."""
    if isinstance(given, Problem):
        problem = complete_problem(given, None, None)
    else:
        feedback = stored["feedback"]
        if isinstance(feedback, dict) and "rows" not in feedback:
            raise StoreError(
                f"it was stored with a measurement of your own ({feedback['object']}): give the whole Problem"
            )
        rule = feedbacks.ReportedRows(feedback["rows"]) if isinstance(feedback, dict) else feedback
        columns, shape = stored["columns"], stored["context"]
        if not all(type(size) is int and size > 0 for size in shape) or math.prod(shape) > MAX_CONTEXT_NUMBERS:
            raise StoreError(
                f"its contexts have the shape {short_repr(shape)}, expected at most {MAX_CONTEXT_NUMBERS} numbers"
            )
        context = tuple(shape) if columns is None else Columns(**columns)
        other = {name: stored[name] for name in ("may_miss", "sense", "offset")}
        problem = Problem(given, context, rule, **other)
    described = json.loads(json.dumps(describe_problem(problem)))
    for part, before in stored.items():
        got = described.get(part)
        if before != got:
            if isinstance(before, dict) and isinstance(got, dict):
                keys = [key for key in {**before, **got} if before.get(key) != got.get(key)]
                before, got = ({key: side.get(key) for key in keys} for side in (before, got))
            raise StoreError(
                f"expected the {part} that it was stored with: {short_repr(before)}, got {short_repr(got)}"
            )
    return problem


def with_settings(engine: Engine, budget: float | Budget | None, changes: Mapping[str, Any]) -> Engine:
    """Return the engine with other numbers of the policy; refuse what would change the form of what was learned."""
    problem, policy, _, _ = engine.setup
    if isinstance(policy, Policy) and changes:
        raise SettingsError(
            "update: expected a learner whose policy is a specification or a name; this one is a policy object, whose "
            "numbers are fixed"
        )
    names = setting_names(policy)
    for name in changes:
        if isinstance(names.get(name), bool) or not isinstance(names.get(name), int | float):
            reason = "is not a number" if name in names else "is unknown"
            raise SettingsError(f"update: {name!r} {reason}; those that can change are {changeable(policy)}")
    if changes:
        policy = replace_settings(policy, changes)
        require_effect(_inner(policy), changes, problem)
    after = engine.with_settings(policy, budget)
    if form_of(engine.state_form) != form_of(after.state_form):
        described = ", ".join(f"{name} from {names[name]!r} to {value!r}" for name, value in changes.items())
        raise SettingsError(
            f"update: changing {described} would change the form of what was learned; make a new learner for that, or "
            f"change one of {changeable(policy)}"
        )
    return after


def changeable(policy: Any) -> str:
    """Describe the settings whose value can change; integers are left out, because most of them are sizes."""
    floats = [f"{name} ({value!r})" for name, value in setting_names(policy).items() if isinstance(value, float)]
    return ", ".join(floats) or "none of this policy's"
