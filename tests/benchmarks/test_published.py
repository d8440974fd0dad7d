from regretless import benchmarks, policies
from regretless.benchmarks.presets import read

PAPER = ("greedy", "epsilon_greedy", "thompson", "dfhpg_1", "dfhpg", "dfhpg_0")


def test_every_bandit_cell_of_the_main_table_is_there():
    for benchmark in ("topk", "shortest_path", "pricing", "energy"):
        for policy in policies.REGISTRY:
            known = benchmarks.published(benchmark, "bandit", policy) is not None
            assert known == (policy in PAPER), policy
    assert benchmarks.published("topk", "full", "dfhpg") is None
    assert len(read("published.csv")) == 44


def test_z_is_the_distance_in_standard_errors_of_the_difference():
    cell = benchmarks.published("topk", "bandit", "dfhpg")
    assert cell.z(168000.0 + 3 * 5 * 14700.0, 4 * 5 * 14700.0 / 5 * 0 + (24 * 14700.0**2) ** 0.5) == 3.0
