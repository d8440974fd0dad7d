"""Plays a cell: builds what it names, runs it on the vectorised axis, and puts the outcome into a result."""

import platform
import time
from typing import Any

import jax

from regretless import policies
from regretless.policies import Problem
from regretless.results import Result
from regretless.simulate.programs import Progress, make_room
from regretless.simulate.simulation import simulate_all
from regretless.studies.cells import AnyCell, Cell, TheoryCell
from regretless.studies.experiment import build_benchmark, data_notices, is_comparable
from regretless.studies.identity import ROOTS, code_version
from regretless.studies.theory import claims as theory

SHORT_THEORY = {"replications": 32, "samples": 2**17, "horizons": (512, 1024, 2048)}
PACKAGES = ("jax", "jaxlib", "equinox", "numpy")


def play(cell: AnyCell, progress: Progress = lambda what, done, total: None) -> Result:
    """Computes a cell, whichever kind it is."""
    make_room()
    began = time.perf_counter()
    result = _theory(cell, progress) if isinstance(cell, TheoryCell) else _simulation(cell, progress)
    about = {
        "cell": cell.model_dump(),
        "name": cell.name,
        "code": code_version(ROOTS),
        "roots": list(ROOTS),
        "created": time.time(),
        "wall_seconds": round(time.perf_counter() - began, 3),
        "environment": environment(),
    }
    return Result(result.traces, {**about, **result.record})


def _simulation(cell: Cell, progress: Progress) -> Result:
    settled = cell.settled()
    first = cell.experiment(cell.arms[0])
    benchmark, rule = build_benchmark(first, settled[cell.arms[0].label].options)
    problem = Problem(benchmark.oracle, benchmark.context_shape, rule, cell.model)
    built = {arm.label: policies.build(arm.policy, settled[arm.label].settings, problem) for arm in cell.arms}
    horizon = cell.horizon or benchmark.horizon
    simulation = simulate_all(
        built,
        benchmark,
        feedback=cell.feedback,
        seeds=range(cell.first_seed, cell.first_seed + cell.seeds),
        horizon=horizon,
        config={"model": cell.model},
        progress=progress,
    )
    degree = settled[cell.arms[0].label].degree
    record = {
        "horizon": horizon,
        "degree": degree,
        "references": [line._asdict() for line in simulation.references],
        "seconds": simulation.seconds,
        "settings": {label: each.settings.model_dump() for label, each in settled.items()},
        "notices": [
            *data_notices(benchmark),
            *sorted({notice for each in settled.values() for notice in each.notices}),
        ],
        "data": benchmark.data,
        "comparable": {arm.label: is_comparable(cell.experiment(arm), benchmark, degree) for arm in cell.arms},
    }
    return Result(simulation.traces, _without_nan(record))


def _theory(cell: TheoryCell, progress: Progress) -> Result:
    size: dict[str, Any] = SHORT_THEORY if cell.short else {}
    document = theory.run(progress=progress, seed=cell.seed, **size).to_dict()
    return Result({}, {"document": _without_nan(document)})


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
