"""One live learner: decide, learn, explain, save. The same policies as in ``simulate``, around your own solver and stream."""

import inspect
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np

from regretless.errors import FeedbackError, SettingsError
from regretless.feedback import Measurement
from regretless.live import archive, assembly, inputs, process
from regretless.live.arrivals import RawFeedback
from regretless.live.assembly import Options, Plan
from regretless.live.books import Books, LearnerState
from regretless.live.deciding import solved
from regretless.live.health import Health
from regretless.live.kernel import Kernel
from regretless.live.parser import FeedbackParser
from regretless.live.records import Choice, Explanation, Receipt, known_number
from regretless.live.snapshot import describe
from regretless.models.base import Model
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy
from regretless.problem import Problem, form_of, form_words
from regretless.settings import Settings
from regretless.surrogates.base import Surrogate
from regretless.types import Instance


class Learner:
    """Decides and learns on a live stream; ``docs/learner.md`` is the guide.

    ``feedback`` is ``bandit``, ``semi_bandit``, ``full``, ``linear`` (rows told with each feedback, at most ``rows``) or a
    Measurement; ``policy`` (the default is for problems that nobody tuned for), ``model`` and ``surrogate`` are names or
    objects, ``settings`` those of a policy by name. ``scaling`` brings contexts and costs to order one, also around a policy
    object; turn it off with settings that were tuned without, such as the paper's. ``offset`` is a part of the cost that is
    known and need not be learnt. ``instance`` is an example of what changes in the feasible set; without it the first decision,
    or the policy object, shows its form. ``may_miss`` says that rows of the feedback may fail to arrive. At most
    ``max_pending`` decisions wait for feedback, none longer than ``max_age`` further decisions. ``on_failure="last"`` plays the
    last feasible decision again if the solver fails, instead of raising.

    >>> import numpy as np, regretless as rg
    >>> learner = rg.Learner(rg.oracles.top_k(4, 2), context_dim=3)
    >>> choice = learner.decide([0.5, -1.0, 2.0])
    >>> learner.learn(choice.id, total=17.2).message
    'learnt'
    >>> learner.learn(choice.id, total=17.2).message
    'the same feedback was learnt before: nothing changed'
    """

    def __init__(
        self,
        oracle: Oracle,
        *,
        context_dim: int | None = None,
        context_shape: tuple[int, ...] | None = None,
        feedback: str | Measurement = "bandit",
        policy: str | Policy = "adaptive",
        settings: Settings | Mapping[str, Any] | None = None,
        model: str | Model | None = None,
        surrogate: str | Surrogate | None = None,
        offset: Sequence[float] | None = None,
        instance: Instance = None,
        scaling: bool = True,
        may_miss: bool = True,
        rows: int | None = None,
        max_pending: int = 1000,
        max_age: int | None = None,
        on_failure: str = "raise",
        seed: int = 0,
        **unknown: Never,
    ):
        process.require_own()
        assembly.refuse_unknown(unknown, [name for name in inspect.signature(Learner).parameters if name != "unknown"])
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"learner: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
        options = Options.checked(
            scaling=scaling, may_miss=may_miss, rows=rows, max_pending=max_pending, max_age=max_age,
            on_failure=on_failure, seed=seed,
        )  # fmt: skip
        assembly.require_parts(policy, settings, model, surrogate)
        known = None if offset is None else inputs.vector("offset", offset, oracle.dim)
        self._plan = Plan(
            oracle, assembly.context_shape(context_dim, context_shape), assembly.measurement(feedback, options.rows),
            policy, settings, model, surrogate, known, options,
        )  # fmt: skip
        example = None if instance is None else inputs.instance(oracle, instance)
        if isinstance(policy, Policy) and example is None:
            example = policy.problem.example_instance()
        form_fixed = example is not None or isinstance(policy, Policy)
        self._books = Books(self._plan.kernel(example), form_fixed, options.max_pending, options.max_age)
        self._config = {
            "oracle": oracle.fingerprint(), "context_shape": list(self.problem.context_shape),
            "feedback": assembly.config_entry(feedback), "policy": assembly.config_entry(policy),
            "model": assembly.config_entry(model), "surrogate": assembly.config_entry(surrogate),
            "settings": self._plan.setting_names(), "offset": None if known is None else known.tolist(),
            "options": options.model_dump(),
        }  # fmt: skip
        self._turns = process.Turns()
        self._parser = FeedbackParser(self.problem, options.may_miss, self._books.kernel)

    @property
    def problem(self) -> Problem:
        """What the policy is built for."""
        return self._books.kernel.problem

    def decide(self, context: Any, *, instance: Any = None, explore: bool = True) -> Choice | Any:
        """What to do in this context: a Choice; for several contexts (a leading axis) a list of them, all or none.

        ``instance`` is what changes in the feasible set (for several contexts a sequence, one each); its form stays the same
        from decision to decision. ``explore=False`` solves the mean prediction instead of a draw.
        """
        process.require_own()
        if not isinstance(explore, bool):
            raise SettingsError(f"decide: expected explore to be True or False, got {inputs.said(explore)}")
        contexts, many = inputs.contexts(context, self.problem.context_shape)
        instances = inputs.instances(self._plan.oracle, instance, len(contexts), many)
        with self._turns.taken():
            kernel, state = self._ready_for(instances)
            if not explore and not kernel.predicts:
                raise SettingsError("learner: this policy has no mean prediction, so that it cannot decide greedily")
            first = self._books.pending.made + 1
            drafts = kernel.draft(state, range(first, first + len(contexts)), contexts, instances, explore)
            decisions = solved(kernel, drafts, self._plan.options.on_failure == "last", self._books.last)
            self._books.keep(kernel, state, decisions)
        choices = [Choice.of(decision, explore, fallback) for decision, fallback in decisions]
        return choices if many else choices[0]

    def learn(
        self,
        id: int,
        *,
        total: float | None = None,
        components: Mapping[Hashable, float] | None = None,
        costs: Sequence[float] | None = None,
        linear: tuple[Any, Any] | None = None,
        values: Sequence[float] | None = None,
    ) -> Receipt:
        """Learns from the feedback on decision ``id``, once: the total, single costs by coordinate, a cost vector, linear rows
        ``(H, v)``, or the values of the regime's own rows (NaN for what was not seen). A total beside another form is checked
        against it. Raises FeedbackError, and changes nothing, for feedback that cannot be used.
        """
        process.require_own()
        told = RawFeedback(total, components, costs, linear, values)
        told.form()
        id = inputs.whole(id)
        with self._turns.taken():
            pending = self._books.pending
            decision: Any = pending.known(id)
            arrival = self._parser.parse(told, decision.w, decision.aux)
            if id in pending.learnt:
                pending.require_same(id, arrival.signature())
                before = known_number(pending.learnt[id].residual)
                message = "the same feedback was learnt before: nothing changed"
                return Receipt(id, False, before is not None, before, message)
            state, info = self._books.kernel.learn(self._books.state, decision, arrival)
            if not info["finite"]:
                raise FeedbackError(
                    f"decision {id}: learning from this feedback would make the state infinite, so it was left out; "
                    "a learning rate is too large or the numbers are (scaling=True helps)"
                )
            if not info["complete"]:
                info = {**info, "residual": np.nan, "total": np.nan}
            self._books.settle(id, arrival, state, info, info["residual"])
        message = "learnt; a cost far beyond all earlier ones was not believed" if info.get("absurd") else "learnt"
        return Receipt(id, True, bool(info["complete"]), known_number(info["residual"]), message)

    def explain(self, choice: Choice | int) -> Explanation:
        """Why this decision (a Choice, or the id of one that waits or was learnt): predicted mean, drawn cost, greedy decision
        and the distance from it, by what the learner knows now.
        """
        process.require_own()
        id = inputs.whole(choice.id if isinstance(choice, Choice) else choice)
        with self._turns.taken():
            kernel, state, pending = self._books.kernel, self._books.state, self._books.pending
            made: Any = choice if isinstance(choice, Choice) else pending.known(id)
            form = (np.shape(made.context), np.shape(made.w), form_of(made.instance))
            problem = kernel.problem
            if state is None or form != (problem.context_shape, (problem.dim,), problem.instance_form):
                raise SettingsError("learner: expected a Choice of this learner, got one of another")
            if not kernel.predicts:
                raise SettingsError("learner: this policy has no mean prediction, so that it cannot explain itself")
            drafts = kernel.draft(state, [id], made.context[None], [made.instance], explore=False)
            greedy: Any = kernel.solve(drafts)[0]
            learnt = pending.learnt.get(id)
            return Explanation(
                mean=greedy.cost_sample,
                cost_sample=made.cost_sample,
                greedy=greedy.w,
                differs=int(np.sum(made.w != greedy.w)),
                gap=float(greedy.cost_sample @ (made.w - greedy.w)),
                details=kernel.describe(state),
                residual=None if learnt is None else known_number(learnt.residual),
            )

    def health(self) -> Health:
        """How the learner is doing, with a verdict in words; answers also while another thread waits for the solver."""
        process.require_own()
        return self._books.health()

    @property
    def waiting(self) -> list[int]:
        """Ids of the decisions that wait for feedback, oldest first."""
        process.require_own()
        return self._books.waiting()

    def save(self, path: str | Path) -> None:
        """Writes everything into one file, atomically; ``load`` goes on from there bit for bit."""
        process.require_own()
        kernel, form_fixed, state = self._books.snapshot()
        archive.save(path, kernel, self._config, form_fixed, state)

    @classmethod
    def load(
        cls,
        path: str | Path,
        oracle: Oracle,
        *,
        feedback: Measurement | None = None,
        policy: Policy | None = None,
        model: Model | None = None,
        surrogate: Surrogate | None = None,
    ) -> "Learner":
        """A learner that ``save`` wrote. The oracle, and whatever else was given as an object, has to be given again."""
        process.require_own()
        given = {"feedback": feedback, "policy": policy, "model": model, "surrogate": surrogate}
        return archive.load(cls, path, oracle, given)

    def _restored(self, form_fixed: bool, instance: Any, state_of: Callable[[Kernel, int], LearnerState]) -> "Learner":
        """The same learner as a checkpoint left it; ``instance`` has the form of its instances, if that was fixed."""
        kernel = self._plan.kernel(instance) if form_fixed else self._books.kernel
        self._books.restore(kernel, form_fixed, state_of(kernel, self._plan.options.max_pending))
        return self

    def _ready_for(self, instances: Sequence[Instance]) -> tuple[Kernel, Any]:
        """The kernel and the state for instances of this form; the first ones of all fix it."""
        books, form = self._books, form_of(instances[0])
        kernel = books.kernel
        if not books.form_fixed and form is not None:
            describe(instances[0])  # refuses what a checkpoint could not keep
            kernel = self._plan.kernel(instances[0])
        for own in instances:
            if form_of(own) != kernel.problem.instance_form:
                expected, got = form_words(kernel.problem.instance_form), form_words(form_of(own))
                raise SettingsError(
                    f"instance: expected the form of earlier ones, {expected}, got {got}; give all of them, or none, an "
                    "instance"
                )
        return kernel, kernel.init() if books.state is None else books.state
