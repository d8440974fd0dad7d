"""What a live learner computes: compiled programs for deciding and learning, and calls of the solver between them.

With an oracle in pure JAX a decision is one program and a learning step another. A solver on the host is called from
Python between two programs, never from inside one. Learners that differ in numbers, or in the solver behind the same
feasible set, share their programs.
"""

import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, ClassVar, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.draws import DECIDE, LEARN, START, purpose_key
from regretless.errors import RegretlessError, SettingsError
from regretless.feedback import Rows
from regretless.host_calls import calls_host, host_jit
from regretless.live.feedback_parser import Arrival, FeedbackParser, parse_integer
from regretless.oracles.base import Oracle, check
from regretless.oracles.host import without_solver
from regretless.policies.base import Policy, refit_if_due
from regretless.policies.guard import Budget, Guarded, add_guard, is_policys
from regretless.policies.scaling import Offset, build_policy
from regretless.problem import Problem, empty_of
from regretless.types import NOT_SAMPLED, SOLVED, Decision, Feedback, Info, Instance, Sample, Solution

CHUNK = 64
"""Rounds of a history that one program learns from."""

MAX_WARM_UP_BATCH = 2**16
"""Contexts at once that programs are compiled for in advance, at most."""

Result = TypeVar("Result")
_process: int | None = None


def check_not_forked() -> None:
    """Refuse to work in a forked child of a process that had a learner: JAX would hang there."""
    global _process
    if _process is None:
        _process = os.getpid()
    elif _process != os.getpid():
        raise RegretlessError(
            f"learner: expected to be called in process {_process}, where it was made, got process {os.getpid()}, a "
            "forked child, in which JAX would hang; start the child with multiprocessing's 'spawn' method and open a "
            "store there"
        )


class CallLock:
    """Serialise the calls that change a learner; the solver that a call waits for must not call the same learner."""

    def __init__(self) -> None:
        # An interrupt never falls between the acquisition of a C lock by a ``with`` statement and its block.
        self.mutex = threading.Lock()
        self._holder: int | None = None

    def run(self, function: Callable[[], Result]) -> Result:
        """Call a function while holding the lock; refuse a forked child and a call from inside another call."""
        check_not_forked()
        if self._holder == threading.get_ident() and self.mutex.locked():
            raise RegretlessError("learner: a solver cannot call the learner that is waiting for its answer")
        with self.mutex:
            self._holder = threading.get_ident()
            try:
                return function()
            finally:
                self._holder = None

    @contextlib.contextmanager
    def try_acquire(self) -> Iterator[bool]:
        """Yield True while holding the lock, or False at once if another call holds it."""
        if self.mutex.locked():
            yield False
            return
        with self.mutex:
            self._holder = threading.get_ident()
            try:
                yield True
            finally:
                self._holder = None


