"""Scores by hand: relative regret, geometric means, what counts as beaten, and what diverged."""

import math

import numpy as np
import pytest

from regretless.studies.arena.scores import FLOOR, RESAMPLED, overall, score

RECORD = {"horizon": 50, "seconds": {"compile": 9.0, "run": 0.03}}


def lines(random, fixed):
    known = {"random": random} if fixed is None else {"random": random, "best_fixed": fixed}
    return {**RECORD, "references": [{"name": name, "mean": mean} for name, mean in known.items()]}


def one(world, policy, finals, random=100.0, fixed=30.0, diverged=0):
    return score(world, policy, np.array(finals, float), diverged, lines(random, fixed))


def test_a_score_by_hand():
    found = one("here", "mine", [10.0, 20.0, 60.0])
    assert found.regret == 30
    assert found.relative == 0.3
    assert found.below_fixed is False
    assert found.fixed_matters
    np.testing.assert_allclose(found.error, np.std([10, 20, 60], ddof=1) / 3**0.5)
    np.testing.assert_allclose(found.microseconds, 1e6 * 0.03 / (3 * 50))
    judged = one("here (median)", "mine", [10.0, 20.0, 60.0])
    assert judged.regret == 20
    assert judged.below_fixed is True
    assert judged.error > 0


def test_what_diverged_counts_as_random_and_no_random_line_as_nothing():
    found = one("here", "mine", [10.0], diverged=1)
    assert found.regret == 55
    assert found.diverged == 1
    assert score("here", "mine", np.ones(2), 0, {**RECORD, "references": []}) is None
    assert one("sets", "mine", [1.0], fixed=None).below_fixed is None


def test_geometric_means_by_hand():
    rows = [
        one("a", "mine", [20.0, 20.0]),
        one("b", "mine", [80.0, 80.0]),
        one("c", "mine", [0.0, 0.0], fixed=5.0),
        one("a", "linear_old", [40.0, 40.0]),
        one("b", "linear_old", [40.0, 40.0]),
    ]
    mine, old = overall(rows)
    assert (mine.policy, mine.worlds, mine.worst) == ("mine", 3, "b")
    np.testing.assert_allclose(mine.relative, (0.2 * 0.8 * FLOOR) ** (1 / 3))
    np.testing.assert_allclose(mine.interval, mine.relative), "equal replications leave no doubt"
    np.testing.assert_allclose(mine.ratio, math.sqrt(0.5 * 2.0))
    assert (mine.below_fixed, mine.fixed_matters) == (1, 2), (
        "a fixed decision with 5 % of random's regret is not counted"
    )
    assert old.ratio == pytest.approx(1)
    np.testing.assert_allclose(old.ratio_interval, 1)


def test_intervals_are_of_resampled_replications_and_paired():
    rng = np.random.default_rng(0)
    noise = rng.uniform(0.5, 1.5, 40)
    a, b = one("w", "mine", 20 * noise), one("w", "linear_old", 40 * noise)
    mine, _ = overall([a, b])
    assert len(a.resampled()) == RESAMPLED
    spread = noise.std() / 40**0.5
    np.testing.assert_allclose(np.diff(mine.interval)[0], 2 * 1.96 * 0.2 * spread, rtol=0.2)
    np.testing.assert_allclose(mine.ratio_interval, 0.5), "the same replications are resampled for both"
