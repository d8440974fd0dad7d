"""A live learner: the policies of ``simulate`` around your solver and your stream, kept in one file."""

import contextlib
import dataclasses
import functools
import importlib.metadata
import itertools
import os
import sys
import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import jax
import numpy as np

from regretless.array_files import flatten_tree, restore_tree
from regretless.columns import Columns
from regretless.errors import (
    ConflictError,
    FeedbackError,
    OracleError,
    RegretlessError,
    SettingsError,
    StoreError,
    UnknownDecisionError,
    short_repr,
)
from regretless.feedback import Measurement
from regretless.live import feedback_parser as parser
from regretless.live import options
from regretless.live import state as states
from regretless.live.comparison import BackgroundSolver, HealthRecord
from regretless.live.engine import CHUNK, CallLock, Engine, GuardInput, check_not_forked, with_solution
from regretless.live.feedback_parser import TOLERANCE, Arrival, RawFeedback, known_number
from regretless.live.health import Health, compute_health
from regretless.live.history import History, require_fitting
from regretless.live.options import Incumbent, Pending, Rollout, Store
from regretless.live.records import Choice, Explanation, Receipt, percent, text_card
from regretless.live.state import LearnedDecision, LearnerState, MadeDecision
from regretless.live.store import MAX_NUMBER, Record, RecordStore, Snapshot, write_copy
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.guard import INCUMBENT, REDUCED_EXPLORATION, REPLACED, Budget, describe_guard
from regretless.problem import Problem, form_of, form_words
from regretless.registry import load_attribute
from regretless.startup import keep_programs
from regretless.types import NOT_SAMPLED, Decision, Instance

SNAPSHOT_INTERVAL = 2000
"""Records between two snapshots of the whole state, which shorten opening."""

PACKAGES = ("regretless", "jax", "numpy")
"""Packages whose versions are noted in a store."""

OnFailure = Literal["raise", "last", "incumbent"]
_Method = TypeVar("_Method", bound=Callable[..., Any])


def exclusive(method: _Method) -> _Method:
    """Run a method while no other call runs; first complete or undo a call that an interrupt cut short."""

    @functools.wraps(method)
    def call(learner: "Learner", *args: Any, **kwargs: Any) -> Any:
        def reconciled() -> Any:
            learner._reconcile()
            return method(learner, *args, **kwargs)

        return learner._lock.run(reconciled)

    return cast("_Method", call)


