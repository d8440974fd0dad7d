"""A part of the cost that is known beforehand and need not be learnt, as a wrapper around a policy."""

from typing import Any

import equinox as eqx
from jaxtyping import Array, Float

from regretless.policies.base import Answer, AskingPolicy, Policy, Question, answer, ask
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample


class Offset(AskingPolicy):
    """Learns what is left of the cost when ``known`` is taken away, and plays ``w*`` of both together."""

    inner: Policy
    known: Float[Array, " d"]

    @property
    def level_free(self) -> bool:
        return self.inner.level_free

    def init(self, key: Key) -> Any:
        return self.inner.init(key)

    def sample(self, key: Key, state: Any, context: Context, instance: Instance) -> Sample:
        sample = self.inner.sample(key, state, context, instance)
        return eqx.tree_at(lambda s: s.cost, sample, sample.cost + self.known)

    def mean(self, state: Any, context: Context) -> Cost:
        return self.inner.mean(state, context) + self.known

    def describe(self, state: Any) -> dict[str, Array]:
        return self.inner.describe(state)

    def ask(self, key: Key, state: Any, decision: Decision, feedback: Feedback) -> Question:
        rest = eqx.tree_at(lambda d: d.cost_sample, decision, decision.cost_sample - self.known)
        values = feedback.values - feedback.operator.matvec(self.known)
        told = Feedback(feedback.operator, feedback.linkage, values, feedback.seen)
        question = ask(self.inner, key, state, rest, told)
        known_total = self.known @ decision.w
        return Question(question.costs + self.known, question.points, question.instance, (question, known_total))

    def answer(self, question: Question, given: Answer) -> tuple[Any, Info]:
        inner_question, known_total = question.rest
        state, info = answer(self.inner, inner_question, given)
        return state, eqx.tree_at(lambda i: i.total, info, info.total + known_total)
