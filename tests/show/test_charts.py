"""Charts: ticks that can be read at any range, and no chart that is one grey of bands."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless.show.charts import log_axis, spec
from regretless.show.plots import MOST_TICKS, Line, curves
from regretless.show.style import Palette


@settings(max_examples=300, deadline=None)
@given(st.floats(-6, 9), st.one_of(st.floats(0.0005, 0.3), st.floats(0.3, 15)))
def test_a_logarithmic_axis_can_be_read_at_any_range(start, decades):
    low, high = 10.0**start, 10.0 ** (start + decades)
    axis = log_axis(low, high)
    ticks, told = axis["tickvals"], axis["ticktext"]
    assert 3 <= len(ticks) <= MOST_TICKS
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))
    np.testing.assert_allclose([float(word) for word in told], ticks, rtol=1e-9)


def plot(levels, error):
    palette, rounds = Palette(), np.arange(1, 101)
    lines = [
        Line(f"p{i}", rounds.tolist(), np.full(100, level), np.full(100, error), palette[f"p{i}"])
        for i, level in enumerate(levels)
    ]
    return curves("regret", lines, [], 100, 100)


def test_bands_that_lie_upon_each_other_become_whiskers():
    apart, crowded = spec(plot([1.0, 2.0, 4.0, 8.0], 0.1)), spec(plot([1.0, 1.1, 1.2, 8.0], 0.3))
    assert [trace.get("fill") for trace in apart["data"]] == ["toself", None] * 4
    assert not [trace for trace in crowded["data"] if "fill" in trace]
    whiskers = [trace for trace in crowded["data"] if "error_y" in trace]
    assert len(whiskers) == 4
    places = [place for trace in whiskers for place in trace["x"]]
    assert len(set(places)) == len(places) == 20, "no two stand at the same round"
