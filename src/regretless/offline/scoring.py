"""Test regret of fits and of other predictions, and paired comparisons of models and losses."""

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regretless.errors import SettingsError
from regretless.formatting import count_text, text_table
from regretless.models.base import ModelSpec, PointModelSpec
from regretless.offline.data import Dataset
from regretless.offline.training import Fit, Training, fit
from regretless.plots import Axis, Line, Palette, Plot, draw_for_screen
from regretless.results import Result, Results, describe_environment, without_nan
from regretless.simulation.programs import Progress, no_progress
from regretless.surrogates.base import SurrogateSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OPTIMAL = 1e-6
"""Regret, relative to the lowest cost, up to which a decision counts as optimal."""


class Mean(NamedTuple):
    """A mean over the rows of a test set with its standard error.

    Parameters
    ----------
    value : float
        The mean.
    standard_error : float
        Its standard error over the rows; NaN with one row.
    """

    value: float
    standard_error: float

    def __str__(self) -> str:
        return f"{self.value:.4g} ± {self.standard_error:.2g}"


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OfflineScore:
    """How good predictions are on a test set, as means over the seeds of a fit.

    Parameters
    ----------
    costs : array of shape ``[seeds, n]``
        What the decisions cost.
    optimal_costs : array of shape ``[n]``
        The lowest cost of each row.
    errors : array of shape ``[seeds, n]``
        Mean squared error of the predicted costs of each row.
    estimated : str, default ""
        How the costs of the test set were estimated, if they were; there is no regret then, because the lowest of
        estimated costs is too low.
    seconds : float, default 0
        How long the fit took.
    """

    costs: np.ndarray
    optimal_costs: np.ndarray
    errors: np.ndarray
    estimated: str = ""
    seconds: float = 0.0

    @property
    def regrets(self) -> np.ndarray:
        """Regret ``c·w*(ĉ) − c·w*(c)`` of each seed and row, ``[seeds, n]``."""
        if self.estimated:
            raise SettingsError(
                f"score: the costs of this test set are estimated ({self.estimated}), so their minimum is too low and "
                "there is no regret; use cost, or a test set with observed costs"
            )
        regrets = self.costs - self.optimal_costs
        return np.where(regrets > OPTIMAL * (np.abs(self.optimal_costs) + 1e-300), regrets, np.maximum(regrets, 0.0))

    @property
    def cost(self) -> Mean:
        """Cost of the decisions."""
        return _mean(self.costs.mean(axis=0))

    @property
    def regret(self) -> Mean:
        """Regret of the decisions."""
        return _mean(self.regrets.mean(axis=0))

    @property
    def relative_regret(self) -> float:
        """Sum of the regrets over the sum of the absolute lowest costs, the normalised regret of PyEPO."""
        return float(np.sum(self.relative_regrets))

    @property
    def relative_regrets(self) -> np.ndarray:
        """Regret of each row, as a share of the sum of the absolute lowest costs, ``[n]``."""
        return np.asarray(self.regrets.mean(axis=0) / (np.abs(self.optimal_costs).sum() + 1e-7))

    @property
    def optimal_share(self) -> Mean:
        """Share of the rows whose decision is optimal."""
        return _mean((self.regrets <= OPTIMAL * (np.abs(self.optimal_costs) + 1e-300)).mean(axis=0))

    @property
    def error(self) -> Mean:
        """Mean squared error of the predicted costs."""
        return _mean(self.errors.mean(axis=0))

    def to_dict(self) -> dict[str, Any]:
        """Return the means as JSON data."""
        means = {"cost": self.cost, "prediction_error": self.error}
        means |= {} if self.estimated else {"regret": self.regret, "optimal_share": self.optimal_share}
        data: dict[str, Any] = {"rows": len(self.optimal_costs), "seeds": len(self.costs)}
        data |= {} if self.estimated else {"relative_regret": self.relative_regret}
        return without_nan({**data, **{name: mean._asdict() for name, mean in means.items()}})

    def __repr__(self) -> str:
        subject = f"Score of {count_text(len(self.costs), 'seed')} on {count_text(len(self.optimal_costs), 'row')}"
        if self.estimated:
            lines = [("cost of a decision", f"{self.cost} (costs estimated by {self.estimated})")]
        else:
            relative = self.regret.standard_error / (np.abs(self.optimal_costs).mean() + 1e-300)
            lines = [
                ("relative regret", f"{self.relative_regret:.4g} ± {relative:.2g}"),
                ("regret", str(self.regret)),
                ("cost of a decision", str(self.cost)),
                ("optimal decisions", f"{self.optimal_share.value:.1%}"),
            ]
        lines.append(("squared error", str(self.error)))
        return "\n".join([subject, *text_table(lines).splitlines()])


