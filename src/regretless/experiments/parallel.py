"""Engines of a campaign: this process, several local processes (joblib) or a Ray cluster.

Local processes share the store; its claims keep them from computing anything twice, and the process that started them
reads there how far they are. Workers of a cluster send files back, so no shared file system is needed.
"""

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
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from regretless import files, plugins
from regretless.errors import SettingsError, WriteError
from regretless.experiments.campaign import PATIENCE_SECONDS, Compute, ExecutionEngine, work
from regretless.experiments.extension import Listener, Task
from regretless.experiments.resolve import code_version
from regretless.experiments.store import Claim, ResultStore
from regretless.extras import require
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
        self.joblib = require("joblib", extra="parallel")
        self.jobs, self.device, self.imports = jobs, device, tuple(imports)

    def compute(self, batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener) -> None:
        """Return when every task is stored or has failed; what workers that died left is computed in this process."""
        cores = max(1, usable_cores() // self.jobs)
        payloads = [_pickled(batch) for batch in batches]
        parallel = self.joblib.Parallel(
            n_jobs=self.jobs, backend="loky", batch_size=1, pre_dispatch="all", return_as="generator_unordered"
        )
        job = self.joblib.delayed(_work_in_worker)
        calls = (job(payload, str(store.folder), self.jobs, cores, self.device, self.imports) for payload in payloads)
        loky = require("joblib.externals.loky", extra="parallel")
        watcher = _Watcher([task for batch in batches for task in batch], store, listener)
        with watcher, _safe_path():
            try:
                for error in parallel(calls):
                    if error is not None:
                        raise WriteError(error)
            except loky.process_executor.TerminatedWorkerError:
                pass
            finally:  # the next campaign may have another folder, device or imports
                loky.get_reusable_executor().shutdown(wait=True)
        left = [[task for task in batch if task.address not in watcher.settled] for batch in batches]
        work([batch for batch in left if batch], store, listener)


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Keep new processes from importing modules of the working directory in place of installed ones."""
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONSAFEPATH"]


class _Watcher:
    """Reads in a store how far other processes are, and passes it on to a listener."""

    def __init__(self, tasks: Sequence[Task], store: ResultStore, listener: Listener):
        self.tasks, self.store, self.listener = tasks, store, listener
        self.settled: set[str] = set()
        self.earlier = {task.address: store.failure(task.address) for task in tasks}
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> None:
        self.thread.start()

    def __exit__(self, *exception: object) -> None:
        self.stopped.set()
        self.thread.join()

    def _watch(self) -> None:
        while not self.stopped.wait(PATIENCE_SECONDS):
            self._look()
        self._look()

    def _look(self) -> None:
        for task in self.tasks:
            if task.address in self.settled:
                continue
            failure, running = self.store.failure(task.address), self.store.running(task.address)
            if failure is not None and failure != self.earlier[task.address]:
                self.settled.add(task.address)
                self.listener.failed(task, failure.last_line)
            elif running:
                self.listener.progress(task, running["what"], running["done"], running["total"])
            elif running is None and self.store.has(task.address):
                self.settled.add(task.address)
                self.listener.finished(task, computed=True)


def _pickled(tasks: Sequence[Task]) -> bytes:
    """Return tasks as bytes, which a worker reads after it has imported what they need."""
    try:
        return pickle.dumps(list(tasks))
    except Exception as error:
        raise SettingsError(
            f"{tasks[0].name}: it cannot be handed to another process ({error}): register policies and benchmarks by "
            "name, or use one process"
        ) from None


def _work_in_worker(
    payload: bytes, folder: str, jobs: int, cores: int, device: Device, imports: tuple[str, ...]
) -> str | None:
    """Compute a batch in a worker process; return why it cannot write."""
    _prepare_worker(jobs, cores, device, imports)
    tasks = pickle.loads(payload)
    try:
        work([tasks], ResultStore(folder), Listener())
    except WriteError as error:
        return str(error)
    return None


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
        with contextlib.redirect_stdout(sys.stderr):  # Ray reports dead workers there; standard output is for results
            self._compute(batches, store, listener)

    def _compute(self, batches: Sequence[Sequence[Task]], store: ResultStore, listener: Listener) -> None:
        needs = {"num_cpus": 1, "num_gpus": 1.0 if self.device == "gpu" else 0.0}
        remote = self.ray.remote(**needs, max_retries=RETRIES, retry_exceptions=False)(_compute_on_cluster)
        waiting: list[Task] = [task for batch in batches for task in batch]
        claims: dict[Any, tuple[Task, Claim]] = {}
        try:
            while waiting or claims:
                waiting = self._submit(waiting, store, listener, remote, claims)
                done, _ = self.ray.wait(list(claims), timeout=PATIENCE_SECONDS) if claims else ([], [])
                if not claims:
                    time.sleep(PATIENCE_SECONDS)
                for reference in done:
                    task, claim = claims.pop(reference)
                    with claim:
                        self._receive(reference, task, store, listener)
        finally:
            for reference, (_, claim) in claims.items():
                self.ray.cancel(reference, force=True)
                claim.release()

    def _submit(
        self, waiting: list[Task], store: ResultStore, listener: Listener, remote: Any, claims: dict[Any, Any]
    ) -> list[Task]:
        """Start the tasks that are free; return those that other processes compute."""
        left = []
        for task in waiting:
            claim = store.claim(task.address)
            if not claim.try_acquire():
                left.append(task)
            elif store.is_sound(task.address):
                claim.release()
                listener.finished(task, computed=False)
            else:
                reference = remote.remote(_pickled([task]), self.device, self.imports)
                claims[reference] = task, claim
                listener.progress(task, "on the cluster", 0, 1)
        return left

    def _receive(self, reference: Any, task: Task, store: ResultStore, listener: Listener) -> None:
        try:
            version, content = self.ray.get(reference)
            if version != code_version():
                raise RuntimeError(
                    f"a worker runs regretless {version}, this process {code_version()}: install one version"
                )
            store.put_file(task.address, content)
        except Exception as error:
            if isinstance(error, WriteError) and not isinstance(error, self.ray.exceptions.RayError):
                raise  # our own disk, not a worker's: every other task would fail as well
            store.fail(task.address, task.name, f"{type(error).__name__}: {error}")
            listener.failed(task, f"{type(error).__name__}: {error}")
        else:
            listener.finished(task, computed=True)


def _require_reachable(address: str | None) -> None:
    """Refuse an address where nothing listens; Ray itself would try for minutes."""
    host, separator, port = (address or "").removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return  # none, or a word such as "auto"
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise SettingsError(f"no Ray cluster at {address!r}: {error.strerror or error}") from None


def _compute_on_cluster(payload: bytes, device: Device, imports: tuple[str, ...]) -> tuple[str, bytes]:
    """Compute a task in a worker of the cluster; return its file with the version of the code that wrote it."""
    configure(device, cores=1)
    for name in imports:
        plugins.load(name)
    (task,) = pickle.loads(payload)
    with tempfile.TemporaryDirectory() as folder:
        store = ResultStore(folder)
        store.put(task.address, task.compute(lambda what, done, total: None), task.name)
        return code_version(), Path(store.path(task.address)).read_bytes()


def choose_engine(
    name: str = "local", jobs: int = 1, device: Device = "auto", address: str | None = None, imports: Sequence[str] = ()
) -> ExecutionEngine:
    """Return the engine called ``name``: "local", with one process or more, or "ray"."""
    if name == "ray":
        return RayCluster(address, device, imports)
    return InProcess() if jobs == 1 else LocalProcesses(jobs, device, imports)