class Learner:
    """Decide and learn on a live stream; ``docs/learner.md`` is the guide.

    Parameters
    ----------
    problem : Problem or Oracle
        What is decided. An oracle alone makes the problem together with ``context`` and ``feedback``.
    context : int, tuple of int or Columns, optional
        For an oracle: what is known before deciding, see ``Problem``.
    feedback : str or Measurement, optional
        For an oracle: what a decision reveals, ``"bandit"`` by default, see ``Problem``.
    policy : str, PolicySpec or Policy, default ``rg.policies.Adaptive()``
        The learning algorithm: a specification, its name, or a policy that was built for this problem.
    store : Store, str or Path, optional
        The file in which every call is kept before it returns. Without one, ``save`` writes a copy when asked.
    rollout : Rollout, optional
        An incumbent that decides wherever the learner might cost too much more.
    pending : Pending, optional
        How many decisions wait for feedback, and how long.
    on_failure : {"raise", "last", "incumbent"}, default "raise"
        What happens if the solver fails: OracleError, the last feasible decision again, or the incumbent's decision.
    seed : int, default 0
        All random draws follow from it.
    clock : callable, default time.time
        Returns seconds, for ages and for the times in the store.

    Raises
    ------
    SettingsError
        If the arguments do not fit together.
    StoreError
        If the store cannot be written, or holds a learner already.

    Examples
    --------
    >>> import regretless as rg
    >>> learner = rg.Learner(rg.oracles.top_k(4, 2), context=3)
    >>> choice = learner.decide([0.5, -1.0, 2.0])
    >>> learner.learn(choice.id, total=17.2).message
    'learned'
    >>> learner.learn(choice.id, total=17.2).message
    'the same feedback was learned before: nothing changed'
    """

    _state: LearnerState
    _store: RecordStore | None = None
    _unpublished: LearnerState | None = None
    _last_snapshot = 0

    def __init__(
        self,
        problem: Problem | Oracle,
        *,
        context: int | tuple[int, ...] | Columns | None = None,
        feedback: str | Measurement | None = None,
        policy: str | PolicySpec | Policy | None = None,
        store: Store | str | Path | None = None,
        rollout: Rollout | None = None,
        pending: Pending | None = None,
        on_failure: OnFailure = "raise",
        seed: int = 0,
        clock: Callable[[], float] = time.time,
    ):
        check_not_forked()
        problem = options.complete_problem(problem, context, feedback)
        options.require_options(rollout, pending, on_failure, seed)
        spec = options.parse_policy(policy, rollout)
        if isinstance(spec, Policy) and not problem.has_instances:
            problem = problem.with_instance(spec.problem.example_instance())
        engine = self._begin(problem, spec, rollout, on_failure, seed, clock)
        health, fixed = HealthRecord.empty(problem.context_shape, problem.dim), isinstance(spec, Policy)
        mode = "act" if rollout is None else rollout.mode
        state = LearnerState(engine, pending or Pending(), health, mode, form_fixed=fixed or problem.has_instances)
        self._publish(state)
        if store is not None:
            file = store if isinstance(store, Store) else Store(store)
            self._store = RecordStore.create(file.path, self._snapshot(state, 0), sync=file.sync)

    def _begin(
        self, problem: Problem, policy: Any, rollout: Rollout | None, on_failure: OnFailure, seed: int, clock: Any
    ) -> Engine:
        """Set what never changes and return the engine of the first state."""
        keep_programs()
        self._problem, self._on_failure, self._seed, self._clock = problem, on_failure, seed, clock
        self._incumbent = None if rollout is None else Incumbent(rollout.incumbent, problem)
        self._lock = CallLock()
        self._background_solver = BackgroundSolver(problem.oracle, self._lock.try_acquire)
        return Engine(problem, policy, budget=None if rollout is None else rollout.budget, seed=seed)

    def _publish(self, state: LearnerState) -> None:
        """Replace the state by one assignment."""
        self._state = state

    @property
    def problem(self) -> Problem:
        """What is decided, as the policy meets it: with the form of instances once it is known."""
        return self._current().engine.problem

    @property
    def state(self) -> LearnerState:
        """Everything that the learner knows, immutable; the next call that changes it makes another one."""
        return self._current()

    @property
    def columns(self) -> Columns | None:
        """The columns of its contexts, if they have names."""
        return self._problem.columns

    @property
    def waiting(self) -> list[int]:
        """Ids of the decisions that wait for feedback, oldest first."""
        check_not_forked()
        return list(self._current().waiting)

    def __repr__(self) -> str:
        state, problem = self._current(), self._problem
        policy = state.engine.setup[1]
        name = type(policy).__name__ if isinstance(policy, Policy) else policy
        shape = f"{' × '.join(map(str, problem.context_shape))} numbers"
        lines = [
            f"{state.made:,} decisions: {state.health.learned:,} learned from, {len(state.waiting):,} waiting, "
            f"{state.expired:,} expired",
            f"feasible set {type(problem.oracle).__name__} of {problem.dim} coordinates, context of "
            f"{shape if problem.columns is None else f'named columns, as {shape}'}",
            f"policy {name}, feedback {problem.feedback.name}",
        ]
        if self._incumbent is not None:
            budget, paused = state.engine.setup[2] or 0.0, ", paused: the incumbent decides" if state.paused else ""
            shown = budget if isinstance(budget, Budget) else percent(budget)
            lines.append(f"rollout with a budget of {shown}, mode {state.mode!r}{paused}")
        if self._store is not None:
            lines.append(f"kept in {self._store.path}, {state.number:,} records")
        return text_card("Learner", [*lines, "health() reports how it is doing"])

    # ------------------------------------------------------------------ deciding

    def decide(self, context: Any, *, instance: Any = None, explore: bool = True, key: str | None = None) -> Choice:
        """Choose a decision for one context.

        Parameters
        ----------
        context : array-like of shape ``problem.context_shape``, or a mapping if the problem has columns
            What is known before deciding.
        instance : pytree, optional
            What changes in the feasible set; its form stays the same from decision to decision.
        explore : bool, default True
            If False, solve the mean prediction instead of a posterior draw.
        key : str, optional
            Your own identifier. Calling again with the same key and the same context, instance and ``explore`` returns
            the stored choice, also after a restart: with a store as long as the store has the decision, without one
            as long as the learner remembers it. ``learn`` and ``explain`` accept the key in place of the id.

        Returns
        -------
        Choice
            With ``id``, ``w`` and ``by`` ("learner" or "incumbent").

        Raises
        ------
        SettingsError
            If the arguments cannot be used, or the key belongs to a decision in another context. Nothing has changed.
        OracleError
            If the solver fails and ``on_failure`` is "raise". Nothing has changed.
        StoreError
            If the decision cannot be stored. Nothing has changed.
        """
        parser.parse_flag("decide: expected explore", explore)
        contexts = parser.parse_contexts(context, self._problem, many=False)
        instances = [parser.parse_instance(self._problem.oracle, instance)]
        return self._decide(contexts, instances, explore, [parser.parse_key(key)])[0]

    def decide_batch(
        self, contexts: Any, *, instances: Any = None, explore: bool = True, keys: Sequence[str | None] | None = None
    ) -> list[Choice]:
        """Choose decisions for several contexts, with one call of the solver: all of them or none.

        They are the decisions that a loop over ``decide`` would make.

        Parameters
        ----------
        contexts : array-like ``[n, …]``, DataFrame or list of mappings
            What is known before each decision.
        instances : sequence, optional
            What changes in the feasible set, one for each context.
        explore : bool, default True
            As in ``decide``.
        keys : sequence of str, optional
            Your own identifiers, one for each context, as in ``decide``.

        Returns
        -------
        list of Choice
            One for each context, in their order.
        """
        parser.parse_flag("decide_batch: expected explore", explore)
        parsed = parser.parse_contexts(contexts, self._problem, many=True)
        if keys is not None and (isinstance(keys, str) or len(keys) != len(parsed)):
            raise SettingsError(f"keys: expected one for each of {len(parsed)} contexts, got {short_repr(keys)}")
        names = [None] * len(parsed) if keys is None else [parser.parse_key(key) for key in keys]
        if len(set(names) - {None}) < len(names) - names.count(None):
            raise SettingsError("keys: expected different keys, got one of them twice")
        return self._decide(
            parsed, parser.parse_instances(self._problem.oracle, instances, len(parsed)), explore, names
        )

    @exclusive
    def record(self, context: Any, w: Sequence[float], *, instance: Any = None, key: str | None = None) -> Choice:
        """Keep a decision that a person made in this context, feasible or not; its feedback is learned like any other.

        Parameters
        ----------
        context, instance, key
            As in ``decide``.
        w : sequence of float
            What was done.

        Returns
        -------
        Choice
            With ``by="person"``.
        """
        (parsed,) = parser.parse_contexts(context, self._problem, many=False)
        vector = parser.parse_vector("w", w, self._problem.dim)
        external = parser.parse_instance(self._problem.oracle, instance)
        stored = None if parser.parse_key(key) is None else self._find_keyed(str(key))
        if stored is not None:
            if not np.array_equal(stored.decision.w, vector):
                raise ConflictError(f"key: {key!r} belongs to another decision")
            return self._repeat(stored, parsed, external, False)
        engine = self._engine_for([external])
        options.require_support(engine.oracle, vector, "w")
        decision = engine.external_decision(self._state.made + 1, parsed, vector, external)
        return self._keep("record", engine, [MadeDecision(decision, "person", key=key)])[0]

    @exclusive
    def _decide(
        self, contexts: np.ndarray, instances: Sequence[Instance], explore: bool, keys: Sequence[str | None]
    ) -> list[Choice]:
        choices: dict[int, Choice] = {}
        for place, key in enumerate(keys):
            stored = None if key is None else self._find_keyed(key)
            if stored is not None:
                choices[place] = self._repeat(stored, contexts[place], instances[place], explore)
        new = [place for place in range(len(contexts)) if place not in choices]
        if new:
            asked = [instances[place] for place in new]
            engine = self._engine_for(asked)
            made = self._make(engine, contexts[new], asked, explore)
            keyed = [item._replace(explore=explore, key=keys[place]) for place, item in zip(new, made, strict=True)]
            choices |= dict(zip(new, self._keep("decide", engine, keyed), strict=True))
        return [choices[place] for place in range(len(contexts))]

    def _make(
        self, engine: Engine, contexts: np.ndarray, instances: Sequence[Instance], explore: bool
    ) -> list[MadeDecision]:
        """Return new decisions, all or none; nothing is changed yet."""
        state = self._state
        if not explore:
            engine.require_mean("decide greedily")
        ids = range(state.made + 1, state.made + 1 + len(contexts))
        if state.paused:  # the incumbent's decisions, without a program or a solver that could fail
            zeros = itertools.repeat(np.zeros(engine.problem.dim))
            made = map(engine.external_decision, ids, contexts, zeros, instances)
            return [self._by_incumbent(engine, draft, True) for draft in made]
        if self._incumbent is None:
            drafts = engine.draft(state.policy_state(engine), ids, contexts, instances, explore)
            return self._solve(engine, drafts, lenient=self._on_failure != "raise")
        # The learner decides where the guard allows it, the incumbent elsewhere and in shadow mode.
        shadow = state.mode == "shadow"
        plans = [self._incumbent.plan(engine, x, instance) for x, instance in zip(contexts, instances, strict=True)]
        unknown = np.full(engine.problem.dim, np.nan)
        usual = np.stack([unknown if isinstance(plan, RegretlessError) else plan for plan in plans])
        guard = GuardInput(float(state.guard_waiting), usual, 0.0 if shadow else 1.0)
        drafts = engine.draft(state.policy_state(engine), ids, contexts, instances, explore, guard)
        replaced = [shadow or int(draft.member) == INCUMBENT for draft in drafts]
        # Proposals that are not played are solved only in shadow mode, or by an oracle in pure JAX.
        wanted = [place for place, by in enumerate(replaced) if shadow or not engine.oracle.on_host or not by]
        solved: dict[int, MadeDecision] = {}
        lenient = not shadow and self._on_failure != "raise"
        try:
            if wanted:
                chosen = [drafts[place] for place in wanted]
                solved = dict(zip(wanted, self._solve(engine, chosen, lenient=lenient), strict=True))
                if engine.oracle.convex:
                    solved = {place: self._mix(engine, item, plans[place]) for place, item in solved.items()}
        except OracleError:
            if not all(replaced):
                raise
        proposed: dict[int, Any] = {place: item.decision.w for place, item in solved.items()}
        return [
            self._by_incumbent(engine, draft, shadow, proposed.get(place), plans[place]) if by else solved[place]
            for place, (draft, by) in enumerate(zip(drafts, replaced, strict=True))
        ]

    def _by_incumbent(
        self, engine: Engine, draft: Decision, certain: bool, proposed: Any = None, plan: Any = None
    ) -> MadeDecision:
        assert self._incumbent is not None
        decision = self._incumbent.replace(engine, draft, certain=certain, plan=plan)
        return MadeDecision(decision, "incumbent", proposed=proposed)

    def _mix(self, engine: Engine, made: MadeDecision, plan: Any) -> MadeDecision:
        """Return a decision on the way from the incumbent's to the learner's, as far as the guard allows."""
        decision: Any = made.decision
        if int(decision.member) != REDUCED_EXPLORATION or made.fallback or isinstance(plan, RegretlessError):
            return made
        step = engine.describe(self._state.policy, self._state.guard_waiting)["guard_step"]
        return made._replace(decision=with_solution(decision, plan + step * (decision.w - plan), decision.aux))

    def _solve(self, engine: Engine, drafts: Sequence[Decision], *, lenient: bool) -> list[MadeDecision]:
        """Return the drafts' solutions; where the solver fails, raise unless ``lenient``, or do as ``on_failure``."""
        if not lenient or len(drafts) > 1:
            try:
                return [MadeDecision(decision, "learner", True) for decision in engine.solve(drafts)]
            except OracleError:
                if not lenient:
                    raise
        last, made = self._state.last, []
        for draft in drafts:
            try:
                (decision,) = engine.solve([draft])
                last = (decision.w, decision.aux)
                made.append(MadeDecision(decision, "learner", True))
            except OracleError as error:
                made.append(self._fall_back(engine, draft, last, error))
        return made

    def _fall_back(
        self, engine: Engine, draft: Decision, last: tuple[Any, Any] | None, error: OracleError
    ) -> MadeDecision:
        """Return the decision in place of one that the solver failed to make."""
        if self._on_failure == "last":
            return MadeDecision(_repeat_last(engine, draft, last, error), "learner", fallback=True)
        assert self._incumbent is not None
        try:
            decision = self._incumbent.replace(engine, draft, certain=True, member=REPLACED)
        except RegretlessError as second:
            raise OracleError(f"{error}; the incumbent could not decide either: {second}") from second
        return MadeDecision(decision, "incumbent", fallback=True)

    def _engine_for(self, instances: Sequence[Instance]) -> Engine:
        """Return the engine for instances of this form; the very first ones fix the form."""
        state, form = self._state, form_of(instances[0])
        engine = state.engine
        if not state.form_fixed and form is not None:
            states.describe_instance(instances[0])  # refuses what a store could not keep
            engine = engine.with_instance(instances[0])
        expected = engine.problem.instance_form
        for form in map(form_of, instances):
            if form != expected:
                raise SettingsError(
                    f"instance: expected the form of earlier ones, {form_words(expected)}, got {form_words(form)}; "
                    "give all decisions an instance, or none of them"
                )
        return engine

    def _keep(self, kind: str, engine: Engine, made: Sequence[MadeDecision]) -> list[Choice]:
        """Commit new decisions and return them as choices."""
        state, now = self._state, self._now()
        expired = state.overdue(len(made), now)
        after = state.with_decisions(engine, made, now, expired)
        keys = [item.key for item in made if item.key is not None]
        data: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        if self._store is not None:
            data = {"time": now, "expired": expired, "made": [item.data() for item in made]}
            arrays = states.stack("decision", [item.decision for item in made])
            if keys:
                arrays["proposed"] = states.stack_proposed(made)
            if not state.form_fixed:
                data["instances"] = states.describe_instance(made[0].decision.instance)
        self._commit(after, kind, data, arrays, keys)
        return self._choices(made)

    def _choices(self, made: Sequence[MadeDecision]) -> list[Choice]:
        """Return decisions for their caller; attributes of modules are read once, because that takes a while."""
        columns, sign = self._problem.columns, self._problem.sign
        choices = []
        for item in made:
            decision: Any = vars(item.decision)
            context, cost = decision["context"], decision["cost_sample"]
            choice = Choice(
                id=int(decision["id"]),
                w=decision["w"],
                by=item.by,
                explored=item.explore and item.by == "learner",
                cost_sample=cost if sign > 0 else -cost,
                log_density=known_number(decision["log_density"]),
                log_probability=known_number(decision["log_probability"]),
                context=context if columns is None else columns.decode(np.asarray(context)),
                instance=decision["instance"],
                aux=decision["aux"],
                fallback=item.fallback,
                proposed=item.proposed,
                key=item.key,
            )
            choices.append(choice)
        return choices

    def _find_keyed(self, key: str) -> MadeDecision | None:
        """Return the decision with the caller's key, from memory or from the store."""
        state = self._state
        if key in state.key_ids:
            return state.keyed[state.key_ids[key]]
        record = None if self._store is None else self._store.find_key(key)
        if record is None:
            return None
        return next(item for item in states.made_of_record(record, state.engine) if item.key == key)

    def _require_keyed(self, key: str) -> Any:
        """Return the decision with the caller's key; refuse an unknown one."""
        stored = self._find_keyed(key)
        if stored is None:
            raise UnknownDecisionError(f"unknown decision: no decision was made with the key {short_repr(key)}")
        return stored.decision

    def _repeat(self, stored: MadeDecision, context: np.ndarray, instance: Instance, explore: bool) -> Choice:
        """Return a stored choice to a caller who asks again; refuse a key that is used for something else."""
        before: Any = stored.decision
        same = (
            np.array_equal(before.context, context)
            and stored.explore == explore
            and form_of(before.instance) == form_of(instance)
            and jax.tree.all(jax.tree.map(np.array_equal, before.instance, instance))
        )
        if not same:
            raise ConflictError(
                f"key: {stored.key!r} belongs to decision {int(before.id)}, which was made in another context, with "
                "another instance or another explore=; give every decision its own key"
            )
        return self._choices([stored])[0]

    # ------------------------------------------------------------------ learning

    @exclusive
    def learn(
        self,
        id: int | str,
        *,
        total: float | None = None,
        components: Mapping[Hashable, float] | None = None,
        costs: Sequence[float] | None = None,
        linear: tuple[Any, Any] | None = None,
        values: Sequence[float] | None = None,
        final: bool = True,
    ) -> Receipt:
        """Learn from the feedback on a decision, once; in any order, and at any time while the decision waits.

        Parameters
        ----------
        id : int or str
            The decision: ``Choice.id``, or the key that it was made with.
        total : float, optional
            What the decision cost. Next to another form it is checked against it.
        components : mapping, optional
            Costs by coordinate (its number or its name); those that are not in it were not seen.
        costs : sequence of float, optional
            A vector of costs, NaN for what was not seen.
        linear : tuple, optional
            ``(H, v)`` with rows that measure ``v = H c``.
        values : sequence of float, optional
            The values of the measurement's rows, NaN for what was not seen.
        final : bool, default True
            If False, more will come: the pieces are kept, and learned once they are complete or with the first call
            that leaves ``final=False`` out.

        Returns
        -------
        Receipt
            Whether the feedback was new, and the prediction's error.

        Raises
        ------
        FeedbackError
            If the decision is not known any more, or the feedback cannot be used. Nothing has changed.
        """
        raw = RawFeedback(total, components, costs, linear, values)
        raw.form()
        parser.parse_flag("learn: expected final", final)
        id = int(self._require_keyed(id).id) if isinstance(id, str) else parser.parse_id(id)
        state, now = self._state, self._now()
        expired = state.overdue(0, now)
        decision = state.find(id, expired)
        in_pieces = not final or id in state.pieces
        arrival = self._arrival(state.engine, raw, decision, partial=in_pieces)
        if id in state.learned:
            piece = not final and arrival.matrix is None
            state.require_same_feedback(id, arrival.signature(), piece=piece)
            residual = self._in_user_units(state.learned[id].residual)
            message = "the same feedback was learned before: nothing changed"
            return Receipt(id, False, residual is not None, residual, message)
        if in_pieces:
            rows = _join_pieces(id, state.pieces.get(id), arrival)
            known = RawFeedback(values=(self._problem.sign * rows).tolist(), total=raw.total)
            arrival = self._arrival(state.engine, known, decision, partial=not final)
            if not final and not arrival.seen.all():
                return self._keep_piece(id, rows, arrival, expired)
        policy, info = state.engine.learn(state.policy, decision, arrival)
        info = _require_finite(f"decision {id}", info)
        after = state.with_feedback(id, arrival, policy, info, expired)
        arrays = {name: array for name, array in arrival._asdict().items() if array is not None}
        data = {"id": id, "expired": expired, "total": known_number(info["total"]), "time": now}
        self._commit(after, "feedback", data, arrays)
        message = "learned; a cost far beyond all earlier ones was not believed" if info.get("absurd") else "learned"
        return Receipt(id, True, bool(info["complete"]), self._in_user_units(info["residual"]), message)

    def _keep_piece(self, id: int, values: np.ndarray, arrival: Arrival, expired: list[int]) -> Receipt:
        state = self._state
        if id in state.pieces and np.array_equal(values, state.pieces[id], equal_nan=True):
            return Receipt(id, False, False, None, "the same piece was reported before: nothing changed")
        after = state.with_piece(id, values, expired)
        self._commit(after, "piece", {"id": id, "expired": expired}, {"values": values})
        missing = int(np.sum(~arrival.seen))
        return Receipt(id, True, False, None, f"kept; {missing} more of its rows may come (final=True ends the wait)")

    @exclusive
    def learn_from(self, history: History, progress: Callable[[int, int], Any] | None = None) -> int:
        """Learn from rounds that were decided before: what ``record`` and ``learn`` would do for each, all or none.

        Parameters
        ----------
        history : History
            The rounds; those of which nothing was seen are left out.
        progress : callable, optional
            Called now and then with how many rounds are done, and of how many.

        Returns
        -------
        int
            How many rounds were learned from.
        """
        state, oracle = self._state, self._problem.oracle
        if not isinstance(history, History):
            raise SettingsError(f"learn_from: expected a History, got {short_repr(history)}")
        require_fitting(history, self._problem, "learn_from: ")
        rounds = history.as_costs()
        rows = np.flatnonzero(rounds.seen()).tolist()
        if not rows:
            return 0
        instances = [_at_row(row, parser.parse_instance, oracle, rounds.instance(row)) for row in rows]
        engine = self._engine_for(instances)
        decisions, arrivals = [], []
        for id, (row, instance) in enumerate(zip(rows, instances, strict=True), state.made + 1):
            past = rounds[row]
            _at_row(row, options.require_support, oracle, past.decision, "decision")
            decision = engine.external_decision(id, past.context, past.decision, instance, past.propensity)
            decisions.append(decision)
            seen: dict[str, Any] = {"total": past.total, "costs": past.costs, "values": past.values}
            signed = {name: self._problem.sign * part for name, part in seen.items() if part is not None}
            arrivals.append(_at_row(row, self._arrival, engine, RawFeedback(**signed), decision))
        together = (_stacked(decisions), _stacked(arrivals))
        finish, infos = self._learn_rounds(engine, together, rows, progress)
        now = self._now()
        expired = state.overdue(len(rows), now, learned=True)
        totals = [known_number(info["total"]) for info in infos]
        data: dict[str, Any] = {"rows": rows, "totals": totals, "expired": expired, "time": now}
        if not state.form_fixed:
            data["instances"] = states.describe_instance(instances[0])
        arrays = flatten_tree("decision", together[0]) | flatten_tree("arrival", together[1]._asdict())
        self._commit(finish(expired), "history", data, arrays)
        return len(rows)

    def _learn_rounds(
        self, engine: Engine, rounds: tuple[Decision, Arrival], rows: Sequence[int], progress: Any = None
    ) -> tuple[Callable[[list[int]], LearnerState], list[dict[str, float]]]:
        """Learn all rounds chunk by chunk, the last one padded; return the state by what expires, and diagnostics."""
        policy, count = self._state.policy_state(), len(rows)
        infos: list[dict[str, float]] = []
        for start in range(0, count, CHUNK):
            places = np.minimum(np.arange(start, start + CHUNK), count - 1)
            decisions, arrivals = jax.tree.map(lambda leaf, places=places: leaf[places], rounds)
            policy, steps = engine.learn_many(policy, decisions, arrivals, min(CHUNK, count - start))
            infos += [_require_finite(f"row {rows[start + i]} of the history", info) for i, info in enumerate(steps)]
            if progress is not None:
                progress(len(infos), count)
        learned = []
        for i in range(max(count - self._state.limits.limit, 0), count):
            decision, arrival = jax.tree.map(lambda leaf, i=i: leaf[i], rounds)
            learned.append(LearnedDecision(decision, arrival.signature(), np.asarray(infos[i]["residual"])))
        return functools.partial(self._state.with_history, engine, policy, learned, infos), infos

    def _arrival(self, engine: Engine, raw: RawFeedback, decision: Any, *, partial: bool = False) -> Arrival:
        """Return feedback as costs."""
        arrival = engine.parser.parse(raw, decision.w, decision.aux, partial=partial)
        return arrival if self._problem.sign > 0 else arrival._replace(values=-arrival.values)

    def _in_user_units(self, residual: Any) -> float | None:
        known = known_number(residual)
        return None if known is None else self._problem.sign * known

    # ------------------------------------------------------------------ looking

    @exclusive
    def explain(self, choice: Choice | int | str) -> Explanation:
        """Explain a decision by what the learner knows now.

        Parameters
        ----------
        choice : Choice, int or str
            A choice, or the id or key of a decision that waits or was learned.

        Returns
        -------
        Explanation
            The predicted costs, the costs that were solved, the greedy decision and the distance from it.
        """
        state, sign = self._state, self._problem.sign
        engine = state.engine
        decision: Any = self._decision_of(choice)
        form = (np.shape(decision.context), np.shape(decision.w), form_of(decision.instance))
        problem = engine.problem
        if state.policy is None or form != (problem.context_shape, (problem.dim,), problem.instance_form):
            raise SettingsError("learner: expected a Choice of this learner, got one of another")
        engine.require_mean("explain itself")
        drafts = engine.draft(state.policy, [int(decision.id)], decision.context[None], [decision.instance], False)
        greedy: Any = engine.solve(drafts)[0]
        learned = state.learned.get(int(decision.id))
        columns = self._problem.columns
        return Explanation(
            mean=sign * greedy.cost_sample,
            cost_sample=sign * decision.cost_sample,
            greedy=greedy.w,
            differs=int(np.sum(decision.w != greedy.w)),
            gap=float(greedy.cost_sample @ (decision.w - greedy.w)),
            details=engine.describe(state.policy, state.guard_waiting),
            guard=describe_guard(engine.describe(state.policy, state.guard_waiting), always=True),
            residual=None if learned is None else self._in_user_units(learned.residual),
            context=decision.context if columns is None else columns.decode(np.asarray(decision.context)),
        )

    def _decision_of(self, choice: Choice | int | str) -> Any:
        """Return the decision of a Choice, an id or a key, in costs and with its context as numbers."""
        if isinstance(choice, str):
            return self._require_keyed(choice)
        if not isinstance(choice, Choice):
            return self._state.find(parser.parse_id(choice))
        try:
            contexts = parser.parse_contexts(choice.context, self._problem, many=False)
        except SettingsError as error:
            raise SettingsError(f"learner: expected a Choice of this learner, got one of another ({error})") from None
        decision = self._state.engine.external_decision(choice.id, contexts[0], choice.w, choice.instance)
        return with_solution(decision, choice.w, decision.aux, cost_sample=self._problem.sign * choice.cost_sample)

    def health(self) -> Health:
        """Report how the learner is doing, in words and figures; does not wait for a call that waits for the solver."""
        check_not_forked()
        return compute_health(self._current(), self._problem.sign < 0, self._background_solver)

    @exclusive
    def predict(self, history: History) -> tuple[np.ndarray, np.ndarray]:
        """Return predicted costs and greedy decisions for every round of a history; nothing in the learner changes.

        Parameters
        ----------
        history : History
            Rounds with contexts of this learner's shape; only contexts and instances are used.

        Returns
        -------
        costs : numpy.ndarray of shape ``(n, d)``
            Mean predicted cost of each coordinate.
        w : numpy.ndarray of shape ``(n, d)``
            The decisions that solve them.
        """
        instances = [parser.parse_instance(self._problem.oracle, history.instance(row)) for row in range(len(history))]
        return self._engine_for(instances).predict(self._state.policy_state(), history.contexts, instances)

    def learned_decisions(self) -> list[Decision]:
        """Return the last decisions that were learned from, oldest first, at most as many as may wait."""
        return [learned.decision for learned in self._current().learned.values()]

    # ------------------------------------------------------------------ running

    @exclusive
    def warm_up(self, batches: Sequence[int] = (2, 4, 8, 16, 32, 64, 128)) -> None:
        """Compile the programs of all calls in advance; refuse a solver that maximises.

        Parameters
        ----------
        batches : sequence of int
            Numbers of contexts that ``decide_batch`` will be given.
        """
        state = self._state
        state.engine.warm_up(state.policy_state(), batches)
        with jax.enable_x64(True):
            example = jax.tree.map(np.asarray, state.engine.problem.example_instance())
        self._background_solver.warm_up(example)

    @exclusive
    def update(self, /, **changes: Any) -> dict[str, Any]:
        """Change settings from the next call on; what was learned stays.

        Parameters
        ----------
        **changes
            New values by dotted name: numbers of the policy's settings, ``budget`` and ``mode`` of the rollout.

        Returns
        -------
        dict
            What was changed.

        Raises
        ------
        SettingsError
            If a setting does not exist or would change the form of what was learned; says which ones can change.
        """
        after = self._updated(changes)
        _, policy, budget, _ = after.engine.setup
        values = {**options.setting_names(policy), "budget": budget, "mode": after.mode}
        changed = {name: values[name] for name in changes}
        data = {"budget": Budget.coerce(budget).as_data()} if "budget" in changed else {}
        self._commit(after, "settings", {"settings": {**changed, **data}})
        return changed

    def _updated(self, changes: Mapping[str, Any]) -> LearnerState:
        """Return the state with other settings."""
        state = self._state
        _, policy, budget, _ = state.engine.setup
        if not changes:
            raise SettingsError(
                f"update: expected a setting and its new value, such as one of {options.changeable(policy)}"
            )
        rest, mode = dict(changes), state.mode
        if self._incumbent is not None:
            checked = Rollout(self._incumbent.given, rest.pop("budget", budget), rest.pop("mode", mode))
            budget, mode = checked.budget, checked.mode
        return state.next(engine=options.with_settings(state.engine, budget, rest), mode=mode)

    @exclusive
    def pause(self) -> None:
        """Give every decision to the incumbent, from the next one on; their feedback is still learned."""
        self._set_paused(True)

    @exclusive
    def resume(self) -> None:
        """End a pause."""
        self._set_paused(False)

    def _set_paused(self, paused: bool) -> None:
        if self._incumbent is None:
            raise SettingsError(
                "pause: expected a learner with an incumbent that takes over; give rollout=rg.Rollout(…)"
            )
        if paused != self._state.paused:
            self._commit(self._state.next(paused=paused), "pause", {"paused": paused, "time": self._now()})

    @property
    def store_path(self) -> Path | None:
        """The file in which the learner is kept, None without a store."""
        return None if self._store is None else self._store.path

    def serve(self, port: int = 8000) -> Any:
        """Show a page of this learner on this machine, read-only, in a thread; needs a store and the extra ``serve``.

        Parameters
        ----------
        port : int
            Where to listen; 0 takes a free port.

        Returns
        -------
        PageServer
            With the page's ``url``; its ``close()`` ends it.
        """
        return load_attribute("regretless.serve:serve_learner")(self, port)

    # ------------------------------------------------------------------ storing

    def save(self, path: str | Path | None = None) -> None:
        """Write a compact, self-contained copy to ``path``, atomically; ``Learner.open`` continues from it bit for bit.

        A copy does not wait for a call that waits for the solver.

        Parameters
        ----------
        path : str or Path, optional
            A new file. None: add a snapshot to the learner's own store, which shortens its next opening.
        """
        check_not_forked()
        if path is not None:
            target = Store(path).path
            if self._store is not None and os.path.realpath(target) == str(self._store.path):
                raise StoreError(
                    f"save: {path} is the learner's own store; save() without a path adds a snapshot to it"
                )
            write_copy(target, self._snapshot(self._current(), 0))
        elif self._store is None:
            raise StoreError("save: expected a path, because this learner has no store")
        else:
            exclusive(Learner._write_snapshot)(self)

    @exclusive
    def close(self) -> None:
        """Add a snapshot to the store and close it; from then on calls that would be stored are refused."""
        if self._store is not None and not self._store.closed:
            with contextlib.suppress(StoreError):
                self._write_snapshot()
            self._store.close()

    def __enter__(self) -> "Learner":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> Any:
        raise TypeError("a Learner cannot be copied or pickled: save(path) writes a copy that Learner.open reads")

    @classmethod
    def open(
        cls,
        path: Store | str | Path,
        problem: Problem | Oracle,
        *,
        policy: str | PolicySpec | Policy | None = None,
        rollout: Rollout | None = None,
        settings: Mapping[str, Any] | None = None,
        until: int | None = None,
        read_only: bool = False,
        take_over: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> "Learner":
        """Continue the learner of a store, bit for bit, from its last snapshot and the records after it.

        Parameters
        ----------
        path : Store, str or Path
            A store, or a copy that ``save`` wrote. This process becomes its only writer before anything is read.
        problem : Problem or Oracle
            The problem that the learner was made for; its oracle is enough unless it has a measurement of your own. The
            feasible set must be the same, not the way in which it is solved.
        policy : str, PolicySpec or Policy, optional
            Needed only if the learner was made with a Policy object or a specification that is not registered. Settings
            are those of the store.
        rollout : Rollout, optional
            Needed only if the incumbent is a function; budget and mode are those of the store.
        settings : mapping, optional
            Settings that change from now on, as by ``update``.
        until : int, optional
            The last record that counts; needs ``read_only``.
        read_only : bool, default False
            Read the store without becoming its writer, also while another process writes it. What the learner does
            after that is not stored.
        take_over : bool, default False
            If another learner writes the store, become the writer in its place: its next write raises StoreError.
        clock : callable, default time.time
            Returns seconds.

        Returns
        -------
        Learner
            The learner as it was when its last call returned.

        Raises
        ------
        StoreError
            If the file is damaged (the message says which records are good), is another learner's, or is being written.

        Examples
        --------
        >>> import tempfile, pathlib, regretless as rg
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "plant.db"
        >>> oracle = rg.oracles.top_k(4, 2)
        >>> learner = rg.Learner(oracle, context=3, store=path)
        >>> learner.decide([0.5, -1.0, 2.0]).id
        1
        >>> learner.close()
        >>> learner = rg.Learner.open(path, oracle)
        >>> learner.waiting
        [1]
        """
        check_not_forked()
        if not isinstance(problem, Problem | Oracle):
            raise SettingsError(f"learner: expected a Problem or an oracle, got {short_repr(problem)}")
        if until is not None and not read_only:
            raise SettingsError(
                "open: expected read_only=True with until=, because a store is continued at its end only"
            )
        if until is not None:
            parser.parse_integer("open: until", until, 0, MAX_NUMBER)
        file = path if isinstance(path, Store) else Store(path)
        if read_only:
            store = RecordStore.open_reader(file.path)
        else:
            store = RecordStore.open_writer(file.path, sync=file.sync, take_over=take_over)
        with contextlib.ExitStack() as unless_written:
            unless_written.callback(store.close)
            learner = cls._replay(store, until, problem, policy, rollout, clock)
            if not read_only:
                learner._store = store
                unless_written.pop_all()
        if settings:
            learner.update(**settings)
        return learner

    @classmethod
    def _replay(cls, store: RecordStore, until: int | None, *given: Any) -> "Learner":
        """Return the learner of a store after record ``until``; ``given`` is what ``_restore`` needs."""
        snapshot = store.latest_snapshot(until)
        learner, number = cls.__new__(cls), snapshot.number
        try:
            learner._restore(snapshot, *given)
            for record in store.records(snapshot.number, snapshot.chain, until):
                number = record.number
                learner._publish(learner._applied(record))
        except Exception as error:  # what has a correct checksum can still be anything
            if isinstance(error, StoreError):
                raise StoreError(str(error) if str(store.path) in str(error) else f"{store.path}: {error}") from None
            reason = error if isinstance(error, RegretlessError) else f"it cannot be understood: {error!r}"
            raise StoreError(f"{store.path}, record {number}: {reason}") from error
        learner._last_snapshot = snapshot.number
        return learner

    def _restore(
        self, snapshot: Snapshot, given: Problem | Oracle, policy: Any, rollout: Rollout | None, clock: Any
    ) -> None:
        """Begin as a snapshot says."""
        config, form = snapshot.data["config"], snapshot.data["instances"]
        problem = options.restore_problem(config["problem"], given)
        if form != states.OPEN_FORM and form is not None:
            problem = problem.with_instance(states.rebuild_instance(form))
        stored = config["rollout"]
        rollout = options.restore_rollout(stored, rollout)
        on_failure, seed = config["on_failure"], config["seed"]
        limits = Pending(**config["pending"])
        options.require_options(rollout, limits, on_failure, seed)
        spec = options.restore_policy(config["policy"], policy)
        engine = self._begin(problem, spec, rollout, on_failure, seed, clock)
        if stored is not None and self._incumbent is not None and self._incumbent.describe() != stored["incumbent"]:
            raise StoreError(
                f"it was stored with the incumbent {short_repr(stored['incumbent'])}, got "
                f"{short_repr(self._incumbent.describe())}; another incumbent is a new learner (learn_from its History)"
            )
        mode = "act" if rollout is None else rollout.mode
        self._publish(states.restore_state(engine, limits, mode, snapshot.number, snapshot.data, snapshot.arrays))

    def _applied(self, record: Record) -> LearnerState:
        """Return the state after a record."""
        data, arrays, state = record.data, record.arrays, self._state
        if record.kind in ("decide", "record"):
            engine = self._engine_of(data)
            return state.with_decisions(engine, states.made_of_record(record, engine), data["time"], data["expired"])
        if record.kind == "feedback":
            arrival = Arrival(**arrays)
            policy, info = state.engine.learn(state.policy, state.waiting[data["id"]], arrival)
            info = _require_finite(f"decision {data['id']}", info)
            return state.with_feedback(data["id"], arrival, policy, info, data["expired"])
        if record.kind == "piece":
            return state.with_piece(data["id"], arrays["values"], data["expired"])
        if record.kind == "pause":
            return state.next(paused=data["paused"])
        if record.kind == "settings":
            changes = data["settings"]
            budget = {"budget": options.from_data(changes["budget"])} if "budget" in changes else {}
            return self._updated({**changes, **budget})
        if record.kind == "history":
            engine, count = self._engine_of(data), len(data["rows"])
            decisions = restore_tree("decision", states.shape_with_lead(count, engine.decision_form), arrays)
            parts: dict[str, Any] = {name: arrays.get(f"arrival['{name}']") for name in Arrival._fields}
            return self._learn_rounds(engine, (decisions, Arrival(**parts)), data["rows"])[0](data["expired"])
        raise StoreError(f"unknown kind of record {record.kind!r}: update regretless")

    def _engine_of(self, data: Mapping[str, Any]) -> Engine:
        """Return the engine for the instances of a record, which may be the first."""
        engine, form = self._state.engine, data.get("instances")
        return engine if form is None else engine.with_instance(states.rebuild_instance(form))

    def _commit(
        self, state: LearnerState, kind: str, data: Mapping[str, Any], arrays: Any = None, keys: Sequence[str] = ()
    ) -> None:
        """Store a change, then publish the new state with one assignment.

        An interrupt in between leaves the new state in ``_unpublished``; ``_reconcile`` asks the store if it counts.
        """
        self._unpublished = state
        if self._store is not None:
            try:
                self._store.append(state.number, kind, data, arrays or {}, keys)
            except StoreError:
                self._unpublished = None
                raise
        self._publish(state)
        self._unpublished = None
        if self._store is not None and state.number - self._last_snapshot >= SNAPSHOT_INTERVAL:
            with contextlib.suppress(StoreError):  # the record is stored; a snapshot is only a short cut
                self._write_snapshot()

    def _reconcile(self) -> None:
        """Complete or undo a call that an interrupt cut short: what the store has, counts."""
        state = self._unpublished
        if state is None:
            return
        if self._store is not None and self._store.last()[0] >= state.number:
            self._publish(state)
        self._unpublished = None

    def _current(self) -> LearnerState:
        """Return the published state, without waiting for a call that is running."""
        if self._unpublished is not None:
            with self._lock.try_acquire() as free:
                if free:
                    self._reconcile()
        return self._state

    def _write_snapshot(self) -> None:
        assert self._store is not None
        state = self._state
        number, chain = self._store.last()
        if number == state.number > self._last_snapshot:
            self._store.write_snapshot(self._snapshot(state, chain))
            self._last_snapshot = number

    def _snapshot(self, state: LearnerState, chain: int) -> Snapshot:
        data = {"config": self._config(state), **states.data_of(state)}
        return Snapshot(state.number, chain, data, states.arrays_of(state))

    def _config(self, state: LearnerState) -> dict[str, Any]:
        """Return how the learner was made, as JSON data."""
        _, policy, budget, seed = state.engine.setup
        rollout = None
        if self._incumbent is not None:
            data = Budget.coerce(budget).as_data()
            rollout = {"incumbent": self._incumbent.describe(), "budget": data, "mode": state.mode}
        return {
            "problem": options.describe_problem(self._problem),
            "policy": options.describe_policy(policy),
            "rollout": rollout,
            "pending": {**dataclasses.asdict(state.limits), "limit": int(state.limits.limit)},
            "on_failure": self._on_failure,
            "seed": int(seed),
            "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
        }

    def _now(self) -> float:
        """Return the time by the learner's clock."""
        now = self._clock()
        if not isinstance(now, float | int) or not abs(now) <= sys.float_info.max:
            raise SettingsError(f"learner: expected the clock to return seconds, got {short_repr(now)}")
        return float(now)


def _repeat_last(engine: Engine, draft: Decision, last: tuple[Any, Any] | None, error: OracleError) -> Decision:
    """Return the last feasible decision in place of one that the solver failed to make."""
    if last is None:
        raise error
    instances = jax.tree.map(lambda leaf: leaf[None], draft.instance)
    if not engine.oracle.contained(last[0][None], instances)[0]:
        raise OracleError(f"{error}; the last feasible decision is not feasible now") from error
    unknown = np.full_like(draft.log_probability, np.nan)
    return with_solution(draft, *last, version=np.int32(NOT_SAMPLED), log_probability=unknown)


def _require_finite(name: str, info: dict[str, float]) -> dict[str, float]:
    """Return the diagnostics of a step whose state is finite; a total that is not known is NaN in them."""
    if not info["finite"]:
        raise FeedbackError(
            f"{name}: learning from this feedback would give numbers that are not finite, so nothing was learned; "
            "lower the learning rate, or scale contexts and costs"
        )
    return info if info["complete"] else {**info, "residual": np.nan, "total": np.nan}


def _join_pieces(id: int, before: np.ndarray | None, arrival: Arrival) -> np.ndarray:
    """Return the rows that have come so far, NaN for the others; refuse a row that came differently before."""
    if arrival.matrix is not None:
        raise FeedbackError(
            f"decision {id}: rows that come with the feedback cannot come in pieces; report linear=(H, v) once, with "
            "all rows"
        )
    values = np.where(arrival.seen, arrival.values, np.nan)
    if before is None:
        return values
    both = ~np.isnan(values) & ~np.isnan(before)
    wrong = np.flatnonzero(both & ~(np.abs(values - before) <= TOLERANCE * np.maximum(1.0, np.abs(before))))
    if len(wrong):
        raise ConflictError(
            f"decision {id}: row {wrong[0]} was reported before with another value, which cannot be undone; this piece "
            "was left out"
        )
    return np.where(np.isnan(before), values, before)


def _at_row(row: int, function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the function returns; its error says which row of the history it is about."""
    try:
        return function(*arguments)
    except RegretlessError as error:
        kind = FeedbackError if isinstance(error, FeedbackError) else SettingsError
        raise kind(f"row {row} of the history: {error}; nothing was learned") from None


def _stacked(trees: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.stack(leaves), *trees)
