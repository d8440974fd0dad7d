"""Presets are settings that their policies accept; the published tables are complete."""

import pytest

from regretless import feedback, models, policies
from regretless_dfhpg.presets import preset, published, read_table, tuning

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


@pytest.mark.parametrize("row", read_table("presets.csv"), ids=lambda row: "-".join(list(row.values())[:3]))
def test_the_search_spaces_contain_every_preset(row):
    """Each selected value can be drawn by ``regretless tune``, or is a value that the search fixes."""
    benchmark, model = row["benchmark"], row["model"]
    protocol = tuning(benchmark, "dfhpg", model)
    fixed, space = protocol.fixed, protocol.space
    others = policies.parse("dfhpg", {"model": model, **fixed}).names()
    generative = models.is_generative(model)  # published with bandit feedback only
    for mode in ("bandit",) if generative else ("bandit", "semi_bandit", "full"):
        values = dict(preset(benchmark, int(row["degree"] or 0), model, mode).values)
        pairs = [tuple(map(float, pair.split("/"))) for pair in space["alpha.max+alpha.min"][1:]]
        assert (float(values.pop("alpha.max")), float(values.pop("alpha.min"))) in pairs
        values.pop("thompson_scale", None)  # of another policy
        for name, value in values.items():
            kind, *numbers = space.get(name, ("fixed", others.get(name)))
            if kind in ("log", "uniform"):
                assert numbers[0] <= float(value) <= numbers[1], name
            else:
                short = [f"{number:g}" for number in numbers if isinstance(number, float)]
                assert value in [*short, *(str(number).lower() for number in numbers)], name
