"""What is recorded of a learner's rounds, and how their costs compare with those of others in the same rounds."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Self

import jax
import numpy as np

from regretless.errors import CheckpointError
from regretless.formatting import format_amount
from regretless.live.records import percent
from regretless.oracles.base import Oracle
from regretless.policies.guard import INCUMBENT
from regretless.stats import ChangeDetector, DriftState, DualPosterior, batch_interval, fit_dual
from regretless.stats.bayes_linear import NORMAL_MEDIAN
from regretless.stats.confidence import NORMAL_QUANTILE

COMPARED_ROUNDS = 120
"""Last rounds in which costs are compared with fixed and random decisions, at most."""

MIN_LEARNER_ROUNDS = 40
"""Rounds decided by the learner from which costs are compared; of the incumbent, a quarter of that."""

MAX_DIM = 4096
"""Coordinates of the cost beyond which no cost model is fitted."""

MAX_FEATURES = 256
"""Features of a context beyond which the cost model ignores the context."""

MODEL_ERROR_FACTOR = 2.0
"""Factor of the cost model's standard error, chosen on the worlds of the arena: the model is too sure of itself."""

LEARNER_ROUND, INCUMBENT_ROUND, OTHER_ROUND = range(3)
"""Who decided a round."""

MIN_LEARNED = 40
"""Learning steps before which health gives no verdict."""

WINDOW = 400
"""Learning steps that figures on predictions and the comparison with the incumbent use."""

OPENING_ROUNDS = 100
"""First rounds since the start or the last change that are kept for the cost model: decisions differ most in them."""

DETECTOR = ChangeDetector()
"""Detector of a change of the costs, from prediction errors."""

MAX_ERROR = 1e100
"""Size at which prediction errors are cut off, so that no moment of them overflows."""


class DriftAlarm(NamedTuple):
    """Prediction errors have multiplied and stayed high: the costs have probably changed.

    Attributes
    ----------
    noticed : int
        Decision whose feedback raised the alarm.
    since : int
        Decision at which the change probably began.
    """

    noticed: int
    since: int


class MeanCost(NamedTuple):
    """A mean cost per round with its 95 % interval; a mean reward where the problem maximises.

    Attributes
    ----------
    mean, low, high : float
        The mean and the ends of its interval.
    rounds : int
        Rounds decided by the learner, over which the mean is taken.
    all_rounds : int
        All rounds of the same period.
    """

    mean: float
    low: float
    high: float
    rounds: int
    all_rounds: int

    def __str__(self) -> str:
        return f"{format_amount(self.mean)} per round ({_range(self.low, self.high)}) on {_denominator(self)}"


class CostComparison(NamedTuple):
    """Mean cost of other decisions in the same rounds, and the difference of the learner's with its 95 % interval.

    Attributes
    ----------
    cost : float
        Mean cost per round of the other decisions.
    difference, low, high : float
        Mean cost per round of the learner minus that of the others, and the ends of its interval.
    rounds : int
        Rounds decided by the learner, which are compared.
    all_rounds : int
        All rounds of the same period.
    estimated : bool
        Whether a model estimated what the others would have cost; False if it was observed.
    """

    cost: float
    difference: float
    low: float
    high: float
    rounds: int
    all_rounds: int
    estimated: bool

    @property
    def total_difference(self) -> float:
        """The difference summed over the rounds that the learner decided."""
        return self.difference * self.rounds

    @property
    def conclusive(self) -> bool:
        """Whether the interval of the difference excludes zero."""
        return not self.low <= 0.0 <= self.high

    def share(self, value: float) -> float:
        """Return a difference as a share of the cost of the others.

        Parameters
        ----------
        value : float
            A difference per round.

        Returns
        -------
        float
        """
        return value / max(abs(self.cost), 1e-300)

    def describe(self, name: str, rewards: bool = False) -> str:
        """Return the comparison in words, with the total next to every percentage and the rounds that it is about.

        Parameters
        ----------
        name : str
            What the others are called, such as "the incumbent".
        rewards : bool, default False
            Whether costs are rewards.

        Returns
        -------
        str
        """
        name += " (estimated)" if self.estimated else ""
        if not self.conclusive:
            interval = _range(self.low, self.high)
            return f"inconclusive against {name}: difference {interval} per round on {_denominator(self)}"
        better = (self.difference > 0.0) == rewards
        words = ("earns more than", "earns less than") if rewards else ("cheaper than", "more expensive than")
        effect = ("gained" if rewards else "saved") if better else "lost"
        sizes = sorted((abs(self.low), abs(self.difference), abs(self.high)))
        total = f"{format_amount(abs(self.total_difference))} {effect} in total on {_denominator(self)}"
        if self.cost * (self.cost + self.difference) <= 0.0:  # a share of a cost of the other sign means nothing
            least, size, most = map(format_amount, sizes)
            return f"{words[not better]} {name} by {size} per round ({least} to {most}), {total}"
        least, size, most = (percent(self.share(value)) for value in sizes)
        if self.rounds < self.all_rounds:
            overall = percent(abs(self.share(self.total_difference / self.all_rounds)))
            total += f" ({overall} over all {self.all_rounds:,})"
        return f"{words[not better]} {name} by {size} ({least} to {most}), {total}"


