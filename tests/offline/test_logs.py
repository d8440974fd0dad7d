"""Costs from logs: unbiased where the log decides at random, refused where it cannot say anything."""

import numpy as np
import pytest

import regretless as rg
from regretless.errors import SettingsError
from regretless.offline import Dataset, Training, estimate_costs, fit, score, simulated_log

TOP = rg.oracles.top_k(4, 2)
PAIRS = np.array([[i in (a, b) for i in range(4)] for a in range(4) for b in range(a)], float)
SLOPES = np.random.default_rng(3).normal(size=(2, 4))


def true_costs(x):
    return 4.0 + x @ SLOPES + 0.8 * (x[:, :1] * x[:, 1:]) * SLOPES[0]  # a linear regression is wrong


def make_log(rounds=1500, seed=0, kind="greedy", seen="totals", wrong=False):
    """Two of four items; "greedy" takes the best two by a rough model with probability 0.6, else any two."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rounds, 2))
    costs = true_costs(x) + 0.3 * rng.normal(size=(rounds, 4))
    best = np.argmin((x @ (SLOPES + 0.5)) @ PAIRS.T, axis=1)
    chances = np.full((rounds, 6), 1 / 6)
    if kind == "greedy":
        chances = np.full((rounds, 6), 0.4 / 6)
        chances[np.arange(rounds), best] += 0.6
    if kind == "rule":
        chances = np.eye(6)[best]
    drawn = (rng.uniform(size=(rounds, 1)) > np.cumsum(chances, axis=1)).sum(axis=1).clip(max=5)
    w, p = PAIRS[drawn], chances[np.arange(rounds), drawn]
    given = {"propensities": np.full(rounds, 1 / 6) if wrong else p}
    if seen == "parts":
        return rg.History(x, w, costs=np.where(w > 0, costs, np.nan), **given)
    return rg.History(x, w, totals=np.sum(w * costs, axis=1), **given)


@pytest.mark.parametrize("seen", ["totals", "parts"])
@pytest.mark.parametrize("method", ["iw", "dr"])
def test_weighted_scores_are_unbiased_for_every_decision(method, seen):
    """The mean score of fixed decisions, and of a rule, is their mean cost, within four standard errors."""
    data = estimate_costs(make_log(3000, seen=seen), TOP, method)
    truth = true_costs(data.contexts)
    rule = PAIRS[np.argmin(truth @ PAIRS.T, axis=1)]
    for w in (*PAIRS, rule):
        error = np.sum((data.costs - truth) * w, axis=-1)
        assert abs(error.mean()) < 4 * error.std() / len(error) ** 0.5
    if method == "dr":
        weighted = estimate_costs(make_log(3000, seen=seen), TOP, "iw")
        assert np.var(data.costs - truth) < 0.5 * np.var(weighted.costs - truth)


def test_learning_from_totals_comes_near_to_learning_from_costs():
    x = np.random.default_rng(9).normal(size=(600, 2))
    test = Dataset(x, true_costs(x), TOP)
    log = make_log(1500)
    training = Training(epochs=20, lr=0.05)
    full = score(fit("gaussian_linear", Dataset(log.contexts, true_costs(log.contexts), TOP), training=training), test)
    for method in ("dm", "dr"):
        learned = fit("gaussian_linear", estimate_costs(log, TOP, method), training=training)
        assert score(learned, test).relative_regret < full.relative_regret + 0.03


def test_the_cost_of_decisions_is_estimated_with_an_interval():
    data = estimate_costs(make_log(1500, seed=4), TOP)
    estimate = score(lambda x: x @ SLOPES, data)
    decided = PAIRS[np.argmin((data.contexts @ SLOPES) @ PAIRS.T, axis=1)]
    truth = np.sum(true_costs(data.contexts) * decided, axis=1).mean()
    assert abs(estimate.cost.value - truth) < 4 * estimate.cost.standard_error
    assert "costs estimated by doubly robust scores" in repr(estimate)
    with pytest.raises(SettingsError, match="minimum is too low"):
        estimate.relative_regret  # noqa: B018


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "rule"}, "every decision of the log was certain"),
        ({"kind": "rule", "wrong": True}, "the propensities cannot be right|do not fit its decisions"),
        ({"wrong": True}, "the propensities cannot be right|do not fit its decisions"),
        ({"rounds": 10}, "at least 20 rounds"),
    ],
)
def test_logs_that_cannot_say_are_refused(options, message):
    for method in ("iw", "dr"):
        with pytest.raises(SettingsError, match=message):
            estimate_costs(make_log(**options), TOP, method)


def test_without_propensities_only_the_direct_method_or_independent_decisions_are_left():
    log = make_log(kind="uniform")
    without = rg.History(log.contexts, log.decisions, totals=log.totals)
    with pytest.raises(SettingsError, match="the log has no propensities"):
        estimate_costs(without, TOP)
    with pytest.warns(UserWarning, match="no propensities"):
        estimate_costs(without, TOP, "dm")
    data = estimate_costs(without, TOP, propensities="independent")
    error = data.costs - true_costs(data.contexts)
    assert np.all(np.abs(error.mean(axis=0)) < 4 * error.std(axis=0) / len(error) ** 0.5)
    greedy = make_log(kind="greedy")
    with pytest.raises(SettingsError, match="'independent' do not fit its decisions"):
        estimate_costs(
            rg.History(greedy.contexts, greedy.decisions, totals=greedy.totals), TOP, propensities="independent"
        )


def test_decisions_that_the_log_never_measures_are_refused():
    log = make_log(kind="uniform")
    w = log.decisions.copy()
    w[:] = PAIRS[0]
    fixed = rg.History(log.contexts, w, totals=log.totals, propensities=np.ones(len(w)))
    with pytest.raises(SettingsError, match="coordinates 2, 3 never show"):
        estimate_costs(fixed, TOP)
    with pytest.warns(UserWarning, match=r"certain .* never measures"):
        estimate_costs(fixed, TOP, "dm")


def test_own_measurements_and_own_regressions_are_used():
    log = make_log(kind="uniform")
    halves = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])
    rule = rg.feedback.Linear(lambda w, aux: halves * w, lambda w, aux: np.ones(2), label="halves")
    problem = rg.Problem(TOP, context=2, feedback=rule)
    costs = true_costs(log.contexts)
    measured = np.einsum("md,nd->nm", halves, log.decisions * costs)
    own = rg.History(log.contexts, log.decisions, values=measured, propensities=log.propensities)
    calls = []

    def regression(x, rows, values):
        calls.append((len(x), rows.shape[1:]))
        return lambda x: np.full((len(x), 4), values.sum() / rows.sum())

    data = estimate_costs(own, problem, regression=regression, folds=3)
    assert calls == [(1000, (2, 4))] * 3
    error = data.costs - costs
    assert np.all(np.abs(error.mean(axis=0)) < 4 * error.std(axis=0) / len(error) ** 0.5)
    with pytest.raises(SettingsError, match="pass the problem with this feedback"):
        estimate_costs(own, TOP)


def test_a_simulation_is_a_log_and_a_fit_starts_a_policy():
    world = rg.benchmarks.TopK(degree=1).build()
    keep = rg.simulation.Recording(decisions=True, states=True)
    cold = rg.simulate("greedy", world, seeds=2, horizon=60, recording=keep)
    assert cold.states.version.tolist() == [60, 60]
    log = simulated_log(cold, world, seed=1)
    data = Dataset.from_benchmark(world, 60, seed=1)
    np.testing.assert_allclose(log.totals, np.sum(log.decisions * data.costs, axis=1), rtol=1e-6)
    regret = log.totals - data.optimal_costs
    np.testing.assert_allclose(regret, cold.regret[1], atol=1e-3 * np.abs(regret).max())
    known = Dataset.from_benchmark(world, 300, seed=1, after=60)
    learned = fit("gaussian_linear", known, surrogate="mse", training=Training(epochs=40, lr=0.05))
    problem = world.problem("bandit")
    started = rg.simulate(learned.start("greedy", problem), world, seeds=[1], horizon=60)
    assert started.mean() < 0.7 * cold.regret[1].sum()
    live = rg.Problem(world.oracle, context=5)
    learner = rg.Learner(live, policy=learned.start("greedy", live))
    choice = learner.decide(log.contexts[0])
    np.testing.assert_array_equal(choice.w, learned.decide(log.contexts[0])[0])
    assert learner.learn(choice.id, total=float(log.totals[0])).new
    with pytest.raises(SettingsError, match="the fit is for contexts of shape"):
        learned.start("greedy", rg.Problem(TOP, context=2))