def _mean(values: np.ndarray) -> Mean:
    error = float(np.std(values, ddof=1) / len(values) ** 0.5) if len(values) > 1 else math.nan
    return Mean(float(np.mean(values)), error)


def score(fit: Fit | np.ndarray | Callable[[np.ndarray], Any], test: Dataset) -> OfflineScore:
    """Return how good predictions are on a test set.

    Parameters
    ----------
    fit : Fit, array of shape ``[n, d]``, or callable
        A fit, predicted costs row by row, or a function from contexts to predicted costs.
    test : Dataset
        Rows that were not used for training.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> test = rg.offline.Dataset(np.ones((2, 1)), [[1.0, 2.0], [5.0, 3.0]], rg.oracles.top_k(2, 1))
    >>> rg.offline.score(np.array([[0.0, 1.0], [0.0, 1.0]]), test)
    Score of 1 seed on 2 rows
    relative regret     0.5 ± 0.5
    regret              1 ± 1
    cost of a decision  3 ± 2
    optimal decisions   50.0%
    squared error       7.75 ± 6.8
    """
    if not isinstance(test, Dataset):
        raise SettingsError(f"score: expected an rg.offline.Dataset, got a {type(test).__name__}")
    if isinstance(fit, Fit):
        predictions = np.stack([fit.predict_costs(test.contexts, place) for place in range(len(fit))])
    else:
        given = np.asarray(fit(test.contexts) if callable(fit) else fit, np.float64)
        if given.shape != test.costs.shape:
            raise SettingsError(f"score: expected predictions of shape {test.costs.shape}, got {given.shape}")
        predictions = given[None] * (1.0 if test.sense == "min" else -1.0)
    costs = []
    for prediction in predictions:
        w = np.asarray(test.oracle.answer(prediction, test.instances).w)
        costs.append(np.einsum("nd,nd->n", test.costs, w))
    errors = np.mean(np.square(predictions - test.costs), axis=2)
    seconds = fit.seconds if isinstance(fit, Fit) else 0.0
    return OfflineScore(np.stack(costs), test.optimal_costs, errors, test.estimated, seconds)


