"""How a sentence of the paper is written down: which arms it compares, with which statistic, on which line it stands."""

from typing import NamedTuple


class Arm(NamedTuple):
    """An arm of a stored cell: which study, which cell of the panel, up to which round (None: all), on which benchmark.

    Without a benchmark it is that of the line.
    """

    label: str
    study: str = "main"
    cell: str = ""
    rounds: int | None = None
    benchmark: str = ""


Group = tuple[Arm, ...]
"""Arms whose regrets are averaged, replication by replication."""


class Lower(NamedTuple):
    """Every first group has lower regret than the second: agrees if all are, disagrees if one is higher."""

    pairs: tuple[tuple[Group, Group], ...]


class NotHigher(NamedTuple):
    """The same, but "about equal" agrees too: disagrees if one difference is above zero."""

    pairs: tuple[tuple[Group, Group], ...]


class Indistinct(NamedTuple):
    """No two groups can be told apart: disagrees if one difference excludes zero."""

    pairs: tuple[tuple[Group, Group], ...]


class Ratio(NamedTuple):
    """Mean regret of the first group over that of the second lies between two numbers."""

    first: Group
    second: Group
    low: float
    high: float


class Crossing(NamedTuple):
    """The average regret of ``first`` is below that of ``second`` until about this round, and above it afterwards."""

    first: Arm
    second: Arm
    low: int
    high: int


class Steadier(NamedTuple):
    """Regret varies less over the first groups (standard deviation / mean) than over the second."""

    first: tuple[Group, ...]
    second: tuple[Group, ...]


class Wider(NamedTuple):
    """The standard error of the first arm is at least ``factor`` times that of the second."""

    first: Arm
    second: Arm
    factor: float


class Leaders(NamedTuple):
    """The best group is not the same in every panel; each panel is a tuple of groups in the same order."""

    panels: tuple[tuple[Group, ...], ...]


class Calmer(NamedTuple):
    """Subtracting the baseline lowers the variance of an arm's score term, on the very rounds that were played."""

    arm: Arm


class Quieter(NamedTuple):
    """The baseline of an arm varies no more from round to round than the total cost itself."""

    arm: Arm


class Counted(NamedTuple):
    """Whole numbers that follow from the code, by name, all of them in a range; a test compares them with the code."""

    quantity: str
    counts: tuple[tuple[str, int], ...]
    low: int
    high: int


class Untested(NamedTuple):
    """A claim that no study has cells for, and what it would take."""

    why: str


Statistic = (
    Lower
    | NotHigher
    | Indistinct
    | Ratio
    | Crossing
    | Steadier
    | Wider
    | Leaders
    | Calmer
    | Quieter
    | Counted
    | Untested
)


class Line(NamedTuple):
    """A claim: its line in the paper's source, the sentence in our words, the benchmark, the test."""

    line: int
    words: str
    benchmark: str
    test: Statistic


def arms_of(test: Statistic) -> list[Arm]:
    """Every arm that a test needs, each once."""
    found: list[Arm] = []

    def look(part: object) -> None:
        if isinstance(part, Arm):
            found.append(part)
        elif isinstance(part, tuple):
            for each in part:
                look(each)

    for part in test:
        look(part)
    return list(dict.fromkeys(found))
