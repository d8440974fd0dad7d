"""The lines of the result: what a statement of the paper says, what was measured, and the verdict."""

from typing import Any, NamedTuple

from regretless.studies.theory.slopes import CONFIDENCE, Interval

HOLDS, FAILS, UNDECIDED = "holds", "does not hold", "not at this length"


class Claim(NamedTuple):
    """One line of the result: what a theorem says and what was measured.

    - ``=``: holds if the interval covers ``expected`` and the joint test of all coordinates does not reject.
    - ``≤``: holds if the upper limit is at most ``expected`` and the explicit bound, where there is one, is not exceeded. A
      rate whose slope is above the exponent is undecided if the averages follow "rate + next term" (``p_value``): on a finite
      range two terms have a slope on either side. If they do not follow that either, the line does not hold.
    """

    name: str
    setting: str
    quantity: str
    measured: Interval
    relation: str  # "=" or "≤"
    expected: float
    p_value: float | None = None  # of the joint test, for an equality; of the law of two terms, for a rate
    bound_share: float | None = None  # largest upper limit of average / explicit bound, where there is one
    statement: str = ""  # its number in the paper
    family: int = 1  # lines that are tested together

    @property
    def verdict(self) -> str:
        """``holds``, ``does not hold`` or ``not at this length``."""
        level = (1.0 - CONFIDENCE) / self.family
        if self.relation == "=":
            assert self.p_value is not None
            agrees = self.measured.low <= self.expected <= self.measured.high
            return HOLDS if agrees and self.p_value >= level else FAILS
        if self.bound_share is not None and self.bound_share > 1.0:
            return FAILS
        if self.measured.high <= self.expected:
            return HOLDS
        follows = self.p_value is not None and self.p_value >= level
        return UNDECIDED if follows or self.measured.low <= self.expected else FAILS

    def to_dict(self, short: bool = False) -> dict[str, Any]:
        """The line as a JSON object; a run that is too ``short`` is not judged."""
        values = {**self._asdict(), **self.measured._asdict(), "verdict": UNDECIDED if short else self.verdict}
        del values["measured"]
        return {"measured" if key == "value" else key: value for key, value in values.items()}


class Curve(NamedTuple):
    """Averages by horizon of one quantity, rule and α, with their intervals and the theorem's bound."""

    quantity: str
    rule: str
    alpha: float
    horizons: list[int]
    averages: list[Interval]
    bounds: list[float]
    variant: str = "plug_in"

    def to_dict(self) -> dict[str, Any]:
        """The curve as a JSON object."""
        parts = {key: [getattr(one, key) for one in self.averages] for key in Interval._fields}
        return {**self._asdict(), "averages": parts}
