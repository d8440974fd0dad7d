"""Settings that a benchmark does not have are refused."""

import pytest

from regretless import benchmarks
from regretless.errors import SettingsError


def test_refuses_what_it_does_not_know():
    with pytest.raises(SettingsError, match="unknown benchmark 'topks'; did you mean 'topk'"):
        benchmarks.build("topks")
    with pytest.raises(SettingsError, match="unknown setting 'degre' of TopK; did you mean 'degree'"):
        benchmarks.build("topk", {"degre": 2})
    with pytest.raises(SettingsError, match="'degree': Input should be greater than or equal to 1, got 0"):
        benchmarks.build("topk", {"degree": 0})
    with pytest.raises(SettingsError, match="expected k ≤ items, got k = 4 of 3 items"):
        benchmarks.build("topk", {"items": 3, "k": 4})
    with pytest.raises(SettingsError, match="expected promotions ≤ levels, got 5 promotions among 4 prices"):
        benchmarks.build("pricing", {"promotions": 5})
