"""The compiled programs of a live learner: decide, decide greedily, learn. Pure functions of the policy's state.

Learners that differ in numbers only share their programs.
"""

from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.feedback import Measurement, Rows
from regretless.live.arrivals import Arrival
from regretless.policies.base import Policy
from regretless.simulate import rounds
from regretless.types import NOT_SAMPLED, Decision, Feedback


class Greedy(NamedTuple):
    """The mean prediction and what would be done if it were true."""

    mean: Any
    w: Any
    status: Any


class Kernel:
    """Programs around ``policy`` with feedback ``rule``; policies compute in float64, as in ``simulate``.

    Random keys are ``fold_in(seed, round, purpose)`` with the decision's id as the round, exactly those of a simulated run.
    """

    def __init__(self, policy: Policy, rule: Measurement, seed: int):
        with jax.enable_x64(True):
            self.numbers, static = eqx.partition(jax.tree.map(jnp.asarray, policy), eqx.is_array)
            self.seed = jax.random.key(np.uint32(seed))
        self.choices = _Choices(static, rule)

    def init(self) -> Any:
        """The state before the first decision."""
        with jax.enable_x64(True):
            return _init(self.choices, self.numbers, self.seed)

    def decide(self, state: Any, id: int, context: np.ndarray, instance: Any, explore: bool) -> Decision:
        """The policy's decision in this context, its numbers as NumPy arrays."""
        program = _decide if explore else _act_greedily
        with jax.enable_x64(True):
            decision = program(self.choices, self.numbers, state, self.seed, np.int32(id), context, instance)
            return jax.tree.map(np.asarray, decision)

    def greedy(self, state: Any, context: np.ndarray, instance: Any) -> Greedy:
        """Mean prediction and greedy decision."""
        with jax.enable_x64(True):
            return Greedy(*map(np.asarray, _greedy(self.choices, self.numbers, state, context, instance)))

    def learn(
        self, state: Any, decision: Decision, arrival: Arrival, offset: np.ndarray | None, size: float | None
    ) -> tuple[Any, dict[str, float]]:
        """The state after ``arrival``, whose values lose the known ``offset`` and are divided by the unit ``size`` of cost."""
        seen = None if arrival.seen.all() else arrival.seen
        rows = None if arrival.matrix is None else (arrival.matrix, arrival.linkage)
        unit = None if size is None else np.float64(size)
        with jax.enable_x64(True):
            state, info = _learn(
                self.choices, self.numbers, state, self.seed, decision, arrival.values, seen, rows, offset, unit
            )
            return state, {name: float(value) for name, value in info.items()}

    def measure(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """``H(w)`` row by row and ``e(w)``."""
        with jax.enable_x64(True):
            matrix, linkage = _measure(self.choices, w, aux)
            return np.asarray(matrix), np.asarray(linkage)

    def shape_of(self, state: Any, context: np.ndarray, instance: Any) -> Decision:
        """Shapes and types of a decision, without making one."""
        with jax.enable_x64(True):
            return jax.eval_shape(
                partial(_decide, self.choices), self.numbers, state, self.seed, np.int32(0), context, instance
            )

    def predicts(self, state: Any, context: np.ndarray) -> bool:
        """Whether the policy has a mean prediction."""
        try:
            with jax.enable_x64(True):
                jax.eval_shape(lambda n, s, x: self.choices.policy(n).mean(s, x), self.numbers, state, context)
        except NotImplementedError:
            return False
        return True


class _Choices:
    """A policy without its numbers, and its feedback: what programs are compiled for. Hashed once."""

    def __init__(self, static: Any, rule: Measurement):
        self.static, self.rule = static, rule
        leaves, structure = jax.tree.flatten((static, rule))
        self.identity = (tuple(leaves), structure)
        self.hash = hash(self.identity)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _Choices) and self.identity == other.identity)

    def policy(self, numbers: Any) -> Policy:
        """The whole policy."""
        return eqx.combine(numbers, self.static)


@partial(jax.jit, static_argnums=0)
def _init(choices: _Choices, numbers: Any, seed: Any) -> Any:
    return choices.policy(numbers).init(rounds.purpose_key(seed, rounds.START))


@partial(jax.jit, static_argnums=0)
def _decide(choices: _Choices, numbers: Any, state: Any, seed: Any, id: Any, context: Any, instance: Any) -> Decision:
    key = rounds.purpose_key(seed, rounds.DECIDE, id)
    decision = choices.policy(numbers).decide(key, state, context, instance)
    return eqx.tree_at(lambda d: d.id, decision, id)


@partial(jax.jit, static_argnums=0)
def _act_greedily(
    choices: _Choices, numbers: Any, state: Any, seed: Any, id: Any, context: Any, instance: Any
) -> Decision:
    """``w*`` of the mean: no draw from the policy's distribution, which its version says."""
    form = _decide(choices, numbers, state, seed, id, context, instance)
    mean, solution = _solve_mean(choices, numbers, state, context, instance)
    changed = {
        "cost_sample": mean, "w": solution.w, "aux": solution.aux, "status": solution.status,
        "version": jnp.int32(NOT_SAMPLED),
    }  # fmt: skip
    return Decision(**{**vars(form), **changed})


@partial(jax.jit, static_argnums=0)
def _greedy(choices: _Choices, numbers: Any, state: Any, context: Any, instance: Any) -> tuple[Any, Any, Any]:
    mean, solution = _solve_mean(choices, numbers, state, context, instance)
    return mean, solution.w, solution.status


def _solve_mean(choices: _Choices, numbers: Any, state: Any, context: Any, instance: Any) -> tuple[Any, Any]:
    policy = choices.policy(numbers)
    mean = policy.mean(state, context)
    return mean, policy.oracle.solve_one(mean, instance)


@partial(jax.jit, static_argnums=0)
def _learn(
    choices: _Choices, numbers: Any, state: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any,
    offset: Any, size: Any,
) -> tuple[Any, Any]:  # fmt: skip
    if rows is None:
        operator, linkage = choices.rule.measure(decision.w, decision.aux)
    else:
        operator, linkage = Rows(rows[0]), rows[1]
    if offset is not None:
        values = values - operator.matvec(offset)
    if size is not None:
        values = values / size
    key = rounds.purpose_key(seed, rounds.LEARN, decision.id)
    return choices.policy(numbers).learn(key, state, decision, Feedback(operator, linkage, values, seen))


@partial(jax.jit, static_argnums=0)
def _measure(choices: _Choices, w: Any, aux: Any) -> tuple[Any, Any]:
    operator, linkage = choices.rule.measure(w, aux)
    return jax.vmap(operator.rmatvec)(jnp.eye(linkage.shape[0])), linkage
