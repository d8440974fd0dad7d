"""Engines of a campaign: this process, several local processes (loky, of joblib) or a Ray cluster.

The process that starts them claims the tasks and stores their results; the others compute and need no shared folder.
"""

import concurrent.futures
import contextlib
import functools
import logging
import multiprocessing
import os
import pickle
import re
import signal
import socket
import sys
import threading
import time
from collections.abc import Sequence

from regretless import files, plugins
from regretless.errors import RegretlessError, SettingsError
from regretless.experiments.campaign import PATIENCE_SECONDS, Compute, ExecutionEngine, compute_batch, work
from regretless.experiments.extension import Listener, Progress, Task
from regretless.experiments.resolve import code_version
from regretless.experiments.store import Claim, ResultStore
from regretless.extras import require
from regretless.results import Result
from regretless.simulation.simulator import no_progress
from regretless.startup import Device, configure, usable_cores

RETRIES = 5
"""How often a task of a cluster is started again after its worker or machine died."""


class InProcess:
    """Compute batches one after the other in this process; replications are vectorised."""

    def __init__(self, compute: Compute | None = None):
        self._compute = compute

    def compute(self, batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed."""
        work(batches, store, listener, self._compute)


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

    def compute(self, batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed; what workers that died left is computed in this process."""
        cores = max(1, usable_cores() // self.jobs)
        # A module of the working directory must not take the place of an installed one.
        environment = {"PYTHONSAFEPATH": "1", "OMP_NUM_THREADS": str(cores)}
        executor = self.loky.ProcessPoolExecutor(self.jobs, env=environment)
        errors = self.loky.process_executor
        here = threading.Lock()

        def compute(tasks: Sequence[Task], progress: Progress) -> list[Result]:
            claim = store.claim(tasks[0].address)
            setup = self.jobs, cores, self.device, self.imports
            try:
                future = executor.submit(_compute_in_worker, _pickled(tasks), claim, *setup)
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


def _work_in_threads(
    batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener, compute: Compute, count: int
) -> None:
    """Work on batches in threads, each of which waits for what another process computes; an error ends all of them."""
    for batch in batches:
        _pickled(batch)  # refused before anything runs
    threads = concurrent.futures.ThreadPoolExecutor(count)
    try:
        futures = [threads.submit(work, [batch], store, listener, compute) for batch in batches]
        for future in concurrent.futures.as_completed(futures):
            future.result()
    finally:
        threads.shutdown(wait=False, cancel_futures=True)


def _pickled(tasks: Sequence[Task]) -> bytes:
    """Return tasks as bytes, which a worker reads after it has imported what they need."""
    try:
        return pickle.dumps(list(tasks))
    except Exception as error:
        raise SettingsError(
            f"{tasks[0].name}: it cannot be handed to another process ({error}): register policies and benchmarks by "
            "name, or use one process"
        ) from None


def _compute_in_worker(
    payload: bytes, claim: Claim, jobs: int, cores: int, device: Device, imports: tuple[str, ...]
) -> list[Result]:
    """Compute a batch in a worker process; report in the claim of its first task how far it is."""
    _prepare_worker(jobs, cores, device, imports)
    return compute_batch(pickle.loads(payload), claim.report)


@functools.cache
def _prepare_worker(jobs: int, cores: int, device: Device, imports: tuple[str, ...]) -> None:
    """Set up a worker process once: its cores, JAX, plug-ins, and its end when the process that started it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the parent, and this process follows
    os.dup2(2, 1)  # standard output is for results
    if device in ("auto", "cpu") and hasattr(os, "sched_setaffinity"):  # JAX starts a thread for every core it sees
        number = int((re.findall(r"\d+", multiprocessing.current_process().name) or ["0"])[-1])
        cores_here = sorted(os.sched_getaffinity(0))
        own = {cores_here[(number * cores + i) % len(cores_here)] for i in range(cores)}
        os.sched_setaffinity(0, own)
    threading.Thread(target=_leave_with_parent, args=(os.getppid(),), daemon=True).start()
    configure(device, cores=cores)
    for name in imports:
        plugins.load(name)


def _leave_with_parent(parent: int) -> None:
    """End this process soon after its parent, however that ended."""
    while os.getppid() == parent:
        time.sleep(PATIENCE_SECONDS)
    files.remove_unfinished()
    os._exit(1)


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

    def compute(self, batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed."""
        needs = {"num_cpus": 1, "num_gpus": 1.0 if self.device == "gpu" else 0.0}
        remote = self.ray.remote(**needs, max_retries=RETRIES, retry_exceptions=False)(_compute_on_cluster)
        references = []

        def compute(tasks: Sequence[Task], progress: Progress) -> list[Result]:
            progress("on the cluster", 0, 1)
            references.append(remote.remote(_pickled(tasks), self.device, self.imports))
            try:
                version, results = self.ray.get(references[-1])
            except self.ray.exceptions.RayError as error:  # a full disk of a worker, say, is not ours
                raise RegretlessError(f"{type(error).__name__}: {error}") from None
            if version != code_version():
                raise RegretlessError(
                    f"a worker runs regretless {version}, this process {code_version()}: install one version"
                )
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
    """Return the engine called ``name``: "local", with one process or more, or "ray"."""
    if name == "ray":
        return RayCluster(address, device, imports)
    return InProcess() if jobs == 1 else LocalProcesses(jobs, device, imports)
