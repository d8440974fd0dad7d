"""How contextual is it? By hand on few rounds, on the paper's pricing, and with sets that change."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import regretless as rg
from regretless.errors import SettingsError

COSTS = np.array([[1.0, 2.0], [1.0, 4.0], [5.0, 1.0], [0.0, 3.0]])


def test_by_hand():
    """The averages are 1.75 and 2.5: the first item costs 7 in all, and 3 if the third round takes the second item."""
    measured = rg.benchmarks.contextuality_of(COSTS, rg.oracles.top_k(2, 1))
    assert (measured.best_fixed, measured.context_free, measured.clairvoyant) == (1.75, 1.75, 0.75)
    assert (measured.value, measured.differs, measured.rounds, measured.means) == (1.0, 0.25, 4, False)
    assert "changes the optimum in 25.0% of 4 rounds and is worth 1 a round" in str(measured)
    assert "with their noise" in str(measured)


def test_ties_do_not_count_and_nothing_may_be_worth_nothing():
    measured = rg.benchmarks.contextuality_of(np.ones((3, 2)), rg.oracles.top_k(2, 1), means=True)
    assert (measured.differs, measured.value) == (0, 0)
    assert math.isnan(measured.share)
    assert "gains over random" not in str(measured)


def test_with_instances_there_is_no_best_fixed_decision():
    masks = np.array([[True, True], [True, True], [True, True], [False, True]])
    measured = rg.benchmarks.contextuality_of(COSTS, rg.oracles.top_k(2, 1), instances=masks)
    assert measured.best_fixed is None
    assert measured.context_free == (1 + 1 + 5 + 3) / 4
    assert measured.clairvoyant == (1 + 1 + 1 + 3) / 4
    assert measured.differs == 0.25


def test_the_papers_pricing_has_one_optimum_and_elastic_demand_does_not():
    paper = rg.benchmarks.contextuality("pricing", seeds=2, rounds=100)
    assert (paper.differs, paper.value) == (0, 0)
    elastic = rg.benchmarks.Pricing(elasticity=8.0)
    measured = rg.benchmarks.contextuality(elastic, seeds=2, rounds=100)
    assert measured.differs > 0.9
    assert measured.share > 0.3


def test_the_budget_binds_with_elastic_demand():
    benchmark = rg.benchmarks.Pricing(elasticity=8.0).build()
    with jax.enable_x64(True):
        environment = benchmark.environment(jax.random.key(0))
        keys = jax.random.split(jax.random.key(1), 200)
        means = jax.vmap(lambda key: benchmark.round(key, environment, jnp.int32(1)).mean)(keys)
    promoted = benchmark.oracle.answer(means).w.reshape(-1, 20, 4)[:, :, :2].sum(axis=(1, 2))
    assert np.mean(promoted == 10) > 0.9
    wished = rg.oracles.pricing(20, 4, 2, 20).answer(means).w.reshape(-1, 20, 4)[:, :, :2].sum(axis=(1, 2))
    assert np.mean(wished > 10) > 0.9


def test_recorded_rounds_are_measured_once():
    history = rg.benchmarks.from_arrays(np.ones((4, 1)), COSTS, rg.oracles.top_k(2, 1))
    measured = rg.benchmarks.contextuality(history, seeds=3)
    assert (measured.rounds, measured.differs) == (4, 0.25)


def test_refuses_nothing_to_measure():
    with pytest.raises(SettingsError, match="at least one replication"):
        rg.benchmarks.contextuality("topk", seeds=0)
    with pytest.raises(SettingsError, match="at least one round"):
        rg.benchmarks.contextuality_of(np.zeros((0, 2)), rg.oracles.top_k(2, 1))


def test_runs_show_it_below_their_table():
    results = rg.run(rg.Experiment("topk", ["greedy"], seeds=2, horizon=20))
    assert "the context changes the optimum in" in results.contextuality
    assert results.table().endswith(results.contextuality)
