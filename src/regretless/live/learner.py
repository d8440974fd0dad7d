"""One live learner: decide, learn, explain, save. The same policies as in ``simulate``, around your own solver and stream."""

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Never

import numpy as np

from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.feedback import Measurement
from regretless.live import (
    archive,
    assembly,
    cards,
    deciding,
    explaining,
    inputs,
    learning,
    process,
    replaying,
    rollout,
    updating,
    warm_start,
    warming,
)  # fmt: skip
from regretless.live.arrivals import RawFeedback
from regretless.live.assembly import Options, Plan
from regretless.live.core import Core
from regretless.live.health import Health
from regretless.live.history import History
from regretless.live.log import SIZE
from regretless.live.records import Choice, Explanation, Receipt
from regretless.live.warm_start import CHUNK
from regretless.models.base import ModelSpec
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.surrogates.base import SurrogateSpec
from regretless.types import Decision, Instance


class Learner:
    """Decides and learns on a live stream; ``docs/learner.md`` is the guide.

    ``feedback`` is ``bandit``, ``semi_bandit``, ``full``, ``linear`` (rows told with each feedback, at most ``rows``) or a
    Measurement; ``columns`` (rg.Columns) give contexts names, where ``context_dim`` or ``context_shape`` say how many numbers
    they are; ``policy`` (the default is for problems that nobody tuned for), ``model`` and ``surrogate`` are names or
    objects, ``settings`` those of a policy by name. ``scaling`` brings contexts and costs to order one, also around a policy
    object; turn it off with settings that were tuned without, such as the paper's. ``offset`` is a part of the cost that is
    known and need not be learnt. ``instance`` is an example of what changes in the feasible set; without it the first decision,
    or the policy object, shows its form. ``may_miss`` says that rows of the feedback may fail to arrive. At most
    ``max_pending`` decisions wait for feedback, none longer than ``max_age`` further decisions or ``max_age_seconds`` by the
    ``clock``. ``on_failure="last"`` plays the last feasible decision again if the solver fails, instead of raising. With
    ``sense="maximise"`` everything is told and shown as rewards. ``log`` is where every call is written before it returns, in
    files of ``log_size`` bytes, with ``log_sync`` down to the disk. ``incumbent`` (fixed decisions, or a function) decides
    wherever the learner might cost more than a share of ``budget`` beyond it; in ``mode="shadow"``, always.

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
        columns: Columns | None = None,
        feedback: str | Measurement = "bandit",
        policy: str | Policy = "adaptive",
        settings: PolicySpec | Mapping[str, Any] | None = None,
        model: str | ModelSpec | None = None,
        surrogate: str | SurrogateSpec | None = None,
        offset: Sequence[float] | None = None,
        instance: Instance = None,
        scaling: bool = True,
        may_miss: bool = True,
        rows: int | None = None,
        max_pending: int = 1000,
        max_age: int | None = None,
        max_age_seconds: float | None = None,
        on_failure: str = "raise",
        seed: int = 0,
        sense: str = "minimise",
        incumbent: Sequence[float] | Callable[..., Any] | None = None,
        budget: float = 0.05,
        mode: str = "act",
        log: str | Path | None = None,
        log_size: int = SIZE,
        log_sync: bool = False,
        clock: Callable[[], float] = time.time,
        **unknown: Never,
    ):
        process.require_own()
        assembly.refuse_unknown(unknown, Learner)
        assembly.require_parts(oracle, policy, settings, model, surrogate, incumbent)
        options = Options.checked(
            scaling=scaling, may_miss=may_miss, rows=rows, max_pending=max_pending, max_age=max_age,
            max_age_seconds=max_age_seconds, on_failure=on_failure, sense=sense, seed=seed, budget=budget, mode=mode,
        )  # fmt: skip
        plan = Plan(
            oracle, assembly.context_shape(context_dim, context_shape, columns, oracle),
            assembly.measurement(feedback, options.rows), policy, settings, model, surrogate,
            assembly.offset(offset, oracle, sense), options, rollout.checked(incumbent, mode, oracle), columns,
        )  # fmt: skip
        self._core = Core(plan, *plan.example(instance), plan.config(feedback), clock)
        self._books = self._core.books
        replaying.attach(self._core, log, log_size, log_sync)

    def __repr__(self) -> str:
        return cards.text_card(*self._card())

    def _repr_html_(self) -> str:
        return cards.html_lines(*self._card())

    def _card(self) -> tuple[str, list[str]]:
        plan, books, problem = self._core.plan, self._books, self.problem
        with books.lock:
            pending, learned, paused = books.pending, books.health_record.learned, books.paused
            counts = (pending.made, learned, len(pending.waiting), pending.expired)
        policy = plan.policy if isinstance(plan.policy, str) else type(plan.policy).__name__
        shape = f"{' × '.join(map(str, problem.context_shape)) or 1} numbers"
        lines = [
            "{:,} decisions: {:,} learned from, {:,} waiting, {:,} expired".format(*counts),
            f"feasible set {type(plan.oracle).__name__} of {problem.dim} coordinates, "
            f"context of {shape if plan.columns is None else f'named columns, as {shape}'}",
            f"policy {policy}, feedback {problem.feedback.name}",
        ]
        if plan.options.mode != "act" or paused:
            lines.append("paused: the incumbent decides" if paused else f"mode {plan.options.mode}")
        return "Learner", [*lines, "health() reports how it is doing"]

    @property
    def problem(self) -> Problem:
        """What the policy is built for."""
        return self._books.kernel.problem

    @property
    def columns(self) -> Columns | None:
        """The columns of its contexts, if they have names."""
        return self._core.plan.columns

    def decide(self, context: Any, *, instance: Any = None, explore: bool = True) -> Choice | Any:
        """What to do in this context: a Choice; for several contexts (a leading axis) a list of them, all or none.

        A context is numbers; of a learner with columns, a dictionary or a row of a DataFrame: several are a DataFrame, or a
        list of dictionaries.
        ``instance`` is what changes in the feasible set (for several contexts a sequence, one each); its form stays the same
        from decision to decision. ``explore=False`` solves the mean prediction instead of a draw.
        """
        process.require_own()
        inputs.flag("decide: expected explore", explore)
        contexts, many = inputs.contexts(context, self.problem.context_shape, self.columns)
        instances = inputs.instances(self._core.plan.oracle, instance, len(contexts), many)
        with self._core.turns.taken():
            made = deciding.decide(self._core, contexts, instances, explore)
        choices = [choice.named(self.columns) for choice in made]
        return choices if many else choices[0]

    def record(self, context: Any, w: Sequence[float], *, instance: Any = None) -> Choice:
        """Keeps a decision ``w`` that a person made in this context, feasible or not; its feedback is learnt like any other."""
        process.require_own()
        x = inputs.one_context(context, self.problem.context_shape, self.columns)
        vector = inputs.vector("w", w, self.problem.dim)
        own = inputs.instance(self._core.plan.oracle, instance)
        with self._core.turns.taken():
            return deciding.record(self._core, x, vector, own).named(self.columns)

    def learn(
        self,
        id: int,
        *,
        total: float | None = None,
        components: Mapping[Hashable, float] | None = None,
        costs: Sequence[float] | None = None,
        linear: tuple[Any, Any] | None = None,
        values: Sequence[float] | None = None,
        final: bool = True,
    ) -> Receipt:
        """Learns from the feedback on decision ``id``, once: the total, single costs by coordinate, a cost vector, linear rows
        ``(H, v)``, or the values of the regime's own rows (NaN for what was not seen). A total beside another form is checked
        against it. With ``final=False`` more will come: the pieces are kept, and learnt when they are complete or when the last
        one comes without it. Raises FeedbackError, and changes nothing, for feedback that cannot be used.
        """
        process.require_own()
        told = RawFeedback(total, components, costs, linear, values)
        told.form()
        inputs.flag("learn: expected final", final)
        id = inputs.whole(id)
        with self._core.turns.taken():
            return learning.learn(self._core, id, told, final)

    def learn_from(self, history: History, progress: Callable[[int, int], Any] | None = None) -> int:
        """Learns from rounds that were decided before, by whomever: what ``record`` and ``learn`` would do for each one, all of
        them or none. Rounds of which nothing was seen are left out. Returns how many were learnt from; ``progress`` is told
        now and then how many are done, and of how many.
        """
        with self._core.turns.taken():
            return warm_start.learn_from(self._core, history, progress)

    def update(self, **settings: Any) -> dict[str, Any]:
        """Changes numbers of the policy's settings, by dotted name, from the next call on; what was learnt stays."""
        with self._core.turns.taken():
            return updating.update(self._core, settings)

    def pause(self) -> None:
        """Hands every decision to the incumbent, from the next one on; their feedback is learnt all the same."""
        with self._core.turns.taken():
            rollout.hold(self._core, True)

    def resume(self) -> None:
        """Ends a pause."""
        with self._core.turns.taken():
            rollout.hold(self._core, False)

    def warm_up(self, batches: Sequence[int] = (2, 4, 8, 16, 32, 64, 128)) -> None:
        """Compiles whatever calls will need, so that none of them has to; ``batches``: numbers of contexts at once."""
        with self._core.turns.taken():
            warming.warm_up(self._core, batches)

    def explain(self, choice: Choice | int) -> Explanation:
        """Why this decision (a Choice, or the id of one that waits or was learnt): predicted mean, drawn cost, greedy decision
        and the distance from it, by what the learner knows now.
        """
        process.require_own()
        given = choice.unnamed(self.columns, self.problem.context_shape) if isinstance(choice, Choice) else None
        id = inputs.whole(choice if given is None else given.id)
        with self._core.turns.taken():
            return explaining.explained(self._core, id, given)

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
        with self._core.turns.taken():
            instances = [inputs.instance(self._core.plan.oracle, history.instance(row)) for row in range(len(history))]
            kernel, state = self._core.ready_for(instances)
            if not kernel.predicts:
                raise SettingsError("this policy has no mean prediction, so that it cannot decide greedily")
            solved: list[Any] = []
            for start in range(0, len(history), CHUNK):  # the last chunk is filled up, so that one program serves all
                rows = np.minimum(np.arange(start, start + CHUNK), len(history) - 1)
                chunk = [instances[row] for row in rows]
                drafts = kernel.draft(state, (rows + 1).tolist(), history.contexts[rows], chunk, explore=False)
                solved += kernel.solve(drafts[: len(history) - start])
        return np.stack([decision.cost_sample for decision in solved]), np.stack([decision.w for decision in solved])

    def learned_decisions(self) -> list[Decision]:
        """Return the last decisions that were learned from, oldest first, at most as many as may wait.

        Returns
        -------
        list of Decision
        """
        with self._books.lock:
            return [learned.decision for learned in self._books.pending.learnt.values()]

    def health(self) -> Health:
        """How the learner is doing, with a verdict in words; answers also while another thread waits for the solver."""
        process.require_own()
        return self._books.health()

    @property
    def waiting(self) -> list[int]:
        """Ids of the decisions that wait for feedback, oldest first."""
        process.require_own()
        return self._books.waiting()

    def close(self) -> None:
        """Lets go of the log; without one nothing is to be done. Whatever would have to be logged is refused from then on."""
        with self._core.turns.taken():
            if self._core.log is not None:
                self._core.log.close()

    def save(self, path: str | Path) -> None:
        """Writes everything into one file, atomically; ``load`` goes on from there bit for bit."""
        process.require_own()
        kernel, form_fixed, state = self._books.snapshot()
        archive.save(path, kernel, self._core.config, form_fixed, state)

    @classmethod
    def load(
        cls,
        path: str | Path,
        oracle: Oracle,
        *,
        feedback: Measurement | None = None,
        policy: Policy | None = None,
        model: ModelSpec | None = None,
        surrogate: SurrogateSpec | None = None,
        incumbent: Callable[..., Any] | None = None,
        columns: Columns | None = None,
        settings: Mapping[str, Any] | None = None,
        log: str | Path | None = None,
        log_size: int = SIZE,
        log_sync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> "Learner":
        """A learner that ``save`` wrote. The oracle, and whatever else was given as an object, has to be given again.

        ``settings`` are numbers that change from now on, as by ``update``; ``log`` a new log, or the one that ends here.
        Columns are in the file: ``columns`` that differ from them are refused.
        """
        process.require_own()
        given = assembly.objects(feedback, policy, model, surrogate, incumbent, columns)
        learner = archive.load(cls, path, oracle, given, clock)
        replaying.attach(learner._core, log, log_size, log_sync)
        if settings:
            learner.update(**settings)
        return learner

    @classmethod
    def replay(
        cls,
        log: str | Path,
        oracle: Oracle,
        *,
        checkpoint: str | Path | None = None,
        until: int | None = None,
        append: bool = False,
        feedback: Measurement | None = None,
        policy: Policy | None = None,
        model: ModelSpec | None = None,
        surrogate: SurrogateSpec | None = None,
        incumbent: Callable[..., Any] | None = None,
        columns: Columns | None = None,
        log_size: int = SIZE,
        log_sync: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> "Learner":
        """The learner whose log this is, bit for bit: from its start, or from a ``checkpoint`` on, up to record ``until``.

        With ``append`` it goes on writing this log. A tail that a crash tore off belongs to a call that never returned: it is
        left out with a warning. A damaged log is a LogError that says which records are good.
        """
        process.require_own()
        given = assembly.objects(feedback, policy, model, surrogate, incumbent, columns)
        learner, reader = replaying.replay(cls, log, oracle, given, clock, checkpoint, until, append)
        return replaying.appended(learner, reader, log_size, log_sync) if append else learner
