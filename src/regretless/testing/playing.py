"""Some rounds of a policy on small problems, with its functions compiled and the solver called between them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback, oracles
from regretless.policies.base import AskingPolicy, Policy, Question, answer, ask, host_answer, solution_of, solve
from regretless.problem import Problem
from regretless.testing.words import finite, require
from regretless.types import Decision, Feedback, Info

DIM, FEATURES, ROUNDS = 4, 3, 8


def problems() -> list[Problem]:
    """Small problems that have everything hard in them, one at a time."""
    oracle = oracles.top_k(DIM, 2)
    vector, rows, mask = (FEATURES,), (DIM, FEATURES), np.ones(DIM, bool)
    return [
        *(Problem(oracle, vector, feedback.regime(name)) for name in feedback.REGISTRY),
        Problem(oracle, rows, "bandit"),
        Problem(oracle, vector, "semi_bandit", may_miss=True),
        Problem(oracle, vector, "bandit", instance=mask),
    ]


class Turn(NamedTuple):
    """One round: the decision, what it revealed, the state and diagnostics after learning from it."""

    decision: Decision
    feedback: Feedback
    state: Any
    info: Info


class Player:
    """A policy with its functions compiled, each once; a solver on the host is called between them."""

    def __init__(self, policy: Policy):
        self.policy, self.problem = policy, policy.problem
        self.start = policy.init(jax.random.key(0))
        self.sample = jax.jit(lambda *arguments: policy.sample(*arguments))
        self.whole = jax.jit(lambda *arguments: policy.learn(*arguments))
        self.ask = jax.jit(lambda *arguments: ask(policy, *arguments))
        self.second = jax.jit(lambda *arguments: answer(policy, *arguments))
        self.solved = jax.jit(lambda question: solve(policy.oracle, question))

    @property
    def instance(self) -> Any:
        """One that allows everything."""
        if not self.problem.has_instances:
            return None
        own = self.problem.oracle.example_instance()
        return self.problem.example_instance() if own is None else jax.tree.map(jnp.asarray, own)

    def decide(self, key: Any, state: Any, context: Any) -> Decision:
        """Sample, solve, record."""
        sample = self.sample(key, state, context, self.instance)
        require(
            sample.cost.shape == (self.problem.dim,) and finite(sample.cost),
            f"policy {type(self.policy).__name__}: a sample must be a finite cost of shape ({self.problem.dim},), got "
            f"{sample.cost}",
        )
        solution = solution_of(self.problem.oracle, np.asarray(sample.cost), self.instance)
        return self.problem.record(sample, jax.tree.map(jnp.asarray, solution), context, self.instance)

    def learn(self, key: Any, state: Any, decision: Decision, seen: Feedback) -> tuple[Any, Info]:
        """``learn``; its halves where it is made of them, or where the solver between them is on the host."""
        if not self.problem.oracle.on_host and type(self.policy).learn is not AskingPolicy.learn:
            return self.whole(key, state, decision, seen)
        return self.answer(self.ask(key, state, decision, seen))

    def answer(self, question: Question) -> tuple[Any, Info]:
        """The second half of ``learn`` after the solves; all of it for a policy that asks for none."""
        oracle = self.problem.oracle
        given = host_answer(oracle, question) if oracle.on_host else self.solved(question)
        return self.second(question, given) if isinstance(self.policy, AskingPolicy) else self.whole(*question.rest)

    def play(self) -> Iterator[Turn]:
        """Some rounds, one after the other."""
        rng = np.random.default_rng(3)
        state = self.start
        for t in range(ROUNDS):
            context = jnp.asarray(rng.normal(size=self.problem.context_shape))
            decision = self.decide(jax.random.key(10 + t), state, context)
            seen = self.problem.observe(decision, jnp.asarray(2.0 + rng.normal(size=self.problem.dim)))
            state, info = self.learn(jax.random.key(50 + t), state, decision, seen)
            yield Turn(decision, seen, state, info)
