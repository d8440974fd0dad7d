"""Every registered benchmark keeps the contract."""

import pytest

from regretless import benchmarks, testing


@pytest.mark.parametrize("name", benchmarks.REGISTRY)
def test_keeps_the_contract(name):
    testing.check_registered("benchmarks", name)
