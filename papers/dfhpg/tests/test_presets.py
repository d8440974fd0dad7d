"""Presets are settings that their policies accept; the published tables are complete."""

import pytest

from regretless import feedback, policies
from regretless_dfhpg.presets import preset, published, read_table

PAPER = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0")


@pytest.mark.parametrize("model", ["gaussian_linear", "gaussian_nn"])
@pytest.mark.parametrize("mode", feedback.REGISTRY)
@pytest.mark.parametrize("name", ["topk", "shortest_path", "pricing", "energy"])
def test_every_benchmark_has_presets_that_policies_accept(name, model, mode):
    for degree in (2, 4, 6, 8, 10):
        tuned = preset(name, degree, model, mode)
        used = {"model"}
        for policy in policies.REGISTRY:
            known = policies.REGISTRY[policy].model_fields
            accepted = {key: value for key, value in tuned.values.items() if key.partition(".")[0] in known}
            assert set(accepted) <= set(policies.parse(policy, accepted).names())
            used |= set(accepted)
        assert set(tuned.values) <= used
        assert tuned.degree in (degree, None)


def test_another_degree_has_the_nearest_preset():
    assert preset("topk", 9, "gaussian_linear", "bandit").degree == 8
    assert preset("weather", 8, "gaussian_linear", "bandit") is None


def test_every_bandit_cell_of_the_main_table_is_there():
    for benchmark in ("topk", "shortest_path", "pricing", "energy"):
        for policy in policies.REGISTRY:
            known = published(benchmark, "bandit", policy) is not None
            assert known == (policy in PAPER), policy
    assert published("topk", "full", "dfhpg") is None
    assert len(read_table("published.csv")) == 44


def test_z_is_the_distance_in_standard_errors_of_the_difference():
    cell = published("topk", "bandit", "dfhpg")
    assert cell.z(168000.0 + 3 * 5 * 14700.0, 4 * 5 * 14700.0 / 5 * 0 + (24 * 14700.0**2) ** 0.5) == 3.0
