"""How long a tuning takes, as a ratio to as many runs one after the other in one process that share compiled programs."""

import tempfile
import time
from pathlib import Path
from typing import Any

from regretless.simulation.programs import Progress, forget
from regretless.simulation.simulator import no_progress, simulate
from regretless.studies.tuning.search import Search, built, setup, tune


def compare(task: Search, trials: int, progress: Progress = no_progress) -> list[dict[str, Any]]:
    """Tunes, then plays the same candidates one by one; both start without compiled programs and must agree on the best."""
    forget()
    with tempfile.TemporaryDirectory() as place:
        together = tune(task, trials, Path(place) / "trials.db", progress).record
    forget()
    alone = _one_by_one(task, together["trials"], progress)
    size = {"trials": trials, "combinations": together["combinations"]}
    times = {key: together[key] for key in ("seconds", "compile_seconds", "programs")}
    return [
        {"how": "tune", **size, **times, "best": together["best"]["number"], "ratio": 1.0},
        {"how": "one by one", **size, **alone, "ratio": round(alone["seconds"] / together["seconds"], 2)},
    ]


def _one_by_one(task: Search, trials: list[dict[str, Any]], progress: Progress) -> dict[str, Any]:
    place, own = setup(task), task.experiment
    began, compiling, programs, means = time.perf_counter(), 0.0, 0, {}
    for done, trial in enumerate(trials):
        progress("one by one", done, len(trials))
        policy = built(task, trial["params"], place)
        run = simulate({"policy": policy}, place.benchmark, seeds=own.seeds, horizon=own.horizon)
        compiling += run.seconds["compile"]
        programs += run.programs
        if not run["policy"].diverged:
            means[trial["number"]] = run["policy"].mean()
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "compile_seconds": round(compiling, 1),
        "programs": programs,
        "best": min(means, key=lambda number: means[number]),
    }
