"""Deprecated names keep working and warn where they are used."""

import inspect

import pytest

from regretless.deprecation import deprecated


@deprecated(since="0.4", instead="regretless.run")
def run_all(count: int, *, seed: int = 0) -> int:
    """Run everything."""
    return count + seed


@deprecated(since="0.4", instead="regretless.Result")
class Trace:
    """The outcome of a run."""

    def __init__(self, label: str):
        self.label = label


class OwnTrace(Trace):
    """A subclass of a user."""


def test_a_deprecated_function_works_and_warns_at_the_call():
    with pytest.warns(
        FutureWarning, match=r"run_all is deprecated since version 0\.4: use regretless\.run instead"
    ) as caught:
        assert run_all(2, seed=1) == 3
    assert [warning.filename for warning in caught] == [__file__]


def test_a_deprecated_function_keeps_its_name_documentation_and_signature():
    assert (run_all.__name__, run_all.__doc__) == ("run_all", "Run everything.")
    assert list(inspect.signature(run_all).parameters) == ["count", "seed"]


def test_a_deprecated_class_stays_a_class_and_warns_when_it_is_constructed():
    with pytest.warns(FutureWarning, match="use regretless.Result instead") as caught:
        trace = Trace("greedy")
    assert isinstance(trace, Trace)
    assert trace.label == "greedy"
    assert [warning.filename for warning in caught] == [__file__]


def test_subclasses_of_a_deprecated_class_do_not_warn(recwarn):
    assert OwnTrace("greedy").label == "greedy"
    assert not recwarn.list
