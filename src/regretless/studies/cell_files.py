"""A result as one Parquet file: a row per arm and replication, and a record with the result's own key in the metadata.

The record and the numbers have a checksum each. What cannot be parsed, or has another checksum, is damaged; a file that the
operating system does not let us read is not, and raises OSError.
"""

import dataclasses
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from regretless.array_files import canonical
from regretless.errors import DamagedError, SettingsError
from regretless.results import DIAGNOSTICS_EVERY, Result
from regretless.show.shown import Shown

FORMAT = 2
MAGIC = b"PAR1"
COLUMNS = ("label", "seed", "diverged_at", "regret", "decisions")


@dataclasses.dataclass(frozen=True)
class CellResult(Shown):
    """Traces by label, and the record: key, cell, settings, reference lines, seconds, environment, code and its roots."""

    traces: dict[str, Result]
    record: dict[str, Any]

    def digest(self) -> str:
        """A hash of all numbers in the traces: equal digests mean equal bits."""
        digest = hashlib.sha256()
        for label, trace in self.traces.items():
            digest.update(f"{label}\0{trace.seeds}\0{trace.regret.shape}\0{trace.regret.dtype}".encode())
            for array in (trace.regret, trace.diverged_at, *(v for _, v in sorted(trace.diagnostics.items()))):
                digest.update(np.ascontiguousarray(array).tobytes())
            if trace.decisions is not None:
                digest.update(f"{trace.decisions.shape}\0{trace.decisions.dtype}".encode())
                digest.update(np.ascontiguousarray(trace.decisions).tobytes())
        return digest.hexdigest()

    def _worlds(self) -> dict[str, str] | None:
        return self.record.get("worlds")

    def _lines(self) -> list[tuple[str, float | None, float | None]]:
        known = self.record.get("references", [])
        word = lambda line: f"{line['world']}: {line['name']}" if line.get("world") else line["name"]  # noqa: E731
        return [(word(line), line["mean"], line["standard_error"]) for line in known]

    def _repr_html_(self) -> str:
        from regretless.show import results

        title = str(self.record.get("name", "CellResult"))
        return results.results_card(title, self.traces, self._lines(), None, self._worlds())

    def with_key(self, key: str) -> "CellResult":
        """The same result with its key in the record; refuses to change the key of one that has another."""
        if self.record.get("key", key) != key:
            raise SettingsError(f"expected a result without a key or with {key}, got the result {self.record['key']}")
        return CellResult(self.traces, {**self.record, "key": key})


def write_result(result: CellResult, path: Path) -> None:
    """Writes the file in place; ``read_result`` gives back the same bits. ``files.beside`` makes it atomic."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    arms = {label: _describe(trace) for label, trace in result.traces.items()}
    record = {name: value for name, value in result.record.items() if name not in ("arms", "digest")}
    inner = {"format": FORMAT, "record": record, "arms": arms, "digest": result.digest()}
    wrapped = {"sha256": hashlib.sha256(canonical(inner)).hexdigest(), **inner}
    table = pa.table(_columns(result.traces)).replace_schema_metadata({"regretless": json.dumps(wrapped)})
    pq.write_table(table, path, compression="zstd", write_page_checksum=True)


def _columns(traces: dict[str, Result]) -> dict[str, list[Any]]:
    """Numbers and lists of numbers, an entry per arm and replication; None where an arm has no such list."""
    names = sorted({name for trace in traces.values() for name in trace.diagnostics})
    if set(names) & set(COLUMNS):
        raise SettingsError(f"a diagnostic cannot be called {', '.join(COLUMNS)}: give it another name, got {names}")
    kept = [name for name in COLUMNS if name != "decisions" or any(t.decisions is not None for t in traces.values())]
    columns: dict[str, list[Any]] = {name: [] for name in (*kept, *names)}
    for label, trace in traces.items():
        for index, seed in enumerate(trace.seeds):
            row = {name: values[index] for name, values in trace.diagnostics.items()}
            row |= {"label": label, "seed": seed, "regret": trace.regret[index]}
            row["diverged_at"] = int(trace.diverged_at[index])
            if trace.decisions is not None:
                row["decisions"] = np.ravel(trace.decisions[index])
            for name, column in columns.items():
                column.append(row.get(name))
    return columns


def _describe(trace: Result) -> dict[str, Any]:
    arrays = {"regret": trace.regret, "diverged_at": trace.diverged_at, **trace.diagnostics}
    decided = {} if trace.decisions is None else {"decisions": trace.decisions}
    return {
        "config": trace.config,
        "dtypes": {name: str(array.dtype) for name, array in {**arrays, **decided}.items()},
        "diagnostics": list(trace.diagnostics),
        "diagnostics_every": trace.diagnostics_every,
        "decisions": None if trace.decisions is None else list(trace.decisions.shape[1:]),
        "mean": _finite(trace.mean()),
        "standard_error": _finite(trace.standard_error()),
        "median": _finite(trace.median()),
        "diverged": trace.diverged,
    }


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def read_record(path: Path, key: str | None = None) -> dict[str, Any]:
    """The record with a summary of each arm under ``arms``; reads the end of the file only.

    OSError if the file cannot be read; DamagedError if it is damaged, or is not the result with this ``key``.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 8, 0))
        length = int.from_bytes(file.read(4), "little")
        file.seek(max(size - 8 - length, 0))
        end = file.read()
    return _shown(_metadata(MAGIC + end, path), path, key)


