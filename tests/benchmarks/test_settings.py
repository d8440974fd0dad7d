"""Settings that a benchmark does not have are refused."""

import pytest

from regretless import benchmarks
from regretless.errors import SettingsError


def test_refuses_what_it_does_not_know():
    with pytest.raises(SettingsError, match="unknown benchmark 'topks'; did you mean 'topk'"):
        benchmarks.parse("topks").build()
    with pytest.raises(SettingsError, match="unknown setting 'degre' of benchmark 'topk'; did you mean 'degree'"):
        benchmarks.parse("topk", {"degre": 2}).build()
    with pytest.raises(SettingsError, match="'degree': Input should be greater than or equal to 1, got 0"):
        benchmarks.parse("topk", {"degree": 0}).build()
    with pytest.raises(SettingsError, match="expected 1 ≤ k ≤ number of items, got k = 4 with 3 items"):
        benchmarks.parse("topk", {"items": 3, "k": 4}).build()
    with pytest.raises(SettingsError, match="expected promotions ≤ levels, got 5 promotions among 4 prices"):
        benchmarks.parse("pricing", {"promotions": 5}).build()
    with pytest.raises(SettingsError, match=r"expected lowest_price ≤ highest_price, got 0\.95 and 0\.9"):
        benchmarks.parse("pricing", {"lowest_price": 0.95}).build()
