"""Data sets: where they come from, their parts, and what they refuse."""

import jax
import numpy as np
import pandas
import pytest

import regretless as rg
from regretless.errors import SettingsError
from regretless.offline import Dataset
from regretless.simulation import stream

TOP = rg.oracles.top_k(4, 2)


def table(rows=6):
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 2)), rng.normal(size=(rows, 4))


def test_optima_are_the_best_decisions_and_rewards_are_negative_costs():
    x, c = table()
    data, rewards = Dataset(x, c, TOP), Dataset(x, -c, TOP, sense="max")
    np.testing.assert_array_equal(data.optima, np.argsort(np.argsort(c, axis=1), axis=1) < 2)
    np.testing.assert_allclose(data.optimal_costs, np.sort(c, axis=1)[:, :2].sum(axis=1))
    np.testing.assert_array_equal(rewards.costs, data.costs)
    assert "rewards" in repr(rewards)


@pytest.mark.parametrize(
    ("contexts", "costs", "message"),
    [
        (np.ones((2, 1)), [[1, 2, 3, 4], [1, 2, 3, np.nan]], "costs: expected finite numbers, but row 1 holds NaN"),
        ([[np.inf], [1]], np.ones((2, 4)), "contexts: expected finite numbers, but row 0"),
        (np.ones((2, 1)), np.ones((2, 3)), r"costs: expected shape \(n, 4\), got \(2, 3\)"),
        (np.ones((3, 1)), np.ones((2, 4)), "a cost for each context, got 3 and 2"),
        (np.ones((0, 1)), np.ones((0, 4)), "at least one row"),
        (np.ones(2), np.ones((2, 4)), r"contexts: expected shape \(n, p\)"),
    ],
)
def test_unusable_arrays_are_refused(contexts, costs, message):
    with pytest.raises(SettingsError, match=message):
        Dataset(contexts, costs, TOP)


def test_parts_have_no_common_rows():
    x, c = table(20)
    data = Dataset(x, c, TOP)
    first, second = data.split(0.7, 0.3)
    assert (len(first), len(second)) == (14, 6)
    joined = np.concatenate([first.costs, second.costs])
    assert {row.tobytes() for row in joined} == {row.tobytes() for row in c}
    held_out = np.concatenate([test.costs for _, test in data.folds(4)])
    assert sorted(map(bytes, held_out)) == sorted(map(bytes, c))
    np.testing.assert_array_equal(first.optima, Dataset(first.contexts, first.costs, TOP).optima)
    with pytest.raises(SettingsError, match="at least one row in each part"):
        data.split(0.01, 0.9)


def test_files_tables_and_histories_give_the_same_data(tmp_path):
    x, c = table()
    data = Dataset(x, c, TOP)
    data.save(tmp_path / "data.npz")
    np.savez(tmp_path / "arrays.npz", contexts=x, costs=c)
    frame = pandas.DataFrame({f"context_{j}": x[:, j] for j in range(2)} | {f"cost_{j}": c[:, j] for j in range(4)})
    frame.to_csv(tmp_path / "data.csv")
    for name in ("data.npz", "arrays.npz", "data.csv"):
        assert Dataset.load(tmp_path / name, TOP).digest() == data.digest(), name
    partly = np.where(np.arange(6)[:, None] == 2, np.nan, c)
    history = rg.History(x, data.optima, costs=partly)
    assert Dataset.from_history(history, TOP).digest() == data[np.arange(6) != 2].digest()
    with pytest.raises(SettingsError, match="estimate_costs"):
        Dataset.from_history(rg.History(x, data.optima, totals=np.ones(6)), TOP)
    with pytest.raises(SettingsError, match="expected columns cost_0"):
        Dataset.from_pandas(frame.iloc[:, :2], TOP)
    np.savez(tmp_path / "other.npz", contexts=x)
    with pytest.raises(SettingsError, match="expected an array 'costs'"):
        Dataset.load(tmp_path / "other.npz", TOP)


def test_instances_and_named_columns():
    x, c = table()
    open_items = np.ones((6, 4), bool)
    open_items[:, 0] = False
    masked = Dataset(x, c, TOP, instances=list(open_items))
    assert not masked.optima[:, 0].any()
    assert masked[:2].instances.shape == (2, 4)
    columns = rg.Columns(numbers=["load"], categories={"day": ["Mon", "Tue"]})
    named = Dataset([{"load": 1.0, "day": "Mon"}, {"load": 2.0, "day": "Tue"}], c[:2], TOP, columns=columns)
    assert named.contexts.tolist() == [[1.0, 1.0, 0.0], [2.0, 0.0, 1.0]]
    trained = rg.offline.fit("gaussian_linear", named, training=rg.offline.Training(epochs=1))
    assert trained.predict({"load": 1.5, "day": "Tue"}).shape == (1, 4)


def test_a_benchmark_gives_the_rounds_that_are_simulated():
    data = Dataset.from_benchmark("topk", 8, seed=3)
    world = rg.benchmarks.TopK().build()
    with jax.enable_x64(True):
        rounds = stream.draw_rounds(stream.SimulationSpec(world), jax.random.key(3), 0, 8)
    np.testing.assert_allclose(data.costs, rounds.cost, rtol=1e-6)
