"""What a live learner computes: the steps of a decision and of learning, as programs, and the solver called between them.

With an oracle in pure JAX a decision is one program and a learning step another. A solver on the host is called from Python
between two programs, never from inside one. Learners that differ in numbers only share their programs.
"""

import itertools
from collections.abc import Sequence
from functools import cached_property, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import SettingsError
from regretless.live import programs
from regretless.live.arrivals import Arrival
from regretless.oracles.base import check
from regretless.policies.base import Answer, Policy, Question, ask, host_answer
from regretless.types import Decision, Instance, Solution


class Kernel:
    """Programs around ``policy``; policies compute in float64, as in ``simulate``.

    Random keys are ``fold_in(seed, round, purpose)`` with the decision's id as the round, exactly those of a simulated run.
    """

    def __init__(self, policy: Policy, seed: int):
        self.problem, self.oracle = policy.problem, policy.oracle
        with jax.enable_x64(True):
            self.numbers, static = eqx.partition(jax.tree.map(jnp.asarray, policy), eqx.is_array)
            self.seed = jax.random.key(np.uint32(seed))
        self.choices = programs.Choices(static)

    def init(self) -> Any:
        """The state before the first decision."""
        with jax.enable_x64(True):
            return programs.init(self.choices, self.numbers, self.seed)

    def draft(
        self, state: Any, ids: Sequence[int], contexts: np.ndarray, instances: Sequence[Instance], explore: bool
    ) -> list[Decision]:
        """What the policy wants to do, in one program; ``solve`` makes decisions of it. Without ``explore``: by the mean."""
        count = len(ids)
        found: Any = self.run_draft(state, ids, contexts, instances, explore)
        drafts = [found] if count == 1 else unstacked(found, count)
        if not np.all(np.isfinite(found.cost_sample)):
            raise SettingsError(
                "context: expected one with finite predicted costs, got numbers so large that they overflow; "
                "scale them, or build the learner with scaling=True"
            )
        return drafts

    def run_draft(
        self, state: Any, ids: Sequence[int], contexts: np.ndarray, instances: Sequence[Instance], explore: bool
    ) -> Decision:
        """The drafts as the program gives them: one, or several with a leading axis that is filled up."""
        if len(ids) == 1:
            program, arguments = programs.draft, (np.int32(ids[0]), contexts[0], instances[0])
        else:
            program, arguments = programs.draft_many, _padded(ids, contexts, instances)
        with jax.enable_x64(True):
            return jax.tree.map(np.asarray, program(self.choices, explore, self.numbers, state, self.seed, *arguments))

    def solve(self, drafts: Sequence[Decision]) -> list[Decision]:
        """The drafts with their solutions, in one call of the solver; raises OracleError if it fails for any of them."""
        if not self.oracle.on_host:
            check(Solution(w=None, status=np.array([draft.status for draft in drafts])))  # type: ignore[arg-type]
            return list(drafts)
        together: Any = jax.tree.map(lambda *leaves: np.stack(leaves), *drafts)
        solution: Any = self.oracle.answer(together.cost_sample, together.instance)
        return unstacked(with_solution(together, solution.w, solution.aux), len(drafts))

    def learn(self, state: Any, decision: Decision, arrival: Arrival) -> tuple[Any, dict[str, float]]:
        """The state after ``arrival``, and diagnostics; raises OracleError if the policy's solves fail."""
        told = self._told(state, decision, arrival)
        if self.oracle.on_host and self.asks:
            with jax.enable_x64(True):
                question = programs.ask(*told)
                costs, points, instance = jax.tree.map(np.asarray, tuple(question)[:3])
            found: Any = host_answer(self.oracle, Question(costs, points, instance, None))
            given: Any = Answer(found.w.astype(costs.dtype), found.feasible)
            with jax.enable_x64(True):
                state, info = programs.answer(self.choices, self.numbers, question, given)
        else:
            with jax.enable_x64(True):
                state, info = programs.learn(*told)
        return state, info.scalars()

    def compiled_learn(self, state: Any, decision: Decision, arrival: Arrival) -> Any:
        """The programs of ``learn``, compiled without a call of the solver: the state after answers of zeros."""
        if not (self.oracle.on_host and self.asks):
            return self.learn(state, decision, arrival)[0]
        with jax.enable_x64(True):
            question = programs.ask(*self._told(state, decision, arrival))
            w, feasible = jnp.zeros(question.costs.shape), jnp.ones(question.points.shape[:-1], bool)
            return programs.answer(self.choices, self.numbers, question, Answer(w, feasible))[0]

    def _told(self, state: Any, decision: Decision, arrival: Arrival) -> tuple[Any, ...]:
        seen = arrival.seen if self.problem.may_miss else None
        rows = None if arrival.matrix is None else (arrival.matrix, arrival.linkage)
        return self.choices, self.numbers, state, self.seed, decision, arrival.values, seen, rows

    def learn_many(
        self, state: Any, decisions: Decision, arrivals: Arrival, count: int
    ) -> tuple[Any, list[dict[str, float]]]:
        """The state after the first ``count`` of several arrivals (with a leading axis), and the diagnostics of each."""
        if self.oracle.on_host and self.asks:
            infos = []
            for i in range(count):
                decision, arrival = jax.tree.map(lambda leaf, i=i: leaf[i], (decisions, arrivals))
                state, info = self.learn(state, decision, arrival)
                infos.append(info)
            return state, infos
        seen = arrivals.seen if self.problem.may_miss else None
        rows = None if arrivals.matrix is None else (arrivals.matrix, arrivals.linkage)
        rounds = decisions, arrivals.values, seen, rows
        with jax.enable_x64(True):
            state, told = programs.learn_many(self.choices, self.numbers, state, self.seed, rounds, np.int32(count))
        return state, [dict(zip(told.names, row, strict=True)) for row in np.asarray(told.values)[:count].tolist()]

    def describe(self, state: Any) -> dict[str, float]:
        """What the policy tells of itself."""
        with jax.enable_x64(True):
            told = programs.describe(self.choices, self.numbers, state)
            return {name: float(value) for name, value in told.items()}

    def measure(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """``H(w)`` row by row and ``e(w)``."""
        with jax.enable_x64(True):
            matrix, linkage = programs.measure(self.choices, self.numbers, w, aux)
            return np.asarray(matrix), np.asarray(linkage)

    def weights(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """The diagonal of ``H(w)`` and ``e(w)``, where row ``i`` measures coordinate ``i`` alone."""
        with jax.enable_x64(True):
            diagonal, linkage = programs.weights(self.choices, self.numbers, w, aux)
            return np.asarray(diagonal), np.asarray(linkage)

    @cached_property
    def state_form(self) -> Any:
        """Shapes and types of a state."""
        with jax.enable_x64(True):
            return jax.eval_shape(partial(programs.init, self.choices), self.numbers, self.seed)

    @cached_property
    def decision_form(self) -> Decision:
        """Shapes and types of a decision."""
        with jax.enable_x64(True):
            return jax.eval_shape(self.problem.example_decision)

    @cached_property
    def predicts(self) -> bool:
        """Whether the policy has a mean prediction."""
        mean = lambda numbers, state, x: self.choices.policy(numbers).mean(state, x)  # noqa: E731
        try:
            with jax.enable_x64(True):
                jax.eval_shape(mean, self.numbers, self.state_form, self.decision_form.context)
        except NotImplementedError:
            return False
        return True

    @cached_property
    def asks(self) -> bool:
        """Whether the policy needs solves while it learns."""

        def first(numbers: Any, state: Any) -> Question:
            decision = self.problem.example_decision()
            return ask(self.choices.policy(numbers), self.seed, state, decision, self.problem.example_feedback())

        with jax.enable_x64(True):
            question = jax.eval_shape(first, self.numbers, self.state_form)
        return bool(len(question.costs.shape) and question.costs.shape[0] + question.points.shape[0])


def with_solution(draft: Decision, w: np.ndarray, aux: Any, **changed: Any) -> Decision:
    """A draft, or several with a leading axis, with what is to be done, in the types that all decisions have, read-only."""
    told = jax.tree.map(_frozen, (draft.w, draft.aux), (w, aux))
    fields = {"w": told[0], "aux": told[1], "status": np.zeros_like(draft.status), **changed}
    made = Decision(**{**vars(draft), **fields})
    for leaf in jax.tree.leaves(made):
        if isinstance(leaf, np.ndarray):
            leaf.flags.writeable = False
    return made


def unstacked(found: Any, count: int) -> list[Any]:
    """The first ``count`` rows of a tree of arrays, each a tree of its own."""
    leaves, structure = jax.tree.flatten(found)
    return [jax.tree.unflatten(structure, row) for row in itertools.islice(zip(*leaves, strict=True), count)]


def _padded(ids: Sequence[int], contexts: np.ndarray, instances: Sequence[Instance]) -> tuple[Any, Any, Any]:
    """A batch of 2, 4, 8, … rows, the last one repeated: few programs serve all numbers of contexts."""
    count = len(ids)
    rows = [min(i, count - 1) for i in range(1 << (count - 1).bit_length())]
    stacked = jax.tree.map(lambda *leaves: np.stack([leaves[i] for i in rows]), *instances)
    return np.array([ids[i] for i in rows], np.int32), contexts[rows], stacked


def _frozen(old: Any, new: Any) -> np.ndarray:
    array = np.array(new, old.dtype)
    array.flags.writeable = False
    return array
