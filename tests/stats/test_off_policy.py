"""Overlap of a log with a candidate, and estimates that are unbiased where there is one."""

import numpy as np
import pytest

from regretless.stats.off_policy import doubly_robust, fit_logistic, match_decisions, measure_overlap

ROUNDS = 400
EYE = np.eye(3)


def logged_rounds(seed=0, rounds=ROUNDS):
    """Return contexts, logged choices drawn uniformly, and costs of all three decisions."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, 2))
    return x, rng.integers(3, size=rounds), 5.0 + np.column_stack([x, x.sum(axis=1)]) + rng.normal(size=(rounds, 3))


def test_equal_decisions_match_up_to_rounding():
    first = np.array([[1.0, 0.0], [1e9, 0.0], [0.0, 1.0]])
    assert match_decisions(first, first + np.array([[1e-9, 0.0], [10.0, 0.0], [0.0, 1e-3]])).tolist() == [
        True,
        True,
        False,
    ]


def test_doubly_robust_scores_are_unbiased_even_with_a_wrong_model():
    errors = []
    for seed in range(200):
        x, drawn, costs = logged_rounds(seed)
        candidate = (x[:, 0] > 0).astype(int)
        overlap = measure_overlap(EYE[drawn], EYE[candidate], x, np.full(ROUNDS, 1 / 3))
        wrong = np.full(ROUNDS, 4.0)
        rounds = np.arange(ROUNDS)
        scores = doubly_robust(costs[rounds, drawn], wrong, wrong, overlap.weights)
        errors.append(scores.mean() - costs[rounds, candidate].mean())
    assert abs(np.mean(errors)) < 4 * np.std(errors) / 200**0.5


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_good_model_narrows_and_a_bad_one_does_not_widen(share):
    """Against the standard errors of inverse weighting, self-normalised weights and the usual doubly robust score."""
    x, drawn, costs = logged_rounds(3, 4000)
    rounds, w = np.arange(4000), 3.0 * (drawn == 0)
    model = 5.0 + share * np.column_stack([x, x.sum(axis=1)]) - (1.0 - share) * 4.0 * x[:, :1]
    y, own = costs[rounds, drawn], model[rounds, drawn]
    scores = doubly_robust(y, own, model[:, 0], w)
    weighted, robust = w * y, model[:, 0] + w * (y - own)
    normalised = w * (y - weighted.mean() / w.mean())
    best = min(weighted.std(), robust.std(), normalised.std())
    assert 0.5 * best < scores.std() < 1.02 * best
    assert scores.mean() == pytest.approx(5.0, abs=4 * scores.std() / 4000**0.5)


def test_rare_outcomes_missing_in_the_rounds_that_match_leave_doubt():
    rng = np.random.default_rng(0)
    clicks, w = (rng.random(5000) < 0.01).astype(float), 50.0 * (rng.random(5000) < 0.02)
    clicks[w > 0] = 0.0
    scores = doubly_robust(clicks, np.full(5000, 0.01), np.full(5000, 0.01), w)
    assert scores.mean() + 2 * scores.std() / 5000**0.5 > 0.01


def test_known_probabilities_give_weights_of_one_on_average():
    x, drawn, _ = logged_rounds()
    overlap = measure_overlap(EYE[drawn], np.tile(EYE[1], (ROUNDS, 1)), x, np.full(ROUNDS, 1 / 3))
    assert overlap.reason == ""
    assert overlap.weights.mean() == pytest.approx(1.0, abs=0.2)
    assert overlap.matches == np.sum(drawn == 1) == pytest.approx(overlap.effective)


def test_probabilities_are_estimated_where_the_log_is_random():
    x, drawn, _ = logged_rounds()
    candidate = EYE[(x[:, 0] > 0).astype(int)]
    overlap = measure_overlap(EYE[drawn], candidate, x)
    assert overlap.reason == ""
    assert overlap.weights.mean() == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize(
    ("logged", "candidate", "propensities", "rounds", "reason"),
    [
        (0, 1, None, ROUNDS, "none of the 400 logged decisions"),
        (0, 0, None, 15, "15 rounds are too few; at least 20"),
        ("random", 1, None, 100, "100 rounds are too few to distinguish a rule from chance"),
        ("sign", 1, None, ROUNDS, "depends on the context"),
        ("sign", 1, 0.9, ROUNDS, "never decides like the candidate"),
        ("random", 1, 0.01, ROUNDS, "the probabilities cannot be right"),
        ("random", "rare", None, ROUNDS, r"\d+ of the 400 logged decisions are the candidate's, worth"),
    ],
)
def test_the_reason_why_nothing_can_be_estimated(logged, candidate, propensities, rounds, reason):
    x, drawn, _ = logged_rounds(rounds=rounds)
    choices = {"random": drawn, "sign": (x[:, 0] > 0).astype(int), "rare": (drawn + (np.arange(rounds) % 25 > 0)) % 3}
    log, chosen = (
        choices[rule] if isinstance(rule, str) else np.full(rounds, rule, int) for rule in (logged, candidate)
    )
    known = None if propensities is None else np.full(rounds, propensities)
    overlap = measure_overlap(EYE[log], EYE[chosen], x, known)
    with pytest.raises(AssertionError, match=reason):
        raise AssertionError(overlap.reason)


def test_a_logistic_regression_finds_probabilities():
    rng = np.random.default_rng(0)
    x = rng.normal(size=5000)
    truth = 1.0 / (1.0 + np.exp(-(0.5 + x)))
    fitted = fit_logistic(np.column_stack([np.ones(5000), x]), rng.random(5000) < truth)
    assert np.max(np.abs(fitted - truth)) < 0.05
