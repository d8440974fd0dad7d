"""The durable record of a learner: one SQLite file that is log, checkpoint and replay at once.

Every call that changes a learner is one row of ``records``, committed before the call returns; ``snapshots`` holds
whole states now and then, so that opening needs the last of them and the records after it. SQLite (WAL) makes a commit
atomic and durable while other processes read. The rest is done here: a checksum that continues from row to
row, ownership by one writer, and noticing that the file was removed or replaced. Nothing in the file is a pickle.
"""

import contextlib
import fcntl
import functools
import json
import math
import os
import platform
import secrets
import sqlite3
import stat
import time
import warnings
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regretless import files
from regretless.columns import Columns
from regretless.errors import StoreError

APPLICATION_ID = 0x72676C31
"""Marks an SQLite file as a learner's store."""

FORMAT = 1
"""Version of the tables."""

MAX_NUMBER = 2**62
"""The largest number of a record."""

LOCK_TIMEOUT = 10.0
"""Seconds that a write waits for another process to finish its own."""

SNAPSHOTS_KEPT = 2
"""Latest snapshots that are kept, next to the first."""

SCHEMA = (
    "CREATE TABLE owner (epoch INTEGER NOT NULL)",
    "CREATE TABLE records (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, data TEXT NOT NULL, layout TEXT NOT NULL, "
    "arrays BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE snapshots (number INTEGER PRIMARY KEY, chain INTEGER NOT NULL, data TEXT NOT NULL, "
    "layout TEXT NOT NULL, arrays BLOB NOT NULL, checksum INTEGER NOT NULL)",
    "CREATE TABLE keys (key TEXT PRIMARY KEY, number INTEGER NOT NULL) WITHOUT ROWID",
)

DATABASE_ERRORS = (sqlite3.Error, UnicodeDecodeError)
"""What reading a damaged database raises; its error messages may hold bytes that are not text."""

LAST_RECORD = """
SELECT (SELECT epoch FROM owner), number, checksum FROM
(SELECT number, checksum FROM records UNION ALL SELECT number, chain FROM snapshots) ORDER BY number DESC LIMIT 1
"""


Arrays = Mapping[str, np.ndarray]


class Record(NamedTuple):
    """One change of a learner: its number from 1 on, its kind, JSON data and arrays by name."""

    number: int
    kind: str
    data: dict[str, Any]
    arrays: dict[str, np.ndarray]


class Snapshot(NamedTuple):
    """A whole learner after record ``number``; ``chain`` is that record's checksum."""

    number: int
    chain: int
    data: dict[str, Any]
    arrays: dict[str, np.ndarray]


