"""Plays a cell and puts the outcome into a result: the traces, and the record that a report is made from."""

import platform
import time
from typing import Any

import jax

from regretless.simulation.programs import Progress, make_room
from regretless.simulation.simulator import no_progress
from regretless.studies.cell_files import CellResult
from regretless.studies.cells import AnyCell, TheoryCell, describe, of_prepared
from regretless.studies.identity import THEORY, address, code_version, everything
from regretless.studies.outcome import Outcome, play_prepared
from regretless.studies.preparing import Prepared, prepare

SHORT_THEORY = {"replications": 32, "samples": 2**17, "horizons": (512, 1024, 2048)}
PACKAGES = ("jax", "jaxlib", "equinox", "numpy")


def compute(cell: AnyCell, progress: Progress = no_progress, prepared: Prepared | None = None) -> CellResult:
    """Computes a cell, whichever kind it is; ``prepared`` is what somebody made of an experiment before."""
    make_room()
    began = time.perf_counter()
    if not isinstance(cell, TheoryCell):
        return result_of(play_prepared(prepared or prepare(cell), progress), began)
    document = _theory(cell, progress)
    return CellResult({}, {**_about(cell, cell.model_dump(), (THEORY,), began), "document": _without_nan(document)})


def result_of(outcome: Outcome, began: float) -> CellResult:
    """An experiment's outcome as a result under its own key; ``began`` is when it was started (``time.perf_counter``)."""
    prepared = outcome.prepared
    identity, roots = of_prepared(prepared)
    record = {
        **_about(prepared.experiment, identity, roots, began),
        "horizon": prepared.horizon,
        "degree": prepared.degree,
        "feedback": prepared.experiment.feedback,
        "references": outcome.lines(),
        "seconds": outcome.seconds,
        "settings": {label: each.names() for label, each in prepared.settled.items()},
        "worlds": prepared.worlds,
        "notices": list(prepared.notices),
        "data": prepared.benchmark.data,
        "comparable": {label: prepared.comparable(label) for label in prepared.settled},
    }
    return CellResult(outcome.traces, _without_nan(record))


def _about(cell: AnyCell, identity: dict[str, Any], roots: tuple[str, ...], began: float) -> dict[str, Any]:
    used = code_version(roots)
    return {
        "key": address(identity, used),
        "cell": describe(cell),
        "name": cell.name,
        "code": code_version((*everything(), *roots)),
        "code_used": used,
        "roots": list(roots),
        "created": time.time(),
        "wall_seconds": round(time.perf_counter() - began, 3),
        "environment": environment(),
    }


def _theory(cell: TheoryCell, progress: Progress) -> dict[str, Any]:
    from regretless_dfhpg.theory import check

    size: dict[str, Any] = SHORT_THEORY if cell.short else {}
    return check.run(progress=progress, seed=cell.seed, **size).to_dict()


def environment() -> dict[str, Any]:
    """What computed a result: interpreter, platform, packages and devices."""
    from importlib.metadata import version

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": {name: version(name) for name in PACKAGES},
        "devices": [f"{device.platform} {device.device_kind}" for device in jax.local_devices()],
    }


def _without_nan(value: Any) -> Any:
    """The same with None for every float that is not finite, so that it can be written as JSON."""
    if isinstance(value, dict):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not abs(value) < float("inf") else value
