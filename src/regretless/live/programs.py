"""The compiled programs of a live learner: pure functions of a policy's choices (static), its numbers and its state."""

from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.feedback import Rows
from regretless.keys import DECIDE, LEARN, START, purpose_key
from regretless.policies.base import Answer, Policy, Question
from regretless.policies.base import answer as answer_policy
from regretless.policies.base import ask as ask_policy
from regretless.policies.guard import Guarded
from regretless.types import NOT_SAMPLED, Decision, Feedback, Info, Sample, Solution


class Choices:
    """A policy without its numbers: what programs are compiled for. Hashed once."""

    def __init__(self, static: Any):
        self.static = static
        leaves, structure = jax.tree.flatten(static)
        self.identity = (tuple(leaves), structure)
        self.hash = hash(self.identity)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Choices) and self.identity == other.identity)

    def policy(self, numbers: Any) -> Policy:
        """The whole policy."""
        return eqx.combine(numbers, self.static)


class Told(eqx.Module):
    """The scalars of an Info in one array, which is one transfer instead of many."""

    names: tuple[str, ...] = eqx.field(static=True)
    values: Any

    def scalars(self) -> dict[str, float]:
        """Each by its name."""
        return dict(zip(self.names, np.asarray(self.values).tolist(), strict=True))


@partial(jax.jit, static_argnums=0)
def init(choices: Choices, numbers: Any, seed: Any) -> Any:
    """The state before the first decision."""
    return choices.policy(numbers).init(purpose_key(seed, START))


def _drafted(
    choices: Choices, explore: bool, numbers: Any, state: Any, seed: Any, id: Any, context: Any, instance: Any
) -> Decision:
    """Sample, solve where that is pure JAX, record; the mean is no draw from the policy's distribution, as its version says."""
    policy = choices.policy(numbers)
    problem, oracle = policy.problem, policy.oracle
    if explore:
        sample = policy.sample(purpose_key(seed, DECIDE, id), state, context, instance)
    else:
        sample = Sample(policy.mean(state, context), jnp.int32(NOT_SAMPLED))
        sample = policy.judged(purpose_key(seed, DECIDE, id), state, sample) if isinstance(policy, Guarded) else sample
    form = problem.example_decision()
    solution = Solution(form.w, form.status, form.aux)
    if not oracle.on_host:
        found = oracle.solve_one(sample.cost, instance)
        solution = jax.tree.map(lambda old, new: new.astype(old.dtype), solution, found)
    return problem.record(sample, solution, context, instance, id=id)


draft = partial(jax.jit, static_argnums=(0, 1))(_drafted)
"""What the policy wants to do in a context; solved already where the oracle is pure JAX."""


@partial(jax.jit, static_argnums=(0, 1))
def draft_many(
    choices: Choices, explore: bool, numbers: Any, state: Any, seed: Any, ids: Any, contexts: Any, instances: Any
) -> Decision:
    """The drafts of several decisions, one by one the same as ``draft``."""
    one = partial(_drafted, choices, explore, numbers, state, seed)
    return jax.vmap(one)(ids, contexts, instances)


def _told(
    choices: Choices, numbers: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any
) -> tuple[Policy, Any, Feedback]:
    """The policy, the key of this learning step and its feedback."""
    policy = choices.policy(numbers)
    operator, linkage = (
        policy.problem.feedback.measure(decision.w, decision.aux) if rows is None else (Rows(rows[0]), rows[1])
    )
    return policy, purpose_key(seed, LEARN, decision.id), Feedback(operator, linkage, values, seen)


@partial(jax.jit, static_argnums=0)
def learn(
    choices: Choices, numbers: Any, state: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any
) -> tuple[Any, Told]:
    """A learning step whose solves, if any, are pure JAX."""
    policy, key, feedback = _told(choices, numbers, seed, decision, values, seen, rows)
    return _checked(*policy.learn(key, state, decision, feedback))


@partial(jax.jit, static_argnums=0)
def learn_many(choices: Choices, numbers: Any, state: Any, seed: Any, rounds: Any, count: Any) -> tuple[Any, Told]:
    """Learning steps from the first ``count`` of ``rounds``, one after the other, their solves in pure JAX.

    ``rounds`` are what ``learn`` is told of a decision, with a leading axis.
    """
    form = jax.eval_shape(partial(learn, choices), numbers, state, seed, *jax.tree.map(lambda leaf: leaf[0], rounds))[1]
    length = len(jax.tree.leaves(rounds)[0])

    def step(i: Any, carried: Any) -> Any:
        state, values = carried
        after, told = learn(choices, numbers, state, seed, *jax.tree.map(lambda leaf: leaf[i], rounds))
        return after, values.at[i].set(told.values)

    nothing = jnp.zeros((length, *form.values.shape), form.values.dtype)
    state, values = jax.lax.fori_loop(0, count, step, (state, nothing))
    return state, Told(form.names, values)


@partial(jax.jit, static_argnums=0)
def ask(
    choices: Choices, numbers: Any, state: Any, seed: Any, decision: Decision, values: Any, seen: Any, rows: Any
) -> Question:
    """The first half of a learning step."""
    policy, key, feedback = _told(choices, numbers, seed, decision, values, seen, rows)
    return ask_policy(policy, key, state, decision, feedback)


@partial(jax.jit, static_argnums=0)
def answer(choices: Choices, numbers: Any, question: Question, given: Answer) -> tuple[Any, Told]:
    """The second half of a learning step."""
    return _checked(*answer_policy(choices.policy(numbers), question, given))


def _checked(state: Any, info: Info) -> tuple[Any, Told]:
    """The step, with ``finite`` about every number of the new state."""
    finite = info.finite
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.floating):
            finite = finite & jnp.all(jnp.isfinite(leaf))
    scalars = {**info.scalars(), "finite": finite}
    return state, Told(tuple(scalars), jnp.stack([jnp.asarray(value, float) for value in scalars.values()]))


@partial(jax.jit, static_argnums=0)
def describe(choices: Choices, numbers: Any, state: Any) -> dict[str, Any]:
    """What the policy tells of its state."""
    return choices.policy(numbers).describe(state)


@partial(jax.jit, static_argnums=0)
def measure(choices: Choices, numbers: Any, w: Any, aux: Any) -> tuple[Any, Any]:
    """``H(w)`` row by row and ``e(w)``."""
    operator, linkage = choices.policy(numbers).problem.feedback.measure(w, aux)
    return jax.vmap(operator.rmatvec)(jnp.eye(linkage.shape[0])), linkage


@partial(jax.jit, static_argnums=0)
def weights(choices: Choices, numbers: Any, w: Any, aux: Any) -> tuple[Any, Any]:
    """The diagonal of ``H(w)`` and ``e(w)``."""
    operator, linkage = choices.policy(numbers).problem.feedback.measure(w, aux)
    return operator.rmatvec(jnp.ones(linkage.shape[0])), linkage