def _range(low: float, high: float) -> str:
    return f"{format_amount(low)} to {format_amount(high)}"


def _denominator(figure: MeanCost | CostComparison) -> str:
    return f"{figure.rounds:,} of the last {figure.all_rounds:,} rounds"


def kind_of_round(decision: Any) -> int:
    """Return who made a decision: the learner, the incumbent or another."""
    if int(decision.member) == INCUMBENT:
        return INCUMBENT_ROUND
    return LEARNER_ROUND if np.any(decision.cost_sample) else OTHER_ROUND


LEVEL_VARIANCE = 10.0
"""Prior variance of the level of costs, in units of the constant parts: practically free."""

LINEAR_VARIANCE, SMOOTH_VARIANCE = 1.0, 0.5
"""Prior variances of the linear and the smooth part, in units of the constant one."""

MAX_DISTANCE = 4.0
"""Spreads from the centre at which contexts are cut."""

NOISES = np.geomspace(0.01, 5.0, 5).tolist()
"""Candidate noise variances in units of the prior covariance."""

EXTREMES = (0.025, 0.975)
"""Quantiles of totals; those further outside than the distance between them are cut."""


class ModelRounds(NamedTuple):
    """Contexts with decisions ``[n, d]``, or with differences of decisions.

    ``features`` are the contexts ``[n, p]``; of feature rows the sums ``Σ w_i x_i`` weighted by the decision.
    """

    features: np.ndarray
    w: np.ndarray

    @classmethod
    def of(cls, contexts: np.ndarray, w: np.ndarray) -> Self:
        """Return decisions, or differences of decisions, with what the cost model uses of contexts."""
        features = contexts if contexts.ndim == 2 else np.einsum("nd,ndp->np", w, contexts)
        return cls(features[:, : None if features.shape[1] <= MAX_FEATURES else 0], w)


