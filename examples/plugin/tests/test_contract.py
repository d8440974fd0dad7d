"""The contract checks of regretless on every part of this package."""

import importlib.metadata

import pytest

import regretless as rg
from regretless import testing

ENTRIES = importlib.metadata.distribution("regretless-garden").entry_points
PARTS = [
    (entry.group.removeprefix("regretless."), entry.name)
    for entry in ENTRIES
]


@pytest.mark.parametrize(("family", "name"), PARTS)
def test_part(family, name):
    testing.check_registered(family, name)


def test_a_mixture_of_policies_that_ask_for_solves():
    problem = rg.Problem(
        rg.oracles.top_k(4, 2), (3,), "semi_bandit", may_miss=True
    )
    testing.check_policy(
        lambda p: rg.policies.parse(
            "mixture", {"first": "dfhpg", "second": "replay"}
        ).build(p),
        problem,
    )


def test_a_larger_oracle():
    testing.check_oracle(rg.oracles.REGISTRY["one_of_each"](4, 3))
