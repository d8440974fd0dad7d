"""Values that are not a context, cost, mask or id."""

import datetime
import fractions
import random
from typing import Any

import numpy as np

DIM = 4


class Hostile:
    """Raise an error for every operation."""

    def _raise(self, *arguments: Any, **options: Any) -> Any:
        raise ZeroDivisionError("hostile")

    __array__ = __float__ = __index__ = __len__ = __iter__ = __repr__ = __eq__ = _raise
    __hash__ = object.__hash__


def nonsense(rng: random.Random) -> Any:
    """Return a value that is not a context, cost, mask or id."""
    return rng.choice(
        [
            float("nan"),
            float("inf"),
            -float("inf"),
            10**400,
            "3.1",
            "",
            b"1",
            1j,
            True,
            object(),
            Hostile(),
            {},
            set(),
            [],
            np.ma.masked_array(np.ones(DIM), mask=[1, 0, 0, 0]),
            np.ma.masked,
            np.datetime64("2026-01-01"),
            np.timedelta64(3, "s"),
            datetime.date(2026, 1, 1),
            fractions.Fraction(1, 3),
            np.ones(DIM, complex),
            np.ones(DIM, "U3"),
            np.ones(DIM, "M8[D]"),
            np.array([None] * DIM),
            np.ones(DIM, bool),
            np.full(DIM, np.inf),
            np.full(DIM, np.nan),
            np.ones(DIM + 1),
            np.ones((2, 2, 2, 2)),
            np.ones((0, DIM)),
            [[1.0, 2.0], [3.0]],
            ["1"] * DIM,
            [1.0, None, 2.0, 3.0],
            [True, 1.0, 2.0, 3.0],
            [10**400] * DIM,
            lambda: 0,
            iter([1.0]),
            range(0),
            {0: "x"},
            {9: 1.0},
            {-1: 1.0},
            {"nowhere": 1.0},
            {1.5: 1.0},
            {None: 1.0},
            {10**400: 1.0},
            {0: np.nan},
            {0: np.ma.masked},
            {0: [1.0]},
            {0: Hostile()},
            ([1.0],),
            (1, 2, 3, 4, 5),
            (None, None),
            ("H", "v"),
        ]
    )
