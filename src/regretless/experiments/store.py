"""Results on disk: one arm is one ``.npz`` file, named by its address.

A file appears completely or not at all. It holds its own address and checksums, so damage and files in the wrong place
are noticed when they are read. A file that the operating system does not let us read is not damaged: it is never
replaced or removed. The process that computes a result holds a lock on its claim; the operating system releases the
lock when that process ends, however it ends.
"""

import contextlib
import dataclasses
import fcntl
import json
import os
import secrets
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from regretless import files
from regretless.errors import DamagedError, RegretlessError, SettingsError, WriteError
from regretless.experiments.study import Address, Scale, Study
from regretless.results import Result, read_summary

DEFAULT = Path("results")
SUFFIX = ".npz"


class StoredEntry(NamedTuple):
    """A file of a store, without its numbers."""

    address: str
    path: Path
    record: dict[str, Any] | None  # None: it is damaged, or cannot be read at the moment
    size: int
    problem: str = ""  # why there is no record
    damaged: bool = False


@dataclasses.dataclass(frozen=True)
class Failure:
    """Why a task failed when it was last tried; every failed try has its own ``id``."""

    name: str
    error: str
    id: str

    @property
    def last_line(self) -> str:
        """The error without its traceback."""
        return (self.error.strip().splitlines() or ["unknown"])[-1]


@dataclasses.dataclass(frozen=True)
class Campaign:
    """What was asked for: studies with the addresses of their results.

    Parameters
    ----------
    id : str
        The same studies at the same scale always have the same one.
    command : str
        The command that resumes it.
    code : str
        The version of the library's code.
    written : float
        When it was last started, in seconds since 1970.
    scale : Scale
        How much of everything was asked for.
    studies : tuple of Study
        Their cells have addresses and no work.
    names : dict of str to str
        A readable name of the result under each address.
    imports : tuple of str
        Modules that were imported for it.
    """

    id: str
    command: str
    code: str
    written: float
    scale: Scale
    studies: tuple[Study, ...]
    names: dict[Address, str]
    imports: tuple[str, ...] = ()


class Claim(contextlib.AbstractContextManager["Claim"]):
    """The right to compute one result, held by at most one living process."""

    def __init__(self, path: Path):
        self.path = path
        self.file: int | None = None

    def try_acquire(self) -> bool:
        """Take the claim unless a living process holds it; return whether it was taken."""
        while True:
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.path.samestat(os.fstat(file), os.stat(self.path)):
                    self.file = file
                    self.report("waiting", 0, 1)
                    return True
            except BlockingIOError:
                os.close(file)
                return False
            except FileNotFoundError:
                pass
            os.close(file)  # its last holder has just removed it

    def report(self, what: str, done: int, total: int) -> None:
        """Write down how far the work is, for other processes."""
        text = json.dumps({"pid": os.getpid(), "what": what, "done": done, "total": total, "time": time.time()})
        with contextlib.suppress(OSError), self.path.open("r+b", buffering=0) as file:
            file.write(text.ljust(200).encode())

    def release(self) -> None:
        """Give the claim back and remove its file."""
        if self.file is not None:
            self.path.unlink(missing_ok=True)
            os.close(self.file)
            self.file = None

    def __exit__(self, *exception: object) -> None:
        self.release()