def read_result(path: Path, key: str | None = None) -> CellResult:
    """The result with all its numbers, checked against their digest; errors as those of ``read_record``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    content = path.read_bytes()
    inner = _metadata(content, path)
    record = _shown(inner, path, key)
    try:
        # In this thread alone: a pool of reading threads can outlive the interpreter and abort the process at its end.
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True, pre_buffer=False)
        table = file.read(use_threads=False)
        traces = _traces(table, inner["arms"])
    except (pa.ArrowException, OSError, KeyError, ValueError, IndexError, TypeError, AttributeError) as error:
        raise DamagedError(f"{path} is damaged: its numbers cannot be read ({error})") from None
    result = CellResult(traces, record)
    if result.digest() != inner["digest"]:
        raise DamagedError(f"{path} is damaged: its numbers are not those that were written")
    return result


def _metadata(content: bytes, path: Path) -> dict[str, Any]:
    """What ``write_result`` wrote beside the numbers; ``content`` is a Parquet file, or its two ends."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        metadata = pq.read_schema(pa.BufferReader(content)).metadata or {}
        inner = json.loads(metadata[b"regretless"])
        expected = inner.pop("sha256")
        found = hashlib.sha256(canonical(inner)).hexdigest()
    except KeyError:
        raise DamagedError(f"{path} is no result of this program, or one of version 0.1") from None
    except (pa.ArrowException, OSError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise DamagedError(f"{path} is damaged, or no result: {error}") from None
    if found != expected:
        raise DamagedError(f"{path} is damaged: its record is not what was written")
    if inner.get("format") != FORMAT:
        raise DamagedError(f"{path} is written in format {inner.get('format')}, this version reads format {FORMAT}")
    return dict(inner)


def _shown(inner: dict[str, Any], path: Path, key: str | None) -> dict[str, Any]:
    record = {**inner["record"], "arms": inner["arms"], "digest": inner["digest"]}
    if key is not None and record.get("key") != key:
        raise DamagedError(f"{path} is another result's file: expected the key {key}, got {record.get('key')}")
    return record


def _traces(table: Any, arms: dict[str, Any]) -> dict[str, Result]:
    labels = np.asarray(table["label"].to_pylist(), dtype=object)
    return {label: _trace(label, table.filter(labels == label), about) for label, about in arms.items()}


def _trace(label: str, rows: Any, about: dict[str, Any]) -> Result:
    def block(name: str) -> np.ndarray:
        flat = rows[name].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        return np.asarray(flat).reshape(rows.num_rows, -1).astype(about["dtypes"][name], copy=False)

    shape = about["decisions"]
    return Result(
        label=label,
        regret=block("regret"),
        diagnostics={name: block(name) for name in about["diagnostics"]},
        diverged_at=rows["diverged_at"].to_numpy().astype(about["dtypes"]["diverged_at"]),
        seeds=tuple(rows["seed"].to_pylist()),
        config=about["config"],
        decisions=None if shape is None else block("decisions").reshape(rows.num_rows, *shape),
        diagnostics_every=about.get("diagnostics_every", DIAGNOSTICS_EVERY),  # results of 0.2 do not say
    )
