"""Results: statistics, paired comparison, text forms, and files that give back the same bits or report the damage."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import regretless as rg
from regretless.array_files import write_arrays
from regretless.errors import DamagedError, RegretlessError, SettingsError
from regretless.results import Reference, Result, Results, read_summary
from toys import Toy, make

RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(5, 1, (8, 25)), RNG.normal(4, 1, (8, 25))


def result(regret, label="p", seeds=None, **options):
    regret = np.asarray(regret, float)
    options = {"diagnostics": {"alpha": regret[:, 9::10] + 0.5}, **options}
    return Result(label, regret, seeds=tuple(seeds or range(len(regret))), **options)


def test_summaries():
    final = FIRST.sum(axis=1)
    first = result(FIRST)
    assert first.mean() == pytest.approx(final.mean())
    assert first.standard_error() == pytest.approx(stats.sem(final))
    assert first.median() == pytest.approx(np.median(final))
    np.testing.assert_allclose(first.cumulative()[:, -1], final)


@pytest.mark.parametrize("seeds", [range(8), np.arange(8), list(range(8))], ids=type)
def test_seeds_in_any_form_are_a_tuple_of_integers(seeds, tmp_path):
    first = Result("p", FIRST, seeds=seeds)
    assert first.seeds == tuple(range(8))
    assert first.compare(result(SECOND)).pairs == 8
    first.save(tmp_path / "p.npz")
    assert Result.load(tmp_path / "p.npz").digest() == first.digest() == Result("p", FIRST, seeds=range(8)).digest()


def test_a_table_without_finished_replications_compares_with_nothing():
    lost = Result("p", np.full((2, 3), np.nan), np.ones(2, int), seeds=(0, 1))
    assert "minus" not in Results([lost]).table()


def test_diverged_replications_are_counted_and_not_averaged():
    spoiled = FIRST.copy()
    spoiled[2, 7:] = np.nan
    first = result(spoiled, diverged_at=np.array([0, 0, 8, 0, 0, 0, 0, 0]))
    assert first.diverged == 1
    assert first.mean() == pytest.approx(np.delete(FIRST, 2, axis=0).sum(axis=1).mean())
    assert first.compare(result(SECOND)).pairs == 7
    assert first.summary()["diverged_rounds"] == [8]
    assert "1 diverged" in repr(first)


def test_paired_comparison_is_the_paired_t_interval():
    paired = result(FIRST).compare(result(SECOND))
    difference = FIRST.sum(axis=1) - SECOND.sum(axis=1)
    low, high = stats.t.interval(0.95, 7, difference.mean(), stats.sem(difference))
    assert (paired.mean, paired.low, paired.high, paired.pairs) == pytest.approx((difference.mean(), low, high, 8))
    with pytest.raises(ValueError, match="same seeds"):
        result(FIRST).compare(result(SECOND, seeds=range(1, 9)))


def test_results_of_different_worlds_are_not_paired():
    small, large = {"policy": {"kind": "a"}, "benchmark": {"items": 15}}, {"benchmark": {"items": 60}}
    line = (Reference("random", 9.0, 1.0),)
    results = Results(
        [
            result(FIRST, "a", config=small, references=line),
            result(SECOND, "b", config={**small, "policy": {"kind": "b"}}, references=line),
            result(SECOND, "c", config=large, references=line),
        ]
    )
    assert results.compare("a", "b").pairs == 8
    with pytest.raises(SettingsError, match="a and c met different worlds"):
        results.compare("a", "c")
    assert [row["difference"] is None for row in results.rows()] == [True, False, True]
    assert [line.name for line in results.references] == ["random (a, b)", "random (c)"]


def test_results_are_a_mapping_with_a_table():
    results = Results([result(FIRST, "a", references=(Reference("best_fixed", 90.0, 2.0),)), result(SECOND, "b")])
    assert list(results) == ["a", "b"]
    table = repr(results).splitlines()
    assert table[0].split() == ["policy", "final", "regret", "median", "minus", "a", "95", "%", "interval", "diverged"]
    assert table[3].startswith("best fixed  90 ± 2")
    assert " to " in table[2]
    assert results.to_dict()["results"][1]["pairs"] == 8
    assert results.to_frame("b").loc["a", "difference"] == -results.rows()[1]["difference"]
    with pytest.raises(KeyError, match="no result 'c'; there are a, b"):
        results["c"]
    with pytest.raises(SettingsError, match="different labels"):
        Results([result(FIRST), result(SECOND)])
    with pytest.raises(SettingsError, match="expected against to be one of a, b, got 'c'"):
        results.table("c")


def test_configuration_distinguishes_worlds_and_policies():
    """All settings of policy and world are in the configuration, not their names alone."""
    configs = []
    for items, rate in ((15, 0.1), (60, 0.1), (15, 0.2)):
        bench = rg.benchmarks.parse("topk", {"items": items}).build()
        policy = rg.policies.parse("greedy", {"policy_lr": rate}).build(bench.problem())
        configs.append(rg.simulate(policy, bench, seeds=1, horizon=2).config)
    small, large, fast = configs
    assert small["benchmark"]["oracle"]["dim"] == 15
    assert small["benchmark"]["name"] == "topk"
    assert small["policy"] != fast["policy"]
    assert small["benchmark"] == fast["benchmark"] != large["benchmark"]
    assert (small["feedback"], small["horizon"], small["delay"], small["missing"]) == ("bandit", 2, 0, 0.0)


def test_specifications_and_names_are_built_for_the_benchmark_and_described_in_full():
    results = rg.simulate(
        {"named": "greedy", "spec": rg.policies.Greedy(policy_lr=0.5)}, rg.benchmarks.TopK(items=7), seeds=1, horizon=3
    )
    config = results["spec"].config
    assert config["policy"]["kind"] == "greedy"
    assert config["policy"]["policy_lr"] == 0.5 != results["named"].config["policy"]["policy_lr"]
    assert (config["benchmark"]["items"], config["benchmark"]["name"], config["feedback"]) == (7, "topk", "bandit")
    assert rg.simulate("greedy", "topk", seeds=1, horizon=3, feedback="full").label == "greedy"


def test_one_policy_gives_a_result_and_a_mapping_gives_results():
    toy = Toy()
    policy = make("greedy", toy)
    one = rg.simulate(policy, toy, seeds=2, horizon=12)
    both = rg.simulate({"a": policy, "b": make("greedy", toy, policy_lr=0.3)}, toy, seeds=2, horizon=12)
    assert isinstance(one, rg.Result)
    assert isinstance(both, rg.Results)
    np.testing.assert_array_equal(one.regret, both["a"].regret)
    assert one.environment["packages"].keys() >= {"jax", "regretless"}
    assert one.references == both.references
    assert repr(one).startswith(f"Result {one.label}: 2 replications of 12 rounds, final regret")


def test_table_and_file(tmp_path):
    original = result(
        FIRST,
        seeds=range(4, 12),
        diverged_at=np.array([0] * 7 + [3]),
        config={"policy": {"kind": "p"}},
        references=(Reference("random", 3.5, float("nan")),),
        seconds={"compile": 1.0, "run": 0.5},
        environment={"python": "3"},
        extra={"document": [1, 2]},
    )
    table = original.to_frame()
    assert list(table.columns) == ["seed", "round", "regret", "cumulative_regret", "alpha"]
    assert len(table) == 8 * 25
    row = table[(table["seed"] == 5) & (table["round"] == 20)].iloc[0]
    assert row["regret"] == FIRST[1, 19]
    assert row["alpha"] == FIRST[1, 19] + 0.5
    assert table["alpha"].notna().sum() == 8 * 2
    original.save(tmp_path / "r.npz")
    restored = Result.load(tmp_path / "r.npz")
    assert restored.digest() == original.digest()
    for name in ("label", "seeds", "config", "seconds", "environment", "extra", "decisions", "diagnostics_every"):
        assert getattr(restored, name) == getattr(original, name), name
    assert restored.references[0][:2] == ("random", 3.5)
    assert np.isnan(restored.references[0].standard_error)
    assert read_summary(tmp_path / "r.npz")["summary"] == original.summary()
    with np.load(tmp_path / "r.npz") as arrays:
        np.testing.assert_array_equal(arrays["regret"], FIRST)


@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64])
def test_decisions_are_kept(tmp_path, dtype):
    decisions = RNG.integers(0, 2, (8, 25, 3)).astype(dtype)
    original = result(FIRST, decisions=decisions)
    original.save(tmp_path / "r.npz")
    restored = Result.load(tmp_path / "r.npz")
    np.testing.assert_array_equal(restored.decisions, decisions)
    assert restored.decisions.dtype == dtype
    assert restored.digest() != result(FIRST).digest()


@given(st.data())
def test_no_damage_goes_unnoticed(tmp_path_factory, data):
    """A byte changed anywhere is either reported, or in a place that no number depends on."""
    path = tmp_path_factory.mktemp("damage") / "file.npz"
    original = result(FIRST, config={"policy": {"kind": "p"}})
    original.save(path)
    content = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(content) - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(bytes(content))
    try:
        restored = Result.load(path)
    except DamagedError:
        return
    assert restored.digest() == original.digest()
    assert (restored.label, restored.config, restored.seeds) == (original.label, original.config, original.seeds)


def test_files_that_are_no_result_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot read .*nothing: No such file"):
        Result.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("regret,1,2")
    with pytest.raises(DamagedError, match="is damaged, or of another program"):
        Result.load(tmp_path / "text")
    write_arrays(tmp_path / "other", {"regret": FIRST}, {"kind": "simulation"})
    with pytest.raises(DamagedError, match="is not a result, but 'simulation'"):
        Result.load(tmp_path / "other")
    np.savez(tmp_path / "plain.npz", regret=FIRST)
    with pytest.raises(DamagedError, match=r"no item named 'record\.json'"):
        read_summary(tmp_path / "plain.npz")


def test_a_result_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "r.npz"
    result(FIRST).save(path)
    before = path.read_bytes()
    with pytest.raises(TypeError):
        dataclasses.replace(result(SECOND), extra={"object": object()}).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(RegretlessError, match=r"cannot write .*Is a directory"):
        result(FIRST).save(tmp_path)
