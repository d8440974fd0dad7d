"""A small learner that tests of logs, histories and pieces share, so that its programs are compiled once."""

import hashlib

import numpy as np

from regretless import oracles
from regretless.live.learner import Learner

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)


def make(**options):
    return Learner(
        ORACLE,
        **{
            "context_dim": FEATURES,
            "feedback": "semi_bandit",
            "scaling": False,
            "policy": "linear_thompson",
            **options,
        },
    )


def digest(learner, folder):
    """A hash of the learner's file."""
    learner.save(folder / "digest.rgl")
    return hashlib.sha256((folder / "digest.rgl").read_bytes()).hexdigest()


def play(learner, rounds, seed=0):
    """Decisions of every kind with feedback that is late, in pieces, partial or never comes."""
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        x, costs = rng.normal(size=FEATURES), 2.0 + rng.normal(size=DIM)
        choice = learner.record(x, [1.0, 1.0, 0.0, 0.0]) if t % 5 == 4 else learner.decide(x)
        first, second = np.flatnonzero(choice.w).tolist()
        if t % 4 < 2:
            learner.learn(choice.id, components={first: costs[first], second: costs[second]})
        elif t % 4 == 2:
            learner.learn(choice.id, components={first: costs[first]}, final=False)
            if t % 8 == 2:
                learner.learn(choice.id, components={second: costs[second]}, final=False)
