"""Every registered model keeps the contract."""

import pytest

from regretless import models, testing


@pytest.mark.parametrize("name", models.REGISTRY)
def test_keeps_the_contract(name):
    testing.check_registered("models", name)