class RecordStore:
    """The SQLite file of one learner, opened by its one writer or by a reader."""

    def __init__(self, path: str | os.PathLike[str], *, sync: bool = False, read_only: bool = False, new: bool = False):
        self.path = Path(os.path.realpath(path))
        self.read_only = read_only
        self._names = str(self.path), f"{self.path}-wal"
        self._process = os.getpid()
        self._owner_file = -1
        self._owner_text = ""
        self._epoch = 0
        self._files: tuple[Any, ...] = ()
        _require_file(path, new)
        self._connection = self._connect(sync, new)

    @classmethod
    def create(cls, path: str | os.PathLike[str], snapshot: Snapshot, *, sync: bool = False) -> "RecordStore":
        """Return the store of a new learner, owned by this process, that begins with ``snapshot``."""
        store = cls(path, sync=sync, new=True)
        store._acquire(take_over=False, first=snapshot)
        if sync:
            files.sync_folder(store.path.parent)
        return store

    @classmethod
    def open_writer(cls, path: str | os.PathLike[str], *, sync: bool = False, take_over: bool = False) -> "RecordStore":
        """Return an existing store, owned by this process from before anything is read."""
        store = cls(path, sync=sync)
        store._acquire(take_over=take_over, first=None)
        return store

    @classmethod
    def open_reader(cls, path: str | os.PathLike[str]) -> "RecordStore":
        """Return an existing store for reading, while its owner may be writing."""
        return cls(path, read_only=True)

    def last(self) -> tuple[int, int]:
        """Return number and checksum of the last committed record."""
        with self._errors("read"):
            if self._connection.in_transaction:  # an interrupt left it open: its record was never acknowledged
                self._connection.rollback()
            _, number, checksum = self._connection.execute(LAST_RECORD).fetchone()
        return number, checksum

    def append(self, number: int, kind: str, data: Mapping[str, Any], arrays: Arrays, keys: Sequence[str] = ()) -> None:
        """Commit record ``number``, which must follow the last one; change nothing if that raises StoreError."""
        layout, blob = _pack(arrays)
        text = _to_json(data)
        with self._errors("write"), self._transaction() as (last, chain):
            if last != number - 1:
                raise StoreError(
                    f"cannot write {self.path}: expected its last record to be {number - 1}, got {last}: the file was "
                    "replaced or changed by another program; nothing was changed"
                )
            checksum = _checksum(chain, number, kind, text, layout, blob)
            insert = "INSERT INTO records VALUES (?, ?, ?, ?, ?, ?)"
            self._connection.execute(insert, (number, kind, text, layout, blob, checksum))
            if keys:
                rows = [(key, number) for key in keys]
                self._connection.executemany("INSERT OR REPLACE INTO keys VALUES (?, ?)", rows)
        self._note_owner(number)

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """Add a snapshot of the state after the last record; older ones but the first are removed."""
        with self._errors("write"), self._transaction():
            _insert_snapshot(self._connection, snapshot)
            self._connection.execute(
                "DELETE FROM snapshots WHERE number > (SELECT min(number) FROM snapshots) AND number NOT IN "
                "(SELECT number FROM snapshots ORDER BY number DESC LIMIT ?)",
                (SNAPSHOTS_KEPT,),
            )

    def latest_snapshot(self, until: int | None = None) -> Snapshot:
        """Return the last snapshot up to record ``until`` that is intact."""
        try:
            rows = self._connection.execute("SELECT number FROM snapshots ORDER BY number DESC").fetchall()
        except DATABASE_ERRORS as error:
            raise StoreError(f"{self.path} is damaged ({error}); none of its records can be read") from None
        numbers = [number for (number,) in rows if until is None or number <= until]
        if rows and not numbers:
            raise StoreError(
                f"{self.path}: expected until to be at least {rows[-1][0]}, where the file begins, got {until}"
            )
        for number in numbers:
            with contextlib.suppress(StoreError, *DATABASE_ERRORS):
                return self._read_snapshot(number)
        raise StoreError(
            f"{self.path} is damaged: none of its snapshots can be read, so that none of its records can be used"
        )

    def first_snapshot(self) -> Snapshot:
        """Return the snapshot that the file begins with."""
        with self._errors("read"):
            return self._read_snapshot(self._connection.execute("SELECT min(number) FROM snapshots").fetchone()[0])

    def records(self, after: int, chain: int, until: int | None = None) -> Iterator[Record]:
        """Yield the records after ``after``, whose checksum is ``chain``; StoreError says where damage begins."""
        columns = "number, kind, data, layout, arrays, checksum"
        limit = MAX_NUMBER if until is None else until
        query = f"SELECT {columns} FROM records WHERE number > ? AND number <= ? ORDER BY number"
        number = after
        try:
            for row in self._connection.execute(query, (after, limit)):
                if row[0] != number + 1:
                    raise StoreError(f"record {number + 1} is missing")
                if _checksum(chain, *row[:5]) != row[5]:
                    raise StoreError("its checksum is wrong")
                record = Record(row[0], row[1], _from_json(row[2]), _unpack(row[3], row[4]))
                number, chain = row[0], row[5]
                yield record
        except (StoreError, *DATABASE_ERRORS, TypeError) as error:
            raise StoreError(
                f"{self.path} is damaged at record {number + 1} ({error}); the records up to {number} are good: "
                f"Learner.open(..., until={number}, read_only=True) reads them, and its save(path) keeps them in a new "
                "file"
            ) from None
        if until is not None and number < until:
            raise StoreError(f"{self.path}: expected at least {until} records, got {number}")

    def find_key(self, key: str) -> Record | None:
        """Return the record of the decision with the caller's ``key``, None if there is none."""
        with self._errors("read"):
            found = self._connection.execute("SELECT number FROM keys WHERE key = ?", (key,)).fetchone()
            if found is None:
                return None
            query = "SELECT number, chain FROM snapshots UNION ALL SELECT number, checksum FROM records"
            before = self._connection.execute(f"SELECT chain FROM ({query}) WHERE number = ? - 1", found).fetchone()
        return None if before is None else next(self.records(found[0] - 1, before[0], found[0]))

    @property
    def closed(self) -> bool:
        """Whether nothing can be written any more."""
        return self._owner_file < 0

    def close(self) -> None:
        """Close the file and give up ownership; nothing can be written from then on."""
        if self._process != os.getpid():
            return
        self._connection.close()
        if self._owner_file >= 0:
            with contextlib.suppress(OSError):
                if os.fstat(self._owner_file).st_ino == os.stat(self._owner_path).st_ino:
                    self._owner_path.unlink()
            os.close(self._owner_file)
            self._owner_file = -1

    def __del__(self) -> None:
        if hasattr(self, "_connection"):
            self.close()

    @property
    def _owner_path(self) -> Path:
        return self.path.with_name(f"{self.path.name}-owner")

    def _connect(self, sync: bool, new: bool) -> sqlite3.Connection:
        for query in ("mode=ro", "immutable=1") if self.read_only else ("mode=rwc",):
            connection = None
            try:
                uri = f"{self.path.as_uri()}?{query}"
                connection = sqlite3.connect(
                    uri, timeout=LOCK_TIMEOUT, uri=True, isolation_level=None, check_same_thread=False
                )
                connection.text_factory = lambda text: text.decode(errors="replace")  # the checksum notices damage
                connection.execute("PRAGMA trusted_schema=OFF")
                self._require_own_format(connection, new)
                if not self.read_only:
                    connection.execute("PRAGMA journal_mode=WAL")
                    connection.execute(f"PRAGMA synchronous={'FULL' if sync else 'NORMAL'}")
                return connection
            except DATABASE_ERRORS as error:
                if connection is not None:
                    connection.close()
                problem = error
        raise StoreError(f"cannot open {self.path}: {self._explain(problem)}") from None

    def _require_own_format(self, connection: sqlite3.Connection, new: bool) -> None:
        """Refuse the files of other programs and versions before anything is written."""
        ((application,),) = connection.execute("PRAGMA application_id").fetchall()
        ((version,),) = connection.execute("PRAGMA user_version").fetchall()
        tables = connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
        if not tables and application == version == 0:
            if not new:
                raise StoreError(f"{self.path}: expected a learner's store, got an empty file")
            return
        if application != APPLICATION_ID:
            raise StoreError(f"{self.path} is not a learner's store, but a database of another program")
        if version != FORMAT:
            raise StoreError(f"{self.path} has format {version}, this program reads format {FORMAT}: update regretless")
        if [sql for (sql,) in tables] != list(SCHEMA):
            raise StoreError(f"{self.path} is damaged or forged: its tables are not those of a learner's store")

    def _explain(self, error: Exception) -> str:
        """Say what an SQLite error means, for a file that is not a database in particular."""
        if "not a database" not in str(error):
            return str(error)
        with contextlib.suppress(OSError), self.path.open("rb") as file:
            begin = file.read(4)
            if begin in (b"rgl\x01", b"PK\x03\x04"):
                return (
                    "it is a log or checkpoint of version 0.2, which this version cannot read: read its decisions with "
                    "version 0.2 (History.from_log) and give them to a new learner (learn_from)"
                )
        return "it is damaged from its first bytes on, or not a learner's store; none of its records can be read"

    def _acquire(self, take_over: bool, first: Snapshot | None) -> None:
        """Become the owner, in a transaction, so that no other process writes or becomes the owner meanwhile."""
        connection = self._connection
        try:
            with self._errors("open"):
                connection.execute("BEGIN IMMEDIATE")
                if first is not None and connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                    raise StoreError(f"there is a learner in {self.path} already: continue it with Learner.open")
                known = self._lock_owner_file(take_over)
                if first is not None:
                    _create_tables(connection, first)
                connection.execute("UPDATE owner SET epoch = epoch + 1")
                self._epoch, number, _ = connection.execute(LAST_RECORD).fetchone()
                connection.execute("COMMIT")
                self._write_owner_text(number)
            self._files = self._identify_files()
            if known > number and first is None:
                warnings.warn(
                    f"{self.path}: the records {number + 1} to {known} are lost, because the machine stopped before "
                    f"they were on the disk (sync=True prevents that) or the file {self.path.name}-wal was damaged; "
                    f"the records up to {number} are good and are continued",
                    stacklevel=5,
                )
        except BaseException:
            self.close()
            raise

    def _lock_owner_file(self, take_over: bool) -> int:
        """Lock the side file that says who owns the store; return the number of records that it notes."""
        path = self._owner_path
        while True:
            file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            content = _read_owner(file)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                if take_over:
                    break
                raise StoreError(
                    f"{self.path} is being written by another learner{content.get('by', '')}; close that one first, or "
                    "stop it with Learner.open(..., take_over=True)"
                ) from None
            except OSError:
                pass  # a file system without locks: the epoch alone protects the records
            if os.path.exists(path) and os.stat(path).st_ino == os.fstat(file).st_ino:
                self._owner_file = file
                return int(content.get("records", 0))
            os.close(file)  # removed by its owner in between
        part = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        self._owner_file = os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
        with contextlib.suppress(OSError):
            fcntl.flock(self._owner_file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.replace(part, path)
        return int(content.get("records", 0))

    def _write_owner_text(self, number: int) -> None:
        by = f" (process {os.getpid()} on {platform.node()} since {time.strftime('%Y-%m-%d %H:%M:%S')})"
        self._owner_text = json.dumps({"by": by})[:-1]
        os.ftruncate(self._owner_file, 0)
        self._note_owner(number)

    def _note_owner(self, number: int) -> None:
        """Note in the side file how many records there are, so that a damaged tail is noticed."""
        with contextlib.suppress(OSError):
            os.pwrite(self._owner_file, f'{self._owner_text}, "records": "{number:020d}"}}'.encode(), 0)

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[tuple[int, int]]:
        """Yield number and checksum of the last record; commit at the end, roll back after an error."""
        connection = self._connection
        if self._owner_file < 0:
            raise StoreError(
                f"{self.path} was closed: nothing can be written any more; open it again with Learner.open"
            )
        self._require_same_files()
        if connection.in_transaction:  # left by an interrupt
            connection.rollback()
        connection.execute("BEGIN IMMEDIATE")
        try:
            epoch, *chain = connection.execute(LAST_RECORD).fetchone()
            if epoch != self._epoch:
                raise StoreError(
                    f"cannot write {self.path}: another learner has taken it over; this one is stopped and nothing was "
                    "changed"
                )
            yield chain[0], chain[1]
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
        with contextlib.suppress(OSError):  # the next write says that the file is gone
            self._files = self._identify_files()

    def _identify_files(self) -> tuple[Any, ...]:
        """Return what identifies the database file and its write-ahead file, and their sizes."""
        database, wal = map(os.stat, self._names)
        return (database.st_dev, database.st_ino, wal.st_ino), database.st_size, wal.st_size

    def _require_same_files(self) -> None:
        """Refuse to write into a file that was removed, replaced or truncated since the last write."""
        try:
            files, size, wal_size = self._identify_files()
            known, known_size, known_wal_size = self._files or (files, size, wal_size)
            if files == known and size >= known_size and (wal_size >= known_wal_size or self._was_emptied()):
                return
            event = "it was replaced or truncated"
        except OSError:
            event = f"it or {self.path.name}-wal was removed"
        raise StoreError(
            f"cannot write {self.path}: {event} while the learner was running; nothing was changed (save(path) keeps "
            "the learner in a new file)"
        )

    def _was_emptied(self) -> bool:
        """Return whether another program moved all of the write-ahead file into the database, which SQLite notes."""
        with open(f"{self.path}-shm", "rb") as file:
            return file.read(20)[16:] == bytes(4)  # the number of frames that count

    @contextlib.contextmanager
    def _errors(self, verb: str) -> Iterator[None]:
        try:
            yield
        except (*DATABASE_ERRORS, OSError) as error:
            reason = error.strerror or str(error) if isinstance(error, OSError) else self._explain(error)
            consequence = "; nothing was changed" if verb == "write" else ""
            raise StoreError(f"cannot {verb} {self.path}: {reason}{consequence}") from None

    def _read_snapshot(self, number: int) -> Snapshot:
        query = "SELECT chain, data, layout, arrays, checksum FROM snapshots WHERE number = ?"
        chain, text, layout, blob, checksum = self._connection.execute(query, (number,)).fetchone()
        if _checksum(chain, number, "snapshot", text, layout, blob) != checksum:
            raise StoreError(f"snapshot {number} is damaged")
        return Snapshot(number, chain, _from_json(text), _unpack(layout, blob))


def read_rounds(path: str | os.PathLike[str], until: int | None = None) -> dict[str, Any]:
    """Return the decisions in a store with what came back, as the arguments of a History; up to record ``until``."""
    with contextlib.closing(RecordStore.open_reader(path)) as store:
        first = store.first_snapshot()
        records = list(store.records(first.number, first.chain, until))
    problem = first.data["config"]["problem"]
    decisions: dict[int, Any] = {}
    by_policy: set[int] = set()
    seen: dict[int, tuple[float | None, np.ndarray]] = {}
    for _, kind, data, arrays in records:
        if kind in ("decide", "record", "history"):
            leaves = {name: array for name, array in arrays.items() if name.startswith("decision.instance")}
            chances = np.exp(arrays["decision.log_probability"])
            by_policy |= {int(id) for id in arrays["decision.id"]} if kind == "decide" else set()
            rows = zip(*(arrays[f"decision.{name}"] for name in ("id", "context", "w")), strict=True)
            for i, (id, context, w) in enumerate(rows):
                instance = {name.removeprefix("decision.instance"): leaf[i] for name, leaf in leaves.items()}
                known = instance.get("", instance) if instance else None
                decisions[int(id)] = (context, w, known, data["time"], chances[i])
                if kind == "history":
                    values, shown = (arrays[f"arrival['{name}']"][i] for name in ("values", "seen"))
                    seen[int(id)] = (data["totals"][i], np.where(shown, values, np.nan))
        elif kind == "feedback":
            seen[data["id"]] = (data["total"], np.where(arrays["seen"], arrays["values"], np.nan))
    if not decisions:
        raise StoreError(
            f"{path}: expected at least one decision among its records, got none (a copy that save wrote has those "
            "that came after it)"
        )
    sign = -1.0 if problem["sense"] == "max" else 1.0
    contexts, w, instances, times, _ = zip(*decisions.values(), strict=True)
    arrived = [seen.get(id, (None, None)) for id in decisions]
    shape = next((values.shape for _, values in arrived if values is not None), None)
    values = None
    if shape is not None and not (isinstance(problem["feedback"], dict) and "rows" in problem["feedback"]):
        values = np.stack([np.full(shape, np.nan) if row is None else sign * row for _, row in arrived])
    return {
        "contexts": np.stack(contexts),
        "decisions": np.stack(w),
        "totals": np.array([np.nan if total is None else sign * total for total, _ in arrived]),
        "values": values,
        "instances": None if all(instance is None for instance in instances) else instances,
        "times": np.array(times),
        "propensities": _propensities(decisions, by_policy),
        "sense": problem["sense"],
        "columns": None if problem["columns"] is None else Columns(**problem["columns"]),
    }


def _propensities(decisions: Mapping[int, Any], by_policy: set[int]) -> np.ndarray | None:
    """Return the probability of each decision; None unless it is known of all that the learner or incumbent made.

    Rounds with a known probability are not like others, so that estimates from them alone would be biased.
    """
    chances = np.array([decision[-1] for decision in decisions.values()])
    own = np.array([id in by_policy for id in decisions])
    return None if np.isnan(chances[own]).any() or np.isnan(chances).all() else chances


def write_copy(path: str | os.PathLike[str], snapshot: Snapshot) -> None:
    """Write a new store that begins with ``snapshot``, atomically; refuse to replace a store that is being written."""
    target = Path(os.path.realpath(path))
    if os.path.exists(f"{target}-wal"):
        raise StoreError(
            f"cannot write {path}: a learner writes that file, or was killed while it did; give another path"
        )
    with files.replacing(target) as part:
        try:
            with contextlib.closing(sqlite3.connect(part, isolation_level=None)) as connection:
                connection.execute("PRAGMA journal_mode=OFF")
                connection.execute("BEGIN")
                _create_tables(connection, snapshot)
                connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise OSError(0, str(error)) from None


def _create_tables(connection: sqlite3.Connection, first: Snapshot) -> None:
    """Create the tables of a store that begins with a snapshot."""
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={FORMAT}")
    for statement in SCHEMA:
        connection.execute(statement)
    connection.execute("INSERT INTO owner VALUES (0)")
    _insert_snapshot(connection, first)


def _insert_snapshot(connection: sqlite3.Connection, snapshot: Snapshot) -> None:
    layout, blob = _pack(snapshot.arrays)
    text = _to_json(snapshot.data)
    checksum = _checksum(snapshot.chain, snapshot.number, "snapshot", text, layout, blob)
    row = (snapshot.number, snapshot.chain, text, layout, blob, checksum)
    connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", row)


def _require_file(path: str | os.PathLike[str], new: bool) -> None:
    try:
        is_file = (new and not os.path.exists(path)) or stat.S_ISREG(os.stat(path).st_mode)
    except OSError as error:
        raise StoreError(f"cannot open {path}: {error.strerror}") from None
    if not is_file:
        raise StoreError(f"cannot open {path}: expected a file, got a folder, device or pipe")


def _read_owner(file: int) -> dict[str, Any]:
    """Return what the side file says; nothing if it cannot be understood."""
    try:
        content = json.loads(os.pread(file, 4096, 0))
        return {"by": str(content["by"]), "records": int(content["records"])}
    except Exception:
        return {}


_to_json = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


def _from_json(text: str) -> dict[str, Any]:
    data = json.loads(text)
    if not isinstance(data, dict):
        raise StoreError("expected a JSON object")
    return data


def _checksum(chain: int, number: int, kind: str, text: str, layout: str, blob: bytes) -> int:
    """Return the checksum of a row, continued from the one before: a missing or moved row is noticed, too."""
    head = f"{number}\0{kind}\0{text}\0{layout}\0".encode()
    return zlib.crc32(blob, zlib.crc32(head, chain))


def _pack(arrays: Arrays) -> tuple[str, bytes]:
    """Return names, types and shapes of arrays as JSON, and their numbers as bytes."""
    plain = {name: np.asarray(array) for name, array in arrays.items()}
    layout = tuple((name, array.dtype.str, array.shape) for name, array in plain.items())
    return _describe_layout(layout), b"".join(array.tobytes() for array in plain.values())


@functools.lru_cache(maxsize=64)  # the same for every decision, and for every feedback
def _describe_layout(layout: tuple[Any, ...]) -> str:
    return _to_json(layout)


def _unpack(layout: str, blob: bytes) -> dict[str, np.ndarray]:
    """Return the arrays that were packed; a layout that asks for other than the bytes that are there is refused."""
    try:
        place, arrays = 0, {}
        for name, dtype, shape in json.loads(layout):
            kind = np.dtype(dtype)
            if kind.kind not in "biuf" or not all(type(size) is int and size >= 0 for size in shape):
                raise ValueError(f"array {name!r} of type {dtype} and shape {shape}")
            count = math.prod(shape)
            arrays[name] = np.frombuffer(blob, kind, count, place).reshape(shape)
            place += count * kind.itemsize
        if place != len(blob):
            raise ValueError(f"{len(blob)} bytes instead of {place}")
        for name in [name for name in arrays if name.endswith(".log_density")]:  # all that earlier versions stored
            arrays.setdefault(name.replace("density", "probability"), np.full_like(arrays[name], np.nan))
        return arrays
    except Exception as error:  # what has a correct checksum can still be forged
        raise StoreError(f"its arrays cannot be understood: {error}") from None
