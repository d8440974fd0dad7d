"""What learners share: programs of the same feasible set; and how few files a call enters."""

import sys
from pathlib import Path

import numpy as np

import regretless as rg
from live.learners import build
from regretless.live import engine

MAX_FILES = 28
"""Source files that a learner with a mixed-integer programme may enter."""


def test_learners_with_a_solver_each_share_their_programs():
    """A dozen tenants, each with an external oracle of its own, once filled the memory with compiled programs."""

    def tenant(seed):
        rng = np.random.default_rng(seed)
        solve = lambda cost: np.isin(np.arange(5), np.argsort(cost)[:2]).astype(float)  # noqa: E731
        learner = build(rg.oracles.external(solve, 5), context=2)
        for _ in range(2):
            learner.learn(learner.decide(rng.normal(size=2)).id, total=1.0)
        return learner

    tenants = [tenant(0)]
    programs = engine._learn.compiled, engine._draft.compiled
    tenants += [tenant(seed) for seed in range(1, 15)]
    assert (engine._learn.compiled, engine._draft.compiled) == programs
    assert [learner.state.made for learner in tenants] == [2] * 15


def test_a_learner_enters_few_files():
    root = str(Path(rg.__file__).parent)
    entered = set()

    def note(frame, event, argument):
        code = frame.f_code
        if event == "call" and code.co_filename.startswith(root) and code.co_flags & 2:  # a function
            entered.add(code.co_filename)

    oracle = rg.oracles.milp(A_ub=[[3.0, 4.0, 2.0, 5.0]], b_ub=[9.0], integrality=1)
    rg.Learner  # imported before counting  # noqa: B018
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        learner = rg.Learner(oracle, context=3)
        for t in range(4):
            learner.learn(learner.decide(np.full(3, float(t))).id, total=1.0)
    finally:
        sys.setprofile(before)
    assert len(entered) <= MAX_FILES, sorted(entered)
