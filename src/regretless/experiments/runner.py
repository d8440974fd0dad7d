"""Run experiments: arms of one world share its stream and reference lines; no arm depends on which others run."""

import dataclasses
import os
from collections.abc import Sequence
from typing import Any

from regretless.errors import SettingsError
from regretless.experiments.experiment import Experiment
from regretless.experiments.extension import Listener, Progress, Task
from regretless.experiments.resolve import Run, resolve
from regretless.formatting import unique_name
from regretless.results import Result, Results
from regretless.simulation.programs import make_room
from regretless.simulation.simulator import Execution, Monitor, Recording, independent_chunk, no_progress, simulate


def run(
    experiment: Experiment,
    *,
    store: str | os.PathLike[str] | None = None,
    recording: Recording = Recording(),  # noqa: B008 -- frozen
    monitor: Monitor = Monitor(),  # noqa: B008 -- frozen
    save: str | os.PathLike[str] | None = None,
) -> Results:
    """Run an experiment after checking all of it.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    store : path, optional
        A folder of results: arms that it holds already are read, the others are computed and stored.
    recording : Recording
        What is kept in addition to the regret; not together with ``store``.
    monitor : Monitor
        Callbacks. Where arms have worlds of their own, these are played one after another and the callback receives
        each.
    save : path, optional
        A file that the run is kept in, to continue after a kill; further ones for further worlds get a number. Not
        together with ``store``.

    Returns
    -------
    Results
        One result per arm, by label.

    Raises
    ------
    SettingsError
        If something cannot be run.

    Examples
    --------
    >>> results = run(Experiment("topk", ["greedy"], seeds=2, horizon=20))
    >>> results["greedy"].regret.shape
    (2, 20)
    """
    runs = resolve(experiment)
    if store is None:
        return collect(play(runs, monitor.progress, recording=recording, monitor=monitor, save=save))
    if recording != Recording() or monitor.callback is not None or save is not None:
        raise SettingsError("recording, callback and save are for a run without a store")
    return collect(_from_store(runs, store, monitor.progress))


def _from_store(runs: Sequence[Run], folder: str | os.PathLike[str], progress: Progress) -> list[Result]:
    """Return the results of a store, after those that it lacks were computed."""
    from regretless.experiments.campaign import InProcess, compute_missing
    from regretless.experiments.store import ResultStore

    class _Listener(Listener):
        def progress(self, task: Task, what: str, done: int, total: int) -> None:
            progress(what, done, total)

    target = ResultStore(folder)
    target.create()
    compute_missing(list({run.address: run for run in runs}.values()), target, InProcess(), _Listener())
    for each in runs:
        failure = target.failure(each.address)
        if failure is not None:
            raise SettingsError(f"{each.label}: {failure.last_line}")
    return [dataclasses.replace(target.load(each.address), label=each.label) for each in runs]


def collect(results: Sequence[Result]) -> Results:
    """Return results by label, with the time of all of them."""
    seconds = {name: sum(result.seconds.get(name, 0.0) for result in results) for name in ("compile", "run")}
    return Results(results, seconds=seconds)


def play(
    runs: Sequence[Run],
    progress: Progress = no_progress,
    *,
    recording: Recording = Recording(),  # noqa: B008 -- frozen
    monitor: Monitor = Monitor(),  # noqa: B008 -- frozen
    save: str | os.PathLike[str] | None = None,
) -> list[Result]:
    """Return the results of runs, in their order; ``seconds`` are the share of the runs that were played together.

    Numbers of a run do not depend on the others: every policy runs in a program of its own, with as many replications
    together as would run if it were alone.
    """
    make_room()
    groups: dict[Any, list[int]] = {}
    for place, each in enumerate(runs):
        policy, benchmark = each.parts
        chunk = independent_chunk(policy, benchmark, len(each.seeds), each.horizon, each.delay, each.missing)
        groups.setdefault((each.stream, chunk), []).append(place)
    results: dict[int, Result] = {}
    for number, ((_, chunk), places) in enumerate(groups.items()):
        first = runs[places[0]]
        names: dict[int, str] = {}
        for place in places:
            names[place] = unique_name(runs[place].label, names.values())
        simulated = simulate(
            {names[place]: runs[place].parts[0] for place in places},
            first.parts[1],
            seeds=first.seeds,
            horizon=first.horizon,
            delay=first.delay,
            missing=first.missing,
            recording=recording,
            monitor=dataclasses.replace(monitor, progress=_share(progress, number, len(groups))),
            execution=Execution(chunk=chunk, merge=False, save=_numbered(save, number)),
        )
        share = {name: spent / len(places) for name, spent in simulated.seconds.items()}
        for place in places:
            results[place] = _finish(runs[place], simulated[names[place]], share)
    return [results[place] for place in range(len(runs))]


def _finish(run: Run, result: Result, seconds: dict[str, float]) -> Result:
    """Return a simulated result under the arm's label, with its configuration."""
    try:
        configuration = {name: value for name, value in run.configuration.items() if name != "seeds"}
    except SettingsError:  # an object: the simulation has described it
        configuration = {}
    extra = {
        "where": run.where,
        "data": run.parts[1].data,
        "tuned": run.tuned,
        "standard": run.standard,
        "notices": list(run.notices),
    }
    config = {**result.config, **configuration}
    return dataclasses.replace(result, label=run.label, config=config, seconds=seconds, extra=extra)


def _share(progress: Progress, number: int, groups: int) -> Progress:
    """Return the progress of one group of runs as a part of all of them."""

    def report(what: str, done: int, total: int) -> None:
        progress(what, *((number * total + done, groups * total) if what == "running" else (done, total)))

    return report


def _numbered(save: str | os.PathLike[str] | None, number: int) -> str | None:
    return None if save is None else os.fspath(save) + (f".{number}" if number else "")
