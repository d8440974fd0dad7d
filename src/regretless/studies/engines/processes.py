"""Several processes over the cells of a campaign. They share the store; its claims keep them from doing the same twice."""

import json
import subprocess
import threading
from collections.abc import Sequence
from typing import IO, Any

from pydantic import TypeAdapter

from regretless.studies.campaign import InProcess, Listener
from regretless.studies.cells import AnyCell, require_portable
from regretless.studies.estimate import cost
from regretless.studies.plan import Planned
from regretless.studies.store import Store

CELLS: TypeAdapter[list[AnyCell]] = TypeAdapter(list[AnyCell])


class Processes:
    """Starts workers with ``command``, the store's folder and their number; hands them the cells, and finishes itself what
    workers that died left behind.

    The dearest cells come first, so that no worker has a long one left when the others have nothing to do any more.
    """

    def __init__(self, command: Sequence[str], jobs: int, imports: Sequence[str] = ()):
        self.command, self.jobs, self.imports = list(command), jobs, tuple(imports)

    def run(self, planned: Sequence[Planned], store: Store, listener: Listener) -> None:
        for item in planned:
            require_portable(item.cell)
        planned = sorted(planned, key=lambda item: -sum(cost(item.cell)))
        items = {item.key: item for item in planned}
        cells = CELLS.dump_python([item.cell for item in planned], mode="json")
        task = json.dumps({"keys": list(items), "cells": cells, "imports": list(self.imports)})
        lock = threading.Lock()
        settled: set[str] = set()
        pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        workers = [  # in groups of their own: Ctrl-C reaches this process alone, and they leave with it
            subprocess.Popen([*self.command, str(store.folder), str(place)], process_group=0, **pipes)
            for place in range(min(self.jobs, len(planned)))
        ]
        ears = []
        for worker in workers:
            assert worker.stdin is not None
            assert worker.stdout is not None
            ear = threading.Thread(target=_listen, args=(worker.stdout, items, settled, lock, listener), daemon=True)
            ear.start()
            ears.append(ear)
            try:  # the pipe stays open: its end tells the worker that this process is gone
                worker.stdin.write(task + "\n")
                worker.stdin.flush()
            except BrokenPipeError:
                pass
        for worker, ear in zip(workers, ears, strict=True):
            worker.wait()
            ear.join()
            assert worker.stdin is not None
            assert worker.stdout is not None
            worker.stdin.close()
            worker.stdout.close()
        left = [item for item in planned if item.key not in settled]
        if left:
            InProcess().run(left, store, listener)


def _listen(
    stream: IO[str], items: dict[str, Planned], settled: set[str], lock: threading.Lock, listener: Listener
) -> None:
    """Passes a worker's events on; every cell is told to be finished or failed once, though every worker says so."""
    for line in stream:
        event = json.loads(line)
        item = items[event["key"]]
        with lock:
            if event["what"] == "progress":
                listener.progress(item, event["doing"], event["done"], event["total"])
            elif event["what"] == "started":
                listener.started(item)
            elif item.key not in settled:
                settled.add(item.key)
                listener.finished(item) if event["what"] == "finished" else listener.failed(item, event["error"])


class Telling:
    """The worker's side: every event as one line of JSON."""

    def __init__(self, stream: IO[str]):
        self.stream = stream

    def begin(self, planned: Sequence[Planned], finished: int) -> None:
        """The parent knows."""

    def started(self, item: Planned) -> None:
        self._say({"what": "started", "key": item.key})

    def progress(self, item: Planned, what: str, done: int, total: int) -> None:
        self._say({"what": "progress", "key": item.key, "doing": what, "done": done, "total": total})

    def finished(self, item: Planned) -> None:
        self._say({"what": "finished", "key": item.key})

    def failed(self, item: Planned, error: str) -> None:
        self._say({"what": "failed", "key": item.key, "error": error})

    def _say(self, event: dict[str, Any]) -> None:
        self.stream.write(json.dumps(event) + "\n")
        self.stream.flush()
