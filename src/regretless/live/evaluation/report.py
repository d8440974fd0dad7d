"""What an evaluation found: a row for each candidate, side by side on the same rounds."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from regretless.registry import require_known
from regretless.stats import Interval, mean_interval

if TYPE_CHECKING:
    import pandas as pd

CANNOT = "cannot be told from this log"

Method = Literal["logged", "seen", "doubly_robust", "matching"]


@dataclasses.dataclass(frozen=True)
class Estimate:
    """What a candidate would have paid per round; where that cannot be told, ``cost`` is None and ``reason`` says why.

    ``difference`` is to the logged decisions in the same rounds, None for these. ``prediction`` is what a regression expects,
    which may be wrong by any amount and has no interval. ``matches`` logged decisions are the candidate's, worth ``effective``
    rounds.
    """

    candidate: str
    method: Method
    cost: Interval | None
    difference: Interval | None
    prediction: float | None
    matches: int
    effective: float
    reason: str = ""

    @property
    def told(self) -> bool:
        """Whether the log can tell."""
        return self.cost is not None


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Estimates of all candidates over the same ``rounds`` of a history, the logged decisions first; see ``rg.evaluate``."""

    estimates: tuple[Estimate, ...]
    rounds: int
    sense: str
    scores: dict[str, np.ndarray] = dataclasses.field(repr=False)

    def __getitem__(self, candidate: str) -> Estimate:
        """The estimate of the candidate with this label."""
        labels = [own.candidate for own in self.estimates]
        require_known("candidate", candidate, labels)
        return self.estimates[labels.index(candidate)]

    def difference(self, first: str, second: str) -> Interval | None:
        """Cost per round of the first candidate minus that of the second in the same rounds; None if either cannot be told."""
        one, other = self[first], self[second]
        if not (one.told and other.told):
            return None
        effective = min(one.effective, other.effective)
        return mean_interval(self.scores[first] - self.scores[second], effective).with_sign(
            -1.0 if self.sense == "maximise" else 1.0
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON data."""
        rows = []
        for own in self.estimates:
            row = {**dataclasses.asdict(own), "told": own.told}
            for name in ("cost", "difference"):
                found: Interval | None = getattr(own, name)
                row[name] = None if found is None else found._asdict()
            rows.append(row)
        return {"rounds": self.rounds, "sense": self.sense, "confidence": 0.95, "estimates": rows}

    def to_pandas(self) -> "pd.DataFrame":
        """A table with a row for each candidate; NaN for what cannot be told."""
        import pandas as pd

        rows = []
        for own in self.estimates:
            row: dict[str, Any] = {"candidate": own.candidate, "method": own.method}
            for name in ("cost", "difference"):
                found: Interval | None = getattr(own, name)
                mean, low, high = (math.nan,) * 3 if found is None else found
                row |= {name: mean, f"{name}_low": low, f"{name}_high": high}
            rows.append(
                {
                    **row, "prediction": math.nan if own.prediction is None else own.prediction,
                    "matches": own.matches, "effective": own.effective, "reason": own.reason,
                }
            )  # fmt: skip
        return pd.DataFrame(rows)

    def __str__(self) -> str:
        lines = [f"{self.word} per round over {self.rounds} rounds, 95 % intervals"]
        width = max(len(own.candidate) for own in self.estimates)
        lines += [f"{own.candidate:<{width}}  {said(own)}" for own in self.estimates]
        return "\n".join(lines)

    @property
    def word(self) -> str:
        """What the numbers are."""
        return "reward" if self.sense == "maximise" else "cost"


def said(own: Estimate) -> str:
    """An estimate in one line."""
    if own.cost is None:
        guess = "" if own.prediction is None else f" (a model's prediction: {own.prediction:.4g})"
        return f"{CANNOT}: {own.reason}{guess}"
    against = "" if own.difference is None else f", {signed(own.difference)} against the log"
    return f"{ends(own.cost)}{against}; {own.method}, {own.matches} matches worth {own.effective:.0f} rounds"


def ends(found: Interval) -> str:
    """A mean with its interval, such as ``3.21 [3.05, 3.37]``."""
    return f"{found.mean:.4g} [{found.low:.4g}, {found.high:.4g}]"


def signed(found: Interval) -> str:
    """The same with signs."""
    return f"{found.mean:+.4g} [{found.low:+.4g}, {found.high:+.4g}]"
