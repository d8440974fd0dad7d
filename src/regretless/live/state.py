"""Everything that a learner knows, as one immutable record: each change makes a new one."""

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless.array_files import flatten_tree, require_no_extra, restore_tree
from regretless.errors import CheckpointError, ConflictError, SettingsError, StoreError, UnknownDecisionError
from regretless.live.comparison import HealthRecord
from regretless.live.engine import Engine
from regretless.live.feedback_parser import MAX_ID, Arrival
from regretless.live.options import Mode, Pending
from regretless.live.records import By
from regretless.live.store import Record
from regretless.policies.guard import is_policys
from regretless.types import Decision

MAX_INSTANCE_NUMBERS = 10**7
"""Numbers in an instance that a file may ask memory for."""

OPEN_FORM = "open"
"""The form of instances before the first decision."""

MAY_BE_NAN = (
    "pieces",
    "proposed",
    "waiting.log_density",
    "waiting.log_probability",
    "learned.decision.log_density",
    "learned.decision.log_probability",
    "learned.residual",
    "health/steps",
)
MAY_BE_ANYTHING = ("numbers", "last[1]")


LOST_ERRORS = 3.0
"""Standard errors from which the shares of feedback that is missing differ for a reason."""


class LearnedDecision(NamedTuple):
    """What is remembered of a learned decision: enough to recognise repeated feedback and to explain it."""

    decision: Decision
    signature: Any
    residual: Any


class MadeDecision(NamedTuple):
    """A new decision and how it came about; kept as long as it is remembered if the caller gave it a key."""

    decision: Decision
    by: By
    by_solver: bool = False
    fallback: bool = False
    explore: bool = False
    key: str | None = None
    proposed: np.ndarray | None = None

    def data(self) -> tuple[Any, ...]:
        """Return the rest of it as JSON data, without the arrays."""
        return self[1:-1]


