"""Charts: readable ticks, styles that differ, labels that do not overlap, and the same lines with both libraries."""

import itertools

import matplotlib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regretless import plots
from regretless.errors import SettingsError
from regretless.plots import HeatMap, Line, Palette, curve_plot, fit_axis, log_ticks, plotly_chart
from regretless.results import Result, Results

matplotlib.use("Agg")


@settings(max_examples=300, deadline=None)
@given(st.floats(-6, 9), st.one_of(st.floats(0.0005, 0.3), st.floats(0.3, 15)))
def test_a_logarithmic_axis_is_readable_at_any_range(start, decades):
    low, high = 10.0**start, 10.0 ** (start + decades)
    ticks = log_ticks(low, high)
    assert 3 <= len(ticks) <= plots.MAX_TICKS
    assert all(low <= tick <= high for tick in ticks)
    assert ticks == sorted(set(ticks))


@pytest.mark.parametrize(
    ("low", "high"), [(1.0, 1.001), (0.9, 1.1), (3.0, 7.0), (0.02, 5e7), (2e5, 2.1e5), (1e-9, 3e-9)]
)
def test_an_axis_fits_its_values_and_leaves_far_references_out(low, high):
    assert 3 <= len(log_ticks(low, high)) <= 12
    far = Line("r", [0.0], np.array([high * 100]))
    axis = fit_axis("", [np.array([low, high])], True, [far])
    assert axis.range[0] < low < high < axis.range[1]
    assert axis.range[1] < high * 100 or high / low > 1e4


@pytest.mark.parametrize("horizon", [1, 2, 7, 200, 2000, 15_000])
def test_selected_rounds_begin_and_end_with_the_run(horizon):
    rounds = plots.select_rounds(horizon)
    assert (rounds[0], rounds[-1]) == (1, horizon)
    assert len(rounds) <= plots.MAX_POINTS
    assert np.all(np.diff(rounds) > 0)


LABELS = [*list(plots.POLICY_STYLES)[:7], "custom", "other"]


def nine_curves():
    palette, x = Palette(), [1.0, 50.0, 100.0]
    lines = [
        Line(label, x, np.array([30.0, 12.0, 10.0 + 0.01 * index]), np.full(3, 0.1), palette[label])
        for index, label in enumerate(LABELS)
    ]
    levels = [("random", 11.0), ("random (b)", 9.5), ("clairvoyant", 0.2), ("worst", 900.0)]
    return curve_plot("regret", lines, levels, 100, 100)


def test_curves_differ_without_colour():
    plot = nine_curves()
    assert len({(line.style.marker, line.style.dash) for line in plot.lines}) == len(LABELS)
    assert list(plot.visible_references()) == ["dot", "dash"], "reference lines differ, too"
    many = Palette()
    styles = [many[f"policy {i}"] for i in range(30)]
    assert len(set(styles)) == 30
    assert not set(styles) & set(plots.POLICY_STYLES.values())


def test_every_line_is_in_the_legend_and_far_references_in_words():
    figure = plots.draw(nine_curves(), "nine")
    axes = figure.axes[0]
    (legend,) = figure.legends
    names = {text.get_text() for text in legend.get_texts()}
    assert names >= {"DFHPG-0", "ε-greedy", "custom", "random", "random (b)"}
    figure.draw_without_rendering()
    assert not legend.get_window_extent().overlaps(axes.xaxis.label.get_window_extent())
    assert "Outside the chart: clairvoyant 0.2, worst 900." in axes.get_xlabel()
    low, high = axes.get_ylim()
    assert low > 5.0
    assert high < 60.0, "far references do not stretch the axis"


def test_a_sheet_has_one_legend_below_its_charts():
    charts = [(title, nine_curves()) for title in "abc"]
    figure = plots.draw_sheet(charts, (6.75, 4.0), columns=2)
    (legend,) = figure.legends
    texts = [text.get_text() for text in legend.get_texts()]
    assert len(texts) == len(set(texts)) == len(LABELS) + 2
    assert [axes.get_title() for axes in figure.axes[:3]] == ["a", "b", "c"]
    assert [axes.get_ylabel() for axes in figure.axes[:3]] == ["regret", "", "regret"], "shared titles stand once"


def test_both_libraries_draw_the_same_numbers():
    plot = nine_curves()
    chart = plotly_chart(plot)
    axes = plots.draw(plot).axes[0]
    drawn = [trace for trace in chart["data"] if "name" in trace]
    for trace, line in zip(drawn, axes.get_lines(), strict=True):
        assert trace["name"] == line.get_label()
        np.testing.assert_allclose(trace["y"], line.get_ydata())
    assert len([trace for trace in chart["data"] if trace.get("fill") == "toself"]) == len(LABELS)
    assert chart["layout"]["yaxis"]["type"] == "log"


@pytest.mark.parametrize("form", ["points", "bars"])
def test_points_and_bars_have_error_bars(form):
    lines = [Line(name, ["a", "b"], np.array([1.0, 2.0]), np.array([0.1, 0.2]), Palette()[name]) for name in "xy"]
    plot = plots.Plot(form, lines, [], plots.Axis("", categories=True), plots.Axis("regret"))
    for trace in plotly_chart(plot)["data"]:
        assert trace["error_y"]["array"] == [0.1, 0.2]
        assert trace["x"] == ["a", "b"]
    assert plots.draw(plot).axes[0].get_xticklabels()[1].get_text() == "b"


def test_a_heat_map_shows_every_number(tmp_path):
    grid = np.array([[1.0e5, 2.0e5], [3.0e5, np.nan]])
    heat_map = HeatMap(["r1", "r2"], ["c1", "c2"], grid)
    figure = plots.draw(heat_map, "map")
    assert [text.get_text() for text in figure.axes[0].texts] == ["1.00e5", "2.00e5", "3.00e5", "–"]
    np.testing.assert_allclose(heat_map.colours(), [[0.0, np.log(2) / np.log(3)], [1.0, np.nan]])
    for suffix in (".png", ".pdf"):
        plots.save_figure(figure, tmp_path / f"map{suffix}")
        first = (tmp_path / f"map{suffix}").read_bytes()
        plots.save_figure(figure, tmp_path / f"map{suffix}")
        assert (tmp_path / f"map{suffix}").read_bytes() == first, "equal figures give equal bytes"


@given(st.lists(st.floats(0, 1), max_size=12), st.floats(0.01, 0.08))
def test_names_at_the_ends_of_curves_do_not_overlap(places, gap):
    spread = np.array(plots._spread(sorted(places), gap))
    assert np.all(np.diff(spread) > gap - 1e-9)
    if all(second - first >= gap for first, second in itertools.pairwise(sorted(places))):
        np.testing.assert_allclose(spread, sorted(places), atol=1e-9)


def test_a_highlighted_curve_is_bold_and_every_curve_is_named():
    results = Results(
        [Result(name, np.full((3, 40), level), seeds=(0, 1, 2)) for name, level in (("a", 1.0), ("b", 2.0), ("c", 3.0))]
    )
    ax = results.plot(highlight="a")
    widths = {line.get_color(): line.get_linewidth() for line in ax.lines}
    assert widths[plots.ACCENT] > widths[plots.GREY]
    assert {text.get_text() for text in ax.texts} == {"a", "b", "c"}
    assert ax.get_title(loc="left").startswith("a has the lowest mean regret")
    with pytest.raises(SettingsError, match="expected a policy among a, b, c to highlight, got 'd'"):
        results.plot(highlight="d")