class Engine:
    """The programs of one policy for one problem; policies compute in float64, as in ``simulate``.

    Random keys are ``fold_in(seed, round, purpose)`` with the decision's id as the round, as in a simulated run.
    """

    def __init__(self, problem: Problem, policy: Any, *, budget: float | Budget | None, seed: int):
        self.setup = problem, policy, budget, seed
        expected = problem.for_policy()
        with jax.enable_x64(True):
            if isinstance(policy, Policy):
                policy.problem.require_played_on(expected, "learner: the policy object")
                expected = policy.problem
            running = build_policy(policy, expected)
            if problem.offset is not None:
                running = Offset(expected, running, jnp.asarray(problem.sign * np.asarray(problem.offset)))
            if budget is not None:
                running = add_guard(running, None, budget=budget)
            self.problem, self.oracle = running.problem, running.oracle
            shared = jax.tree.map(jnp.asarray, without_solver(running))
            self.policy_numbers, static = eqx.partition(shared, eqx.is_array)
            self.seed = jax.random.key(np.uint32(seed))
        self.guarded = isinstance(running, Guarded)
        self.host = self.oracle if running.on_host else None  # what calls of Python stand for
        # a flat list: a tree would be flattened in every call
        self.numbers, structure = jax.tree.flatten(self.policy_numbers)
        self.static = StaticPolicy.of(static, structure)

    def with_instance(self, instance: Instance) -> "Engine":
        """Return the engine for instances of this form."""
        problem, policy, budget, seed = self.setup
        return Engine(problem.with_instance(instance), policy, budget=budget, seed=seed)

    def with_settings(self, policy: Any, budget: float | Budget | None) -> "Engine":
        """Return the engine for the same problem with other numbers."""
        return Engine(self.setup[0], policy, budget=budget, seed=self.setup[3])

    def init(self) -> Any:
        """Return the policy's state before the first decision."""
        with jax.enable_x64(True):
            return _init(self.host, self.static, self.numbers, self.seed)

    def draft(
        self,
        state: Any,
        ids: Sequence[int],
        contexts: np.ndarray,
        instances: Sequence[Instance],
        explore: bool,
        guard: "GuardInput | None" = None,
    ) -> list[Decision]:
        """Return the policy's proposals, by the mean unless ``explore``; ``solve`` turns them into decisions."""
        proposal: Any = self._run_draft(state, ids, contexts, instances, explore, guard)
        if not np.all(np.isfinite(proposal.cost_sample)):
            raise SettingsError(
                "context: expected one with finite predicted costs, got numbers so large that they overflow; scale them"
            )
        return [proposal] if len(ids) == 1 else _unstack(proposal, len(ids))

    def _run_draft(
        self,
        state: Any,
        ids: Sequence[int],
        contexts: np.ndarray,
        instances: Sequence[Instance],
        explore: bool,
        guard: "GuardInput | None" = None,
    ) -> Decision:
        """Return the drafts as the program gives them: one, or several with a leading axis that is padded."""
        if self.guarded and guard is None:
            guard = GuardInput(0.0, np.full((len(ids), self.problem.dim), np.nan))
        if len(ids) == 1:
            program: Any = _draft
            arguments: Any = (
                np.int32(ids[0]),
                contexts[0],
                instances[0],
                guard and guard._replace(usual=guard.usual[0]),
            )
        else:
            rows, padded = _pad(ids, contexts, instances)
            program, arguments = _draft_many, (*padded, guard and guard._replace(usual=guard.usual[rows]))
        with jax.enable_x64(True):
            drafted = program(self.host, self.static, explore, self.numbers, state, self.seed, *arguments)
            return jax.tree.map(np.asarray, drafted)

    def solve(self, drafts: Sequence[Decision]) -> list[Decision]:
        """Return the drafts with their solutions, from one call of the solver; raise OracleError if any fails."""
        if not self.oracle.on_host:
            status = np.array([vars(draft)["status"] for draft in drafts])
            if np.any(status != SOLVED):
                check(Solution(w=None, status=status))  # type: ignore[arg-type]
            return list(drafts)
        batch: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *drafts)
        solution: Any = self.oracle.answer(batch.cost_sample, batch.instance)
        return _unstack(with_solution(batch, solution.w, solution.aux), len(drafts))

    def predict(self, state: Any, contexts: np.ndarray, instances: Sequence[Instance]) -> tuple[np.ndarray, np.ndarray]:
        """Return the mean costs ``[n, d]`` and the decisions ``[n, d]`` that they lead to."""
        self.require_mean("decide greedily")
        count = len(contexts)
        solved: list[Any] = []
        for start in range(0, count, CHUNK):  # the last chunk is padded, so that one program serves all
            rows = np.minimum(np.arange(start, start + CHUNK), count - 1)
            chosen = [instances[row] for row in rows]
            drafts = self.draft(state, (rows + 1).tolist(), contexts[rows], chosen, False)[: count - start]
            solved += self.solve(drafts)
        return np.stack([decision.cost_sample for decision in solved]), np.stack([decision.w for decision in solved])

    def learn(self, state: Any, decision: Decision, arrival: Arrival) -> tuple[Any, dict[str, float]]:
        """Return the state after ``arrival``, and diagnostics; raises OracleError if the policy's solves fail."""
        return self._learn_with(self.host, state, decision, arrival)

    def _learn_with(self, host: Any, state: Any, decision: Decision, arrival: Arrival) -> tuple[Any, dict[str, float]]:
        with jax.enable_x64(True):
            state, info = _learn(
                host, self.static, self.numbers, state, self.seed, decision, *self._feedback_arguments(arrival)
            )
        return state, info.numbers

    def learn_many(
        self, state: Any, decisions: Decision, arrivals: Arrival, count: int
    ) -> tuple[Any, list[dict[str, float]]]:
        """Return the state after the first ``count`` arrivals of a batch, and diagnostics of each."""
        if self.asks_host:
            infos = []
            for i in range(count):
                decision, arrival = jax.tree.map(lambda leaf, i=i: leaf[i], (decisions, arrivals))
                state, info = self.learn(state, decision, arrival)
                infos.append(info)
            return state, infos
        rounds = decisions, *self._feedback_arguments(arrivals)
        with jax.enable_x64(True):
            state, packed = _learn_many(None, self.static, self.numbers, state, self.seed, rounds, np.int32(count))
        return state, [dict(zip(packed.names, row, strict=True)) for row in np.asarray(packed.values)[:count].tolist()]

    def describe(self, state: Any, waiting: float = 0.0) -> dict[str, float]:
        """Return the numbers that the policy shows of its state, while decisions of the policy wait."""
        with jax.enable_x64(True):
            numbers = _describe(self.static, self.numbers, state, np.float64(waiting))
            return {name: float(value) for name, value in numbers.items()}

    def measure(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return ``H(w)`` row by row, or its diagonal if row ``i`` measures coordinate ``i`` alone, and ``e(w)``."""
        with jax.enable_x64(True):
            rows, linkage = _measure(self.static, self.numbers, w, aux)
            return np.asarray(rows), np.asarray(linkage)

    def external_decision(
        self, id: int, context: Any, w: Any, instance: Instance, probability: float | None = None
    ) -> Decision:
        """Return a decision that no policy drew, without running a program; ``probability`` None: not known."""
        form: Any = self.decision_form
        zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), form)
        fields = {
            "id": np.asarray(id, form.id.dtype),
            "context": np.array(context, form.context.dtype),
            "instance": instance,
            "w": np.array(w, form.w.dtype),
            "log_density": np.asarray(np.nan, form.log_density.dtype),
            "log_probability": np.asarray(np.log(probability or np.nan), form.log_probability.dtype),
            "version": np.asarray(NOT_SAMPLED, form.version.dtype),
        }
        return Decision(**{**vars(zeros), **fields})

    def require_mean(self, purpose: str) -> None:
        """Refuse a policy that has no mean prediction."""
        if not self.predicts:
            raise SettingsError(f"learner: this policy has no mean prediction, so that it cannot {purpose}")

    @cached_property
    def state_form(self) -> Any:
        """Shapes and types of a state."""
        with jax.enable_x64(True):
            return jax.eval_shape(partial(_init.function, self.static), self.numbers, self.seed)

    @cached_property
    def decision_form(self) -> Decision:
        """Shapes and types of a decision."""
        with jax.enable_x64(True):
            return jax.eval_shape(self.problem.example_decision)

    @cached_property
    def feedback_form(self) -> Feedback:
        """Shapes and types of a feedback."""
        with jax.enable_x64(True):
            return jax.eval_shape(self.problem.example_feedback)

    @cached_property
    def parser(self) -> FeedbackParser:
        """Turn feedback in any form into rows."""
        return FeedbackParser(self.problem, self.measure)

    @cached_property
    def predicts(self) -> bool:
        """Whether the policy has a mean prediction."""
        mean = lambda numbers, state, x: self.static.policy(numbers).mean(state, x)  # noqa: E731
        try:
            with jax.enable_x64(True):
                jax.eval_shape(mean, self.numbers, self.state_form, self.decision_form.context)
        except NotImplementedError:
            return False
        return True

    @cached_property
    def asks_host(self) -> bool:
        """Whether the policy calls Python while it learns: a solver on the host."""

        def first(numbers: Any, state: Any) -> Any:
            decision = self.problem.example_decision()
            return self.static.policy(numbers).learn(self.seed, state, decision, self.problem.example_feedback())

        if self.host is None:
            return False
        with jax.enable_x64(True):
            return calls_host(first, self.numbers, self.state_form)

    def warm_up(self, state: Any, batches: Sequence[int]) -> None:
        """Compile the programs of decisions (one, and batches of these sizes), learning, explaining and histories."""
        for count in batches:
            parse_integer("warm_up: numbers of contexts", count, 1, MAX_WARM_UP_BATCH)
        sizes = sorted({1 << (int(count) - 1).bit_length() for count in batches} - {1})
        with jax.enable_x64(True):
            instance = jax.tree.map(np.asarray, empty_of(self.problem.instance_form))
        context, arrival = np.zeros(self.problem.context_shape), self._example_arrival()
        decision: Any = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), self.decision_form)
        for _ in range(2):  # a first state may differ in form from later ones
            for explore in (True, False) if self.predicts else (True,):
                for count in (1, *sizes):
                    self._run_draft(state, [1] * count, np.stack([context] * count), [instance] * count, explore)
            self.describe(state)
            state = self._learn_with(self.host and _NoSolver(self.oracle), state, decision, arrival)[0]
        if not self.asks_host:
            decisions, arrivals = jax.tree.map(lambda leaf: np.stack([leaf] * CHUNK), (decision, arrival))
            self.learn_many(state, decisions, arrivals, 1)
        rule = self.problem.feedback
        if rule.max_rows is None and not rule.total_only:
            self.measure(decision.w, decision.aux)
        if not self.oracle.on_host:
            self.oracle.contained(decision.w[None], jax.tree.map(lambda leaf: leaf[None], instance))
        elif not self.problem.has_instances:
            self._require_minimising()

    def _example_arrival(self) -> Arrival:
        """Return feedback of zeros, complete; what is missing is data to the same program."""
        values = np.zeros(self.feedback_form.values.shape)
        varying = self.problem.feedback.max_rows is not None
        matrix = np.zeros((*values.shape, self.problem.dim)) if varying else None
        return Arrival(values, np.ones(values.shape, bool), matrix, np.zeros(values.shape) if varying else None)

    def _require_minimising(self) -> None:
        """Refuse a solver that maximises: for costs ``c`` its decision for ``-c`` is better than that for ``c``."""
        cost = np.random.default_rng(0).normal(size=self.problem.dim)
        best, worst = np.asarray(self.oracle.answer(np.stack([cost, -cost])).w)
        if cost @ best > cost @ worst + 1e-6 * np.sum(np.abs(cost)):
            raise SettingsError(
                f"oracle: expected a solver that minimises, got a decision of cost {cost @ best:.4g} where "
                f"{cost @ worst:.4g} is possible; a solver that maximises gets the negative costs (rewards are "
                "sense='max' of the Problem)"
            )

    def _feedback_arguments(self, arrival: Arrival) -> tuple[Any, ...]:
        seen = arrival.seen if self.problem.may_miss else None
        rows = None if arrival.matrix is None else (arrival.matrix, arrival.linkage)
        return arrival.values, seen, rows


def with_solution(draft: Decision, w: np.ndarray, aux: Any, **changed: Any) -> Decision:
    """Return a draft, or a batch of them, with its solution, in the types that all decisions have, read-only."""
    solution = jax.tree.map(_freeze, (draft.w, draft.aux), (w, aux))
    fields = {"w": solution[0], "aux": solution[1], "status": np.zeros_like(draft.status), **changed}
    decision = Decision(**{**vars(draft), **fields})
    for leaf in jax.tree.leaves(decision):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    return decision


def _freeze(old: Any, new: Any) -> np.ndarray:
    array = np.array(new, old.dtype)
    array.flags.writeable = False
    return array


def _unstack(batch: Any, count: int) -> list[Any]:
    """Return the first ``count`` rows of a tree of arrays, each as a tree."""
    leaves, structure = jax.tree.flatten(batch)
    return [jax.tree.unflatten(structure, row) for row in itertools.islice(zip(*leaves, strict=True), count)]


def _pad(ids: Sequence[int], contexts: np.ndarray, instances: Sequence[Instance]) -> tuple[Any, Any]:
    """Return rows of a batch of 2, 4, 8, …, the last one repeated, and the batch: few programs serve all numbers."""
    count = len(ids)
    rows = np.minimum(np.arange(1 << (count - 1).bit_length()), count - 1)
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves)[rows], *instances)
    return rows, (np.asarray(ids, np.int32)[rows], contexts[rows], stacked)


class _NoSolver:
    """Answer zeros in place of a solver, to compile programs without calling it."""

    def __init__(self, oracle: Oracle):
        self.oracle = oracle

    def answer(self, costs: np.ndarray, instances: Instance) -> Solution:
        """Return solutions of zeros."""
        aux = jax.tree.map(lambda leaf: np.zeros((len(costs), *leaf.shape), leaf.dtype), self.oracle.aux_form())
        return Solution(np.zeros_like(costs), np.full(len(costs), SOLVED), aux)  # type: ignore[arg-type]

    def contained(self, points: np.ndarray, instances: Instance) -> np.ndarray:
        """Return that all points are feasible."""
        return np.ones(len(points), bool)


class GuardInput(NamedTuple):
    """What a guard needs to know for decisions: how many wait, and what the incumbent would do."""

    waiting: Any  # decisions of the policy that wait for feedback
    usual: Any  # the incumbent's decision in each round, NaN where it is not known
    counted: Any = 1.0  # whether decisions of a batch wait, too: 0 in shadow mode


class StaticPolicy:
    """A policy without its numbers: what programs are compiled for.

    Equal ones are the same object, so that JAX compares them without running Python: an interrupt there would be lost.
    """

    known: ClassVar[weakref.WeakValueDictionary[Hashable, "StaticPolicy"]] = weakref.WeakValueDictionary()

    def __init__(self, static: Any, structure: Any):
        self.static, self.structure = static, structure

    @classmethod
    def of(cls, static: Any, structure: Any) -> "StaticPolicy":
        """Return the one object for this policy without its numbers; ``structure`` is that of their tree."""
        leaves, rest = jax.tree.flatten(static)
        return cls.known.setdefault((tuple(leaves), rest, structure), cls(static, structure))

    def policy(self, numbers: Sequence[Any]) -> Policy:
        """Return the whole policy."""
        return eqx.combine(jax.tree.unflatten(self.structure, numbers), self.static)


class PackedInfo(eqx.Module):
    """The scalars of an Info in one array, which is one transfer instead of many."""

    names: tuple[str, ...] = eqx.field(static=True)
    values: Any

    @property
    def numbers(self) -> dict[str, float]:
        """Each number by its name; no method, because Equinox makes a module of every bound method."""
        return dict(zip(self.names, np.asarray(self.values).tolist(), strict=True))


@partial(host_jit, statics=1)
def _init(static: StaticPolicy, numbers: Any, seed: Any) -> Any:
    return static.policy(numbers).init(purpose_key(seed, START))


def _draft_one(
    static: StaticPolicy,
    explore: bool,
    numbers: Any,
    state: Any,
    seed: Any,
    id: Any,
    context: Any,
    instance: Any,
    guard: "GuardInput | None",
) -> Decision:
    """Sample, solve if the oracle is pure JAX, and record; the mean has a version that says that it was not drawn."""
    policy = static.policy(numbers)
    problem, oracle = policy.problem, policy.oracle
    key = purpose_key(seed, DECIDE, id)
    if isinstance(policy, Guarded) and guard is not None:
        state = policy.with_waiting(state, guard.waiting)
        usual = None if oracle.convex else guard.usual  # a convex set has points on the way: no penalty is needed
        sample = policy.admit(key, state, policy.propose(key, state, context, instance, usual, explore=explore))
    elif explore:
        sample = policy.sample(key, state, context, instance)
    else:
        sample = Sample(policy.mean(state, context), jnp.int32(NOT_SAMPLED), log_probability=jnp.zeros(()))
    form = problem.example_decision()
    solution = Solution(form.w, form.status, form.aux)
    if not oracle.on_host:
        solved = oracle.solve_one(sample.cost, instance)
        solution = jax.tree.map(lambda old, new: new.astype(old.dtype), solution, solved)
    return problem.record(sample, solution, context, instance, id=id)


_draft = host_jit(_draft_one, statics=2)


@partial(host_jit, statics=2)
def _draft_many(
    static: StaticPolicy,
    explore: bool,
    numbers: Any,
    state: Any,
    seed: Any,
    ids: Any,
    contexts: Any,
    instances: Any,
    guard: "GuardInput | None",
) -> Decision:
    """Return the drafts of several decisions, one by one the same as ``_draft``."""
    one = partial(_draft_one, static, explore, numbers, state, seed)
    if guard is None:
        return jax.vmap(lambda id, context, instance: one(id, context, instance, None))(ids, contexts, instances)

    def step(waiting: Any, row: Any) -> tuple[Any, Decision]:
        id, context, instance, usual = row
        decision = one(id, context, instance, GuardInput(waiting, usual, guard.counted))
        return waiting + guard.counted * is_policys(decision.member), decision

    start = jnp.asarray(guard.waiting, float)
    return jax.lax.scan(step, start, (ids, contexts, instances, guard.usual))[1]


def _unpack_step(
    static: StaticPolicy, numbers: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any
) -> tuple[Policy, Any, Feedback]:
    """Return the policy, the key of this learning step and its feedback."""
    policy = static.policy(numbers)
    operator, linkage = (
        policy.problem.feedback.measure(decision.w, decision.aux) if rows is None else (Rows(rows[0]), rows[1])
    )
    return policy, purpose_key(seed, LEARN, decision.id), Feedback(operator, linkage, values, seen)


@partial(host_jit, statics=1)
def _learn(
    static: StaticPolicy, numbers: Any, state: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any
) -> tuple[Any, PackedInfo]:
    """Run a learning step."""
    policy, key, feedback = _unpack_step(static, numbers, seed, decision, values, seen, rows)
    state, info = policy.learn(key, state, decision, feedback)
    return _check_finite(refit_if_due(policy, key, state, state.version), info)


@partial(host_jit, statics=1)
def _learn_many(
    static: StaticPolicy, numbers: Any, state: Any, seed: Any, rounds: Any, count: Any
) -> tuple[Any, PackedInfo]:
    """Run learning steps on the first ``count`` of ``rounds``, one after the other, their solves in pure JAX."""
    form = jax.eval_shape(
        partial(_learn.function, static), numbers, state, seed, *jax.tree.map(lambda leaf: leaf[0], rounds)
    )[1]
    length = len(jax.tree.leaves(rounds)[0])

    def step(i: Any, carried: Any) -> Any:
        state, values = carried
        after, packed = _learn.function(static, numbers, state, seed, *jax.tree.map(lambda leaf: leaf[i], rounds))
        return after, values.at[i].set(packed.values)

    zeros = jnp.zeros((length, *form.values.shape), form.values.dtype)
    state, values = jax.lax.fori_loop(0, count, step, (state, zeros))
    return state, PackedInfo(form.names, values)


def _check_finite(state: Any, info: Info) -> tuple[Any, PackedInfo]:
    """Return the step, with ``finite`` about every number of the new state."""
    finite = info.finite
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            finite = finite & jnp.all(jnp.isfinite(leaf))
    scalars = {**info.scalars(), "finite": finite}
    return state, PackedInfo(tuple(scalars), jnp.stack([jnp.asarray(value, float) for value in scalars.values()]))


@partial(jax.jit, static_argnums=0)
def _describe(static: StaticPolicy, numbers: Any, state: Any, waiting: Any) -> dict[str, Any]:
    policy = static.policy(numbers)
    return policy.describe(policy.with_waiting(state, waiting) if isinstance(policy, Guarded) else state)


@partial(jax.jit, static_argnums=0)
def _measure(static: StaticPolicy, numbers: Any, w: Any, aux: Any) -> tuple[Any, Any]:
    rule = static.policy(numbers).problem.feedback
    operator, linkage = rule.measure(w, aux)
    count = linkage.shape[0]
    if rule.separable:
        return operator.rmatvec(jnp.ones(count)), linkage
    return jax.vmap(operator.rmatvec)(jnp.eye(count)), linkage
