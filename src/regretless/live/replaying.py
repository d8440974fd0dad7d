"""A learner, or a history, from a log: every record is taken in as the call that wrote it was."""

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from regretless.columns import Columns
from regretless.errors import CheckpointError, LogError, RegretlessError, SettingsError
from regretless.live import archive, learning, rollout, updating, warm_start
from regretless.live.arrivals import Arrival
from regretless.live.core import Core
from regretless.live.framing import Position, Record
from regretless.live.kernel import Kernel
from regretless.live.log import Reader, Writer, places
from regretless.live.snapshot import rebuilt, unstacked
from regretless.oracles.base import Oracle
from regretless.trees import named

Path_ = str | os.PathLike[str]


def attach(core: Core, path: Path_ | None, size: int, sync: bool) -> None:
    """Begins a log, or goes on with one at whose end the learner stands; None is no log."""
    if path is None:
        return
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise SettingsError(f"learner: expected log_size to be a number of bytes, got {size!r}")
    books = core.books
    if places(Path(path)):
        reader = Reader(path)
        for _ in reader:
            pass
        reader.require_sound()
        if reader.position is not None:
            if reader.position != books.position:
                raise LogError(
                    f"there is a log at {path}, of {reader.position.records} records, which this learner did not write to its "
                    "end: go on with Learner.replay(log, oracle, append=True), with checkpoint= to shorten the way, or give "
                    "another path"
                )
            core.log = Writer(path, size, sync, reader)
            return
    writer = Writer(path, size, sync)
    kernel, form_fixed, state = books.snapshot()
    digest = archive.digest(kernel, state) if state.made else None
    data = {"config": archive.described(kernel, core.config, form_fixed), "digest": digest, "time": core.now()}
    books.position = writer.append("start", data, named("numbers", kernel.numbers))
    core.log = writer


