"""One result as one Parquet file: a row per arm and replication, and a record in the file's metadata."""

import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import DamagedError
from regretless.studies.identity import canonical
from regretless.trace import Trace

FORMAT = 1


class Result(NamedTuple):
    """Traces by label, and the record: cell, settings, reference lines, seconds, environment, code version."""

    traces: dict[str, Trace]
    record: dict[str, Any]

    def digest(self) -> str:
        """A hash of all numbers in the traces: equal digests mean equal bits."""
        digest = hashlib.sha256()
        for label, trace in self.traces.items():
            digest.update(f"{label}\0{trace.seeds}\0{trace.regret.shape}\0{trace.regret.dtype}".encode())
            for array in (trace.regret, trace.diverged_at, *(v for _, v in sorted(trace.diagnostics.items()))):
                digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()


def write_result(result: Result, path: Path) -> None:
    """Writes the file; ``read_result`` gives back the same bits."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = sorted({name for trace in result.traces.values() for name in trace.diagnostics})
    columns: dict[str, list[Any]] = {name: [] for name in ("label", "seed", "diverged_at", "regret", *names)}
    for label, trace in result.traces.items():
        for index, seed in enumerate(trace.seeds):
            columns["label"].append(label)
            columns["seed"].append(seed)
            columns["diverged_at"].append(int(trace.diverged_at[index]))
            columns["regret"].append(trace.regret[index])
            for name in names:
                columns[name].append(trace.diagnostics[name][index] if name in trace.diagnostics else None)
    arms = {label: _describe(trace) for label, trace in result.traces.items()}
    inner = {"format": FORMAT, "record": result.record, "arms": arms, "digest": result.digest()}
    wrapped = {"sha256": hashlib.sha256(canonical(inner)).hexdigest(), **inner}
    table = pa.table(columns).replace_schema_metadata({"regretless": json.dumps(wrapped)})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _describe(trace: Trace) -> dict[str, Any]:
    arrays = {"regret": trace.regret, "diverged_at": trace.diverged_at, **trace.diagnostics}
    return {
        "config": trace.config,
        "dtypes": {name: str(array.dtype) for name, array in arrays.items()},
        "diagnostics": list(trace.diagnostics),
        "mean": _finite(trace.mean()),
        "standard_error": _finite(trace.standard_error()),
        "median": _finite(trace.median()),
        "diverged": trace.diverged,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def read_record(path: Path) -> dict[str, Any]:
    """The record with a summary of each arm under ``arms``; reads the end of the file only."""
    inner = _metadata(path)
    return {**inner["record"], "arms": inner["arms"], "digest": inner["digest"]}


def _metadata(path: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(path).metadata or {}
        inner = json.loads(metadata[b"regretless"])
        expected = inner.pop("sha256")
    except FileNotFoundError:
        raise
    except (pa.ArrowException, OSError, KeyError, ValueError, AttributeError, TypeError) as error:
        raise DamagedError(f"{path}: not a readable result ({error})") from None
    if inner.get("format") != FORMAT or hashlib.sha256(canonical(inner)).hexdigest() != expected:
        raise DamagedError(f"{path}: the record is not what was written")
    return inner


def read_result(path: Path) -> Result:
    """The result with all its numbers, checked against their digest."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    inner = _metadata(path)
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        traces = _traces(table, inner["arms"])
    except (pa.ArrowException, OSError, KeyError, ValueError, IndexError, TypeError) as error:
        raise DamagedError(f"{path}: numbers cannot be read ({error})") from None
    result = Result(traces, {**inner["record"], "arms": inner["arms"], "digest": inner["digest"]})
    if result.digest() != inner["digest"]:
        raise DamagedError(f"{path}: the numbers are not what was written")
    return result


def _traces(table: Any, arms: dict[str, Any]) -> dict[str, Trace]:
    labels = np.asarray(table["label"].to_pylist(), dtype=object)
    traces = {}
    for label, about in arms.items():
        rows = table.filter(labels == label)

        def block(name: str, rows: Any = rows, kinds: dict[str, str] = about["dtypes"]) -> np.ndarray:
            flat = rows[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
            return np.asarray(flat).reshape(rows.num_rows, -1).astype(kinds[name], copy=False)

        traces[label] = Trace(
            regret=block("regret"),
            diagnostics={name: block(name) for name in about["diagnostics"]},
            diverged_at=rows["diverged_at"].to_numpy().astype(about["dtypes"]["diverged_at"]),
            seeds=tuple(rows["seed"].to_pylist()),
            config=about["config"],
        )
    return traces
