"""The learners that ``test_fuzz_learner.py`` tries: feedback regimes, oracles in JAX and on the host, policies,
options.
"""

import itertools
import random
from typing import Any, NamedTuple

import numpy as np

from live.learners import build
from regretless import oracles
from regretless.feedback import Linear, ReportedRows
from regretless.live.learner import Learner
from regretless.problem import Problem
from soak.learner_model import GROUPS, Model

DIM, FEATURES, ROWS = 4, 3, 3
EDGES = [("depot", "north"), ("depot", "south"), ("north", "shop"), ("south", "shop")]
BINARY = np.array(list(itertools.product([0.0, 1.0], repeat=DIM)))
PAIRS = BINARY[BINARY.sum(axis=1) == 2]
WEIGHTS = np.array([3.0, 4.0, 2.0, 5.0])


class Moody:
    """Solves by looking at every decision; raises, or answers nonsense, now and then."""

    def __init__(self, rate: float):
        self.rate, self.failed = rate, 0
        self.rng = random.Random(0)

    def __call__(self, cost: np.ndarray, limits: Any = None) -> Any:
        if self.rng.random() < self.rate:
            self.failed += 1
            if self.rng.random() < 0.3:
                return self.rng.choice([None, "north", np.full(DIM, np.nan), np.ones(DIM + 1), np.ones(DIM) * 1j])
            raise self.rng.choice([ValueError("no licence"), KeyError("x"), SystemExit(0), MemoryError()])
        open_ = PAIRS if limits is None else PAIRS[np.all(limits["open"] >= PAIRS, axis=1)]
        w = open_[np.argmin(open_ @ cost)]
        cost[:] = np.nan  # a solver may write into what it is given
        return w


class Kind(NamedTuple):
    """One kind of learner; ``decisions`` are all feasible ones, ``limited`` says what an instance is."""

    name: str
    oracle: Any
    decisions: np.ndarray
    regime: str = "bandit"
    policy: str = "linear_thompson"
    limited: str = ""
    solver: Moody | None = None
    offset: tuple[float, ...] | None = None
    shape: tuple[int, ...] = (FEATURES,)
    options: dict[str, Any] = {}  # noqa: RUF012
    settings: dict[str, Any] | None = None

    def problem(self) -> Problem:
        """What is decided."""
        rule = {"groups": RULE, "rows": ReportedRows(ROWS)}.get(self.regime, self.regime)
        return Problem(self.oracle, self.shape, rule, may_miss=self.options.get("may_miss"), offset=self.offset)

    def learner(self, seed: int) -> Learner:
        """A new learner."""
        options = {name: value for name, value in self.options.items() if name != "may_miss"}
        rule = {"feedback": self.problem().feedback, "offset": self.offset}
        if "may_miss" in self.options:
            rule["may_miss"] = self.options["may_miss"]
        return build(
            self.oracle, context=self.shape, policy=self.policy, settings=self.settings, seed=seed, **rule, **options
        )

    def model(self) -> Model:
        """What its books must say."""
        offset = None if self.offset is None else np.array(self.offset)
        options = {"limit": 1000, "max_age": None, "scaling": True, **self.options}
        by_means = len(self.shape) == 2 and self.policy == "adaptive"
        columns = self.shape[-1] * (2 if by_means else 1)
        return Model(options["limit"], options["max_age"], columns, options["scaling"], offset)

    def instance(self, rng: random.Random) -> Any:
        """What changes in the feasible set: at least three of four coordinates stay open."""
        if not self.limited:
            return None
        open_ = np.ones(DIM, bool)
        open_[rng.randrange(DIM)] = rng.random() < 0.5
        given = rng.choice([open_, open_.tolist(), open_.astype(int), open_.astype(float)])
        return {"open": open_.astype(float)} if self.limited == "tree" else given

    def open_decisions(self, instance: Any) -> np.ndarray:
        """The feasible decisions under an instance."""
        if instance is None:
            return self.decisions
        limits = np.asarray(instance["open"] if self.limited == "tree" else instance, float)
        return self.decisions[np.all(self.decisions <= limits, axis=1)]


def _sums(w: Any, aux: Any) -> Any:
    return GROUPS * w


def _ones(w: Any, aux: Any) -> Any:
    return np.ones(2)


RULE = Linear(_sums, _ones, label="groups")


def kinds() -> list[Kind]:
    """Every kind, each with an oracle of its own: learners of a kind share their programs."""
    few = {"limit": 5, "max_age": 9}
    moody, moodier, moodiest = Moody(0.02), Moody(0.05), Moody(0.05)
    light = BINARY[BINARY @ WEIGHTS <= 9]
    return [
        Kind("bandit", oracles.top_k(DIM, 2), PAIRS, limited="mask", options=few),
        Kind("rows", oracles.external(moody, DIM), PAIRS, "rows", solver=moody, options={**few, "on_failure": "last"}),
        Kind(
            "semi_bandit",
            oracles.shortest_path(EDGES, "depot", "shop"),
            np.array([[1.0, 0, 1, 0], [0, 1.0, 0, 1]]),
            "semi_bandit",
            "greedy",
            offset=(1.0, 0.0, -2.0, 3.0),
            options={"limit": 7},
        ),
        Kind(
            "features",
            oracles.top_k(DIM, 2),
            PAIRS,
            "full",
            shape=(DIM, FEATURES),
            options={"may_miss": False, "limit": 12},
        ),
        Kind(
            "groups",
            oracles.external(moodier, DIM, takes_instance=True),
            PAIRS,
            "groups",
            "greedy",
            "tree",
            moodier,
            options={"scaling": False, "max_age": 6},
        ),
        Kind(
            "milp",
            oracles.milp(A_ub=[WEIGHTS.tolist()], b_ub=[9.0], integrality=1),
            light,
            "full",
            "greedy",
            offset=(0.5, 0.5, -0.5, 1.0),
            options=few,
        ),
        Kind(
            "dfhpg",
            oracles.external(moodiest, DIM),
            PAIRS,
            "semi_bandit",
            "dfhpg",
            solver=moodiest,
            options={"limit": 6},
            settings={"surrogate": "spo_plus"},
        ),
    ]