class Comparison(Results):
    """Relative test regret of several models and losses by label, paired by the rows of the test set.

    Parameters
    ----------
    results : iterable of Result
        For each label the regret of each row, as a share of the mean lowest cost.
    scores : dict of str to OfflineScore
        The scores by label.
    """

    _unit = "row"

    def __init__(self, results: Iterable[Result], scores: dict[str, OfflineScore]):
        super().__init__(results)
        self.scores = scores

    def table(self, against: str | None = None) -> str:
        """Return a line per label as text.

        Parameters
        ----------
        against : str, optional
            The label that the others are compared with; by default the first one.
        """
        rows = self.rows(against)
        lines = [["", "relative regret", f"minus {rows[0]['against']}", "95 % interval", "optimal", "squared error"]]
        for row in rows:
            score = self.scores[row["policy"]]
            seeds = f" (seeds {_spread(score)})" if len(score.costs) > 1 else ""
            regret = f"{row['mean']:.4g} ± {row['standard_error'] or math.nan:.2g}{seeds}"
            difference = "" if row["difference"] is None else f"{row['difference']:+.4g}"
            interval = "" if row["low"] is None else f"{row['low']:.3g} to {row['high']:.3g}"
            optimal = f"{score.optimal_share.value:.1%}"
            lines.append([row["policy"], regret, difference, interval, optimal, f"{score.error.value:.4g}"])
        return text_table(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the rows of the table and the scores as JSON data."""
        scores = {label: score.to_dict() for label, score in self.scores.items()}
        return {"results": self.rows(), "scores": scores, "seconds": self.seconds}

    def plot(self, ax: "Axes | None" = None, **_: Any) -> Any:
        """Draw the relative regret of each label with its 95 % interval over the rows.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        matplotlib axes
        """
        styles = Palette()
        bars = [
            Line(label, [label], np.array([result.mean()]), np.array([1.96 * result.standard_error()]), styles[label])
            for label, result in self.items()
        ]
        axis = Axis("", categories=True)
        return draw_for_screen(Plot("bars", bars, [], axis, Axis("relative regret")), ax)


def _spread(score: OfflineScore) -> str:
    by_seed = score.regrets.sum(axis=1) / (np.abs(score.optimal_costs).sum() + 1e-7)
    return f"{by_seed.min():.3g} to {by_seed.max():.3g}"


def compare(
    train: Dataset,
    test: Dataset | int,
    *,
    surrogates: Sequence[SurrogateSpec | str] = ("mse", "spo_plus", "pfyl"),
    models: Sequence[PointModelSpec | str] = ("gaussian_linear",),
    validation: Dataset | None = None,
    training: Training = Training(),  # noqa: B008 -- frozen
    seeds: Any = 1,
    progress: Progress = no_progress,
    save: str | os.PathLike[str] | None = None,
) -> Comparison:
    """Train every model with every loss and compare their test regret, paired by the rows of the test set.

    Parameters
    ----------
    train : Dataset
        The data to learn from.
    test : Dataset or int
        Rows that were not used for training; or a number of folds for a cross-validation, in which every row of
        ``train`` is tested once.
    surrogates : sequence of SurrogateSpec or str
        Losses.
    models : sequence of PointModelSpec or str
        Models.
    validation : Dataset, optional
        Data to choose the best epoch by; with folds it is the same in each.
    training : Training
        Epochs, batches, optimiser, early stopping.
    seeds : int or iterable of int, default 1
        Seeds of each fit; the regret of a row is the mean over them.
    progress : callable, optional
        Receives what is being done, how much of it is finished and how much there is.
    save : path, optional
        A folder that the fits are kept in: the same call continues from it after a kill.

    Returns
    -------
    Comparison
        A table, paired differences with 95 % intervals, and a chart.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(150, 2))
    >>> data = rg.offline.Dataset(x, x @ [[1.0, -1.0, 0.5], [0.5, 1.0, -1.0]] + 2.0, rg.oracles.top_k(3, 1))
    >>> comparison = rg.offline.compare(*data.split(0.7, 0.3), surrogates=("mse", "spo_plus"))
    >>> list(comparison), comparison.compare("spo_plus", "mse").pairs
    (['mse', 'spo_plus'], 45)
    """
    arms = _arms([SurrogateSpec.coerce(part) for part in surrogates], [ModelSpec.coerce(part) for part in models])
    parts = [(train, test)] if isinstance(test, Dataset) else list(train.folds(test))
    options: dict[str, Any] = {"validation": validation, "training": training, "seeds": seeds}
    folder = None if save is None else Path(save)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    scores: dict[str, list[OfflineScore]] = {label: [] for label in arms}
    for number, (known, held_out) in enumerate(parts):
        for place, (label, (model, surrogate)) in enumerate(arms.items()):
            progress(label, number * len(arms) + place, len(parts) * len(arms))
            file = None if folder is None else folder / f"{label.replace(' ', '_')}_{number}.npz"
            scores[label].append(score(fit(model, known, surrogate=surrogate, save=file, **options), held_out))
    progress("done", len(parts) * len(arms), len(parts) * len(arms))
    joined = {label: _joined(several) for label, several in scores.items()}
    world = {"data": train.digest(), "test": test.digest() if isinstance(test, Dataset) else f"{test} folds"}
    results = []
    for label, total in joined.items():
        regret = total.relative_regrets * len(total.optimal_costs)
        model, surrogate = arms[label]
        results.append(
            Result(
                label,
                regret[:, None],
                seeds=tuple(range(len(regret))),
                config={"policy": {"model": repr(model), "surrogate": repr(surrogate)}, **world},
                seconds={"run": total.seconds},
                environment=describe_environment(),
                extra=total.to_dict(),
            )
        )
    return Comparison(results, joined)


def _arms(surrogates: list[Any], models: list[Any]) -> dict[str, tuple[Any, Any]]:
    """Return models and losses by label: what differs between them."""
    arms: dict[str, tuple[Any, Any]] = {}
    for model in models:
        for surrogate in surrogates:
            parts = ([_label(model, models)] if len(models) > 1 else []) + [_label(surrogate, surrogates)]
            label = " ".join(parts)
            if label in arms:
                raise SettingsError(f"compare: expected different models and losses, got {label} twice")
            arms[label] = model, surrogate
    if not arms:
        raise SettingsError("compare: expected at least one model and one loss, got none")
    return arms


def _label(spec: Any, others: list[Any]) -> str:
    name: str = spec.registered_name.rpartition(":")[2]
    if sum(other.registered_name == spec.registered_name for other in others) == 1:
        return name
    changed = [f"{key}={spec.names()[key]}" for key in spec.changed_names()]
    return " ".join([name, *changed])


def _joined(scores: list[OfflineScore]) -> OfflineScore:
    """Return the score of all folds together."""
    if len(scores) == 1:
        return scores[0]
    return OfflineScore(
        np.concatenate([part.costs for part in scores], axis=1),
        np.concatenate([part.optimal_costs for part in scores]),
        np.concatenate([part.errors for part in scores], axis=1),
        scores[0].estimated,
        sum(part.seconds for part in scores),
    )
