"""Traces: summaries, paired comparison, and files that give back the same bits."""

import dataclasses

import numpy as np
import pytest
from scipy import stats

from regretless.errors import DamagedError, RegretlessError, SettingsError
from regretless.results import Result, read_result, write_result
from regretless.trace import Trace


def trace(regret, diverged=None, seeds=None):
    regret = np.asarray(regret, float)
    count = len(regret)
    tenth = regret[:, 9::10]
    return Trace(
        regret,
        {"alpha": tenth + 0.5},
        np.zeros(count, int) if diverged is None else np.asarray(diverged),
        tuple(seeds or range(count)),
        {"policy": "p"},
    )


RNG = np.random.default_rng(0)
FIRST, SECOND = RNG.normal(5, 1, (8, 25)), RNG.normal(4, 1, (8, 25))


def test_summaries():
    final = FIRST.sum(axis=1)
    ours = trace(FIRST)
    assert ours.mean() == pytest.approx(final.mean())
    assert ours.standard_error() == pytest.approx(stats.sem(final))
    assert ours.median() == pytest.approx(np.median(final))
    np.testing.assert_allclose(ours.cumulative()[:, -1], final)


def test_what_diverged_is_counted_and_not_averaged():
    spoilt = FIRST.copy()
    spoilt[2, 7:] = np.nan
    ours = trace(spoilt, [0, 0, 8, 0, 0, 0, 0, 0])
    assert ours.diverged == 1
    assert ours.mean() == pytest.approx(np.delete(FIRST, 2, axis=0).sum(axis=1).mean())
    assert ours.compare(trace(SECOND)).pairs == 7


def test_paired_comparison_is_the_paired_t_interval():
    got = trace(FIRST).compare(trace(SECOND))
    difference = FIRST.sum(axis=1) - SECOND.sum(axis=1)
    low, high = stats.t.interval(0.95, 7, difference.mean(), stats.sem(difference))
    assert (got.mean, got.low, got.high, got.pairs) == pytest.approx((difference.mean(), low, high, 8))
    with pytest.raises(ValueError, match="same seeds"):
        trace(FIRST).compare(trace(SECOND, seeds=range(1, 9)))


def test_table_and_file(tmp_path):
    ours = trace(FIRST, [0] * 7 + [3], seeds=range(4, 12))
    table = ours.to_pandas()
    assert list(table.columns) == ["seed", "round", "regret", "cumulative_regret", "alpha"]
    assert len(table) == 8 * 25
    row = table[(table["seed"] == 5) & (table["round"] == 20)].iloc[0]
    assert row["regret"] == FIRST[1, 19]
    assert row["alpha"] == FIRST[1, 19] + 0.5
    assert table["alpha"].notna().sum() == 8 * 2
    ours.save(tmp_path / "t.parquet")
    back = Trace.load(tmp_path / "t.parquet")
    np.testing.assert_array_equal(back.regret, ours.regret)
    np.testing.assert_array_equal(back.diverged_at, ours.diverged_at)
    np.testing.assert_array_equal(back.diagnostics["alpha"], ours.diagnostics["alpha"])
    assert (back.seeds, back.config, back.decisions) == (ours.seeds, ours.config, None)


@pytest.mark.parametrize("dtype", [bool, np.float32, np.float64])
def test_decisions_are_kept(tmp_path, dtype):
    decisions = RNG.integers(0, 2, (8, 25, 3)).astype(dtype)
    ours = dataclasses.replace(trace(FIRST), decisions=decisions)
    ours.save(tmp_path / "t.parquet")
    back = Trace.load(tmp_path / "t.parquet")
    np.testing.assert_array_equal(back.decisions, decisions)
    assert back.decisions.dtype == dtype


def test_a_saved_trace_is_a_result_with_one_arm(tmp_path):
    trace(FIRST).save(tmp_path / "t.parquet")
    result = read_result(tmp_path / "t.parquet")
    assert list(result.traces) == ["p"]
    assert result.record["arms"]["p"]["mean"] == pytest.approx(FIRST.sum(axis=1).mean())


def test_files_that_hold_no_single_trace_are_refused(tmp_path):
    with pytest.raises(SettingsError, match=r"cannot read .*nothing: No such file"):
        Trace.load(tmp_path / "nothing")
    (tmp_path / "text").write_text("regret,1,2")
    with pytest.raises(DamagedError, match="is damaged, or no result"):
        Trace.load(tmp_path / "text")
    write_result(Result({"a": trace(FIRST), "b": trace(SECOND)}, {}), tmp_path / "two")
    with pytest.raises(SettingsError, match="expected one trace, got 2: a, b"):
        Trace.load(tmp_path / "two")


def test_a_trace_that_cannot_be_written_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "t.parquet"
    trace(FIRST).save(path)
    before = path.read_bytes()
    odd = dataclasses.replace(trace(SECOND), diagnostics={"regret": SECOND})
    with pytest.raises(SettingsError, match="a diagnostic cannot be called"):
        odd.save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1
    with pytest.raises(RegretlessError, match=r"cannot write .*Is a directory"):
        trace(FIRST).save(tmp_path)
