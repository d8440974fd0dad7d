"""A learner with the options of the compiler that users have; the other tests compile with the fastest ones."""

import os
import subprocess
import sys

import pytest

LEARNER = """
import numpy as np
import regretless as rg
from regretless import testing

rng, numbers = np.random.default_rng(0), np.eye(4)
solve = lambda cost: numbers[np.argsort(cost)[:2]].sum(axis=0)
w = numbers[[0, 1, 2] * 20] + numbers[3]
for oracle in (rg.oracles.top_k(4, 2), rg.oracles.external(solve, 4)):
    learner = rg.Learner(oracle, context=3, policy="linear_thompson")
    learner.warm_up()
    choice = learner.decide(rng.normal(size=3))
    learner.learn(choice.id, total=1.0)
    learner.decide_batch(rng.normal(size=(5, 3)))
    learner.learn_from(rg.History(rng.normal(size=(60, 3)), w, totals=rng.normal(size=60)))
    learner.explain(choice)
    print(learner.health().decisions)
testing.check_registered("policies", "greedy")
"""


@pytest.mark.slow
def test_a_learner_works_with_the_usual_options():
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    command = [sys.executable, "-c", LEARNER]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
