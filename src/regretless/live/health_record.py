"""What health remembers of learning steps, bounded whatever their number; all of it is kept in checkpoints."""

from typing import Any

import numpy as np

from regretless.live.health_costs import BATCH, CONFIDENCE, Estimate, features
from regretless.live.health_drift import KINDS, MEMORY, Watch
from regretless.live.health_model import Rounds
from regretless.policies.guard import INCUMBENT

WINDOW = 400
"""Steps that figures on predictions are about."""

OPENING = 200
"""First rounds, since the start or the last change of the world, that are kept for the model of costs."""

ABSURD = 1e140
"""Size of a total whose square can still be summed up; a larger one counts as this."""

LARGEST = 4096
"""Cost coordinates beyond which there is no model of costs."""

NAMES = ("residual", "total", "score_norm", "plug_in_norm")


def kind_of(decision: Any) -> int:
    """Who decided: 0 the learner, 1 the incumbent, 2 somebody else."""
    if int(decision.member) == INCUMBENT:
        return 1
    return 0 if np.any(decision.cost_sample) else 2


class Recorder:
    """A ring of the last WINDOW learning steps; what is not ``known`` of a step is kept as 0. Beside it the drift watch, the
    first rounds, and sums of what was paid.
    """

    def __init__(self, context_shape: tuple[int, ...], dim: int) -> None:
        self.steps = np.zeros((WINDOW, len(NAMES)))
        self.known = np.zeros((WINDOW, len(NAMES)), bool)
        self.learnt = 0
        self.world = np.zeros(2, np.int64)  # learning steps before this world began; rounds of it with a known total
        self.watch = Watch()
        columns = features(np.zeros((0, *context_shape)), np.zeros((0, dim))).shape[1]
        self.opening: list[np.ndarray] = []  # rows of features, decision and total
        self.columns, self.dim = columns, dim
        self.sums = np.zeros(6)  # of paid totals: count, mean; of batches: rounds and mean so far, count, mean, …
        self.squares = np.zeros(1)  # … and sum of squared deviations

    def learn(self, info: dict[str, float], id: int, decision: Any) -> None:
        """Notes a learning step; ``decision`` is None where it is not remembered, as in a long history."""
        values = np.array([info.get(name, np.nan) for name in NAMES])
        place = self.learnt % WINDOW
        self.known[place] = np.isfinite(values)
        self.steps[place] = np.where(self.known[place], values, 0.0)
        self.learnt += 1
        if not self.known[place, :2].all():
            return
        kind, total = 2 if decision is None else kind_of(decision), float(values[1])
        if kind == 0:
            self._paid(total)
        if self.watch.learn(kind, id, float(values[0]), self.learnt):
            self.world[:], self.opening = (self.learnt, 0), []
        elif decision is not None:
            self._open(decision, total)

    def _open(self, decision: Any, total: float) -> None:
        """Keeps one of the first rounds of this world."""
        self.world[1] += 1
        if len(self.opening) < OPENING and self.dim <= LARGEST:
            w = np.asarray(decision.w, float)
            shown = features(np.asarray(decision.context, float)[None], w[None])[0]
            self.opening.append(np.concatenate([shown, w, [total]]))

    def first_rounds(self, apart: int) -> tuple[Rounds, np.ndarray]:
        """The first rounds of this world and their totals, those ``apart`` that are its last as well."""
        rows = self._rows()[: max(0, int(self.world[1]) - apart)]
        return Rounds(rows[:, : self.columns], rows[:, self.columns : -1]), rows[:, -1]

    def ordered(self) -> np.ndarray:
        """The steps that are in the ring, oldest first, NaN for what is not known."""
        steps = np.where(self.known, self.steps, np.nan)[: self.learnt]
        return np.roll(steps, -(self.learnt % WINDOW), axis=0) if self.learnt > WINDOW else steps

    def paid_since_start(self) -> Estimate | None:
        """The mean total of the learner's decisions so far."""
        count, mean, batches = self.sums[0], float(self.sums[1]), self.sums[4]
        if batches < 2:
            return None
        error = CONFIDENCE * float(np.sqrt(self.squares[0] / (batches - 1) / batches))
        return Estimate(mean, mean - error, mean + error, int(count))

    def arrays(self) -> dict[str, np.ndarray]:
        """A copy of everything but the number of steps, by name."""
        own = {
            "steps": self.steps, "known": self.known, "opening": self._rows(), "world": self.world,
            "paid": self.sums, "squares": self.squares,
            **{f"drift/{name}": array for name, array in self.watch.arrays().items()},
        }  # fmt: skip
        return {name: array.copy() for name, array in own.items()}

    def restore(self, arrays: dict[str, np.ndarray], learnt: int) -> None:
        """Goes on from ``arrays`` after so many steps."""
        self.steps, self.known, self.learnt = arrays["steps"], arrays["known"], learnt
        self.opening, self.world = list(arrays["opening"]), arrays["world"]
        self.sums, self.squares = arrays["paid"], arrays["squares"]
        for name in self.watch.arrays():
            setattr(self.watch, name, arrays[f"drift/{name}"])

    def _rows(self) -> np.ndarray:
        return np.stack(self.opening) if self.opening else np.zeros((0, self.columns + self.dim + 1))

    def _paid(self, total: float) -> None:
        """Adds a total to the sums; a whole batch of them is one observation of the mean."""
        sums, total = self.sums, min(max(total, -ABSURD), ABSURD)
        sums[0] += 1
        sums[1] += (total - sums[1]) / sums[0]
        sums[2] += 1
        sums[3] += (total - sums[3]) / sums[2]
        if sums[2] == BATCH:
            sums[4] += 1
            before = sums[3] - sums[5]
            sums[5] += before / sums[4]
            self.squares += before * (sums[3] - sums[5])
            sums[2:4] = 0.0


def forms(opening: int, columns: int) -> dict[str, tuple[tuple[int, ...], Any]]:
    """Shapes and types of a Recorder's arrays, with so many first rounds of so many columns."""
    ring = (WINDOW, len(NAMES))
    return {
        "steps": (ring, np.float64), "known": (ring, bool), "opening": ((opening, columns), np.float64),
        "world": ((2,), np.int64), "paid": ((6,), np.float64), "squares": ((1,), np.float64),
        "drift/sums": ((KINDS,), np.float64), "drift/logs": ((KINDS, MEMORY), np.float64),
        "drift/counts": ((KINDS,), np.int64), "drift/rising": ((KINDS,), np.int64), "drift/alarm": ((3,), np.int64),
    }  # fmt: skip


def fits(arrays: dict[str, np.ndarray], learnt: int) -> bool:
    """Whether these can be a Recorder's after so many steps."""
    counts = (arrays["world"], arrays["drift/counts"], arrays["drift/rising"], arrays["drift/alarm"])
    return (
        not np.any(arrays["known"][learnt:])
        and all(np.all(part >= 0) for part in counts)
        and bool(np.all(arrays["world"] <= learnt))
        and len(arrays["opening"]) <= min(OPENING, int(arrays["world"][1]))
        and bool(np.all(arrays["paid"][[0, 2, 4]] >= 0) and np.all(arrays["drift/counts"] <= learnt))
    )
