"""Cells over a Ray cluster. Workers compute and send files back; the process that started them holds the store and the claims.

No shared file system is needed. A task whose worker or machine dies is started again elsewhere, up to ``RETRIES`` times.
"""

import contextlib
import logging
import os
import socket
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regretless import plugins
from regretless.errors import SettingsError, WriteError
from regretless.startup import Device, configure
from regretless.studies.campaign import Listener
from regretless.studies.cell_files import write_result
from regretless.studies.cells import require_portable
from regretless.studies.engines.processes import CELLS
from regretless.studies.identity import code_version
from regretless.studies.plan import Planned
from regretless.studies.store import CellLock, Store

RETRIES = 5
WAIT = 0.5
TELL_EVERY = 0.5
"""Seconds between two words of a worker about its progress."""


class RayEngine:
    """Computes cells on the cluster at ``address``, or on one started here; with ``device`` "gpu" each cell needs one."""

    def __init__(self, address: str | None = None, device: Device = "auto", cpus: int = 1, imports: Sequence[str] = ()):
        try:
            import ray
        except ImportError:
            raise SettingsError("the ray engine needs Ray: pip install 'regretless[ray]'") from None
        self.ray, self.cpus, self.device, self.imports = ray, cpus, device, tuple(imports)
        if not ray.is_initialized():
            _require_reachable(address)
            try:
                ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False)
            except (ConnectionError, ValueError) as error:
                raise SettingsError(f"no Ray cluster at {address!r}: {error}") from None

    def run(self, planned: Sequence[Planned], store: Store, listener: Listener) -> None:
        for item in planned:
            require_portable(item.cell)
        with contextlib.redirect_stdout(sys.stderr):  # Ray tells of workers that died; standard output is for results
            self._run(planned, store, listener)

    def _run(self, planned: Sequence[Planned], store: Store, listener: Listener) -> None:
        board = self.ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()
        needs = {"num_cpus": self.cpus, "num_gpus": 1.0 if self.device == "gpu" else 0.0}
        compute = self.ray.remote(**needs, max_retries=RETRIES, retry_exceptions=False)(_compute)
        waiting = list(planned)
        claims: dict[Any, tuple[Planned, CellLock]] = {}
        try:
            while waiting or claims:
                waiting = self._submit(waiting, store, listener, compute, board, claims)
                self._hear(board, {item.key: item for item, _ in claims.values()}, listener)
                done, _ = self.ray.wait(list(claims), timeout=WAIT) if claims else ([], [])
                if not claims:
                    time.sleep(WAIT)
                for task in done:
                    item, claim = claims.pop(task)
                    with claim:
                        self._receive(task, item, store, listener)
        finally:
            for task, (_, claim) in claims.items():
                self.ray.cancel(task, force=True)
                claim.release()

    def _submit(
        self,
        waiting: list[Planned],
        store: Store,
        listener: Listener,
        compute: Any,
        board: Any,
        claims: dict[Any, tuple[Planned, CellLock]],
    ) -> list[Planned]:
        """Sends every free cell to the cluster; what is left is being computed by another process."""
        left = []
        for item in waiting:
            claim = store.claim(item.key)
            if not claim.acquire():
                left.append(item)
            elif store.sound(item.key):
                claim.release()
                listener.finished(item)
            else:
                listener.started(item)
                cell = CELLS.dump_python([item.cell], mode="json")
                claims[compute.remote(item.key, cell, board, self.device, self.cpus, self.imports)] = (item, claim)
        return left

    def _hear(self, board: Any, items: dict[str, Planned], listener: Listener) -> None:
        """Passes on how far the workers are; a board that died with its machine comes back empty."""
        with contextlib.suppress(self.ray.exceptions.RayError):
            for key, (what, done, total, _) in self.ray.get(board.take.remote(), timeout=5).items():
                if key in items:
                    listener.progress(items[key], what, done, total)

    def _receive(self, task: Any, item: Planned, store: Store, listener: Listener) -> None:
        try:
            version, content = self.ray.get(task)
            if version != code_version():
                raise RuntimeError(
                    f"a worker runs regretless {version}, this process {code_version()}: install one version"
                )
            store.put_file(item.key, content)
        except Exception as error:
            if isinstance(error, WriteError) and not isinstance(error, self.ray.exceptions.RayError):
                raise  # our own disk, not a worker's: every other cell would fail as well
            store.fail(item.key, item.cell.name, f"{type(error).__name__}: {error}")
            listener.failed(item, f"{type(error).__name__}: {error}")
        else:
            listener.finished(item)


def _require_reachable(address: str | None) -> None:
    """Refuses an address where nobody listens; Ray itself would try for minutes."""
    host, separator, port = (address or "").removeprefix("ray://").rpartition(":")
    if not separator or not port.isdigit():
        return  # none, or a word such as "auto"
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise SettingsError(f"no Ray cluster at {address!r}: {error.strerror or error}") from None


class Board:
    """Where workers write how far they are, and who they are."""

    def __init__(self) -> None:
        self.news: dict[str, tuple[str, int, int, tuple[str, int]]] = {}

    def put(self, key: str, what: str, done: int, total: int, worker: tuple[str, int]) -> None:
        """The newest word about a cell."""
        self.news[key] = (what, done, total, worker)

    def take(self) -> dict[str, tuple[str, int, int, tuple[str, int]]]:
        """Everything said since the last time."""
        news, self.news = self.news, {}
        return news


def _compute(
    key: str, cell: Any, board: Any, device: Device, cores: int, imports: tuple[str, ...]
) -> tuple[str, bytes]:
    """A worker's part: plays the cell and returns its file, with the version of the code that wrote it."""
    import ray

    from regretless.studies.compute import compute

    configure(device, cores=cores)
    for name in imports:
        plugins.load(name)
    worker = (ray.get_runtime_context().get_node_id(), os.getpid())
    told = [0.0]

    def progress(what: str, done: int, total: int) -> None:
        if time.monotonic() - told[0] > TELL_EVERY:
            told[0] = time.monotonic()
            board.put.remote(key, what, done, total, worker)

    result = compute(CELLS.validate_python(cell)[0], progress)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result"
        write_result(result.with_key(key), path)
        return code_version(), path.read_bytes()