class CostCovariance(NamedTuple):
    """Prior covariance of totals, in units taken from the rounds that are fitted.

    The mean cost of coordinate ``i`` in context ``x`` is ``f_i(x) = level + g(x) + h_i(x)``: ``g`` is common to all
    coordinates, ``h_i`` is specific, and both are Gaussian processes with a constant, a linear and a smooth part. With
    feature rows ``h_i`` is a constant and a linear function of the row.
    """

    centre: np.ndarray
    spread: np.ndarray
    columns: int  # that vary
    size: float  # mean of ‖w‖²
    squares: float  # mean of (Σ w)²
    by_row: bool

    @classmethod
    def of(cls, rounds: ModelRounds, by_row: bool) -> "CostCovariance":
        """Return the covariance in the units of these rounds."""
        features, squares = rounds.features, float(np.mean(np.square(rounds.w.sum(axis=1))))
        if by_row:
            centre, spread = np.zeros(features.shape[1]), np.sqrt(np.mean(np.square(features), axis=0))
        else:
            centre = np.median(features, axis=0)
            spread = NORMAL_MEDIAN * np.median(np.abs(features - centre), axis=0)
            spread = np.where(spread > 0, spread, np.std(features, axis=0))
        varies, size = spread > 0, float(np.mean(np.sum(np.square(rounds.w), axis=1)))
        return cls(centre, np.where(varies, spread, np.inf), max(1, int(varies.sum())), size, squares, by_row)

    def scaled(self, features: np.ndarray) -> np.ndarray:
        scaled = (features - self.centre) / self.spread
        return scaled if self.by_row else np.clip(scaled, -MAX_DISTANCE, MAX_DISTANCE)

    def similarity(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return how strongly costs in some contexts are related to those in others."""
        a, b = self.scaled(one), self.scaled(other)
        inner = a @ b.T
        distance = np.sum(a * a, axis=1)[:, None] + np.sum(b * b, axis=1)[None] - 2.0 * inner
        smooth = np.exp(-0.5 * np.maximum(distance, 0.0) / self.columns)
        return 1.0 + LINEAR_VARIANCE * inner / self.columns + SMOOTH_VARIANCE * smooth

    def between(self, one: ModelRounds, other: ModelRounds) -> np.ndarray:
        """Return the covariances of the totals of some rounds with those of others."""
        specific = one.w @ other.w.T / self.size
        common = np.outer(one.w.sum(axis=1), other.w.sum(axis=1)) / self.squares
        similarity = 1.0 if self.by_row else self.similarity(one.features, other.features)
        rows = self.scaled(one.features) @ self.scaled(other.features).T / self.columns if self.by_row else 0.0
        return specific * similarity + common * (similarity + LEVEL_VARIANCE) + LINEAR_VARIANCE * rows


class CostModel(NamedTuple):
    """Posterior of the costs of decisions that were not made, from totals: ``regretless.stats.fit_dual``."""

    covariance: CostCovariance
    rounds: ModelRounds
    level: float
    posterior: DualPosterior

    @classmethod
    def fit(cls, rounds: ModelRounds, totals: np.ndarray, by_row: bool) -> "CostModel | None":
        """Return the model of these totals, or None if they do not vary."""
        sums = rounds.w.sum(axis=1)
        low, high = np.quantile(totals, EXTREMES)
        believed = np.clip(totals, low - (high - low), high + (high - low))
        if not (np.all(np.isfinite(believed)) and 0.0 < float(np.mean(np.square(sums))) < np.inf):
            return None
        level = float(np.sum(believed * sums) / np.sum(np.square(sums)))
        covariance = CostCovariance.of(rounds, by_row)
        posterior = fit_dual(covariance.between(rounds, rounds), believed - level * sums, NOISES)
        return None if posterior is None else cls(covariance, rounds, level, posterior)

    def difference(self, rounds: ModelRounds) -> tuple[np.ndarray, float]:
        """Return the means of ``f(x)·v`` in each round, and the standard deviation of their average."""
        cross = self.covariance.between(rounds, self.rounds)
        prior = float(self.covariance.between(rounds, rounds).mean())
        means = self.posterior.predict(cross) + self.level * rounds.w.sum(axis=1)
        return means, self.posterior.deviation(cross.mean(axis=0), prior)

    def mean_costs(self, contexts: np.ndarray) -> np.ndarray:
        """Return the mean of ``f`` over contexts ``[n, p]`` or ``[n, d, p]``, for every coordinate."""
        contexts = contexts[..., : self.rounds.features.shape[1]]  # none of them if there are too many
        covariance, w, weights = self.covariance, self.rounds.w, self.posterior.weights
        total = w.sum(axis=1) / covariance.squares
        if covariance.by_row:
            scaled = covariance.scaled(self.rounds.features)
            slopes = weights @ scaled * (LINEAR_VARIANCE / covariance.columns)
            specific = weights @ w / covariance.size + covariance.scaled(contexts.mean(axis=0)) @ slopes
            return np.asarray(specific + (1.0 + LEVEL_VARIANCE) * (weights @ total) + self.level)
        similarity = covariance.similarity(contexts, self.rounds.features).mean(axis=0)
        common = weights @ (total * (similarity + LEVEL_VARIANCE))
        return np.asarray((weights * similarity) @ w / covariance.size + common + self.level)

    def compare(self, judged: "RecentRounds", fixed_set: bool, solver: "BackgroundSolver") -> dict[str, Any]:
        """Return the comparisons with the best fixed decision, if the feasible set is fixed, and with random decisions.

        The best fixed decision is the cheapest on average of those made and the solution of the mean costs. Where the
        feasible set changes, there is a random decision for each of the last rounds, otherwise the mean of many.
        """
        comparisons, means = {}, self.mean_costs(judged.contexts)
        if fixed_set:
            solution = solver.solve(means)
            candidates = self.rounds.w if solution is None else np.concatenate([self.rounds.w, solution[None]])
            comparisons["best_fixed"] = self._compare_with(judged, candidates[np.argmin(candidates @ means)], 0.0)
        drawn = solver.random() if fixed_set else solver.random_under(judged.instances)
        if drawn is not None:
            error = float(np.std(drawn @ means, ddof=1)) / len(drawn) ** 0.5
            rounds, others = (judged, drawn.mean(axis=0)) if fixed_set else (judged.at(slice(-len(drawn), None)), drawn)
            comparisons["random"] = self._compare_with(rounds, others, error)
        return comparisons

    def _compare_with(self, judged: "RecentRounds", others: np.ndarray, error_of_others: float) -> CostComparison:
        """Return the difference between the decisions made and others; the last argument is a standard error."""
        others = np.broadcast_to(others, judged.w.shape)
        costs, _ = self.difference(ModelRounds.of(judged.contexts, others))
        differences, model_error = self.difference(ModelRounds.of(judged.contexts, judged.w - others))
        count, difference = len(differences), float(np.mean(differences))
        spread = float(np.std(differences, ddof=1)) / count**0.5
        error = NORMAL_QUANTILE * float(np.linalg.norm([MODEL_ERROR_FACTOR * model_error, spread, error_of_others]))
        interval = (difference, difference - error, difference + error)
        return CostComparison(float(np.mean(costs)), *interval, count, count, True)


class CostReport(NamedTuple):
    """Costs of recent rounds; None where they are not known."""

    paid: MeanCost | None = None
    incumbent: CostComparison | None = None
    best_fixed: CostComparison | None = None
    random: CostComparison | None = None


class RecentRounds(NamedTuple):
    """The last rounds with known totals: contexts ``[n, p]`` or ``[n, d, p]``, decisions, totals and who decided."""

    contexts: np.ndarray
    w: np.ndarray
    totals: np.ndarray
    kinds: np.ndarray
    instances: list[Any]
    window: tuple[np.ndarray, np.ndarray]  # totals and kinds of more rounds, for an incumbent that seldom decides

    @classmethod
    def of(cls, decisions: Sequence[Any], totals: Sequence[float]) -> Self:
        """Return the last ``COMPARED_ROUNDS`` of these, with all of them as the window."""
        window = np.array(totals, float), np.array([kind_of_round(decision) for decision in decisions], int)
        last = decisions[-COMPARED_ROUNDS:]
        contexts, w = (np.array([getattr(decision, name) for decision in last], float) for name in ("context", "w"))
        instances = [decision.instance for decision in last]
        return cls(contexts, w, window[0][-COMPARED_ROUNDS:], window[1][-COMPARED_ROUNDS:], instances, window)

    def at(self, places: Any) -> "RecentRounds":
        """Return some of the rounds."""
        instances = [self.instances[place] for place in np.arange(len(self.totals))[places]]
        arrays = (self.contexts[places], self.w[places], self.totals[places], self.kinds[places])
        return RecentRounds(*arrays, instances, self.window)


class HealthRecord(NamedTuple):
    """Immutable summary of a learner's learning steps, of bounded size.

    ``after_feedback`` returns the next record; ``arrays`` and ``from_arrays`` store it.
    """

    dim: int
    width: int  # features of a round that the cost model uses
    learned: int
    steps: np.ndarray  # a ring of residuals and totals of the last WINDOW steps; NaN: not known
    world: tuple[int, int]  # learning steps before these costs began; rounds since then with a known total
    opening: tuple[np.ndarray, ...]  # features, decision and total of the first rounds since then
    drift: DriftState  # a detector for each kind of round
    rises: np.ndarray  # for each kind the decision since which errors are above the usual ones
    alarm: np.ndarray  # of the last alarm: noticed, since, and learning steps at that time; zeros: none so far
    restarts: int  # of the policy so far

    @classmethod
    def empty(cls, context_shape: tuple[int, ...], dim: int) -> Self:
        """Return the record of a learner that has learned nothing."""
        width = ModelRounds.of(np.zeros((0, *context_shape)), np.zeros((0, dim))).features.shape[1]
        drift, integers = DETECTOR.init((3,), xp=np), np.zeros(3, np.int64)
        return cls(dim, width, 0, np.full((WINDOW, 2), np.nan), (0, 0), (), drift, integers, integers, 0)

    def after_feedback(self, info: Mapping[str, float], id: int, decision: Any) -> Self:
        """Return the record after a learning step.

        ``info`` are the step's diagnostics by name; ``decision`` is None if it is not remembered, as in a long history.
        """
        values = np.array([info.get("residual", np.nan), info.get("total", np.nan)], float)
        values[~np.isfinite(values)] = np.nan
        steps, learned = self.steps.copy(), self.learned + 1
        steps[self.learned % WINDOW] = values
        record = self._replace(steps=steps, learned=learned)
        if np.isnan(values).any():
            return record
        kind, total = OTHER_ROUND if decision is None else kind_of_round(decision), float(values[1])
        record = record._after_error(kind, id, float(values[0]), info.get("restarts"))
        world, opening = record.world, record.opening
        if record.alarm is self.alarm and decision is not None:
            world = (world[0], world[1] + 1)
            if len(opening) < OPENING_ROUNDS and self.dim <= MAX_DIM:
                context, w = (np.asarray(array, float)[None] for array in (decision.context, decision.w))
                opening = (*opening, np.concatenate([*ModelRounds.of(context, w), [[total]]], axis=1)[0])
        return record._replace(world=world, opening=opening)

    def active_alarm(self) -> DriftAlarm | None:
        """Return the last alarm while it is not older than ``WINDOW`` learning steps."""
        noticed, since, at = self.alarm.tolist()
        return DriftAlarm(noticed, since) if noticed and self.learned - at < WINDOW else None

    def ordered_steps(self) -> np.ndarray:
        """Return the last learning steps, oldest first, NaN for what is not known."""
        return np.roll(self.steps, -(self.learned % WINDOW), axis=0)[-min(self.learned, WINDOW) or WINDOW :]

    def recent_rounds(self, decisions: Sequence[Any]) -> RecentRounds | None:
        """Return the last rounds since the last change whose totals are known, None if it is too early to judge them.

        ``decisions`` are those of the last learning steps, oldest first.
        """
        totals = self.ordered_steps()[:, 1]
        count = min(len(decisions), len(totals), self.learned - self.world[0])
        if self.learned < MIN_LEARNED or not count or self.dim > MAX_DIM:
            return None
        pairs = zip(list(decisions)[len(decisions) - count :], totals[len(totals) - count :].tolist(), strict=True)
        known = [(decision, total) for decision, total in pairs if math.isfinite(total)]
        return RecentRounds.of([d for d, _ in known], [total for _, total in known]) if known else None

    def opening_rounds(self, excluded: int) -> tuple[ModelRounds, np.ndarray]:
        """Return the first rounds since the last change with their totals, without the last ``excluded`` rounds."""
        rows = self._opening_table()[: max(0, self.world[1] - excluded)]
        return ModelRounds(rows[:, : self.width], rows[:, self.width : -1]), rows[:, -1]

    def compare(self, decisions: Sequence[Any], fixed_set: bool, solver: "BackgroundSolver") -> CostReport:
        """Compare the costs of the last learning steps, oldest first, with those of others."""
        last = self.recent_rounds(decisions)
        if last is None:
            return CostReport()
        return compare_costs(*self.opening_rounds(excluded=len(last.totals)), last, fixed_set, solver)

    def arrays(self) -> dict[str, np.ndarray]:
        """Return everything as arrays by name."""
        names = ("learned", "steps", "world", "rises", "alarm", "restarts")
        drift = {f"drift/{name}": array for name, array in self.drift._asdict().items()}
        return {name: np.array(getattr(self, name)) for name in names} | {"opening": self._opening_table()} | drift

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], context_shape: tuple[int, ...], dim: int) -> Self:
        """Return the record that ``arrays`` wrote; raise CheckpointError if they cannot be one."""
        empty = cls.empty(context_shape, dim)
        for name, form in empty.arrays().items():
            array, fixed = arrays.get(name), int(name == "opening")  # the axis from which the shape is fixed
            if array is None or array.shape[fixed:] != form.shape[fixed:] or array.dtype != form.dtype:
                raise CheckpointError(f"health: expected {name!r} of shape {form.shape} and type {form.dtype}")
        learned, restarts = int(arrays["learned"]), int(arrays["restarts"])
        (before, rounds), opening = arrays["world"].tolist(), tuple(arrays["opening"])
        drift = DriftState(**{name: arrays[f"drift/{name}"] for name in DriftState._fields})
        kept: dict[str, Any] = {name: arrays[name] for name in ("steps", "rises", "alarm")}
        counts = [learned, restarts, before, rounds, *drift.rounds, *drift.rising, *kept["rises"], *kept["alarm"]]
        finite = all(np.all(np.isfinite(arrays[name])) for name in arrays if name != "steps")
        consistent = before <= learned and np.all(drift.rounds <= learned) and len(opening) <= rounds
        consistent = consistent and np.all(np.isnan(arrays["steps"][learned:]))
        if not (finite and consistent and min(counts) >= 0):
            raise CheckpointError("health: counts and arrays contradict each other")
        numbers: dict[str, Any] = {"learned": learned, "world": (before, rounds), "restarts": restarts}
        return empty._replace(opening=opening, drift=drift, **numbers, **kept)

    def _after_error(self, kind: int, id: int, error: float, restarts: float | None) -> Self:
        """Return the record after a prediction error; an alarm forgets what was known of the costs before.

        A policy that starts again when costs change reports its ``restarts``. They raise the alarms then, so that
        health and policy never contradict each other; the detector only says when the change began.
        """
        if restarts is not None and int(restarts) != self.restarts:
            return self._replace(restarts=int(restarts))._raise_alarm(kind, id)
        if not 0.0 < abs(error) < np.inf:
            return self
        error = min(max(error, -MAX_ERROR), MAX_ERROR)
        of_kind = DETECTOR.update(DriftState(*(leaf[kind] for leaf in self.drift)), error, xp=np)
        drift = DriftState(*map(np.array, self.drift))
        for leaf, value in zip(drift, of_kind, strict=True):
            leaf[kind] = value
        rises = self.rises
        if of_kind.rising == 1:
            rises = np.where(np.arange(3) == kind, id, rises)
        record = self._replace(drift=drift, rises=rises)
        return record._raise_alarm(kind, id) if restarts is None and DETECTOR.changed(of_kind) else record

    def _raise_alarm(self, kind: int, id: int) -> Self:
        """Return the record after an alarm: nothing is known of the present costs yet."""
        since = int(self.rises[kind]) if self.drift.rising[kind] else id
        alarm, drift = np.array([id, min(id, since), self.learned], np.int64), DETECTOR.init((3,), xp=np)
        return self._replace(drift=drift, rises=0 * self.rises, alarm=alarm, world=(self.learned, 0), opening=())

    def _opening_table(self) -> np.ndarray:
        return np.stack(self.opening) if self.opening else np.zeros((0, self.width + self.dim + 1))


class BackgroundSolver:
    """Solve for health without delaying other calls.

    An oracle in pure JAX is always asked. A solver on the host is asked only while no other call needs it
    (``try_acquire`` yields whether that is so), half a second at most, and never again once a single solve took longer.
    """

    TIME_LIMIT = 0.5  # seconds
    DRAWS, HOST_DRAWS, MIN_DRAWS = 64, 32, 8

    def __init__(self, oracle: Oracle, try_acquire: Callable[[], AbstractContextManager[bool]]):
        self.oracle = oracle
        self.slow = False
        self._try_acquire = try_acquire
        self._drawn: list[np.ndarray] = []
        self._costs = np.random.default_rng(0).normal(size=(self.DRAWS, oracle.dim))

    def solve(self, cost: np.ndarray) -> np.ndarray | None:
        """Return the solution of one cost vector, or None if the solver is not available now."""
        solutions = self._solutions(cost[None], None)
        return solutions[0] if solutions else None

    def random(self) -> np.ndarray | None:
        """Return solutions of random costs, an array ``[n, d]``, or None if there are too few."""
        wanted = self.HOST_DRAWS if self.oracle.on_host else self.DRAWS
        if len(self._drawn) < wanted:
            self._drawn += self._solutions(self._costs[len(self._drawn) : wanted], None)
        return np.stack(self._drawn) if len(self._drawn) >= self.MIN_DRAWS else None

    def random_under(self, instances: Sequence[Any]) -> np.ndarray | None:
        """Return a solution of random costs under each of the last instances, or None if there are too few."""
        last = list(reversed(instances))[: self.HOST_DRAWS]
        padded = last + [last[-1]] * (self.HOST_DRAWS - len(last))
        stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *padded)
        solutions = self._solutions(self._costs[: self.HOST_DRAWS], stacked)
        return np.stack(solutions[: len(last)][::-1]) if len(solutions) >= self.MIN_DRAWS else None

    def warm_up(self, example_instance: Any) -> None:
        """Compile what an oracle in pure JAX will be asked."""
        if self.oracle.on_host:
            return
        if example_instance is not None:
            self.random_under([example_instance])
        else:
            self.solve(np.zeros(self.oracle.dim))
            self.random()

    def _solutions(self, costs: np.ndarray, instances: Any) -> list[np.ndarray]:
        """Return solutions of the first costs for which there is time."""
        solutions: list[np.ndarray] = []
        try:
            if not self.oracle.on_host:
                return list(np.asarray(self.oracle.answer(costs, instances).w, float))
            with self._try_acquire() as free:
                began = time.monotonic()
                for row in range(len(costs) if free and not self.slow else 0):
                    instance = jax.tree.map(lambda leaf, row=row: leaf[row : row + 1], instances)
                    solutions.append(np.asarray(self.oracle.answer(costs[row : row + 1], instance).w[0], float))
                    if time.monotonic() - began > self.TIME_LIMIT:
                        self.slow = len(solutions) == 1
                        break
            return solutions
        except Exception:  # a solver may fail for costs that no call asked for; health then reports less
            self.slow = True
            return []


def compare_costs(
    opening: ModelRounds, opening_totals: np.ndarray, last: RecentRounds, fixed_set: bool, solver: BackgroundSolver
) -> CostReport:
    """Compare the learner's recent costs with those of others.

    A model is fitted to the ``opening`` rounds and to ``last``; ``fixed_set`` says that the feasible set is the same in
    every round.
    """
    by_learner, all_rounds = last.kinds == LEARNER_ROUND, len(last.totals)
    if by_learner.sum() < MIN_LEARNER_ROUNDS:
        return CostReport()
    with np.errstate(all="ignore"):
        judged, observed = last.at(by_learner), ModelRounds.of(last.contexts, last.w)
        paid = MeanCost(*batch_interval(judged.totals), len(judged.totals), all_rounds)
        report = CostReport(paid, _compare_incumbent(*last.window))
        observed = ModelRounds(*map(np.concatenate, zip(opening, observed, strict=True)))
        try:
            model = CostModel.fit(observed, np.concatenate([opening_totals, last.totals]), last.contexts.ndim == 3)
            others = {} if model is None else model.compare(judged, fixed_set, solver)
        except np.linalg.LinAlgError:  # numbers too large or too much alike
            return report
    counts: dict[str, Any] = {"rounds": len(judged.totals), "all_rounds": all_rounds}
    return report._replace(**{name: comparison._replace(**counts) for name, comparison in others.items()})


def _compare_incumbent(totals: np.ndarray, kinds: np.ndarray) -> CostComparison | None:
    """Compare the learner's totals with the incumbent's, each in its own rounds; the guard assigned them at random."""
    learner, incumbent = (totals[kinds == kind] for kind in (LEARNER_ROUND, INCUMBENT_ROUND))
    if len(incumbent) < MIN_LEARNER_ROUNDS // 4:
        return None
    difference = float(np.mean(learner) - np.mean(incumbent))
    variance = np.var(learner, ddof=1) / len(learner) + np.var(incumbent, ddof=1) / len(incumbent)
    error, counts = NORMAL_QUANTILE * float(np.sqrt(variance)), (len(learner), len(totals))
    return CostComparison(float(np.mean(incumbent)), difference, difference - error, difference + error, *counts, False)