@dataclasses.dataclass(frozen=True, eq=False)
class LearnerState:
    """A learner after record ``number``; nothing in it is changed in place.

    At most ``limits.limit`` decisions wait. As many learned ones are remembered, to recognise repeated feedback.
    """

    engine: Engine
    limits: Pending
    health: HealthRecord
    mode: Mode = "act"
    paused: bool = False  # whether the incumbent has every decision
    number: int = 0
    form_fixed: bool = False  # whether the form of instances is known
    policy: Any = None  # the policy's state, None until it is needed
    waiting: dict[int, Decision] = dataclasses.field(default_factory=dict)
    times: dict[int, float] = dataclasses.field(default_factory=dict)  # when they were made, if age in seconds matters
    pieces: dict[int, np.ndarray] = dataclasses.field(default_factory=dict)  # rows so far, NaN for the others
    learned: dict[int, LearnedDecision] = dataclasses.field(default_factory=dict)
    keyed: dict[int, MadeDecision] = dataclasses.field(default_factory=dict)
    key_ids: dict[str, int] = dataclasses.field(default_factory=dict)
    last: tuple[Any, Any] | None = None  # the last feasible decision of the solver, with its aux
    made: int = 0  # decisions so far; ids are 1, 2, …
    expired: int = 0
    settled: tuple[int, ...] = (0, 0, 0, 0)  # learned and expired of the learner, then of the incumbent behind a guard

    def policy_state(self, engine: Engine | None = None) -> Any:
        """Return the policy's state, that of the start if there is none yet."""
        return (engine or self.engine).init() if self.policy is None else self.policy

    @property
    def guard_waiting(self) -> float:
        """Decisions of the learner that wait for feedback, for a guard.

        Where the learner's decisions expire more often than the incumbent's, feedback is missing for a reason: those
        beyond the incumbent's share go on counting as if they waited.
        """
        if not self.engine.guarded:
            return 0.0
        waiting = sum(is_policys(int(vars(decision)["member"])) for decision in self.waiting.values())
        return waiting + self.suspicious

    @property
    def suspicious(self) -> float:
        """Decisions of the learner that have expired beyond the share that expires of the incumbent's."""
        learned, lost, others, others_lost = self.settled
        if not lost or not (others + others_lost):
            return 0.0
        count, other_count = learned + lost, others + others_lost
        share, pooled = others_lost / other_count, (lost + others_lost) / (count + other_count)
        surplus = lost - share * count
        error = math.sqrt(pooled * (1.0 - pooled) * (1.0 / count + 1.0 / other_count)) * count
        return surplus if surplus > LOST_ERRORS * error else 0.0

    def _settle(self, decision: Decision, place: int) -> tuple[int, ...]:
        """Return the counts after a decision was learned (place 0) or has expired (1)."""
        member = int(decision.member)
        if not self.engine.guarded or member == 0:
            return self.settled
        place += 0 if is_policys(member) else 2
        return tuple(count + (i == place) for i, count in enumerate(self.settled))

    def overdue(self, more: int, now: float, *, learned: bool = False) -> list[int]:
        """Return which decisions expire when ``more`` new ones are made; ``learned``: the new ones do not wait."""
        made, limits = self.made + more, self.limits
        if limits.max_age is None and limits.max_age_seconds is None and len(self.waiting) + more <= limits.limit:
            return []
        candidates = [*self.waiting, *(() if learned else range(self.made + 1, made + 1))]
        old: set[int] = set()
        if limits.max_age is not None:
            old |= {id for id in candidates if made - id > limits.max_age}
        if limits.max_age_seconds is not None:
            old |= {id for id in self.waiting if now - self.times[id] > limits.max_age_seconds}
        rest = [id for id in candidates if id not in old]
        return sorted({*old, *rest[: max(len(rest) - limits.limit, 0)]})

    def find(self, id: int, expired: Iterable[int] = ()) -> Decision:
        """Return the decision ``id``, waiting or learned; those ``expired`` are gone by now."""
        if id in self.learned:
            return self.learned[id].decision
        if id in self.waiting and id not in expired:
            return self.waiting[id]
        if not 1 <= id <= self.made:
            made = f"this learner has made decisions 1 to {self.made}" if self.made else "no decision has been made yet"
            raise UnknownDecisionError(f"unknown decision {id!r}: {made}")
        limits = self.limits
        kept = f"the last {limits.limit} waiting decisions are kept"
        kept += "" if limits.max_age is None else f", none older than {limits.max_age} decisions"
        kept += "" if limits.max_age_seconds is None else f", none older than {limits.max_age_seconds:g} seconds"
        raise UnknownDecisionError(f"decision {id} has expired or was learned long ago: {kept} (rg.Pending)")

    def require_same_feedback(self, id: int, signature: np.ndarray, *, piece: bool = False) -> None:
        """Raise unless this very feedback is what decision ``id`` was learned from, or a ``piece`` of it."""
        before = self.learned[id].signature
        same = before.shape == signature.shape
        if same and piece:  # a signature is values, then which of them were seen
            seen = np.tile(signature[len(signature) // 2 :] > 0, 2)
            before, signature = before[seen], signature[seen]
        if not same or not np.allclose(before, signature, rtol=1e-9, atol=1e-12):
            raise ConflictError(
                f"decision {id} has been learned from other feedback already, which cannot be undone; this one was "
                "left out (report feedback that comes in pieces with final=False until the last)"
            )

    def with_decisions(
        self, engine: Engine, made: Sequence[MadeDecision], now: float, expired: Sequence[int]
    ) -> "LearnerState":
        """Return the state after new decisions."""
        numbered = dict(enumerate(made, self.made + 1))
        changes: dict[str, Any] = {"engine": engine, "policy": self.policy_state(engine), "form_fixed": True}
        changes["made"] = self.made + len(made)
        changes["waiting"] = self.waiting | {id: item.decision for id, item in numbered.items()}
        if self.limits.max_age_seconds is not None:
            changes["times"] = self.times | dict.fromkeys(numbered, now)
        new = {id: item for id, item in numbered.items() if item.key is not None}
        if new:
            changes["keyed"] = self.keyed | new
            changes["key_ids"] = self.key_ids | {item.key: id for id, item in new.items()}
        solved = [item.decision for item in made if item.by_solver]
        if solved:
            changes["last"] = (solved[-1].w, solved[-1].aux)
        return self.next(**changes)._expire(expired)

    def with_piece(self, id: int, values: np.ndarray, expired: Sequence[int]) -> "LearnerState":
        """Return the state after a part of the feedback on decision ``id``."""
        return self.next(pieces=self.pieces | {id: values})._expire(expired)

    def with_feedback(
        self, id: int, arrival: Arrival, policy: Any, info: Mapping[str, float], expired: Sequence[int]
    ) -> "LearnerState":
        """Return the state after decision ``id`` was learned."""
        decision = self.waiting[id]
        learned = {id: LearnedDecision(decision, arrival.signature(), np.asarray(info["residual"]))}
        health = self.health.after_feedback(info, id, decision)
        settled = self._settle(decision, 0)
        state = self.next(policy=policy, health=health, settled=settled, **self._without_waiting([id]))
        return state._remember(learned)._expire(expired)

    def with_history(
        self,
        engine: Engine,
        policy: Any,
        learned: Sequence[LearnedDecision],
        infos: Sequence[Mapping[str, float]],
        expired: Sequence[int],
    ) -> "LearnerState":
        """Return the state after decisions made elsewhere were learned; only the last of them are remembered."""
        first, forgotten = self.made + 1, len(infos) - len(learned)
        health = self.health
        for place, info in enumerate(infos):
            decision = None if place < forgotten else learned[place - forgotten].decision
            health = health.after_feedback(info, first + place, decision)
        made = self.made + len(infos)
        state = self.next(engine=engine, policy=policy, form_fixed=True, health=health, made=made)
        return state._remember(dict(enumerate(learned, first + forgotten)))._expire(expired)

    def next(self, **changes: Any) -> "LearnerState":
        """Return the state after one more record that changes these fields."""
        return self._changed(number=self.number + 1, **changes)

    def _changed(self, **changes: Any) -> "LearnerState":
        # dataclasses.replace would take five times as long, several times in each call
        state = object.__new__(LearnerState)
        state.__dict__.update(self.__dict__, **changes)
        return state

    def _expire(self, ids: Sequence[int]) -> "LearnerState":
        if not ids:
            return self
        state = self._changed(expired=self.expired + len(ids), **self._without_waiting(ids))
        for id in ids:
            state = state._changed(settled=state._settle(self.waiting[id], 1))
        return state._forget_keys(ids)

    def _without_waiting(self, ids: Sequence[int]) -> dict[str, Any]:
        """Return the tables of waiting decisions without these."""
        tables: dict[str, Any] = {}
        for name in ("waiting", "times", "pieces"):
            table = getattr(self, name)
            if table:
                tables[name] = dict(table)
                for id in ids:
                    tables[name].pop(id, None)
        return tables

    def _remember(self, learned: dict[int, LearnedDecision]) -> "LearnerState":
        remembered = self.learned | learned
        oldest = list(itertools.islice(remembered, max(len(remembered) - self.limits.limit, 0)))
        for id in oldest:
            del remembered[id]
        return self._changed(learned=remembered)._forget_keys(oldest)

    def _forget_keys(self, ids: Iterable[int]) -> "LearnerState":
        gone = [id for id in ids if id in self.keyed]
        if not gone:
            return self
        keyed = {id: item for id, item in self.keyed.items() if id not in gone}
        return self._changed(keyed=keyed, key_ids={item.key: id for id, item in keyed.items() if item.key is not None})


def describe_lost(state: LearnerState) -> str | None:
    """Return what is suspicious about feedback that never came; None if nothing is."""
    if not state.suspicious:
        return None
    learned, lost, others, others_lost = state.settled
    return (
        f"feedback is missing for {lost:,} of {learned + lost:,} decisions of the learner, but for {others_lost:,} of "
        f"{others + others_lost:,} of the incumbent, which looks like a reason: the guard counts "
        f"{state.suspicious:.0f} of them with what they plausibly cost more"
    )


def arrays_of(state: LearnerState) -> dict[str, np.ndarray]:
    """Return everything numeric of a state as arrays by name."""
    arrays = {
        **({} if state.policy is None else flatten_tree("state", state.policy)),
        **flatten_tree("numbers", state.engine.policy_numbers),
        **stack("waiting", list(state.waiting.values())),
        **stack("learned", list(state.learned.values())),
        **({} if state.last is None else flatten_tree("last", state.last)),
        "ids/waiting": np.fromiter(state.waiting, np.int64),
        "ids/learned": np.fromiter(state.learned, np.int64),
        **{f"health/{name}": array for name, array in state.health.arrays().items()},
        "counts": np.array([state.made, state.expired, state.paused], np.int64),
    }
    if any(state.settled):
        arrays["settled"] = np.array(state.settled, np.int64)
    if state.times:
        arrays["times"] = np.array([state.times[id] for id in state.waiting])
    if state.pieces:
        arrays |= {"pieces": np.stack(list(state.pieces.values())), "ids/pieces": np.fromiter(state.pieces, np.int64)}
    if state.keyed:
        arrays["ids/keyed"] = np.fromiter(state.keyed, np.int64)
        arrays["proposed"] = stack_proposed(state.keyed.values())
    return arrays


def data_of(state: LearnerState) -> dict[str, Any]:
    """Return the rest of a state as JSON data."""
    with jax.enable_x64(True):
        example = state.engine.problem.example_instance()
    form = describe_instance(example) if state.form_fixed else OPEN_FORM
    return {"instances": form, "keyed": [item.data() for item in state.keyed.values()]}


def stack_proposed(made: Iterable[MadeDecision]) -> np.ndarray:
    """Return the decisions that the learner proposed, NaN where there are none."""
    return np.stack([np.full(np.shape(m.decision.w), np.nan) if m.proposed is None else m.proposed for m in made])


def restore_made(decisions: Sequence[Decision], data: Sequence[Any], proposed: Any) -> list[MadeDecision]:
    """Return decisions with how they came about; ``proposed`` is None if nothing was proposed."""
    rows = [None] * len(decisions) if proposed is None else [None if np.isnan(w).any() else w for w in proposed]
    return [MadeDecision._make((decision, *rest, w)) for decision, rest, w in zip(decisions, data, rows, strict=True)]


def made_of_record(record: Record, engine: Engine) -> list[MadeDecision]:
    """Return the decisions of a record."""
    arrays, described = dict(record.arrays), record.data["made"]
    proposed = arrays.pop("proposed", None)
    return restore_made(unstack("decision", engine.decision_form, len(described), arrays), described, proposed)


def restore_state(
    engine: Engine, limits: Pending, mode: Mode, number: int, data: Mapping[str, Any], arrays: dict[str, np.ndarray]
) -> LearnerState:
    """Return the state that a snapshot holds; raise CheckpointError if it contradicts the engine or itself."""
    numbers = restore_tree("numbers", engine.policy_numbers, arrays)
    if not jax.tree.all(jax.tree.map(np.array_equal, numbers, engine.policy_numbers)):
        raise CheckpointError("it was saved with a policy of other numbers (settings)")
    for name, array in arrays.items():
        _require_finite(name, array)
    problem, form = engine.problem, engine.decision_form
    counts = restore_tree("counts", jax.ShapeDtypeStruct((3,), np.int64), arrays)
    settled: tuple[int, ...] = (0, 0, 0, 0)
    if "settled" in arrays:
        settled = tuple(restore_tree("settled", jax.ShapeDtypeStruct((4,), np.int64), arrays).tolist())
    signature = arrays["learned.signature"].shape[1:] if "learned.signature" in arrays else ()
    learned_form = LearnedDecision(form, *(jax.ShapeDtypeStruct(shape, np.float64) for shape in (signature, ())))
    ids = {name: _restore_ids(name, arrays) for name in ("waiting", "learned", "pieces", "keyed")}
    waiting, learned = (
        dict(zip(ids[name], unstack(name, kind, len(ids[name]), arrays), strict=True))
        for name, kind in (("waiting", form), ("learned", learned_form))
    )
    policy = None
    if any(name.startswith("state") for name in arrays):
        with jax.enable_x64(True):
            policy = jax.tree.map(jnp.asarray, restore_tree("state", engine.state_form, arrays))
    times = _restore_rows("times", waiting, (), arrays) if "times" in arrays else {}
    pieces = _restore_rows("pieces", ids["pieces"], engine.feedback_form.values.shape, arrays)
    proposed = _restore_rows("proposed", ids["keyed"], (problem.dim,), arrays)
    known = {**waiting, **{id: record.decision for id, record in learned.items()}}
    made = restore_made([known[id] for id in ids["keyed"]], data["keyed"], proposed.values())
    keyed = dict(zip(ids["keyed"], made, strict=True))
    recorded = {name.removeprefix("health/"): part for name, part in arrays.items() if name.startswith("health/")}
    state = LearnerState(
        engine=engine,
        limits=limits,
        health=HealthRecord.from_arrays(recorded, problem.context_shape, problem.dim),
        mode=mode,
        paused=bool(counts[2]),
        number=number,
        form_fixed=data["instances"] != OPEN_FORM,
        policy=policy,
        waiting=waiting,
        times={id: float(stamp) for id, stamp in times.items()},
        pieces=pieces,
        learned=learned,
        keyed=keyed,
        key_ids={item.key: id for id, item in keyed.items() if item.key is not None},
        last=restore_tree("last", (form.w, form.aux), arrays) if "last[0]" in arrays else None,
        made=int(counts[0]),
        expired=int(counts[1]),
        settled=settled,
    )
    _require_consistent(state)
    return state


def _restore_ids(name: str, arrays: dict[str, np.ndarray]) -> list[int]:
    if f"ids/{name}" not in arrays:
        return []
    form = jax.ShapeDtypeStruct(arrays[f"ids/{name}"].shape[:1], np.int64)
    ids: list[int] = restore_tree(f"ids/{name}", form, arrays).tolist()
    return ids


def _restore_rows(name: str, ids: Collection[int], shape: tuple[int, ...], arrays: dict[str, np.ndarray]) -> Any:
    """Return a row of numbers for each id; nothing without ids."""
    form = jax.ShapeDtypeStruct((len(ids), *shape), np.float64)
    return dict(zip(ids, restore_tree(name, form, arrays), strict=True)) if ids else {}


def _require_consistent(state: LearnerState) -> None:
    """Refuse decisions and counts that contradict each other: every decision waits, was learned or has expired."""
    limit, count = state.limits.limit, state.health.learned
    ids = [*state.waiting, *state.learned]
    decisions = [*state.waiting.values(), *(record.decision for record in state.learned.values())]
    fits = (
        all(0 <= number <= MAX_ID for number in (state.made, state.expired, count, *state.settled))
        and state.made == len(state.waiting) + state.expired + count
        and len(set(ids)) == len(ids)
        and all(1 <= id <= state.made for id in ids)
        and list(state.waiting) == sorted(state.waiting)
        and len(state.waiting) <= limit
        and len(state.learned) == min(limit, count)
        and all(int(decision.id) == id for id, decision in zip(ids, decisions, strict=True))
        and state.pieces.keys() <= state.waiting.keys()
        and state.keyed.keys() <= set(ids)
        and len(state.key_ids) == len(state.keyed)
        and bool(state.times) == (bool(state.waiting) and state.limits.max_age_seconds is not None)
    )
    if not fits:
        raise CheckpointError("its waiting and learned decisions contradict each other")


def _require_finite(name: str, array: np.ndarray) -> None:
    """Refuse numbers that no learner writes; aux belongs to the solver, and a right-hand side may be infinite."""
    if array.dtype.kind != "f" or ".aux" in name or name.startswith(MAY_BE_ANYTHING):
        return
    wrong = np.isinf(array) if name in MAY_BE_NAN else np.isnan(array) if ".instance" in name else ~np.isfinite(array)
    if np.any(wrong):
        raise CheckpointError(f"array {name!r} holds numbers that are not finite")


def stack(prefix: str, trees: Sequence[Any]) -> dict[str, np.ndarray]:
    """Return trees of one shape as named arrays with a leading axis; nothing for no trees."""
    if len(trees) == 1:  # as every single decision is
        return {name: array[None] for name, array in flatten_tree(prefix, trees[0]).items()}
    return flatten_tree(prefix, jax.tree.map(lambda *leaves: np.stack(leaves), *trees)) if trees else {}


def unstack(prefix: str, template: Any, count: int, arrays: dict[str, np.ndarray]) -> list[Any]:
    """Return what ``stack`` was given."""
    if not count:
        require_no_extra(prefix, [], arrays)
        return []
    batch = restore_tree(prefix, shape_with_lead(count, template), arrays)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], batch) for i in range(count)]


