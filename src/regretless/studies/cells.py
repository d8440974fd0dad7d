"""What a study is made of: experiments, and the check of the theorems. Each is stored as one file under its own address."""

import dataclasses
import functools
import inspect
from typing import Any, Literal

import equinox as eqx
from pydantic import Field

from regretless import policies
from regretless.errors import SettingsError
from regretless.spec import Spec
from regretless.studies.experiment import Experiment
from regretless.studies.identity import PACKAGE, SIMULATION, THEORY, address, code_version, late_parts, roots_of
from regretless.studies.preparing import Prepared, prepare


class TheoryCell(Spec):
    """The check of the convergence theorems; its result is a document, not traces."""

    kind: Literal["theory"] = "theory"
    seed: int = Field(0, ge=0)
    short: bool = False

    @property
    def name(self) -> str:
        """What it is, for people."""
        return "convergence theorems" + (", short" if self.short else "")


AnyCell = Experiment | TheoryCell


def identity(cell: AnyCell) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Everything that a cell's numbers depend on apart from the code, and the modules that the code begins with."""
    if isinstance(cell, TheoryCell):
        return cell.model_dump(), (THEORY,)
    return of_prepared(prepare(cell))


def key(cell: AnyCell) -> str:
    """The address of a cell's result."""
    about, roots = identity(cell)
    return address(about, code_version(roots))


def of_prepared(prepared: Prepared) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The same for an experiment that was prepared."""
    experiment = prepared.experiment
    arms = {}
    parts: list[Any] = []
    for label, each in prepared.settled.items():
        if each.settings is None:
            raise SettingsError(
                f"arm {label!r} is a policy object, which a store cannot know again: register it by name"
            )
        world = prepared.benchmarks[prepared.worlds[label]]
        if each.world.settings is None and world.describe() == {"name": world.name}:
            raise SettingsError(
                f"benchmark {world.name!r} is an object that only tells its name, which a store cannot know again: give it by "
                "name, or have its describe() tell its data"
            )
        arms[label] = {
            "policy": each.arm.policy,
            "settings": each.names(),
            "feedback": each.world.feedback,
            "world": {
                **world.describe(),
                "settings": {} if each.world.settings is None else _named(each.world.settings),
                "oracle": world.oracle.fingerprint(),
            },
        }
        parts += [*_within(prepared.policies[label]), *_within(world), policies.REGISTRY[str(each.arm.policy)]]
    about = {
        "arms": arms,
        "seeds": list(experiment.seeds),
        "horizon": prepared.horizon,
        "delay": experiment.delay,
        "missing": experiment.missing,
    }
    return about, _roots(roots_of(*map(_definer, parts)))


def _roots(used: tuple[str, ...]) -> tuple[str, ...]:
    """What a cell depends on whose parts are of the modules ``used``; code of other people may take any part by name."""
    others = any(module.partition(".")[0] != PACKAGE for module in used)
    return tuple(sorted({SIMULATION, *used, *(late_parts() if others else ())}))


def _named(settings: Spec) -> dict[str, Any]:
    """A benchmark's settings; where its data lie does not matter."""
    return {name: value for name, value in settings.names().items() if name != "data_dir"}


def _within(part: Any) -> list[Any]:
    """A part and all that it holds: a policy's surrogate and model, the members of a mixture, a solver's function."""
    if isinstance(part, tuple | list):
        return [each for one in part for each in _within(one)]
    if isinstance(part, dict):
        return _within(list(part.values()))
    if isinstance(part, eqx.Module):
        return [part, *_within([getattr(part, field.name, None) for field in dataclasses.fields(part)])]
    return [part] if inspect.isroutine(part) or isinstance(part, functools.partial) else []


def _definer(part: Any) -> Any:
    """What a part is defined by: a function or class itself, the class of anything else."""
    return type(part) if isinstance(part, eqx.Module) else part


def has_objects(cell: AnyCell) -> bool:
    """Whether a cell holds policies or benchmarks that are objects, which its words do not tell apart."""
    if isinstance(cell, TheoryCell):
        return False
    parts = [cell.benchmark, *(part for arm in cell.arms for part in (arm.policy, arm.benchmark))]
    return any(not isinstance(part, str) for part in parts if part is not None)


def require_portable(cell: AnyCell) -> None:
    """Refuses a cell that no other process can be told of."""
    if has_objects(cell):
        raise SettingsError(
            f"{cell.name}: it holds objects, which other processes cannot be given: register them by name, or use --jobs 1"
        )


def describe(cell: AnyCell) -> dict[str, Any]:
    """A cell as JSON data, for the record and for workers; objects are told by their names."""
    if isinstance(cell, TheoryCell) or not has_objects(cell):
        return cell.model_dump(mode="json")
    arms = [
        arm.model_copy(update={"policy": _word(arm.policy), "benchmark": _word(arm.benchmark)}) for arm in cell.arms
    ]
    return cell.model_copy(update={"benchmark": cell.benchmark_name, "arms": tuple(arms)}).model_dump(mode="json")


def _word(part: Any) -> str | None:
    return part if part is None or isinstance(part, str) else getattr(part, "name", type(part).__name__)
