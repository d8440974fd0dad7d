"""Rehearsal before going live: the first rounds of a learner, simulated on a model of the user's own history."""

import dataclasses
import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regretless import extras
from regretless.errors import SettingsError, short_repr
from regretless.feedback import Measurement
from regretless.formatting import count_text, format_amount
from regretless.live.evaluation import BLOCKS, cost_regression, in_time_order
from regretless.live.feedback_parser import parse_integer
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.live.options import Rollout
from regretless.live.records import percent, plain_data, text_card
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.guard import Budget

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MIN_ROUNDS = 50
"""Rounds with known totals that a model of the costs needs."""

BLOCK_ROUNDS = 10
"""Neighbouring rounds that are resampled together, because they may be alike."""

INCUMBENT, LEARNER, GUARDED = "incumbent", "learner", "guarded"

Progress = Callable[[str, int, int], None]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Rehearsal:
    """Simulated costs of the first rounds, returned by ``rg.rehearse``: a simulation, not a measurement.

    Attributes
    ----------
    costs : dict of str to array of shape ``[runs, rounds]``
        Expected cost per round of the ``incumbent`` (of the logged decisions if none was given), of the ``learner``
        alone and of the ``guarded`` one, in the same rounds; rewards where the history has rewards.
    by_learner : array of shape ``[runs, rounds]`` or None
        Whether the learner decided behind the guard.
    noise : float
        Standard deviation of the errors of the model, which were resampled as noise.
    untried : int
        Coordinates that no logged decision used: what they cost is a guess.
    budget : str
        The budget of the guard; empty without an incumbent.
    sense : {"min", "max"}
        ``"max"`` if the numbers are rewards.
    """

    costs: dict[str, np.ndarray]
    by_learner: np.ndarray | None
    noise: float
    untried: int
    budget: str
    sense: Literal["min", "max"]

    def excess(self, label: str) -> np.ndarray:
        """Return what a candidate has cost more than the incumbent so far, ``[runs, rounds]``; less where negative.

        Parameters
        ----------
        label : {"learner", "guarded"}
            The candidate.

        Returns
        -------
        numpy.ndarray
        """
        sign = -1.0 if self.sense == "max" else 1.0
        return np.asarray(sign * np.cumsum(self.costs[label] - self.costs[INCUMBENT], axis=1))

    def table(self) -> list[dict[str, Any]]:
        """Return a row for each candidate, averaged over the runs.

        Returns
        -------
        list of dict
            With the mean cost of all rounds and of the first and the last quarter, the total excess over the incumbent
            with its smallest and largest value, the largest excess at any time in any run, the round from which the
            mean excess stays below zero, and the share of the rounds in which the learner decided.
        """
        rows = []
        for label, costs in self.costs.items():
            quarter = max(costs.shape[1] // 4, 1)
            means = costs.mean(), costs[:, :quarter].mean(), costs[:, -quarter:].mean()
            row = {"candidate": label, **dict(zip(("mean", "first_quarter", "last_quarter"), means, strict=True))}
            if label != INCUMBENT:
                excess = self.excess(label)
                above = np.flatnonzero(excess.mean(axis=0) >= 0.0)
                row |= {"excess": excess[:, -1].mean(), "least_excess": excess[:, -1].min()}
                row |= {"most_excess": excess[:, -1].max(), "worst_excess": max(float(excess.max()), 0.0)}
                row["pays_from"] = (
                    None if len(above) and above[-1] == costs.shape[1] - 1 else int(above.max(initial=-1)) + 2
                )
                guarded = label == GUARDED and self.by_learner is not None
                row["by_learner"] = float(np.mean(self.by_learner)) if guarded else 1.0  # type: ignore[arg-type]
            rows.append(plain_data(row))
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return the table and what it is about as data that JSON can write.

        Returns
        -------
        dict
        """
        runs, rounds = self.costs[LEARNER].shape
        about = {"simulation": True, "runs": runs, "rounds": rounds, "sense": self.sense, "noise": self.noise}
        return plain_data({**about, "untried": self.untried, "budget": self.budget, "candidates": self.table()})

    def to_pandas(self) -> "pd.DataFrame":
        """Return a table with a row for each candidate, run and round.

        Returns
        -------
        pandas.DataFrame
            With columns ``candidate``, ``run``, ``round`` and ``cost``.
        """
        frames = [
            {"candidate": label, "run": run, "round": t + 1, "cost": cost}
            for label, costs in self.costs.items()
            for (run, t), cost in np.ndenumerate(costs)
        ]
        return extras.require("pandas", extra="data").DataFrame(frames)

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean excess over the incumbent, with the range of the runs.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib.axes.Axes
        """
        if ax is None:
            figure = extras.require("matplotlib.pyplot", extra="plots").figure(figsize=(7.2, 3.8), layout="constrained")
            ax = figure.add_subplot()
        for label in self.costs.keys() - {INCUMBENT}:
            excess = self.excess(label)
            rounds = np.arange(1, excess.shape[1] + 1)
            ax.plot(rounds, excess.mean(axis=0), label=label, linestyle="-" if label == GUARDED else "--")
            ax.fill_between(rounds, excess.min(axis=0), excess.max(axis=0), alpha=0.15)
        ax.axhline(0.0, color="#667085", linewidth=0.8)
        ax.set(
            xlabel="round",
            ylabel=f"{self._quantity()} so far, compared with the incumbent",
            title="Rehearsal (simulated)",
        )
        ax.legend(frameon=False)
        return ax

    def _quantity(self) -> str:
        return "less reward" if self.sense == "max" else "more cost"

    def __str__(self) -> str:
        runs, rounds = self.costs[LEARNER].shape
        lines = []
        for row in self.table():
            first, last = format_amount(row["first_quarter"]), format_amount(row["last_quarter"])
            path = f"{first} in the first quarter, {last} in the last"
            line = f"{row['candidate']}: {format_amount(row['mean'])} per round, {path}"
            if row["candidate"] != INCUMBENT:
                low, high = format_amount(-row["most_excess"]), format_amount(-row["least_excess"])
                verb = "gains" if self.sense == "max" else "saves"
                line += f"; {verb} {format_amount(-row['excess'])} in total ({low} to {high})"
                line += f", at worst {format_amount(row['worst_excess'])} behind"
            if row["candidate"] == GUARDED:
                line += f"; the learner decides {percent(row['by_learner'])} of the rounds"
            lines.append(line)
        played = f"{count_text(runs, 'run')} of {count_text(rounds, 'round')}"
        title = f"Rehearsal, simulated: {played} on a model of the history"
        notes = [f"noise of a round: {format_amount(self.noise)}"]
        notes += (
            [f"budget of the guard: {self.budget}"]
            if self.budget
            else ["no incumbent: compared with the logged decisions"]
        )
        if self.untried:
            notes.append(f"{self.untried} coordinates were never used in the history: their costs are guesses")
        return text_card(title, [*lines, *notes])

    def __repr__(self) -> str:
        runs, rounds = self.costs[LEARNER].shape
        return f"<Rehearsal of {', '.join(self.costs)}: {runs} runs of {rounds} rounds, simulated>"


def rehearse(
    history: History,
    oracle: Oracle,
    *,
    incumbent: Any = None,
    budget: float | Budget = 0.05,
    policy: str | PolicySpec | Policy | None = None,
    feedback: str | Measurement | None = None,
    rounds: int | None = None,
    runs: int = 5,
    seed: int = 0,
    progress: Progress | None = None,
) -> Rehearsal:
    """Simulate the first rounds of a learner on a model of your history, with and without guard.

    In each run a regression of the costs is fitted to blocks of rounds that are drawn from the history with
    replacement, so that runs differ by what the history leaves open. Contexts (and instances) are those of the history,
    in their order from a random round on; the noise of the totals is resampled from the errors that the regression made
    on rounds that it had not seen. Everything else is what would go live: the same ``Learner``, solver and guard.

    It is a simulation. It shows how large and how long first losses may be, and what the guard costs; it does not show
    what the true costs do that no linear function of the context does. ``rg.evaluate`` answers from the log itself.

    Parameters
    ----------
    history : History
        Logged rounds with known totals, at least 50.
    oracle : Oracle
        The feasible set.
    incumbent : sequence of float or callable, optional
        Who decides today, as in ``rg.Rollout``. Without one there is no guard, and costs are compared with those of the
        logged decisions.
    budget : float or Budget, default 0.05
        The budget of the guard.
    policy : str, PolicySpec or Policy, optional
        What learns; the default of ``Learner`` if None.
    feedback : str or Measurement, optional
        What a decision reveals: ``"bandit"`` by default, ``"semi_bandit"`` where the history has single costs.
    rounds : int, optional
        Length of a run; as long as the history, 250 at most, if None.
    runs : int, default 5
        Number of runs.
    seed : int, default 0
        All random draws follow from it.
    progress : callable, optional
        Called with a word, the rounds played and all rounds.

    Returns
    -------
    Rehearsal

    Raises
    ------
    SettingsError
        If the history is too short or does not fit the oracle.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x, item = rng.normal(size=(200, 1)), rng.integers(3, size=200)
    >>> totals = 4.0 + item + x[:, 0] * (item - 1) + 0.5 * rng.normal(size=200)
    >>> history = rg.History(x, np.eye(3)[item], totals=totals)
    >>> rehearsal = rg.rehearse(
    ...     history, rg.oracles.top_k(3, 1), incumbent=[0, 1, 0], policy="linear_thompson", rounds=60, runs=2
    ... )
    >>> rehearsal
    <Rehearsal of incumbent, learner, guarded: 2 runs of 60 rounds, simulated>
    >>> bool(rehearsal.excess("learner")[:, -1].mean() < 0)
    True
    """
    simulation = _Simulation(history, oracle, incumbent, budget, policy, feedback)
    count = min(len(simulation.history), 250) if rounds is None else parse_integer("rehearse: rounds", rounds, 1, 10**6)
    runs = parse_integer("rehearse: runs", runs, 1, 10**4)
    played, deciders = [], []
    for run in range(runs):
        if progress is not None:
            progress("rehearsing", run, runs)
        costs, by_learner = simulation.play(np.random.default_rng([seed, run]), count, run)
        played.append(costs)
        deciders.append(by_learner)
    if progress is not None:
        progress("rehearsing", runs, runs)
    sign = -1.0 if history.sense == "max" else 1.0
    return Rehearsal(
        {label: sign * np.stack([costs[label] for costs in played]) for label in played[0]},
        None if incumbent is None else np.stack(deciders),
        float(np.std(simulation.errors)),
        int(np.sum(~np.any(simulation.history.decisions != 0, axis=0))),
        "" if incumbent is None else _describe_budget(budget),
        history.sense,
    )


def _describe_budget(budget: float | Budget) -> str:
    return f"{budget:.3g} of the incumbent's cost" if isinstance(budget, int | float) else repr(budget)


class _Simulation:
    """The model of a history, and how learners are played on it."""

    def __init__(
        self, history: Any, oracle: Any, incumbent: Any, budget: float | Budget, policy: Any, feedback: Any
    ) -> None:
        if not isinstance(history, History):
            raise SettingsError(f"rehearse: expected a History, got {short_repr(history)}")
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"rehearse: expected an oracle (see rg.oracles), got {short_repr(oracle)}")
        if oracle.dim != history.decisions.shape[1]:
            got = history.decisions.shape[1]
            raise SettingsError(f"rehearse: expected a history with decisions of {oracle.dim} numbers, got {got}")
        costs = in_time_order(history).as_costs()
        totals = costs.totals
        if totals is None and costs.costs is not None:
            totals = np.sum(np.where(costs.decisions != 0, costs.costs * costs.decisions, 0.0), axis=1)
        known = np.zeros(len(costs), bool) if totals is None else ~np.isnan(totals)
        if known.sum() < MIN_ROUNDS:
            raise SettingsError(f"rehearse: expected at least {MIN_ROUNDS} rounds with known totals, got {known.sum()}")
        self.history = dataclasses.replace(costs, totals=totals)[known]
        self.oracle, self.policy, self.feedback, self.incumbent = oracle, policy, feedback, incumbent
        self.feedback = feedback or ("bandit" if history.costs is None else "semi_bandit")
        self.rollout = None if incumbent is None else Rollout(self._decode(incumbent), budget)
        blocks = np.array_split(np.arange(len(self.history)), BLOCKS)
        (model, plain), predictions = cost_regression(self.history, self.history[blocks[0]]), []
        for before, block in itertools.pairwise(blocks):
            model.learn_from(plain[before])
            predictions.append(np.sum(model.predict(plain[block])[0] * plain.decisions[block], axis=1))
        late = np.concatenate(predictions[1:])  # the first ones were learned from few rounds
        errors = np.asarray(self.history.totals)[-len(late) :] - late
        self.errors = errors - errors.mean()

    def _decode(self, incumbent: Any) -> Any:
        """Return the incumbent as a function of encoded contexts, if contexts have names."""
        columns = self.history.columns
        if columns is None or not callable(incumbent):
            return incumbent
        return lambda x, *instance: incumbent(columns.decode(x), *instance)

    def play(self, rng: np.random.Generator, rounds: int, seed: int) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """Return the expected costs of all candidates in one run, and whether the learner decided behind the guard."""
        history, count = self.history, len(self.history)
        drawn = _draw_blocks(rng, count, count)
        model, plain = cost_regression(history, history)
        model.learn_from(plain[np.sort(drawn)])
        rows = (rng.integers(count) + np.arange(rounds)) % count
        means = model.predict(plain)[0][rows]
        noise = self.errors[_draw_blocks(rng, len(self.errors), rounds)]
        learned, _ = self._play_learner(None, means, noise, rows, seed)
        costs = {INCUMBENT: np.sum(means * history.decisions[rows], axis=1), LEARNER: learned}
        if self.rollout is None:
            return costs, np.ones(rounds, bool)
        shadow = Rollout(self.rollout.incumbent, self.rollout.budget, "shadow")
        costs[INCUMBENT], _ = self._play_learner(shadow, means, noise, rows, seed)
        costs[GUARDED], by_learner = self._play_learner(self.rollout, means, noise, rows, seed)
        return costs, by_learner

    def _play_learner(
        self, rollout: Rollout | None, means: np.ndarray, noise: np.ndarray, rows: np.ndarray, seed: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the expected costs of a learner's decisions, and whether it decided itself."""
        shape = self.history.contexts.shape[1:]
        policy = "linear_thompson" if rollout is not None and rollout.mode == "shadow" else self.policy
        learner = Learner(self.oracle, context=shape, feedback=self.feedback, policy=policy, rollout=rollout, seed=seed)
        costs, by_learner = [], []
        for mean, error, row in zip(means, noise, rows, strict=True):
            choice = learner.decide(self.history.contexts[row], instance=self.history.instance(int(row)))
            costs.append(float(mean @ choice.w))
            by_learner.append(choice.by == "learner")
            if rollout is not None and rollout.mode == "shadow":
                continue
            if self.feedback == "bandit":
                learner.learn(choice.id, total=costs[-1] + error)
            else:
                part = error / max(float(np.sum(choice.w)), 1.0)
                learner.learn(choice.id, components={int(i): float(mean[i] + part) for i in np.flatnonzero(choice.w)})
        return np.array(costs), np.array(by_learner)


def _draw_blocks(rng: np.random.Generator, count: int, size: int) -> np.ndarray:
    """Return row numbers below ``count`` in blocks of neighbours that are drawn with replacement."""
    starts = rng.integers(max(count - BLOCK_ROUNDS + 1, 1), size=-(-size // BLOCK_ROUNDS))
    return ((starts[:, None] + np.arange(BLOCK_ROUNDS)) % count).ravel()[:size]
