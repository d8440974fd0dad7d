"""A campaign: the tasks of some studies, each computed once even if several processes use the same store.

Its engine is this process, several local processes (loky, of joblib) or a Ray cluster. The process that starts them
claims the tasks and stores their results; the others compute and need no shared folder.
"""

import concurrent.futures
import contextlib
import dataclasses
import functools
import hashlib
import logging
import multiprocessing
import multiprocessing.resource_tracker
import os
import pickle
import re
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from regretless import files, plugins
from regretless.array_files import canonical
from regretless.errors import RegretlessError, SettingsError, WriteError
from regretless.experiments.experiment import Experiment
from regretless.experiments.extension import Listener, Progress, Task, find_published_of
from regretless.experiments.runner import Run, code_version, code_versions, play, resolve
from regretless.experiments.store import Campaign, Claim, Failure, ResultStore
from regretless.experiments.study import Cell, Scale, Study
from regretless.extras import require
from regretless.results import Result
from regretless.simulation.programs import no_progress
from regretless.simulation.simulator import Monitor
from regretless.startup import Device, configure, starting_processes, usable_cores

PATIENCE_SECONDS = 0.5
"""Seconds between looks at tasks that another process computes."""

Z_LIMIT = 3.0
"""Standard errors beyond which an arm differs from its published value."""

MAX_BATCH = 8
"""Arms that are computed together, at most: a kill loses the work on all of them."""

RETRIES = 5
"""How often a task of a cluster is started again after its worker or machine died."""


Batch = Sequence[Task]
"""Tasks that are computed together."""

ExecutionEngine = Callable[[Sequence[Batch], ResultStore, Listener], None]
"""Computes batches of tasks and leaves their results, or why there are none, in a store."""


class Summary(NamedTuple):
    """How a campaign ended."""

    tasks: int
    computed: int  # by this campaign, or by others while it ran
    failed: dict[str, str]  # error by the task's name
    seconds: float


class Plan:
    """Studies with the address of every result.

    Parameters
    ----------
    studies : sequence of Study
        What to compute.
    scale : Scale
        At which scale they were made.
    command : str
        The command that resumes the campaign.
    imports : sequence of str, optional
        Modules that have to be imported first.
    """

    def __init__(
        self, studies: Sequence[Study], scale: Scale, command: str = "regretless reproduce", imports: Sequence[str] = ()
    ):
        self.scale, self.command, self.imports = scale, command, tuple(imports)
        self.tasks: dict[str, Task] = {}
        self.second: dict[str, Task] = {}  # by the address of the first range
        self.skipped: dict[str, str] = {}  # why a cell was left out, by its name
        self.studies = tuple(study.replace_cells(functools.partial(self._plan_cell, study)) for study in studies)

    def _plan_cell(self, study: Study, cell: Cell) -> Cell:
        """Return the cell of a study with addresses; take note of its tasks."""
        if cell.work is None:
            return cell
        if not isinstance(cell.work, Experiment):
            self.tasks.setdefault(cell.work.address, cell.work)
            return dataclasses.replace(cell, arms=(("", cell.work.address),))
        runs = resolve(cell.work)
        for run in runs:
            self.tasks.setdefault(run.address, run)
        planned = dataclasses.replace(cell, arms=tuple((run.label, run.address) for run in runs))
        if study.second_seeds is None or self.scale.first_seed:
            return planned
        seeds = range(study.second_seeds, study.second_seeds + len(cell.work.seed_list))
        again = [run for run in resolve(cell.work.replace(seeds=seeds)) if run.standard]
        first = dict(planned.arms)
        self.second |= {first[run.label]: run for run in again}
        return dataclasses.replace(planned, second=tuple((run.label, run.address) for run in again))

    @property
    def id(self) -> str:
        """A name that the same studies at the same scale always have."""
        return hashlib.sha256(canonical([[study.name for study in self.studies], list(self.scale)])).hexdigest()[:12]

    def campaign(self) -> Campaign:
        """Return the campaign in the form in which it is stored."""
        cells = (cell for study in self.studies for cell in study.cells())
        names = {address: f"{cell.label}: {label}" for cell in cells for label, address in cell.arms}
        names |= {task.address: task.name for task in (*self.tasks.values(), *self.second.values())}
        return Campaign(
            self.id, self.command, code_version(), time.time(), self.scale, self.studies, names, self.imports
        )

    def follow_ups(self, store: ResultStore) -> list[Task]:
        """Return the second range of seeds of every arm that is too far from its published value.

        Parameters
        ----------
        store : ResultStore
            The store with the results of the first range.
        """
        far = []
        for first, task in self.second.items():
            result = store.load(first) if store.has(first) else None
            published = None if result is None else find_published_of(result)
            if result and published and abs(published.z(result.mean(), result.standard_error())) > Z_LIMIT:
                far.append(task)
        return far


