"""Search spaces of policies that are not ours."""

from typing import ClassVar

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from pydantic import Field

from regretless import policies
from regretless.errors import SettingsError
from regretless.policies.linear_thompson import LinearThompson
from regretless.settings import Settings
from regretless.studies.tuning import search, spaces


class Outside(LinearThompson):
    """A policy with a number that has the name of a group of ours."""

    class Settings(Settings):
        """α."""

        alpha: float = Field(1.0, gt=0, description="width of the confidence bound")
        depth: int = Field(3, ge=1, le=9)


@pytest.fixture
def register(monkeypatch):
    return lambda name, part: monkeypatch.setitem(policies.REGISTRY._own, name, part)


def test_a_policy_without_a_space_is_searched_around_its_defaults(register):
    register("outside", Outside)
    found = spaces.space("outside", "topk", "gaussian_linear", {})
    assert found == {"alpha": FloatDistribution(1 / 30, 30.0, log=True), "depth": IntDistribution(1, 9)}


def test_a_declared_space_is_searched_except_for_what_is_fixed(register):
    class Declares(Outside):
        search_space: ClassVar = {"alpha": ("uniform", 0.5, 2), "depth": ("choice", 1, 2)}

    register("outside", Declares)
    found = spaces.space("outside", "topk", "gaussian_linear", {"alpha": 1.0})
    assert found == {"depth": CategoricalDistribution((1, 2))}
    with pytest.raises(SettingsError, match="no setting that is not fixed"):
        spaces.space("outside", "topk", "gaussian_linear", {"alpha": 1.0, "depth": 2})


def test_a_number_called_alpha_is_a_number(register):
    register("outside", Outside)
    assert spaces.constants("outside", "topk", "gaussian_linear") == {}
    assert spaces.candidate({"alpha": 0.3}) == {"alpha": 0.3}
    chosen = search.chosen(search.task("topk", "outside"), {"alpha": 0.3, "depth": 2})
    assert chosen.names() == {"alpha": 0.3, "depth": 2}


@pytest.mark.parametrize("spec", [("log", 0, 1), ("log", 1), ("normal", 0, 1), 3, ()])
def test_a_space_that_cannot_be_read_is_refused(register, spec):
    class Wrong(Outside):
        search_space: ClassVar = {"alpha": spec}

    register("outside", Wrong)
    with pytest.raises(SettingsError, match="search_space of 'alpha': expected"):
        spaces.space("outside", "topk", "gaussian_linear", {})
