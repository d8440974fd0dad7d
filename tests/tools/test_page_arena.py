"""The arena on the pages: the digits, stars and bold numbers of a store that nobody computed, and the losses in words."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import pages  # noqa: E402

import invented  # noqa: E402
from regretless.report.gather import gather  # noqa: E402
from regretless.studies.arena.plan import ArenaPlan  # noqa: E402
from regretless.studies.arena.study import study  # noqa: E402
from regretless.studies.arena.worlds import WORLDS  # noqa: E402
from regretless.studies.cell_files import CellResult  # noqa: E402
from regretless.studies.store import Store  # noqa: E402
from regretless.studies.study import Scale  # noqa: E402

RANDOM, FIXED = 1e5, {"pricing": 0.0, "relu15": 3e4, "step45": 3e4}
SHARES = {  # of random's regret, by world
    "step45": {"adaptive": 0.35, "linear_old": 0.5, "linear_a": 0.36},
    "sets60": {"adaptive": 1.2, "linear_old": 1.0, "linear_a": 0.9},
    "relu15": {"adaptive": 0.2, "linear_old": 0.4, "linear_a": 0.1},
    "pricing": {"adaptive": 0.05, "linear_old": 0.1, "linear_a": 0.3},
}


def play(store, policies, scale):
    """What one command leaves in a store."""
    plan = ArenaPlan([study([WORLDS[name] for name in SHARES], policies, scale)], scale, "regretless arena")
    store.create()
    for key, cell in plan.planned():
        world, policy = cell.title.removesuffix(" (median)"), cell.arms[0].label
        finals = np.full(len(cell.seeds), RANDOM * SHARES[world][policy])
        if world == "pricing":
            finals[0] = 1e9
        lines = {"random": RANDOM} | ({"best_fixed": FIXED[world]} if world in FIXED else {})
        references = [{"name": name, "mean": mean, "standard_error": 1.0, "world": ""} for name, mean in lines.items()]
        traces = {policy: invented.own_trace(5, finals)}
        store.put(key, CellResult(traces, invented.own_record(cell.name, traces, references)))
    plan.write(store)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("arena")
    store, scale = Store(folder / "store"), Scale(seeds=16, first_seed=1000)
    play(store, ["linear_a", "linear_old"], scale)
    play(store, ["adaptive"], scale)
    page, images = gather(store), pages.IMAGES
    pages.IMAGES = folder
    try:
        assert pages.pictures(page, store) == [folder / "arena.png"]
    finally:
        pages.IMAGES = images
    assert (folder / "arena.png").stat().st_size > 10_000
    return pages.blocks(page)[0]


def test_every_world_stands_there_with_every_policy(made):
    text = made["arena"]
    assert text.startswith(
        f"16 replications, seeds 1000 to 1015, 4 worlds; {len(WORLDS) - 4} others were not played. A policy's number"
    )
    wanted = [
        "| group | world | random | best fixed | `adaptive` | `linear_old` | `linear_a` |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| benchmarks | `pricing` (median) | 1.00e5 | 0 | **0.05** | 0.1 | 0.3 |",
        r"| probe | `relu15` | 1.00e5 | 0.3 | 0.2\* | 0.4 | **0.1**\* |",
        "| changing | `sets60` | 1.00e5 | – | 1.2 | 1 | **0.9** |",
        "| held out | `step45` † | 1.00e5 | 0.3 | **0.35** | 0.5 | 0.36 |",
    ]
    assert "\n".join(wanted) in text
    assert "relative to random here: `pricing` 0.298 (2.98e4)." in text
    assert text.endswith("from results of the code `0`.*\n")


def test_all_worlds_together_beside_their_parts(made):
    mean, ratio = (0.05 * 0.2 * 1.2 * 0.35) ** 0.25, (0.5 * 0.5 * 1.2 * 0.7) ** 0.25
    rows = [line for line in made["arena"].splitlines() if re.match(r"\| [^|]*\| `adaptive` \|", line)]
    micro = "1.25e4"  # a second for 16 times 5 rounds
    assert rows == [
        f"| all | `adaptive` | 4 | **{mean:.3g}** ({mean:.3g} to {mean:.3g}) | {ratio:.3g} ({ratio:.3g} to {ratio:.3g}) "
        f"| `sets60`: 1.2 | 1 of 2 | {micro} |",
        f"| first thirteen | `adaptive` | 2 | **0.1** (0.1 to 0.1) | 0.5 (0.5 to 0.5) | `relu15`: 0.2 | 1 of 1 | {micro} |",
        f"| held out | `adaptive` | 1 | **0.35** (0.35 to 0.35) | 0.7 (0.7 to 0.7) | `step45`: 0.35 | 0 of 1 | {micro} |",
    ]


def test_losses_stand_below(made):
    assert (
        "- Not the best of these policies: 2 of 4 worlds: `relu15` (0.2, `linear_a` 0.1), `sets60` (1.2, `linear_a` 0.9).\n"
        "- Above 1.3 times the best of `linear_a`: 2 of 4 worlds: `relu15` (0.2, `linear_a` 0.1), "
        "`sets60` (1.2, `linear_a` 0.9).\n"
        "- Not below the best fixed decision, where that matters: 1 of 2 worlds: `step45` (0.35, best fixed 0.3).\n"
        "- Above random: 1 of 4 worlds: `sets60` (1.2).\n"
    ) in made["arena"]
    assert made["linear_arena"].startswith("`linear_thompson` was not played.\n")


def test_the_readme_tells_it_in_a_sentence_with_the_same_digits(made):
    assert "on 4 worlds with 16 replications each" in made["readme_arena"]
    assert "where that is worth beating: `adaptive` 0.255 (1 of 2)." in made["readme_arena"]
    there = [(ROOT / name).read_text("utf-8") for name in ("README.md", "docs/arena.md")]
    found = {name: whole for text in there for whole, name in ((m[0], m[2]) for m in pages.BLOCK.finditer(text))}
    for short, every in ((made["readme_arena"], made["arena"]), (found["readme_arena"], found["arena"])):
        for number in re.findall(r"` (\d\S*?)[ ,]", short):
            assert number in every, number


def test_few_replications_are_not_shown(tmp_path):
    play(Store(tmp_path), ["adaptive"], Scale(seeds=15))
    blocks, left = pages.blocks(gather(Store(tmp_path)))
    assert blocks == {}
    assert "arena stays as it is: the store has no full run of arena" in left
