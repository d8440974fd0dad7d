"""Numbers in a LaTeX column: one power of ten for all, the same decimals, and digits that stand below each other."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

Value = tuple[float | None, float | None]
"""A mean with its standard error."""

NOTHING = "--"
DECIMALS = 2
"""Behind the point where a power of ten is taken out: the paper gives three digits."""


class Column(NamedTuple):
    """How the numbers of a column are written."""

    exponent: int
    decimals: int
    mean_digits: int  # before the point, a sign included
    error_digits: int

    def head(self) -> str:
        """The common power of ten, for the head of the column; empty without one."""
        return rf"$\times 10^{{{self.exponent}}}$" if self.exponent else ""

    def cell(self, value: Value, bold: bool = False) -> str:
        r"""A mean with its standard error in mathematics.

        >>> print(Column(5, 2, 2, 1).cell((168_000.0, 14_700.0)))
        $\phantom{0}1.68 \pm 0.15$
        """
        mean, error = value
        if mean is None or not math.isfinite(mean):
            return NOTHING
        words = self._padded(mean, self.mean_digits)
        if error is None or not math.isfinite(error):
            words += (
                rf" \phantom{{{{}}\pm {'0' * self.error_digits}.{'0' * self.decimals}}}" if self.error_digits else ""
            )
        else:
            words += rf" \pm {self._padded(error, self.error_digits)}"
        return rf"$\mathbf{{{words}}}$" if bold else f"${words}$"

    def _padded(self, value: float, digits: int) -> str:
        text = self.text(value)
        missing = digits - len(text.partition(".")[0])
        return (rf"\phantom{{{'0' * missing}}}" if missing > 0 else "") + text

    def text(self, value: float) -> str:
        """The number without its power of ten; what would be rounded to zero is told to be smaller than the last digit."""
        scaled = value / 10.0**self.exponent
        if scaled and abs(scaled) < 0.5 * 10.0**-self.decimals:
            return rf"{{<}}{10.0**-self.decimals:.{self.decimals}f}" if self.decimals else r"{<}1"
        return f"{scaled:.{self.decimals}f}"


def column(values: Iterable[Value], beside: Iterable[Value] = ()) -> Column:
    """The power of ten of the typical mean; ``beside`` are numbers that only take part in the alignment."""
    known = list(values)
    means = [abs(mean) for mean, _ in known if mean is not None and math.isfinite(mean) and mean != 0]
    errors = [error for _, error in known if error is not None and math.isfinite(error) and error > 0]
    size = _decade(float(np.median(means))) if means else 0
    exponent = 0 if -2 < size < 3 else size
    error = _decade(float(np.median(errors))) if errors else -1
    draft = Column(exponent, DECIMALS if exponent else min(max(1 - error, 0), 3), 0, 0)
    every = [*known, *beside]
    return draft._replace(
        mean_digits=_longest(draft, [mean for mean, _ in every]),
        error_digits=_longest(draft, [error for _, error in every]),
    )


def _decade(value: float) -> int:
    return math.floor(math.log10(value))


def _longest(draft: Column, values: Sequence[float | None]) -> int:
    """The most letters before the point."""
    texts = [draft.text(value) for value in values if value is not None and math.isfinite(value)]
    return max((len(text.partition(".")[0].replace("{<}", "")) for text in texts), default=0)
