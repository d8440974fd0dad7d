"""A learner's file, for tests that read it, damage it and forge it."""

import numpy as np
import pytest

from regretless import oracles
from regretless.live.learner import Learner


@pytest.fixture
def saved(tmp_path):
    """Three decisions learned, one waiting: four items, two to choose, three features."""
    learner = Learner(oracles.top_k(4, 2), context=3, policy="linear_thompson")
    for _ in range(3):
        learner.learn(learner.decide(np.ones(3)).id, total=2.0)
    learner.decide(np.ones(3))
    path = tmp_path / "plant.db"
    learner.save(path)
    return path