class ResultStore:
    """A folder of results, claims, failures and campaigns.

    Parameters
    ----------
    folder : path, default "results"
        Where it is; ``create`` makes it.

    Examples
    --------
    >>> import tempfile
    >>> store = ResultStore(tempfile.mkdtemp())
    >>> store.has("0" * 64), list(store.entries())
    (False, [])
    """

    def __init__(self, folder: str | os.PathLike[str] = DEFAULT):
        self.folder = Path(folder)
        self.arms, self.claims = self.folder / "arms", self.folder / "claims"
        self.failures, self.campaigns = self.folder / "failures", self.folder / "campaigns"

    def create(self) -> None:
        """Make the folders and remove what killed writers left; refuse a place that cannot be written."""
        try:
            for folder in (self.arms, self.claims, self.failures, self.campaigns):
                folder.mkdir(parents=True, exist_ok=True)
                if not os.access(folder, os.W_OK | os.X_OK):
                    raise PermissionError(13, "Permission denied")
            for folder in (self.failures, self.campaigns, *self.arms.iterdir()):
                files.remove_left_behind(folder)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise SettingsError(f"cannot write to the store {self.folder}: {reason}; choose another folder") from None

    def path(self, address: str) -> Path:
        """Return where the result with this address is, or will be.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        return self.arms / address[:2] / f"{address}{SUFFIX}"

    def claim(self, address: str) -> Claim:
        """Return the claim on a result, not taken yet.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        return Claim(self.claims / address)

    def running(self, address: str) -> dict[str, Any] | None:
        """Return how far a living process is with this result; None if none computes it.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        with contextlib.suppress(FileNotFoundError), (self.claims / address).open("rb", buffering=0) as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                with contextlib.suppress(ValueError, TypeError):
                    return dict(json.loads(file.read(4096)))
                return {}
        return None

    def has(self, address: str) -> bool:
        """Return whether the result is there and its record is intact; ``load`` checks the numbers, too.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        return self.record(address) is not None

    def record(self, address: str) -> dict[str, Any] | None:
        """Return the record of a result; None if there is none, or it is damaged or cannot be read at the moment.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        try:
            return self._read_record(self.path(address), address)
        except (OSError, DamagedError):
            return None

    def load(self, address: str) -> Result:
        """Return the result with this address.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.

        Raises
        ------
        FileNotFoundError
            If there is none.
        DamagedError
            If it is damaged, or the result of another address.
        RegretlessError
            If the operating system does not let us read it.
        """
        path = self.path(address)
        try:
            result = Result.load(path)
        except SettingsError as error:
            if not path.exists():
                raise FileNotFoundError(2, "no such result", str(path)) from None
            raise RegretlessError(f"{error}; it was left as it is") from None
        self._require_address(result.extra, path, address)
        return result

    def is_sound(self, address: str) -> bool:
        """Return whether the result is there and every number of it is as it was written.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        try:
            self.load(address)
        except (FileNotFoundError, DamagedError):
            return False
        return True

    def put(self, address: str, result: Result, name: str, code: Mapping[str, str] | None = None) -> None:
        """Store a result and forget earlier failures; the caller holds the claim, or is alone.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        result : Result
            What was computed.
        name : str
            What it is, for people.
        code : mapping of str to str, optional
            Versions of the code that computed it, by module.
        """
        known = result.extra.get("address", address)
        if known != address:
            raise SettingsError(f"expected a result without an address or with {address}, got the result {known}")
        about = {"address": address, "name": name, "code": dict(code or {}), "created": time.time()}
        stored = dataclasses.replace(result, extra={**about, **result.extra})
        path = self.path(address)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WriteError(f"cannot write {path}: {error.strerror}; nothing was written") from None
        stored.save(path)
        (self.failures / f"{address}.json").unlink(missing_ok=True)

    def fail(self, address: str, name: str, error: str) -> None:
        """Write down why a task failed.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        name : str
            What the task is, for people.
        error : str
            The traceback.
        """
        failure = {"name": name, "error": error, "id": secrets.token_hex(8)}
        files.write_text(self.failures / f"{address}.json", json.dumps(failure, indent=1))

    def failure(self, address: str) -> Failure | None:
        """Return why a task failed when it was last tried; None if it did not.

        Parameters
        ----------
        address : str
            64 hexadecimal digits.
        """
        return _read_form(self.failures / f"{address}.json", _FAILURE)

    def write_campaign(self, campaign: Campaign) -> None:
        """Leave a campaign in the store.

        Parameters
        ----------
        campaign : Campaign
            Replaces one with the same id.
        """
        files.write_text(self.campaigns / f"{campaign.id}.json", json.dumps(_CAMPAIGN.dump_python(campaign), indent=1))

    def read_campaign(self, id: str) -> Campaign | None:
        """Return a campaign by its id; None if it is not there, or cannot be understood.

        Parameters
        ----------
        id : str
            That of the campaign.
        """
        return _read_form(self.campaigns / f"{id}.json", _CAMPAIGN)

    def read_campaigns(self) -> list[Campaign]:
        """Return all campaigns that can be understood, oldest first; the command of another one writes it again."""
        campaigns = filter(None, (_read_form(path, _CAMPAIGN) for path in self.campaigns.glob("*.json")))
        return sorted(campaigns, key=lambda campaign: campaign.written)

    def entries(self) -> Iterator[StoredEntry]:
        """Iterate over everything that is stored, with what cannot be used and why."""
        for path in sorted(self.arms.glob(f"??/*{SUFFIX}")):
            try:
                size = path.stat().st_size
                yield StoredEntry(path.stem, path, self._read_record(path, path.stem), size)
            except DamagedError as error:
                yield StoredEntry(path.stem, path, None, size, str(error), damaged=True)
            except FileNotFoundError:  # removed by another process
                continue
            except OSError as error:
                yield StoredEntry(path.stem, path, None, 0, f"cannot be read: {error.strerror}")

    def outdated(self) -> list[StoredEntry]:
        """Return the results that this code would not use: damaged, or computed by code that has changed since.

        What cannot be read at the moment is not among them, nor are results of modules that are not installed here.
        """
        from regretless.experiments.runner import is_outdated

        codes = ((entry, (entry.record or {}).get("extra", {}).get("code")) for entry in self.entries())
        return [entry for entry, code in codes if entry.damaged or (isinstance(code, dict) and is_outdated(code))]

    def remove(self, entry: StoredEntry) -> None:
        """Delete one result.

        Parameters
        ----------
        entry : StoredEntry
            One of ``entries`` or ``outdated``.
        """
        entry.path.unlink(missing_ok=True)

    def _read_record(self, path: Path, address: str) -> dict[str, Any]:
        record = read_summary(path)
        extra = record.get("extra")
        self._require_address(extra if isinstance(extra, dict) else {}, path, address)
        return record

    def _require_address(self, extra: Mapping[str, Any], path: Path, address: str) -> None:
        if extra.get("address") != address:
            wrong = f"expected the address {address}, got {extra.get('address')}"
            raise DamagedError(f"{path} is the file of another result: {wrong}")


_FAILURE: TypeAdapter[Failure] = TypeAdapter(Failure)
_CAMPAIGN: TypeAdapter[Campaign] = TypeAdapter(Campaign)


def _read_form(path: Path, form: "TypeAdapter[Any]") -> Any:
    """Return what a JSON file of this form holds; None if it is not there, cannot be read or has another form.

    A lone surrogate, as in a path that is not UTF-8, is read as a question mark.
    """
    try:
        text = json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
        return form.validate_json(text.encode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):  # pydantic's own error is a ValueError
        return None
