"""The outcome of simulated policies: regret by round, statistics, paired comparisons, files, tables and charts."""

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from regretless.array_files import read_arrays, read_record, write_arrays
from regretless.errors import DamagedError, SettingsError
from regretless.extras import require
from regretless.formatting import count_text, format_number, text_table
from regretless.plots import draw_for_screen, regret_plot

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

DIAGNOSTICS_EVERY = 10
"""Rounds between two kept diagnostics, unless another interval is asked for."""

KIND = "result"
"""Marks the record of a result's file."""

PACKAGES = ("regretless", "jax", "jaxlib", "equinox", "numpy")
FIELDS = ("label", "seeds", "config", "diagnostics_every", "references", "seconds", "environment", "extra")
"""Fields of a result that its file holds as JSON data; the others are arrays."""

ARM_ONLY = ("policy", "model")
"""Parts of a configuration that describe the policy; all others describe the world."""


class Reference(NamedTuple):
    """A reference line: mean final regret over the replications of a decision maker with other knowledge.

    Parameters
    ----------
    name : str
        Its name, such as ``"random"``.
    mean : float
        Mean final regret.
    standard_error : float
        Its standard error.
    """

    name: str
    mean: float
    standard_error: float


class PairedDifference(NamedTuple):
    """Mean difference of final regret, first minus second, over the replications that both finished.

    Parameters
    ----------
    mean : float
        Mean difference.
    standard_error : float
        Its standard error.
    low, high : float
        The ends of a 95 % confidence interval.
    pairs : int
        Number of replications.
    """

    mean: float
    standard_error: float
    low: float
    high: float
    pairs: int


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Replications of one policy on one benchmark.

    Parameters
    ----------
    label : str
        The name of the arm.
    regret : array of shape (replications, rounds)
        Regret of each round.
    diverged_at : array of shape (replications,)
        The round in which the policy's state stopped being finite, 0 if it never did. Diverged replications are counted
        and left out of every average.
    seeds : tuple of int
        One seed per replication.
    config : dict
        The complete configuration of policy and world, as JSON data.
    diagnostics : dict of array of shape (replications, rounds // diagnostics_every)
        Scalars that the policy reports, by name.
    diagnostics_every : int
        Rounds between two kept diagnostics.
    decisions : array of shape (replications, rounds, d), optional
        Every decision, if asked for.
    references : tuple of Reference
        Reference lines of the same stream.
    seconds : dict of float
        Where the time went: ``compile`` and ``run``. Policies that ran together have the same numbers.
    environment : dict
        Interpreter, platform, packages and devices.
    extra : dict
        Further JSON data, such as the results of a computation that is not a simulation.
    states : pytree, optional
        The final state of the policy, with a leading axis of replications, if asked for. Files do not hold it.

    Examples
    --------
    >>> import numpy as np
    >>> result = Result("greedy", np.array([[4.0, 2.0], [6.0, 4.0]]), seeds=(0, 1))
    >>> result.mean(), result.standard_error()
    (8.0, 2.0)
    >>> result
    Result greedy: 2 replications of 2 rounds, final regret 8 ± 2 (median 8)
    """

    label: str
    regret: np.ndarray
    diverged_at: np.ndarray = None  # type: ignore[assignment]
    seeds: tuple[int, ...] = ()
    config: dict[str, Any] = dataclasses.field(default_factory=dict)
    diagnostics: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    diagnostics_every: int = DIAGNOSTICS_EVERY
    decisions: np.ndarray | None = None
    references: tuple[Reference, ...] = ()
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    environment: dict[str, Any] = dataclasses.field(default_factory=dict)
    extra: dict[str, Any] = dataclasses.field(default_factory=dict)
    states: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "seeds", tuple(map(int, self.seeds)))
        if self.diverged_at is None:
            object.__setattr__(self, "diverged_at", np.zeros(len(self.regret), np.int32))
        if len(self.regret) != len(self.seeds) or len(self.diverged_at) != len(self.seeds):
            raise ValueError(f"expected one row of regret per seed ({len(self.seeds)}), got {len(self.regret)}")

    def __repr__(self) -> str:
        replications, rounds = self.regret.shape
        diverged = f", {self.diverged} diverged" if self.diverged else ""
        return (
            f"Result {self.label}: {replications:,} replications of {rounds:,} rounds{diverged}, "
            f"final regret {_spread(self.mean(), self.standard_error())} (median {self.median():.4g})"
        )

    @property
    def finished(self) -> np.ndarray:
        """Mask of the replications that stayed finite to the end."""
        return self.diverged_at == 0

    @property
    def diverged(self) -> int:
        """Number of replications that diverged."""
        return int(np.sum(~self.finished))

    @property
    def world(self) -> dict[str, Any]:
        """The configuration without the policy."""
        return {name: value for name, value in self.config.items() if name not in ARM_ONLY}

    def cumulative(self) -> np.ndarray:
        """Return cumulative regret in float64, ``[replications, rounds]``."""
        return np.cumsum(self.regret, axis=1, dtype=np.float64)

    def final(self) -> np.ndarray:
        """Return the final regret of the replications that stayed finite."""
        return _final(self.regret[self.finished])

    def mean(self) -> float:
        """Return the mean final regret; nan if every replication diverged."""
        return _mean_and_error(self.final())[0]

    def standard_error(self) -> float:
        """Return the standard error of the mean final regret (ddof = 1); nan with fewer than two replications."""
        return _mean_and_error(self.final())[1]

    def median(self) -> float:
        """Return the median final regret; nan if every replication diverged."""
        return float(np.median(self.final())) if self.finished.any() else math.nan

    def compare(self, other: "Result") -> PairedDifference:
        """Return the difference in final regret from another result, paired by seed.

        Parameters
        ----------
        other : Result
            A result with the same seeds and horizon, so that both met the same contexts and costs.

        Returns
        -------
        PairedDifference
            This result minus the other one, with a 95 % interval.
        """
        if self.seeds != other.seeds or self.regret.shape != other.regret.shape:
            raise SettingsError("a paired comparison needs the same seeds and the same horizon in both results")
        from scipy.special import stdtrit

        both = self.finished & other.finished
        mean, error = _mean_and_error(_final(self.regret[both]) - _final(other.regret[both]))
        pairs = int(both.sum())
        margin = float(stdtrit(pairs - 1, 0.975)) * error  # the 97.5 % quantile of Student's t
        return PairedDifference(mean, error, mean - margin, mean + margin, pairs)

    def to_frame(self) -> "pd.DataFrame":
        """Return a table with a row per replication and round; diagnostics are NaN in rounds without them."""
        pandas = require("pandas", extra="data")
        replications, rounds = self.regret.shape
        table: dict[str, Any] = {
            "seed": np.repeat(np.asarray(self.seeds), rounds),
            "round": np.tile(np.arange(1, rounds + 1), replications),
            "regret": self.regret.reshape(-1),
            "cumulative_regret": self.cumulative().reshape(-1),
        }
        for name, values in self.diagnostics.items():
            column = np.full((replications, rounds), np.nan)
            column[:, self.diagnostics_every - 1 :: self.diagnostics_every] = values
            table[name] = column.reshape(-1)
        return pandas.DataFrame(table)

    def plot(self, ax: "Axes | None" = None, *, quantity: str = "average", log: bool | None = None) -> Any:
        """Draw the mean over replications with ±1 standard error; the parameters are those of ``Results.plot``.

        Parameters
        ----------
        ax, quantity, log
            As in ``Results.plot``.
        """
        return Results([self]).plot(ax, quantity=quantity, references=False, log=log)

    def digest(self) -> str:
        """Return a hash of all numbers: equal digests mean equal bits."""
        digest = hashlib.sha256(str(self.seeds).encode())
        for name, array in sorted(self._arrays().items()):
            digest.update(f"{name}\0{array.shape}\0{array.dtype}".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {"regret": self.regret, "diverged_at": self.diverged_at}
        arrays |= {} if self.decisions is None else {"decisions": self.decisions}
        return arrays | {f"diagnostics/{name}": values for name, values in self.diagnostics.items()}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the result to a file, atomically.

        Parameters
        ----------
        path : path
            An ``.npz`` file with checksums: NumPy arrays and a JSON record, no pickle.

        Raises
        ------
        WriteError
            If the file cannot be written; an existing file is unchanged.
        """
        record = {name: getattr(self, name) for name in FIELDS}
        record |= {"kind": KIND, "diagnostics": list(self.diagnostics), "summary": self.summary()}
        write_arrays(path, self._arrays(), without_nan(record))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Result":
        """Read a result that ``save`` wrote, bit by bit.

        Parameters
        ----------
        path : path
            A file that ``save`` wrote.

        Raises
        ------
        SettingsError
            If the file cannot be read.
        DamagedError
            If it is damaged, or not a result.
        """
        try:
            arrays, record = read_arrays(path)
        except OSError as error:
            raise SettingsError(f"cannot read {path}: {error.strerror or error}") from None
        _require_result(record, path)
        try:
            fields = {name: record[name] for name in FIELDS}
            fields["seeds"] = tuple(fields["seeds"])
            fields["references"] = tuple(Reference(name, *map(_number, pair)) for name, *pair in fields["references"])
            diagnostics = {name: arrays[f"diagnostics/{name}"] for name in record["diagnostics"]}
            fields |= {name: arrays[name] for name in ("regret", "diverged_at")}
            return cls(diagnostics=diagnostics, decisions=arrays.get("decisions"), **fields)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedError(f"{path} is damaged: its record cannot be understood ({error!r})") from None

    def summary(self) -> dict[str, Any]:
        """Return the statistics of the final regret as JSON data; None if a number does not exist."""
        numbers = {"mean": self.mean(), "standard_error": self.standard_error(), "median": self.median()}
        diverged_rounds = sorted(int(t) for t in self.diverged_at if t)
        return {**without_nan(numbers), "diverged": self.diverged, "diverged_rounds": diverged_rounds}


def read_summary(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the record of a result's file (``label``, ``config``, ``summary``, …) without reading the numbers.

    Parameters
    ----------
    path : path
        A file that ``Result.save`` wrote.

    Raises
    ------
    OSError
        If the file cannot be read.
    DamagedError
        If its record is damaged, or it is not a result.
    """
    record = read_record(path)
    _require_result(record, path)
    return record


class Results(Mapping[str, Result]):
    """Results of several policies by label, in their order.

    Parameters
    ----------
    results : iterable of Result
        Results with different labels.
    seconds : dict of float, optional
        Where the time went, over all results.
    programs : int, optional
        Number of programs of rounds that were compiled.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> Results([Result(name, rng.random((5, 20)), seeds=range(5)) for name in ("greedy", "dfhpg")])
    policy  final regret    median  minus greedy  95 % interval  diverged
    greedy  10.97 ± 0.8018  10.76
    dfhpg   10.62 ± 0.5439  10.32   -0.3465       -2.79 to 2.1
    """

    _unit = "seed"  # what a replication is called

    def __init__(self, results: Iterable[Result], *, seconds: Mapping[str, float] | None = None, programs: int = 0):
        collected = list(results)
        self._results = {result.label: result for result in collected}
        if len(self._results) != len(collected):
            raise SettingsError(f"expected results with different labels, got {[result.label for result in collected]}")
        self.seconds, self.programs = dict(seconds or {}), programs

    def __getitem__(self, label: str) -> Result:
        if label not in self._results:
            raise KeyError(f"no result {label!r}; there are {', '.join(self._results) or 'none'}")
        return self._results[label]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    def __repr__(self) -> str:
        return self.table()

    @property
    def references(self) -> tuple[Reference, ...]:
        """Reference lines; where policies met different worlds, their labels are added to the names."""
        groups = self._worlds()
        return tuple(
            line._replace(name=f"{line.name} ({', '.join(labels)})") if len(groups) > 1 else line
            for labels in groups
            for line in self[labels[0]].references
        )

    @property
    def contextuality(self) -> str:
        """How often the context changes the optimum and what it is worth, where that was measured."""
        groups = [(labels, self[labels[0]].extra.get("contextuality")) for labels in self._worlds()]
        known = [(f"{', '.join(labels)}: " if len(groups) > 1 else "") + text for labels, text in groups if text]
        return "; ".join(known)

    def _worlds(self) -> list[list[str]]:
        """Return the labels that met the same world, group by group."""
        groups: dict[str, list[str]] = {}
        for label, result in self.items():
            groups.setdefault(json.dumps(result.world, sort_keys=True), []).append(label)
        return list(groups.values())

    def compare(self, first: str, second: str) -> PairedDifference:
        """Return the difference in final regret, first minus second, paired by seed.

        Parameters
        ----------
        first, second : str
            Labels of two results.

        Raises
        ------
        SettingsError
            If the two met different worlds, seeds or horizons.
        """
        if self[first].world != self[second].world:
            raise SettingsError(f"{first} and {second} met different worlds: there is nothing to pair")
        return self[first].compare(self[second])

    def rows(self, against: str | None = None) -> list[dict[str, Any]]:
        """Return a row per policy: its summary, and the paired difference from ``against`` if both met the same world.

        Parameters
        ----------
        against : str, optional
            A label; by default the first policy that did not always diverge.
        """
        if against is not None and against not in self:
            raise SettingsError(f"expected against to be one of {', '.join(self)}, got {against!r}")
        base = against or next((label for label, result in self.items() if result.finished.any()), None)
        rows = []
        for label, result in self.items():
            difference = dict.fromkeys(("difference", "low", "high")) | {"pairs": 0}
            if base is not None and label != base:
                with contextlib.suppress(SettingsError):  # different worlds, seeds or horizons
                    mean, _, low, high, pairs = self.compare(label, base)
                    difference = {"difference": mean, "low": low, "high": high, "pairs": pairs}
            rows.append({"policy": label, **result.summary(), "against": base, **without_nan(difference)})
        return rows

    def table(self, against: str | None = None) -> str:
        """Return the rows and reference lines as text.

        Parameters
        ----------
        against : str, optional
            As in ``rows``.
        """
        rows = self.rows(against)
        base = rows[0]["against"] if rows else None
        lines = [["policy", "final regret", "median", f"minus {base}" if base else "", "95 % interval", "diverged"]]
        for row in rows:
            mean, error, median = (_number(row[name]) for name in ("mean", "standard_error", "median"))
            difference = "" if row["difference"] is None else f"{row['difference']:.4g}"
            interval = "" if row["low"] is None else f"{row['low']:.3g} to {row['high']:.3g}"
            diverged = str(row["diverged"] or "")
            lines.append([row["policy"], _spread(mean, error), f"{median:.4g}", difference, interval, diverged])
        lines += [[line.name.replace("_", " "), _spread(*line[1:]), "", "", "", ""] for line in self.references]
        return "\n".join([text_table(lines), *filter(None, [self.contextuality])])

    def conclude(self) -> str:
        """Return one sentence about the policy with the lowest mean and the next one; empty without two of them."""
        finite = sorted((result for result in self.values() if result.finished.any()), key=Result.mean)
        if len(finite) < 2:
            return ""
        best, second = finite[:2]
        sentence = f"{best.label} has the lowest mean regret"
        try:
            difference = self.compare(best.label, second.label)
        except SettingsError:
            return f"{sentence}; the policies met different worlds, seeds or horizons, so they are not compared."
        if not difference.high < 0:
            pairs = count_text(difference.pairs, self._unit)
            return f"{sentence}; the difference from {second.label} is inconclusive at {pairs}."
        share = 100 * -difference.mean / second.mean() if second.mean() else 0.0
        interval = f"{format_number(difference.low)} to {format_number(difference.high)}"
        return f"{sentence}, {share:.0f} % below {second.label} (95 % interval of the difference: {interval})."

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the curves as JSON data; None stands for numbers that do not exist."""
        references = [without_nan(line._asdict()) for line in self.references]
        return {"results": self.rows(), "references": references, "seconds": self.seconds}

    def to_frame(self, against: str | None = None) -> "pd.DataFrame":
        """Return the rows as a table, indexed by policy.

        Parameters
        ----------
        against : str, optional
            As in ``rows``.
        """
        pandas = require("pandas", extra="data")
        return pandas.DataFrame(self.rows(against)).set_index("policy").drop(columns="diverged_rounds")

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        quantity: str = "average",
        references: bool = True,
        log: bool | None = None,
        highlight: str | None = None,
    ) -> Any:
        """Draw every mean over replications with ±1 standard error, and the reference lines.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure.
        quantity : str, default "average"
            ``"average"`` (regret per round so far), ``"cumulative"``, or the name of a diagnostic.
        references : bool, default True
            Whether to draw the reference lines.
        log : bool, optional
            Whether the vertical axis is logarithmic; by default for average regret, if all curves end above zero.
        highlight : str, optional
            The policy to draw in bold among grey curves, with the conclusion as title; only in a new figure.

        Returns
        -------
        matplotlib axes
        """
        if highlight is not None and highlight not in self:
            raise SettingsError(f"expected a policy among {', '.join(self)} to highlight, got {highlight!r}")
        lines = [(line.name, line.mean) for line in self.references if math.isfinite(line.mean)] if references else []
        title = "" if highlight is None else self.conclude()
        return draw_for_screen(regret_plot(self, lines, quantity, log), ax, highlight, title)


_version = functools.cache(importlib.metadata.version)


def describe_environment() -> dict[str, Any]:
    """Return what computes results here: interpreter, platform, packages and devices."""
    import jax

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in PACKAGES},
        "devices": [f"{device.platform} {device.device_kind}" for device in jax.local_devices()],
    }


def without_nan(value: Any) -> Any:
    """Return JSON data with None in place of every float that is not finite."""
    if isinstance(value, dict):
        return {key: without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _require_result(record: dict[str, Any], path: str | os.PathLike[str]) -> None:
    if record.get("kind") != KIND:
        raise DamagedError(f"{path} is not a result, but {record.get('kind', 'another file')!r}")


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _spread(mean: float, error: float) -> str:
    return f"{mean:.4g} ± {error:.4g}" if math.isfinite(error) else f"{mean:.4g}"


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    count = len(values)
    error = float(np.std(values, ddof=1) / count**0.5) if count > 1 else math.nan
    return float(np.mean(values)) if count else math.nan, error


def _final(regret: np.ndarray) -> np.ndarray:
    return np.asarray(np.sum(regret, axis=1, dtype=np.float64))