def carry_out(
    plan: Plan,
    store: ResultStore,
    engine: ExecutionEngine,
    listener: Listener | None = None,
    largest_batch: int = MAX_BATCH,
) -> Summary:
    """Compute what is missing in a store, then the second range of seeds where a published value asks for it.

    Parameters
    ----------
    plan : Plan
        What to compute.
    store : ResultStore
        Where results are, and will be.
    engine : ExecutionEngine
        What computes them.
    listener : Listener, optional
        Receives the progress.
    largest_batch : int, default 8
        Arms that are computed together at most; with 1 each arm is computed, and timed, alone.

    Returns
    -------
    Summary
        How many tasks there are, how many were computed now, and which failed.
    """
    began = time.perf_counter()
    store.create()
    store.write_campaign(plan.campaign())
    listener = listener or Listener()
    tasks = list(plan.tasks.values())
    missing = compute_missing(tasks, store, engine, listener, largest_batch)
    follow_ups = plan.follow_ups(store)
    if follow_ups:
        missing += compute_missing(follow_ups, store, engine, listener, largest_batch)
    computed = sum(store.has(task.address) for task in missing)
    failures = {task.name: store.failure(task.address) for task in missing if not store.has(task.address)}
    failed = {name: failure.error for name, failure in failures.items() if failure is not None}
    return Summary(len(tasks) + len(follow_ups), computed, failed, time.perf_counter() - began)


def compute_missing(
    tasks: Sequence[Task], store: ResultStore, engine: ExecutionEngine, listener: Listener, largest: int = MAX_BATCH
) -> list[Task]:
    """Compute the tasks whose results are missing or damaged; return these tasks."""
    missing = [task for task in tasks if not store.is_sound(task.address)]
    listener.begin(missing, len(tasks) - len(missing))
    if missing:
        engine(make_batches(missing, largest), store, listener)
    return missing


def make_batches(tasks: Iterable[Task], largest: int = MAX_BATCH) -> list[list[Task]]:
    """Return tasks in batches: runs of one world share its stream; the longest batches come first."""
    groups: dict[object, list[Task]] = {}
    for task in tasks:
        key = task.stream if isinstance(task, Run) else task.address
        groups.setdefault(key, []).append(task)
    batches = [group[i : i + largest] for group in groups.values() for i in range(0, len(group), largest)]
    return sorted(batches, key=lambda batch: -sum(map(expected_work, batch)))


def expected_work(task: Task) -> float:
    """Return roughly how much work a task is, in rounds of a replication."""
    return float(len(task.seeds) * task.horizon) if isinstance(task, Run) else 1e5


Compute = Callable[[Batch, Progress], list[Result]]
Claimed = Sequence[tuple[Task, Claim]]
Failures = Mapping[str, Failure | None]


def compute_batch(tasks: Batch, progress: Progress) -> list[Result]:
    """Return the results of a batch."""
    runs = [task for task in tasks if isinstance(task, Run)]
    if len(runs) < len(tasks):
        return [task.compute(progress) for task in tasks]
    return play(runs, Monitor(progress=progress))


def work(batches: Sequence[Batch], store: ResultStore, listener: Listener, compute: Compute | None = None) -> None:
    """Compute in this process what no other does, wait for the others, and take over what they leave undone.

    A task that failed before is tried once more; one that fails in the meantime, here or elsewhere, is not.
    """
    earlier = {task.address: store.failure(task.address) for batch in batches for task in batch}
    waiting = [list(batch) for batch in batches]
    while waiting:
        left = [_work_on(batch, store, listener, compute or compute_batch, earlier) for batch in waiting]
        if sum(map(len, left)) == sum(map(len, waiting)):
            time.sleep(PATIENCE_SECONDS)
        waiting = [batch for batch in left if batch]


def _work_on(batch: Batch, store: ResultStore, listener: Listener, compute: Compute, earlier: Failures) -> list[Task]:
    """Compute the free tasks of a batch; return those that other processes compute."""
    left: list[Task] = []
    with contextlib.ExitStack() as claims:
        mine: list[tuple[Task, Claim]] = []
        for task in batch:
            claim = claims.enter_context(store.claim(task.address))
            if not claim.try_acquire():
                left.append(task)
                continue
            failure = store.failure(task.address)
            if store.is_sound(task.address):  # by another process, in the meantime
                listener.finished(task, computed=False)
            elif failure is not None and failure != earlier[task.address]:
                listener.failed(task, failure.error)
            else:
                mine.append((task, claim))
                continue
            claim.release()
        if mine and not _compute_and_store(mine, store, listener, compute) and len(mine) > 1:
            for pair in mine:  # find the one that fails
                _compute_and_store([pair], store, listener, compute)
    return left