def describe_instance(tree: Any) -> Any:
    """Return the form of an instance (None, an array, or dictionaries, lists and tuples of them) as plain JSON."""
    if tree is None:
        return None
    if type(tree) is dict and all(isinstance(key, str) for key in tree):
        return {"dict": {key: describe_instance(value) for key, value in tree.items()}}
    if type(tree) in (list, tuple):
        return {type(tree).__name__: [describe_instance(value) for value in tree]}
    if isinstance(tree, np.ndarray | jax.Array):
        return {"array": [list(tree.shape), np.dtype(tree.dtype).str]}
    raise SettingsError(
        f"instance: expected arrays, or lists, tuples and dictionaries (by text) of them, got a {type(tree).__name__}, "
        "which no store could keep"
    )


def rebuild_instance(description: Any) -> Any:
    """Return an instance of the described form, without its numbers."""
    if description is None:
        return None
    try:
        ((kind, content),) = description.items()
        if kind == "dict":
            return {key: rebuild_instance(value) for key, value in content.items()}
        if kind in ("list", "tuple"):
            values = [rebuild_instance(value) for value in content]
            return values if kind == "list" else tuple(values)
        shape, dtype = content
        if not all(type(n) is int and n >= 0 for n in shape) or math.prod(shape) > MAX_INSTANCE_NUMBERS:
            raise ValueError(f"shape {shape}")
        if dtype not in ("|b1", "<i8", "<f8"):
            raise ValueError(f"type {dtype}")
        return jax.ShapeDtypeStruct(tuple(shape), np.dtype(dtype))
    except StoreError:
        raise
    except Exception as error:
        raise StoreError(f"the form of its instances cannot be understood: {error}") from None


def shape_with_lead(count: int, form: Any) -> Any:
    """Return shapes and types with a leading axis."""
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((count, *leaf.shape), leaf.dtype), form)
