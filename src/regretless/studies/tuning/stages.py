"""Tuning in two stages: a screen of all candidates on a few seeds, then the best of them on all seeds.

The paper (Appendix L.1) tunes generative models by "a two-stage generative screen" of 5,000 rounds and says no more about its
stages. Here the first stage differs from the second in the number of seeds alone, so that finalists are ranked by what the
paper ranks by: mean final regret on the validation seeds.
"""

import time
from pathlib import Path
from typing import Any, NamedTuple

from regretless import models
from regretless.errors import SettingsError
from regretless.simulation.programs import Progress
from regretless.simulation.simulator import no_progress, simulate
from regretless.studies.tuning.search import BLOCK, Search, Tuning, built, outcome, setup, tune

SCREEN_SEEDS = 3
FINALISTS = 10


class Finalist(NamedTuple):
    """A candidate that the screen let through; no value if a replication diverged."""

    number: int
    value: float | None
    params: dict[str, Any]


def usual_finalists(model: str) -> int:
    """How many candidates are played on all seeds after a screen: 10 for generative models, 0 (no screen) for others."""
    return FINALISTS if models.is_generative(model) else 0


def tune_in_stages(
    task: Search, trials: int, database: Path, finalists: int, progress: Progress = no_progress, block: int = BLOCK
) -> Tuning:
    """Screens ``trials`` candidates on the first seeds and names the best of ``finalists`` on all of them.

    The screen's trials are in the database as those of any tuning are; its record is the outcome's ``screen``.
    """
    seeds = task.experiment.seeds
    if finalists < 1 or len(seeds) <= SCREEN_SEEDS:
        raise SettingsError(
            f"two stages: expected at least one finalist and more than {SCREEN_SEEDS} seeds, got {finalists} and {len(seeds)}"
        )
    screen = tune(
        Search(task.experiment.changed(seeds=seeds[:SCREEN_SEEDS]), task.seed), trials, database, progress, block
    )
    began = time.perf_counter()
    complete = [trial for trial in screen.record["trials"] if trial["value"] is not None]
    chosen = sorted(complete, key=lambda trial: (trial["value"], trial["number"]))[:finalists]
    place, played, compiling, programs = setup(task), [], 0.0, 0
    for done, trial in enumerate(chosen):
        progress("finalists", done, len(chosen))
        simulation = simulate(
            {"finalist": built(task, trial["params"], place)}, place.benchmark, seeds=seeds,
            horizon=task.experiment.horizon,
        )  # fmt: skip
        trace = simulation["finalist"]
        played.append(Finalist(trial["number"], None if trace.diverged else trace.mean(), trial["params"]))
        compiling, programs = compiling + simulation.seconds["compile"], programs + simulation.programs
    first = screen.record
    more = {
        "combinations": first["combinations"],
        "importances": first["importances"],
        "programs": first["programs"] + programs,
        "seconds": first["seconds"] + time.perf_counter() - began,
        "compile_seconds": first["compile_seconds"] + compiling,
    }
    found = outcome(task, played, place, more)
    return Tuning(task, found.preset, {**found.record, "screen": first})
