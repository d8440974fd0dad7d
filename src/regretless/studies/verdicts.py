"""Is a published cell reproduced? By its z-score, and where that fails, by a second range of seeds."""

from typing import Any, NamedTuple

from regretless.experiments.extension import Published, find_published

LIMIT = 3.0
SECOND_RANGE = 1000
"""Where the seeds of the second range start."""


class Verdict(NamedTuple):
    """An arm beside its published cell."""

    published: Published
    z: float
    second_z: float | None  # with the second range of seeds, where it was needed

    @property
    def reproduced(self) -> bool:
        """Whether at least one of the ranges is within three standard errors of the difference."""
        return abs(self.z) <= LIMIT or (self.second_z is not None and abs(self.second_z) <= LIMIT)

    @property
    def word(self) -> str:
        """The verdict for people."""
        if abs(self.z) <= LIMIT:
            return "reproduced"
        if self.second_z is None:
            return "second range to come"
        return "reproduced on the second range" if self.reproduced else "not reproduced"


def z_score(record: dict[str, Any], label: str) -> tuple[Published, float] | None:
    """The published cell that an arm is to be compared with, and how far ours is from it; None if there is none."""
    arm = record["arms"][label]
    if not record["comparable"].get(label) or arm["mean"] is None or arm["standard_error"] is None:
        return None
    cell = record["cell"]
    known = find_published(str(cell["benchmark"]), cell["feedback"], label)
    return None if known is None else (known, known.z(arm["mean"], arm["standard_error"]))


def needs_second_range(record: dict[str, Any]) -> bool:
    """Whether some arm of this cell is too far from its published value to be believed."""
    if "comparable" not in record or record["cell"]["seeds"][0] != 0:
        return False
    scores = (z_score(record, label) for label in record["arms"])
    return any(abs(score[1]) > LIMIT for score in scores if score is not None)


def verdict(record: dict[str, Any], label: str, second: dict[str, Any] | None = None) -> Verdict | None:
    """The verdict on one arm; ``second`` is the record of the same cell on the second range of seeds."""
    score = z_score(record, label)
    if score is None:
        return None
    again = None if second is None or abs(score[1]) <= LIMIT else z_score(second, label)
    return Verdict(score[0], score[1], None if again is None else again[1])
