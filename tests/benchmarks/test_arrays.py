import jax
import numpy as np
import pytest

from regretless import benchmarks, oracles, policies, testing
from regretless.errors import SettingsError
from regretless.simulation.simulator import Recording, simulate

RNG = np.random.default_rng(0)
CONTEXTS, COSTS = RNG.normal(size=(30, 3)) * [1.0, 1e6, 0.0] + 5.0, RNG.normal(size=(30, 4)) + 2.0
ORACLE = oracles.top_k(4, 2)


def everyone(history, mode="bandit"):
    return {
        name: policies.parse(name).build(history.problem(mode)) for name in ("greedy", "linear_thompson", "dfhpg_0")
    }


def test_replays_the_history_in_order():
    history = benchmarks.from_arrays(CONTEXTS, COSTS, ORACLE, means=COSTS)
    run = simulate(everyone(history), history, seeds=range(2), recording=Recording(decisions=True))
    best = np.sort(COSTS, axis=1)[:, :2].sum(axis=1)
    for trace in run.values():
        spent = np.sum(trace.decisions * COSTS, axis=2)
        np.testing.assert_allclose(trace.regret, spent - best, atol=1e-9)
    lines = {line.name: line.mean for line in run.references}
    assert lines["best_fixed"] == pytest.approx(np.sort(COSTS.sum(axis=0))[:2].sum() - best.sum())
    assert lines["clairvoyant"] == pytest.approx(0.0, abs=1e-9)


def test_keeps_the_contract():
    testing.check_benchmark(benchmarks.from_arrays(CONTEXTS, COSTS, ORACLE, means=COSTS))


def test_feature_rows_and_instances():
    rows = RNG.normal(size=(30, 4, 2))
    open_items = np.arange(4) != np.arange(30)[:, None] % 4
    history = benchmarks.from_arrays(rows, COSTS, ORACLE, instances=open_items)
    assert history.context_shape == (4, 2)
    run = simulate(everyone(history), history, seeds=range(2), recording=Recording(decisions=True))
    for trace in run.values():
        assert np.all(trace.decisions[:, ~open_items] == 0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"contexts": CONTEXTS[:-1]}, r"expected costs of shape \(29, 4\)"),
        (
            {"contexts": np.ones(30)},
            r"expected contexts of shape \(rounds, p\), \(rounds, 4, p\) or \(rounds, height, width, 3\), got \(30,\)",
        ),
        ({"contexts": np.ones((30, 3, 2))}, r"got \(30, 3, 2\)"),
        ({"costs": COSTS[:, :3]}, "a column per coordinate of the oracle"),
        (
            {"costs": np.where(np.arange(4) == 1, np.nan, COSTS)},
            "costs: expected finite numbers, got nan",
        ),
        ({"costs": [[1.0], [1.0, 2.0]]}, "costs: expected numbers, got a list that is no array"),
        ({"means": COSTS[:3]}, r"means: expected shape \(30, 4\), got \(3, 4\)"),
        ({"instances": np.ones((3, 4), bool)}, r"instances: expected shape \(30, 4\), got \(3, 4\)"),
        ({"instances": np.ones((30, 3), bool)}, r"instances: expected shape \(30, 4\), got \(30, 3\)"),
        ({"instances": np.full((30, 4), 0.5)}, "instances: expected True and False, or exactly 1 and 0, got 0.5"),
        ({"oracle": "top_k"}, "expected an oracle"),
    ],
)
def test_refuses_what_does_not_fit(change, message):
    with pytest.raises(SettingsError, match=message):
        benchmarks.from_arrays(**{"contexts": CONTEXTS, "costs": COSTS, "oracle": ORACLE, **change})


def test_a_history_ends():
    history = benchmarks.from_arrays(CONTEXTS, COSTS, ORACLE)
    with pytest.raises(ValueError, match="has 30 rounds, got a horizon of 31"):
        simulate(everyone(history), history, seeds=range(2), horizon=31)
    assert jax.tree.leaves(history)
