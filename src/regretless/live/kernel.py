"""The compiled programs of one live learner: decide, decide greedily, learn. Pure functions of the policy's state."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import rounds
from regretless.feedback import Measurement, Rows
from regretless.live.arrivals import Arrival
from regretless.policies.base import Policy
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
        self.policy, self.rule = policy, rule
        with jax.enable_x64(True):
            self.numbers, self.static = eqx.partition(jax.tree.map(jnp.asarray, policy), eqx.is_array)
            self.seed = jax.random.key(np.uint32(seed))
        self._decide = jax.jit(self._decide_one)
        self._act_greedily = jax.jit(self._act_greedily_one)
        self._greedy = jax.jit(self._greedy_one)
        self._learn = jax.jit(self._learn_one)
        self._measure = jax.jit(self._measure_one)

    def init(self) -> Any:
        """The state before the first decision."""
        with jax.enable_x64(True):
            return jax.jit(lambda numbers, seed: self._whole(numbers).init(rounds.purpose_key(seed, rounds.START)))(
                self.numbers, self.seed
            )

    def decide(self, state: Any, id: int, context: np.ndarray, instance: Any, explore: bool) -> Decision:
        """The policy's decision in this context, its numbers as NumPy arrays."""
        program = self._decide if explore else self._act_greedily
        with jax.enable_x64(True):
            decision = program(self.numbers, state, self.seed, np.int32(id), context, instance)
            return jax.tree.map(np.asarray, decision)

    def greedy(self, state: Any, context: np.ndarray, instance: Any) -> Greedy:
        """Mean prediction and greedy decision."""
        with jax.enable_x64(True):
            return Greedy(*map(np.asarray, self._greedy(self.numbers, state, context, instance)))

    def learn(
        self, state: Any, decision: Decision, arrival: Arrival, offset: np.ndarray | None, size: float | None
    ) -> tuple[Any, dict[str, float]]:
        """The state after ``arrival``, whose values lose the known ``offset`` and are divided by the unit ``size`` of cost."""
        seen = None if arrival.seen.all() else arrival.seen
        unit = None if size is None else np.float64(size)
        rows = None if arrival.matrix is None else (arrival.matrix, arrival.linkage)
        with jax.enable_x64(True):
            state, info = self._learn(
                self.numbers, state, self.seed, decision, arrival.values, seen, rows, offset, unit
            )
            return state, {name: float(value) for name, value in info.items()}

    def measure(self, w: np.ndarray, aux: Any) -> tuple[np.ndarray, np.ndarray]:
        """``H(w)`` row by row and ``e(w)``."""
        with jax.enable_x64(True):
            matrix, linkage = self._measure(w, aux)
            return np.asarray(matrix), np.asarray(linkage)

    def shape_of(self, state: Any, context: np.ndarray, instance: Any) -> Decision:
        """Shapes and types of a decision, without making one."""
        with jax.enable_x64(True):
            return jax.eval_shape(self._decide_one, self.numbers, state, self.seed, np.int32(0), context, instance)

    def predicts(self, state: Any, context: np.ndarray) -> bool:
        """Whether the policy has a mean prediction."""
        try:
            with jax.enable_x64(True):
                jax.eval_shape(lambda numbers, s, x: self._whole(numbers).mean(s, x), self.numbers, state, context)
        except NotImplementedError:
            return False
        return True

    def _whole(self, numbers: Any) -> Policy:
        return eqx.combine(numbers, self.static)

    def _decide_one(self, numbers: Any, state: Any, seed: Any, id: Any, context: Any, instance: Any) -> Decision:
        key = rounds.purpose_key(seed, rounds.DECIDE, id)
        decision = self._whole(numbers).decide(key, state, context, instance)
        return eqx.tree_at(lambda d: d.id, decision, id)

    def _act_greedily_one(self, numbers: Any, state: Any, seed: Any, id: Any, context: Any, instance: Any) -> Decision:
        """``w*`` of the mean: no draw from the policy's distribution, which its version says."""
        policy = self._whole(numbers)
        form = self._decide_one(numbers, state, seed, id, context, instance)
        mean = policy.mean(state, context)
        solution = policy.oracle.solve_one(mean, instance)
        parts = (mean, solution.w, solution.aux, solution.status, jnp.int32(NOT_SAMPLED))
        return eqx.tree_at(
            lambda d: (d.cost_sample, d.w, d.aux, d.status, d.version), form, parts, is_leaf=lambda leaf: leaf is None
        )

    def _greedy_one(self, numbers: Any, state: Any, context: Any, instance: Any) -> tuple[Any, Any, Any]:
        policy = self._whole(numbers)
        mean = policy.mean(state, context)
        solution = policy.oracle.solve_one(mean, instance)
        return mean, solution.w, solution.status

    def _learn_one(
        self,
        numbers: Any,
        state: Any,
        seed: Any,
        decision: Decision,
        values: Any,
        seen: Any,
        rows: Any,
        offset: Any,
        size: Any,
    ) -> tuple[Any, Any]:
        if rows is None:
            operator, linkage = self.rule.measure(decision.w, decision.aux)
        else:
            operator, linkage = Rows(rows[0]), rows[1]
        if offset is not None:
            values = values - operator.matvec(offset)
        if size is not None:
            values = values / size
        key = rounds.purpose_key(seed, rounds.LEARN, decision.id)
        return self._whole(numbers).learn(key, state, decision, Feedback(operator, linkage, values, seen))

    def _measure_one(self, w: Any, aux: Any) -> tuple[Any, Any]:
        operator, linkage = self.rule.measure(w, aux)
        return jax.vmap(operator.rmatvec)(jnp.eye(linkage.shape[0])), linkage
