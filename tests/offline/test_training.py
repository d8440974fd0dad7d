"""Training offline: equal to an independent loop, on the host as in JAX, resumable, with early stopping."""

import dataclasses
import itertools

import numpy as np
import pytest

import regretless as rg
from regretless.errors import CheckpointError, SettingsError
from regretless.offline import Dataset, Training, compare, fit, score

EDGES = rg.oracles.grid_edges(3, 3)
PATHS = rg.oracles.shortest_path(EDGES)
ROWS, FEATURES = 60, 3


def make_data(seed=0, rows=ROWS, oracle=PATHS, **more):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, FEATURES))
    slopes = np.random.default_rng(7).normal(size=(FEATURES, PATHS.dim))
    return Dataset(x, (x @ slopes + 4.0) ** 2 / 4.0 * rng.uniform(0.5, 1.5, (rows, PATHS.dim)), oracle, **more)


@pytest.fixture(scope="module")
def data():
    return make_data()


@pytest.fixture(scope="module")
def test():
    return make_data(1, 50)


SHORT = Training(epochs=12, batch=16, lr=0.05)


def brute_force_paths(costs):
    """Solve by listing all paths."""
    chosen = np.array(list(itertools.product([0, 1], repeat=len(EDGES))), float)
    incidence = np.zeros((9, len(EDGES)))
    for place, (tail, head) in enumerate(EDGES):
        incidence[tail, place], incidence[head, place] = 1, -1
    flow = np.zeros(9)
    flow[0], flow[8] = 1, -1
    paths = chosen[np.all(chosen @ incidence.T == flow, axis=1)]
    return paths[np.argmin(costs @ paths.T, axis=1)]


def loop(data, initial, gradient, training):
    """Train a linear model by Adam, with NumPy alone."""
    weights, first, second, count = initial.copy(), 0.0, 0.0, 0
    for epoch in range(training.epochs):
        order = training.shuffle(0, epoch)
        for start in range(0, len(data), training.batch):
            rows = order[start : start + training.batch]
            x = np.column_stack([data.contexts[rows], np.ones(len(rows))])
            grad = gradient(x @ weights.T, data.costs[rows]).T @ x / len(rows)
            count += 1
            first, second = 0.9 * first + 0.1 * grad, 0.999 * second + 0.001 * grad**2
            corrected = first / (1 - 0.9**count), second / (1 - 0.999**count)
            weights = weights - training.lr * corrected[0] / (np.sqrt(corrected[1]) + 1e-8)
    return weights


@pytest.mark.parametrize("name", ["spo_plus", "mse"])
def test_training_equals_a_loop_in_numpy(data, name):
    order = lambda seed, epoch: np.random.default_rng(epoch).permutation(ROWS)  # noqa: E731
    training = Training(epochs=5, batch=16, lr=0.05, standardise=False, shuffle=order)
    initial = 0.1 * np.random.default_rng(3).normal(size=(1, PATHS.dim, FEATURES + 1))

    def gradient(predictions, costs):
        if name == "mse":
            return 2.0 * (predictions - costs)
        return 2.0 * (brute_force_paths(costs) - brute_force_paths(2 * predictions - costs))

    expected = loop(data, initial[0], gradient, training)
    trained = fit("gaussian_linear", data, surrogate=name, training=training, initial=initial)
    np.testing.assert_allclose(trained.params[0], expected, rtol=1e-9, atol=1e-9)


def test_a_solver_on_the_host_gives_the_same_fit_with_one_call_per_batch(data):
    calls = []

    def solve(costs):
        calls.append(len(costs))
        return brute_force_paths(costs)

    host = rg.oracles.external(solve, dim=PATHS.dim, batched=True)
    there = make_data(oracle=host)
    calls.clear()
    one = fit("gaussian_linear", there, training=dataclasses.replace(SHORT, epochs=2), seeds=3)
    assert calls == [3 * 16] * 8  # three seeds, one query each; the last batch of an epoch is padded
    other = fit("gaussian_linear", data, training=dataclasses.replace(SHORT, epochs=2), seeds=3)
    np.testing.assert_allclose(one.params, other.params, rtol=1e-9)


def test_seeds_are_trained_together_as_alone_and_more_epochs_compile_nothing(data, test):
    together = fit("gaussian_linear", data, training=SHORT, seeds=[3, 8])
    alone = fit("gaussian_linear", data, training=SHORT, seeds=[8])
    np.testing.assert_allclose(together[1].params, alone.params, rtol=1e-7)
    assert score(together, test).regrets.shape == (2, len(test))
    from regretless.simulation.programs import _cache

    before = set(_cache)
    longer = fit("gaussian_linear", data, training=dataclasses.replace(SHORT, epochs=31), seeds=[8])
    assert set(_cache) == before
    assert longer.epochs.tolist() == [31]


