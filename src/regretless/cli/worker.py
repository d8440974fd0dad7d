"""A worker of ``regretless reproduce --jobs N``: takes cells on standard input, tells on standard output how they go."""

import json
import os
import sys
import threading
from pathlib import Path
from typing import cast

from regretless import files
from regretless.errors import WriteError
from regretless.startup import Device, configure


def main(device: str, cores: str, folder: str, place: str = "0") -> None:
    """Computes what the store lacks; ends at once when the process that started it does."""
    if device == "cpu":
        keep_to_own_cores(int(place), int(cores))
    told = sys.stdout
    sys.stdout = sys.stderr  # only events go to standard output
    configure(cast(Device, device), cores=int(cores))
    from regretless import plugins
    from regretless.studies.campaign import InProcess
    from regretless.studies.compute import compute
    from regretless.studies.engines.processes import CELLS, Telling
    from regretless.studies.plan import Planned
    from regretless.studies.store import Store

    task = json.loads(sys.stdin.readline())
    for name in task["imports"]:
        plugins.load(name)
    threading.Thread(target=leave_with_parent, daemon=True).start()
    items = [Planned(key, cell) for key, cell in zip(task["keys"], CELLS.validate_python(task["cells"]), strict=True)]
    try:
        # Nothing is compiled ahead here: another worker may well take the next cell.
        InProcess(compute).run(items, Store(Path(folder)), Telling(told))
    except WriteError:
        sys.exit(1)  # the process that started this one goes on, and tells why it cannot


def keep_to_own_cores(place: int, cores: int) -> None:
    """Each worker on cores of its own, where the system can do that: JAX starts a thread for every core that it sees."""
    if hasattr(os, "sched_setaffinity"):
        usable = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {usable[(place * cores + each) % len(usable)] for each in range(cores)})


def leave_with_parent() -> None:
    """Standard input ends when the parent is gone, however it went."""
    sys.stdin.read()
    files.remove_unfinished()
    os._exit(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
