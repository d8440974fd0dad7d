"""What ``from_pyepo`` says without PyEPO; ``tests/extras`` has the rest."""

import sys

import pytest

from regretless import oracles


def test_names_the_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyepo", None)
    with pytest.raises(ImportError, match=r"pip install 'regretless\[pyepo\]'"):
        oracles.from_pyepo(object())