def test_a_fit_continues_from_its_file_with_the_same_result(data, tmp_path):
    path = tmp_path / "fit.npz"
    options = {"surrogate": "pfyl", "training": dataclasses.replace(SHORT, epochs=25), "seeds": 2}
    whole = fit("gaussian_linear", data, **options)
    stopped = fit("gaussian_linear", data, save=path, callback=lambda metrics: metrics.epoch >= 10, **options)
    assert stopped.epochs.tolist() == [10, 10]
    resumed = fit("gaussian_linear", data, save=path, **options)
    np.testing.assert_array_equal(resumed.params, whole.params)
    np.testing.assert_array_equal(resumed.history["error"], whole.history["error"])
    loaded = rg.offline.Fit.load(path, PATHS)
    np.testing.assert_array_equal(loaded.decide(data.contexts), whole.decide(data.contexts))
    assert repr(loaded) == repr(whole)
    with pytest.raises(SettingsError, match="holds another fit: surrogate differ"):
        fit("gaussian_linear", data, save=path, **{**options, "surrogate": "spo_plus"})
    with pytest.raises(CheckpointError, match="another feasible set"):
        rg.offline.Fit.load(path, rg.oracles.top_k(PATHS.dim, 2))


def test_early_stopping_keeps_the_best_epoch(data, test):
    training = Training(epochs=200, batch=16, lr=0.3, patience=5)
    stopped = fit("gaussian_linear", data, validation=test, training=training, seeds=2)
    regrets = stopped.history["regret"]
    assert (stopped.epochs < 200).all()
    for place in range(2):
        known = regrets[place][np.isfinite(regrets[place])]
        assert len(known) == stopped.epochs[place] == np.argmin(known) + 6
        assert score(stopped[place], test).relative_regret == pytest.approx(known.min(), rel=1e-6)
    with pytest.raises(SettingsError, match="patience needs a validation set"):
        fit("gaussian_linear", data, training=training)


def test_instances_are_met_in_training_and_in_scores():
    open_edges = np.random.default_rng(5).uniform(size=(ROWS, PATHS.dim)) > 0.15
    open_edges[[not _connected(row) for row in open_edges]] = True
    masked = make_data(instances=open_edges)
    trained = fit("gaussian_linear", masked, surrogate="contrastive_map", training=SHORT)
    w = trained.decide(masked.contexts, instances=open_edges)
    assert np.all(w[~open_edges] == 0)
    assert score(trained, masked).relative_regret < score(np.zeros_like(masked.costs), masked).relative_regret


def _connected(row):
    reached = {0}
    for place, (tail, head) in enumerate(EDGES):
        if row[place] and tail in reached:
            reached.add(head)
    return 8 in reached


@pytest.mark.parametrize("name", ["pg", "listwise_ltr", "aimle", "nce"])
def test_losses_lower_the_regret(data, test, name):
    before = fit("gaussian_linear", data, surrogate=name, training=Training(epochs=0))
    after = fit("gaussian_linear", data, surrogate=name, training=dataclasses.replace(SHORT, epochs=30))
    assert score(after, test).relative_regret < 0.7 * score(before, test).relative_regret


def test_networks_can_be_trained(data, test):
    trained = fit(rg.models.GaussianNN(width=16), data, training=SHORT)
    assert score(trained, test).relative_regret < 0.25
    rows = Dataset(np.ones((4, PATHS.dim, 2)), np.ones((4, PATHS.dim)), PATHS)
    assert fit("gaussian_nn", rows, training=Training(epochs=1)).predict(rows.contexts[0]).shape == (1, PATHS.dim)


def test_a_comparison_is_paired_by_rows(data, test):
    comparison = compare(data, test, surrogates=["mse", "spo_plus"], training=SHORT, seeds=2)
    fits = [fit("gaussian_linear", data, surrogate=name, training=SHORT, seeds=2) for name in comparison]
    first, second = (score(part, test) for part in fits)
    assert comparison["mse"].mean() == pytest.approx(first.relative_regret)
    difference = (second.regrets - first.regrets).mean(axis=0) / np.abs(test.optimal_costs).mean()
    paired = comparison.compare("spo_plus", "mse")
    assert paired.mean == pytest.approx(difference.mean(), rel=1e-6)
    assert paired.standard_error == pytest.approx(difference.std(ddof=1) / len(test) ** 0.5)
    assert "relative regret" in repr(comparison)
    assert "minus mse" in repr(comparison)
    crossed = compare(data, 3, surrogates=["mse", "spo_plus"], training=SHORT)
    assert crossed["mse"].regret.shape == (ROWS, 1)


def test_errors_name_what_to_do(data):
    with pytest.raises(SettingsError, match="epochs: expected an integer of at least 0, got -1"):
        Training(epochs=-1)
    with pytest.raises(SettingsError, match="expected a model with a mean"):
        fit("flow", data)
    with pytest.raises(SettingsError, match="each of the 60 rows once"):
        fit("gaussian_linear", data, training=Training(epochs=1, shuffle=lambda seed, epoch: [0]))
    with pytest.raises(SettingsError, match=r"weights of shape \(1, 12, 4\)"):
        fit("gaussian_linear", data, initial=np.zeros((1, 12, 3)))
    with pytest.raises(SettingsError, match="expected a validation set like the training set"):
        fit("gaussian_linear", data, validation=Dataset(np.ones((2, 1)), np.ones((2, PATHS.dim)), PATHS))
