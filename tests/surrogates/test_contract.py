"""Every registered surrogate keeps the contract."""

import pytest

from regretless import surrogates, testing


@pytest.mark.parametrize("name", surrogates.REGISTRY)
def test_keeps_the_contract(name):
    testing.check_registered("surrogates", name)
