"""Presets are settings that their policies take; settings of a benchmark that it has not are refused."""

import pytest

from regretless import benchmarks, feedback, policies
from regretless.errors import SettingsError


@pytest.mark.parametrize("model", ["gaussian_linear", "gaussian_nn"])
@pytest.mark.parametrize("mode", feedback.REGISTRY)
@pytest.mark.parametrize("name", ["topk", "shortest_path", "pricing", "energy"])
def test_every_benchmark_of_the_paper_has_presets_that_policies_take(name, model, mode):
    for degree in (2, 4, 6, 8, 10):
        tuned = benchmarks.preset(name, model, degree, mode)
        taken = {"model"}
        for policy in policies.REGISTRY:
            known = policies.REGISTRY[policy].Settings.model_fields
            own = {key: value for key, value in tuned.values.items() if key.partition(".")[0] in known}
            assert set(own) <= set(policies.settings_for(policy, own).names())
            taken |= set(own)
        assert set(tuned.values) <= taken
        assert tuned.degree in (degree, None)


def test_another_degree_has_the_nearest_ones():
    assert benchmarks.preset("topk", "gaussian_linear", 9, "bandit").degree == 8
    assert benchmarks.preset("weather", "gaussian_linear", 8, "bandit") is None


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