def replay(
    cls: Any, log: Path_, oracle: Any, given: dict[str, Any], clock: Any, checkpoint: Path_ | None, until: int | None,
    append: bool,
) -> tuple[Any, Reader]:  # fmt: skip
    """The learner whose log this is, as it was after record ``until`` (None: the last), and the reader at its place."""
    if append and until is not None:
        raise LogError("replay: a log is only ever added to at its end: give append=True or until=, not both")
    if not isinstance(oracle, Oracle):
        raise SettingsError(f"learner: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
    reader = Reader(log)
    records = _read(reader, until)
    learner: Any = None
    start: Position | None = None
    if checkpoint is not None:
        learner = archive.load(cls, checkpoint, oracle, given, clock)
        start = learner._core.books.position
    for position, record in records:
        try:
            if record.kind == "start" and learner is None:
                learner, start = _begun(cls, record, oracle, given, clock), position
            elif record.kind == "start" and _begins_from(record, learner):
                start = position
            elif learner is None:
                raise LogError("its first records are gone: give checkpoint=, a file that was saved after them")
            elif start is None:
                raise LogError(f"the checkpoint {checkpoint} was not saved by the learner of this log")
            elif position.records <= start.records:
                if position.records == start.records and position != start:
                    raise LogError(f"the checkpoint {checkpoint} belongs to another log")
                continue
            else:
                _require_next(learner._core.books.position, position)
                _apply(learner._core, record, position)
        except RegretlessError as error:
            raise LogError(f"{log}, record {position.records}: {error}") from None
        except Exception as error:  # what passes the checksum can still be anything
            raise LogError(f"{log}, record {position.records}: it cannot be understood: {error!r}") from error
        learner._core.books.position = position
    if learner is None:
        raise LogError(f"{log}: expected at least one record, got none; begin with Learner(..., log=path)")
    if start is not None and (reader.position is None or reader.position.records < start.records):
        raise LogError(f"{log}: the checkpoint {checkpoint} was saved after the last record of this log that is read")
    return learner, reader


def appended(learner: Any, reader: Reader, size: int, sync: bool) -> Any:
    """The learner, writing on behind what was read of its log."""
    learner._core.log = Writer(reader.path, size, sync, reader)
    return learner


def rounds(path: Path_, until: int | None) -> dict[str, Any]:
    """The arguments of the History that a log holds."""
    decisions: dict[int, Any] = {}
    seen: dict[int, tuple[float | None, Any]] = {}
    sense, separate, columns = "minimise", False, None
    for _, record in _read(Reader(path), until):
        data, arrays = record.data, record.arrays
        if record.kind == "start":
            config = data["config"]
            sense, separate = config["options"]["sense"], config["options"]["rows"] is None
            columns = None if config.get("columns") is None else Columns(**config["columns"])
        elif record.kind in ("decide", "override", "history"):
            parts = {name: arrays[f"decision.{name}"] for name in ("id", "context", "w")}
            leaves = {name: array for name, array in arrays.items() if name.startswith("decision.instance")}
            for i, id in enumerate(parts["id"].tolist()):
                instance = {name.removeprefix("decision.instance"): leaf[i] for name, leaf in leaves.items()}
                own = instance.get("", instance) if instance else None
                decisions[id] = (parts["context"][i], parts["w"][i], own, data.get("time", np.nan))
                if record.kind == "history":
                    seen[id] = (data["totals"][i], _shown(arrays, i))
        elif record.kind == "feedback":
            seen[data["id"]] = (data["total"], _shown(arrays, ...))
    if not decisions:
        raise LogError(f"{path}: expected at least one decision in this log, got none")
    sign = -1.0 if sense == "maximise" else 1.0
    contexts, w, instances, times = zip(*decisions.values(), strict=True)
    told = [seen.get(id, (None, None)) for id in decisions]
    totals = np.array([np.nan if total is None else sign * total for total, _ in told])
    shape = next((values.shape for _, values in told if values is not None), None)
    values = None
    if separate and shape is not None:
        values = np.stack([np.full(shape, np.nan) if own is None else sign * own for _, own in told])
    return {
        "contexts": np.stack(contexts), "decisions": np.stack(w), "totals": totals, "values": values,
        "instances": None if all(own is None for own in instances) else instances, "times": np.array(times),
        "sense": "min" if sense == "minimise" else "max",
        "columns": columns,
    }  # fmt: skip


def _shown(arrays: dict[str, np.ndarray], row: Any) -> np.ndarray:
    """The values of a feedback, NaN for what did not come."""
    prefix = "" if row is ... else "arrival"
    values, seen = (arrays[f"{prefix}['{name}']" if prefix else name][row] for name in ("values", "seen"))
    return np.where(seen, values, np.nan)


def _read(reader: Reader, until: int | None) -> Iterator[tuple[Position, Record]]:
    """The records up to number ``until``; a torn tail is told in a warning, damage before it is a LogError."""
    for position, record in reader:
        yield position, record
        if until is not None and position.records >= until:
            return
    if reader.problem is None:
        return
    if not reader.torn:
        good = 0 if reader.position is None else reader.position.records
        raise LogError(f"{reader.problem}: until={good} goes on from these")
    warnings.warn(reader.problem, stacklevel=4)


def _begun(cls: Any, record: Record, oracle: Oracle, given: dict[str, Any], clock: Any) -> Any:
    """The new learner that a log begins with."""
    if record.data["digest"] is not None:
        raise LogError("the learner was loaded from a checkpoint when this log began: give it as checkpoint=")
    learner = archive.made(cls, oracle, record.data["config"], given, clock, None)
    archive.require_numbers(record.arrays, learner._core.books.kernel)
    return learner


def _begins_from(record: Record, learner: Any) -> bool:
    """Whether the log was begun by a learner that was loaded from this very checkpoint."""
    kernel, _, state = learner._core.books.snapshot()
    return archive.digest(kernel, state) == record.data["digest"]


def _require_next(before: Position | None, position: Position) -> None:
    if before is None or position.records != before.records + 1:
        raise LogError("expected the record after the checkpoint, but files of this log between them are gone")


def _apply(core: Core, record: Record, position: Position) -> None:
    """Takes in one record."""
    data, arrays, books = record.data, record.arrays, core.books
    if record.kind in ("decide", "override"):
        kernel, state = _ready(core, data)
        decisions = unstacked("decision", kernel.decision_form, len(data["foreign"]), arrays)
        books.keep(
            kernel, state, list(zip(decisions, data["foreign"], strict=True)), data["time"], data["expired"], position
        )
    elif record.kind == "feedback":
        learning.again(core, data["id"], Arrival(**arrays), data["expired"], position)
    elif record.kind == "piece":
        books.hold(data["id"], arrays["values"], data["expired"], position)
    elif record.kind == "pause":
        rollout.hold(core, data["paused"], position)
    elif record.kind == "settings":
        updating.update(core, data["settings"], position)
    elif record.kind == "history":
        kernel, state = _ready(core, data)
        warm_start.again(core, kernel, state, record, position)
    else:
        raise CheckpointError(f"unknown kind of record {record.kind!r}: update regretless")


def _ready(core: Core, data: dict[str, Any]) -> tuple[Kernel, Any]:
    """The kernel for instances of the record's form, where it is the first to have one, and the state."""
    books = core.books
    kernel = core.plan.kernel(rebuilt(data["instances"])) if "instances" in data else books.kernel
    return kernel, kernel.init() if books.state is None else books.state
