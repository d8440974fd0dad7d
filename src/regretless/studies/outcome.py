"""Runs an experiment: plays every world, tells what came out."""

import dataclasses
import math
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from regretless.experiments.extension import find_published
from regretless.results import DIAGNOSTICS_EVERY, Reference, Result
from regretless.show.shown import Shown
from regretless.simulation import Callback
from regretless.simulation.programs import Progress
from regretless.simulation.simulator import Execution, Monitor, Recording, compile_programs, no_progress, simulate
from regretless.studies.experiment import Arm, Experiment
from regretless.studies.preparing import Prepared, prepare

if TYPE_CHECKING:
    import pandas as pd


class Watched(NamedTuple):
    """How a run is looked at while it goes on, and where it is kept."""

    diagnostics_every: int = DIAGNOSTICS_EVERY
    callback: Callback | None = None
    callback_every: int = 100
    save: str | os.PathLike[str] | None = None

    def file(self, place: int) -> str | None:
        """The file of the world at this place."""
        return None if self.save is None else os.fspath(self.save) + (f".{place}" if place else "")


@dataclasses.dataclass(frozen=True)
class Outcome(Shown):
    """An experiment with what came out: traces by label, reference lines with the name of their world, seconds."""

    prepared: Prepared
    traces: dict[str, Result]
    references: list[tuple[str, Reference]]
    seconds: dict[str, float]

    def compare_table(self, against: str | None = None) -> "pd.DataFrame":
        """As for a simulation, a row per arm; settings in which arms differ are columns, too."""
        table = super().compare_table(against)
        given = {arm.label: arm.settings for arm in self.prepared.experiment.arms}
        for place, name in enumerate(dict.fromkeys(name for settings in given.values() for name in settings)):
            table.insert(place, name, [given[label].get(name) for label in table.index])
        return table

    def _worlds(self) -> Mapping[str, str] | None:
        return self.prepared.worlds

    def _lines(self) -> list[tuple[str, float | None, float | None]]:
        word = lambda world, line: f"{world}: {line.name}" if world else line.name  # noqa: E731
        return [(word(world, line), line.mean, line.standard_error) for world, line in self.references]

    def _repr_html_(self) -> str:
        from regretless.show import results

        title = self.prepared.experiment.title or self.prepared.experiment.where
        return results.results_card(title, self.traces, self._lines(), self.seconds, self._worlds())

    def to_dict(self) -> dict[str, Any]:
        """The result as one JSON object; null stands for what does not exist."""
        experiment, prepared = self.prepared.experiment, self.prepared
        return {
            "benchmark": experiment.benchmark_name,
            "feedback": experiment.feedback,
            "degree": prepared.degree,
            "data": prepared.benchmark.data,
            "model": experiment.model,
            "horizon": prepared.horizon,
            "seeds": len(experiment.seeds),
            "first_seed": experiment.seeds[0],
            "results": [self._row(arm) for arm in experiment.arms],
            "references": self.lines(),
            "seconds": {key: round(value, 3) for key, value in self.seconds.items()},
            "settings": {label: each.names() for label, each in prepared.settled.items()},
            "notices": list(prepared.notices),
        }

    def lines(self) -> list[dict[str, Any]]:
        """The reference lines as JSON objects."""
        return [
            {
                "name": line.name,
                "mean": finite(line.mean),
                "standard_error": finite(line.standard_error),
                "world": world,
            }
            for world, line in self.references
        ]

    def _row(self, arm: Arm) -> dict[str, Any]:
        trace = self.traces[arm.label]
        row = {
            "policy": arm.label,
            "world": self.prepared.worlds[arm.label],
            "mean": finite(trace.mean()),
            "standard_error": finite(trace.standard_error()),
            "median": finite(trace.median()),
            "diverged": trace.diverged,
            "diverged_rounds": sorted(int(t) for t in trace.diverged_at if t),
            "published_mean": None,
            "published_standard_error": None,
            "z": None,
        }
        world = self.prepared.settled[arm.label].world
        known = find_published(str(world.benchmark), world.feedback, arm.label)
        if known is not None and self.prepared.comparable(arm.label):
            row["published_mean"], row["published_standard_error"] = known
            row["z"] = finite(known.z(trace.mean(), trace.standard_error()))
        return row


def finite(value: float) -> float | None:
    """A finite number; None for any other."""
    return float(value) if math.isfinite(value) else None


def run(
    experiment: Experiment,
    progress: Progress = no_progress,
    *,
    diagnostics_every: int = DIAGNOSTICS_EVERY,
    callback: Callback | None = None,
    callback_every: int = 100,
    save: str | os.PathLike[str] | None = None,
) -> Outcome:
    """Runs an experiment after checking all of it; ``simulate`` tells what the options mean.

    Where arms have worlds of their own, these are played one after another: ``callback`` is told of each, and the files are
    ``save``, ``save.1`` and so on.
    """
    watched = Watched(diagnostics_every, callback, callback_every, save)
    return play_prepared(prepare(experiment), progress, watched)


def compile_prepared(prepared: Prepared) -> None:
    """Compiles what ``play_prepared`` of the same will need."""
    experiment = prepared.experiment
    for world, benchmark in prepared.benchmarks.items():
        mine = {label: policy for label, policy in prepared.policies.items() if prepared.worlds[label] == world}
        compile_programs(mine, benchmark, len(experiment.seeds), prepared.horizon, experiment.delay, experiment.missing)


def play_prepared(prepared: Prepared, progress: Progress = no_progress, watched: Watched = Watched()) -> Outcome:  # noqa: B008
    """Runs an experiment that passed every check, world by world."""
    experiment = prepared.experiment
    traces: dict[str, Result] = {}
    lines: list[tuple[str, Reference]] = []
    seconds: dict[str, float] = {"compile": 0.0, "run": 0.0}
    for place, (world, benchmark) in enumerate(prepared.benchmarks.items()):
        mine = {label: policy for label, policy in prepared.policies.items() if prepared.worlds[label] == world}
        simulation = simulate(
            mine,
            benchmark,
            seeds=experiment.seeds,
            horizon=prepared.horizon,
            delay=experiment.delay,
            missing=experiment.missing,
            recording=Recording(watched.diagnostics_every),
            monitor=Monitor(
                watched.callback, watched.callback_every, _share(progress, place, len(prepared.benchmarks))
            ),
            execution=Execution(save=watched.file(place)),
        )
        traces |= {
            label: dataclasses.replace(result, config={**result.config, "model": experiment.model})
            for label, result in simulation.items()
        }
        lines += [(world, line) for line in simulation.references]
        seconds = {key: seconds[key] + simulation.seconds[key] for key in seconds}
    return Outcome(prepared, {arm.label: traces[arm.label] for arm in experiment.arms}, lines, seconds)


def _share(progress: Progress, place: int, worlds: int) -> Progress:
    """The progress of one world as a part of all of them."""

    def tell(task: str, done: int, total: int) -> None:
        progress(task, *((done, total) if task != "running" else (place * total + done, worlds * total)))

    return tell