def _compute_and_store(claimed: Claimed, store: ResultStore, listener: Listener, compute: Compute) -> bool:
    """Compute tasks together and store their results; return False after a failure, recorded if it is one task."""
    tasks = [task for task, _ in claimed]
    last_report = 0.0

    def progress(what: str, done: int, total: int) -> None:
        nonlocal last_report
        listener.progress(tasks[0], what, done, total)
        if time.monotonic() - last_report > PATIENCE_SECONDS:
            last_report = time.monotonic()
            for _, claim in claimed:
                claim.report(what, done, total)

    try:
        results = compute(tasks, progress)
    except WriteError:  # every other task would fail as well
        raise
    except Exception as error:
        if len(tasks) == 1:
            store.fail(tasks[0].address, tasks[0].name, "".join(traceback.format_exception(error)))
            listener.failed(tasks[0], f"{type(error).__name__}: {error}")
        return False
    for task, result in zip(tasks, results, strict=True):
        store.put(task.address, result, task.name, code_versions(getattr(task, "modules", ())))
        listener.finished(task, computed=True)
    return True


# Engines


class LocalProcesses:
    """Compute batches in several processes of this machine.

    Parameters
    ----------
    jobs : int
        The number of processes; each has its share of the cores.
    device : {"auto", "cpu", "gpu"}
        What they compute on.
    imports : sequence of str
        Modules that they import first.
    """

    def __init__(self, jobs: int, device: Device = "auto", imports: Sequence[str] = ()):
        self.loky = require("joblib.externals.loky", extra="parallel")
        self.jobs, self.device, self.imports = jobs, device, tuple(imports)

    def __call__(self, batches: Sequence[Batch], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed; what workers that died left is computed in this process."""
        cores = max(1, usable_cores() // self.jobs)
        before = dict(os.environ)
        os.environ["PYTHONSAFEPATH"] = "1"  # no module of the working directory takes the place of an installed one
        # Loky's own process warns about semaphores that it removes after an interrupt.
        quiet = "ignore:resource_tracker:UserWarning"
        os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [before.get("PYTHONWARNINGS"), quiet]))
        # Started here and not by a thread, which would no longer block Ctrl-C after it has started this process.
        multiprocessing.resource_tracker.ensure_running()
        executor = self.loky.ProcessPoolExecutor(
            self.jobs, initializer=_end_with, initargs=(os.getpid(),), env={"OMP_NUM_THREADS": str(cores)}
        )
        errors = self.loky.process_executor
        here = threading.Lock()

        def compute(tasks: Batch, progress: Progress) -> list[Result]:
            claim = store.claim(tasks[0].address)
            try:
                with starting_processes:
                    arguments = _pickled(tasks), claim, cores, self.device, self.imports
                    future = executor.submit(_compute_in_worker, *arguments)
                while not concurrent.futures.wait([future], PATIENCE_SECONDS).done:
                    state = store.running(tasks[0].address)
                    if state:
                        progress(state["what"], state["done"], state["total"])
                return future.result()
            except errors.ShutdownExecutorError:  # an error ended the campaign, which is no failure of these tasks
                raise SystemExit from None
            except errors.TerminatedWorkerError:
                with here:
                    return compute_batch(tasks, progress)

        try:
            _work_in_threads(batches, store, listener, compute, self.jobs)
        finally:
            executor.shutdown(kill_workers=True)
            for name in ("PYTHONSAFEPATH", "PYTHONWARNINGS"):
                os.environ[name] = before.get(name, "")


def _work_in_threads(
    batches: Sequence[Batch], store: ResultStore, listener: Listener, compute: Compute, count: int
) -> None:
    """Work on batches in threads, each of which waits for what another process computes; an error ends all of them."""
    for batch in batches:
        _pickled(batch)  # refused before anything runs
    # The processes that a thread starts inherit that it blocks Ctrl-C, which is for the main thread.
    threads = concurrent.futures.ThreadPoolExecutor(
        count, initializer=signal.pthread_sigmask, initargs=(signal.SIG_BLOCK, {signal.SIGINT})
    )
    try:
        futures = [threads.submit(work, [batch], store, listener, compute) for batch in batches]
        for future in concurrent.futures.as_completed(futures):
            future.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _pickled(tasks: Batch) -> bytes:
    """Return tasks as bytes, which a worker reads after it has imported what they need."""
    try:
        return pickle.dumps(list(tasks))
    except Exception as error:
        raise SettingsError(
            f"{tasks[0].name}: it cannot be handed to another process ({error}): register policies and benchmarks by "
            "name, or use one process"
        ) from None


def _compute_in_worker(payload: bytes, claim: Claim, *setup: Any) -> list[Result]:
    """Compute a batch in a worker process; report in the claim of its first task how far it is."""
    _prepare_worker(*setup)
    return compute_batch(pickle.loads(payload), claim.report)


@functools.cache
def _prepare_worker(cores: int, device: Device, imports: tuple[str, ...]) -> None:
    """Set up a worker process once: its cores, JAX and plug-ins."""
    os.dup2(2, 1)  # standard output is for results
    if device in ("auto", "cpu") and hasattr(os, "sched_setaffinity"):  # JAX starts a thread for every core it sees
        number = int((re.findall(r"\d+", multiprocessing.current_process().name) or ["0"])[-1])
        cores_here = sorted(os.sched_getaffinity(0))
        assigned = {cores_here[(number * cores + i) % len(cores_here)] for i in range(cores)}
        os.sched_setaffinity(0, assigned)
    configure(device, cores=cores)
    for name in imports:
        plugins.load(name)


def _end_with(parent: int) -> None:
    """Let this process, which may have no task yet, end soon after its parent, however that ends."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(PATIENCE_SECONDS)
        files.remove_unfinished()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class RayCluster:
    """Compute tasks on a Ray cluster; results come back as files, and the store and its claims stay here.

    Parameters
    ----------
    address : str, optional
        The cluster; by default one is started on this machine.
    device : {"auto", "cpu", "gpu"}
        With "gpu" every task needs a GPU.
    imports : sequence of str
        Modules that workers import first.
    """

    def __init__(self, address: str | None = None, device: Device = "auto", imports: Sequence[str] = ()):
        self.ray = require("ray", extra="ray")
        self.device, self.imports = device, tuple(imports)
        if not self.ray.is_initialized():
            _require_reachable(address)
            try:
                self.ray.init(
                    address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
                )
            except (ConnectionError, ValueError) as error:
                raise SettingsError(f"no Ray cluster at {address!r}: {error}") from None

    def __call__(self, batches: Sequence[Batch], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed."""
        needs = {"num_cpus": 1, "num_gpus": 1.0 if self.device == "gpu" else 0.0}
        remote = self.ray.remote(**needs, max_retries=RETRIES, retry_exceptions=False)(_compute_on_cluster)
        references = []

        def compute(tasks: Batch, progress: Progress) -> list[Result]:
            progress("on the cluster", 0, 1)
            references.append(remote.remote(_pickled(tasks), self.device, self.imports))
            try:
                version, results = self.ray.get(references[-1])
            except self.ray.exceptions.RayError as error:  # such as a full disk of a worker
                raise RegretlessError(f"{type(error).__name__}: {error}") from None
            if version != code_version():
                raise RegretlessError(f"a worker runs regretless {version}, not {code_version()}: install one version")
            return results

        single = [[task] for batch in batches for task in batch]
        try:
            with contextlib.redirect_stdout(sys.stderr):  # Ray reports dead workers; standard output is for results
                _work_in_threads(single, store, listener, compute, len(single))
        finally:
            for reference in references:
                self.ray.cancel(reference, force=True)


def _require_reachable(address: str | None) -> None:
    """Refuse an address where nothing listens; Ray itself would try for minutes."""
    host, separator, port = (address or "").removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return  # none, or a word such as "auto"
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise SettingsError(f"no Ray cluster at {address!r}: {error.strerror or error}") from None


def _compute_on_cluster(payload: bytes, device: Device, imports: tuple[str, ...]) -> tuple[str, list[Result]]:
    """Compute tasks in a worker of the cluster; return the results with the version of the code that made them."""
    configure(device, cores=1)
    for name in imports:
        plugins.load(name)
    return code_version(), compute_batch(pickle.loads(payload), no_progress)


def choose_engine(
    name: str = "local", jobs: int = 1, device: Device = "auto", address: str | None = None, imports: Sequence[str] = ()
) -> ExecutionEngine:
    """Return the engine called ``name``: "local", with one process or more, or "ray".

    Parameters
    ----------
    name : str, default "local"
        Where to compute.
    jobs : int, default 1
        Number of processes, with ``"local"``.
    device : {"auto", "cpu", "gpu"}, default "auto"
        What workers compute on.
    address : str, optional
        The Ray cluster; by default one is started on this machine.
    imports : sequence of str, optional
        Modules that workers import first.
    """
    if address is not None and name != "ray":
        raise SettingsError(f"address is for the engine 'ray' (--engine ray), got the engine {name!r}")
    if name == "ray":
        return RayCluster(address, device, imports)
    return work if jobs == 1 else LocalProcesses(jobs, device, imports)
