"""One live learner: decide, learn, explain, save. The same policies as in ``simulate``, around your own solver and stream."""

import operator
import threading
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import FeedbackError, OracleError, SettingsError
from regretless.feedback import Measurement
from regretless.live import archive, assembly, inputs
from regretless.live.arrivals import Reader, Told
from regretless.live.assembly import Options
from regretless.live.health import Health, Recorder
from regretless.live.kernel import Kernel
from regretless.live.pending import Learnt, Pending
from regretless.live.records import Choice, Explanation, Receipt
from regretless.live.scaling import ContextScale, CostScale
from regretless.live.shifted import Shifted
from regretless.live.snapshot import describe
from regretless.models.base import Model
from regretless.oracles.base import Oracle, TraceableOracle
from regretless.policies.base import Policy
from regretless.policies.linear_thompson import LinearThompson
from regretless.problem import Problem
from regretless.settings import Settings
from regretless.surrogates.base import Surrogate
from regretless.types import NOT_SAMPLED, SOLVED, Decision


class Learner:
    """Decides and learns on a live stream; ``docs/learner.md`` is the guide.

    ``feedback`` is ``bandit``, ``semi_bandit``, ``full``, ``linear`` (rows told with each feedback, at most ``rows``) or a
    Measurement; ``policy``, ``model`` and ``surrogate`` are names or objects, ``settings`` those of a policy by name.
    ``scaling`` estimates the sizes of contexts and costs while they come in; turn it off with settings that were tuned without,
    such as the paper's. ``offset`` is a part of the cost that is known and need not be learnt. ``may_miss`` says that rows of
    the feedback may fail to arrive. At most ``max_pending`` decisions wait for feedback, none longer than ``max_age`` further
    decisions. ``on_failure="last"`` plays the last feasible decision again if the solver fails, instead of raising.

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
        policy: str | Policy = "linear_thompson",
        model: str | Model = "gaussian_linear",
        surrogate: str | Surrogate | None = None,
        settings: Settings | Mapping[str, Any] | None = None,
        offset: Sequence[float] | None = None,
        **options: Any,
    ):
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"learner: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
        shape = assembly.context_shape(oracle, context_dim, context_shape)
        self.options = Options.checked(context_shape=shape, **options)
        self.oracle = oracle
        self.rule = assembly.measurement(feedback, self.options.rows)
        self.offset = None if offset is None else assembly.vector("offset", offset, oracle.dim)
        problem = Problem(
            oracle if offset is None else Shifted(oracle), shape, self.rule, may_miss=self.options.may_miss
        )
        built = assembly.build_policy(policy, settings, problem, model, surrogate)
        if isinstance(built.oracle, Shifted) != (offset is not None):
            raise SettingsError("learner: a policy object and an offset do not go together: give the policy by name")
        chosen = settings.model_dump() if isinstance(settings, Settings) else dict(settings or {})
        self.config = {
            "oracle": assembly.fingerprint(oracle), "feedback": assembly.spoken(feedback), "policy": assembly.spoken(policy),
            "model": assembly.spoken(model), "surrogate": assembly.spoken(surrogate), "settings": chosen,
            "offset": None if self.offset is None else self.offset.tolist(), "options": self.options.model_dump(mode="json"),
        }  # fmt: skip
        self._lock = threading.RLock()
        self._kernel = Kernel(built, self.rule, self.options.seed)
        self._reader = Reader(
            self.rule, oracle.dim, self.options.may_miss or self.options.rows is not None, self.options.rows,
            getattr(oracle, "edges", None), self._kernel.measure,
        )  # fmt: skip
        self._state = self._kernel.init()
        self._pending = Pending(self.options.max_pending, self.options.max_age)
        self._contexts = ContextScale(shape[-1]) if self.options.scaling else None
        # Linear Thompson sampling is the same in every unit of cost.
        self._costs = CostScale() if self.options.scaling and not isinstance(built, LinearThompson) else None
        self._recorder = Recorder()
        self._form: Any = inputs.OPEN  # what instances look like, once one was given
        self._last: tuple[np.ndarray, Any] | None = None  # the last feasible decision with its aux
        self._predicts = self._kernel.predicts(self._state, np.zeros(shape))

    def decide(self, context: Any, *, instance: Any = None, explore: bool = True) -> Any:
        """What to do in this context: a Choice; for several contexts (a leading axis) a list of them, all or none.

        ``instance`` is what changes in the feasible set (for several contexts a sequence, one each); its form stays the same
        from decision to decision. ``explore=False`` solves the mean prediction instead of a draw.
        """
        contexts, many = inputs.contexts(context, self.options.context_shape)
        instances = inputs.instances(instance, len(contexts), many)
        with self._lock:
            inputs.require_form(instances, self._form)
            if not explore and not self._predicts:
                raise SettingsError("learner: this policy has no mean prediction, so that it cannot decide greedily")
            scale, drafts = self._contexts, []
            for i, (x, own) in enumerate(zip(contexts, instances, strict=True)):
                scale = None if scale is None else scale.after(x)
                drafts.append(self._draft(self._pending.made + 1 + i, x, own, scale, explore))
            choices = []
            for choice, decision, differs in drafts:
                self._pending.add(decision)
                self._recorder.decide(differs)
                if not choice.fallback:
                    self._last = (choice.w, decision.aux)
                choices.append(choice)
            self._contexts = scale
            self._form = describe(instances[-1])
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
        told = Told(total, components, costs, linear, values)
        told.form()
        id = _whole(id)
        with self._lock:
            if id in self._pending.learnt:
                before = self._pending.learnt[id]
                self._pending.require_same(id, self._reader.read(told, before.w, before.aux).signature())
                return Receipt(
                    id, False, bool(np.isfinite(before.residual)), _known(before.residual),
                    "the same feedback was learnt before: nothing changed",
                )  # fmt: skip
            decision = self._pending.get(id)
            arrival = self._reader.read(told, decision.w, decision.aux)
            costs_scale = None if self._costs is None else self._costs.after(*self._sizes(decision, arrival))
            unit = None if costs_scale is None else costs_scale.size
            self.oracle.take_failure()
            state, info = self._kernel.learn(self._state, decision, arrival, self.offset, unit)
            failure = self.oracle.take_failure()
            if failure is not None:
                raise failure
            if not info.get("finite", 1.0):
                raise FeedbackError(
                    f"decision {id}: learning from this feedback would make the state infinite, so it was left out; "
                    "a learning rate is too large or the numbers are (scaling=True helps)"
                )
            complete = bool(info.get("complete", 1.0))
            residual = info.get("residual", np.nan) * (unit or 1.0) if complete else np.nan
            known = info if complete else {**info, "residual": np.nan, "total": np.nan}
            self._state, self._costs = state, costs_scale
            self._pending.settle(id, Learnt(decision.w, decision.aux, arrival.signature(), np.asarray(residual)))
            self._recorder.learn(known)
            return Receipt(id, True, complete, _known(residual), "learnt")

    def explain(self, choice: Choice) -> Explanation:
        """Why this decision: predicted mean, drawn cost, greedy decision and the distance from it."""
        if not self._predicts:
            raise SettingsError("learner: this policy has no mean prediction, so that it cannot explain itself")
        with self._lock:
            context = choice.context if self._contexts is None else self._contexts(choice.context)
            found = self._kernel.greedy(self._state, context, self._shown(choice.instance))
            if found.status != SOLVED:
                self.oracle.raise_failure()
            mean = self._in_units(found.mean)
            learnt = self._pending.learnt.get(choice.id)
            mixing = getattr(self._state, "mixing", None)
            return Explanation(
                mean=mean,
                cost_sample=choice.cost_sample,
                greedy=found.w,
                differs=int(np.sum(choice.w != found.w)),
                gap=float(mean @ (choice.w - found.w)),
                alpha=None if mixing is None else float(mixing.alpha),
                residual=None if learnt is None else _known(learnt.residual),
            )

    def health(self) -> Health:
        """How the learner is doing, with a verdict in words."""
        with self._lock:
            return self._recorder.report(self._pending.made, len(self._pending.waiting), self._pending.expired)

    @property
    def waiting(self) -> list[int]:
        """Ids of the decisions that wait for feedback, oldest first."""
        with self._lock:
            return list(self._pending.waiting)

    def save(self, path: str | Path) -> None:
        """Writes everything into one file, in one stroke; ``load`` goes on from there bit for bit."""
        with self._lock:
            archive.save(self, path)

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
        given = {"feedback": feedback, "policy": policy, "model": model, "surrogate": surrogate}
        return archive.load(cls, path, oracle, given)

    def _draft(
        self, id: int, context: np.ndarray, instance: Any, scale: ContextScale | None, explore: bool
    ) -> tuple[Choice, Decision, float]:
        """A decision that is not kept yet, and whether it differs from the greedy one."""
        shown, x = self._shown(instance), context if scale is None else scale(context)
        self.oracle.take_failure()
        decision = self._kernel.decide(self._state, id, x, shown, explore)
        fallback = decision.status != SOLVED
        if fallback:
            decision = self._instead(decision, instance)
        differs = np.nan
        if not explore:
            differs = 0.0
        elif isinstance(self.oracle, TraceableOracle) and self._predicts and not fallback:
            differs = float(not np.array_equal(self._kernel.greedy(self._state, x, shown).w, decision.w))
        density = None if decision.log_density is None else float(decision.log_density)
        sample = self._in_units(np.asarray(decision.cost_sample))
        choice = Choice(
            id, np.asarray(decision.w), sample, density, decision.aux, context, instance, explore, bool(fallback)
        )
        return choice, decision, differs

    def _instead(self, decision: Decision, instance: Any) -> Decision:
        """The last feasible decision in place of one that the solver failed to make, if the user wants that."""
        try:
            self.oracle.raise_failure()
        except OracleError as error:
            if self.options.on_failure != "last" or self._last is None:
                raise
            with jax.enable_x64(True):
                possible = bool(self.oracle.feasible(jnp.asarray(self._last[0]), jax.tree.map(jnp.asarray, instance)))
            if not possible:
                raise OracleError(f"{error}; the last feasible decision is not feasible now") from error
        w, aux = self._last or (None, None)
        changed = {"w": w, "aux": aux, "status": np.zeros_like(decision.status), "version": np.int32(NOT_SAMPLED)}
        return Decision(**{**vars(decision), **changed})

    def _shown(self, instance: Any) -> Any:
        """The instance as the policy's oracle takes it."""
        if self.offset is None:
            return instance
        return instance, self.offset / (1.0 if self._costs is None else self._costs.size)

    def _in_units(self, cost: np.ndarray) -> np.ndarray:
        """A cost vector of the policy's in the user's units, with its known part."""
        whole = cost * (1.0 if self._costs is None else self._costs.size)
        return whole if self.offset is None else whole + self.offset

    def _sizes(self, decision: Decision, arrival: Any) -> tuple[np.ndarray, np.ndarray]:
        """Values without their known part, and the squared norms of their rows; rows that did not arrive have none."""
        w = np.asarray(decision.w)
        matrix = self._kernel.measure(w, decision.aux)[0] if arrival.matrix is None else arrival.matrix
        values = arrival.values if self.offset is None else arrival.values - matrix @ self.offset
        return values, np.where(arrival.seen, np.sum(np.square(matrix), axis=1), 0.0)


def _known(value: Any) -> float | None:
    return float(value) if np.isfinite(value) else None


def _whole(id: Any) -> int:
    try:
        return operator.index(id)
    except TypeError:
        raise FeedbackError(f"expected the id of a decision (a whole number), got {id!r}") from None
