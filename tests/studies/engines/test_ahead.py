"""Compiling ahead: the same bits as without, cells that cannot be prepared fail by themselves, order does not matter."""

from collections import OrderedDict

import pytest

from regretless.errors import SettingsError
from regretless.simulation import programs
from regretless.studies.compute import compute
from regretless.studies.engines import ahead
from regretless.studies.experiment import Experiment

quiet = lambda what, done, total: None  # noqa: E731


def test_cells_compiled_ahead_have_the_same_bits(monkeypatch):
    cells = [Experiment(benchmark="topk", policies=("greedy",), seeds=2, horizon=n) for n in (20, 30)]
    broken = Experiment(benchmark="energy", policies=("greedy",), seeds=2, horizon=10_000)
    plain = [compute(cell).digest() for cell in cells]
    monkeypatch.setattr(programs, "_cache", OrderedDict())
    engine = ahead.Ahead([*cells, broken], many=2)
    try:
        found = [engine(cell, quiet) for cell in cells]
        with pytest.raises(SettingsError, match="has 395 rounds"):
            engine(broken, quiet)
        assert engine.begun == {}
        monkeypatch.setattr(ahead, "prepare", lambda cell: pytest.fail("it was begun before"))
        assert engine(cells[0], quiet).digest() == plain[0]
    finally:
        engine.close()
    assert [result.digest() for result in found] == plain
    assert [result.record["seconds"]["compile"] for result in found] == [0.0, 0.0], "a run finds everything compiled"
