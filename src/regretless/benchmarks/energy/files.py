"""The files of the energy benchmark: where they come from, how they are found, how they are told from altered ones."""

import hashlib
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from regretless import files
from regretless.errors import SettingsError
from regretless.folders import cache_directory, named_data_directory
from regretless.oracles.callback import TimeLimitError, call_with_limit

PRICES = "prices2013.dat"
LONGEST = 600.0
"""Seconds that all downloads together may take."""

ORIGIN = "https://raw.githubusercontent.com/PredOpt/predopt-benchmarks/main/Energy/"
FILES = {
    PRICES: ("Trainer/prices2013.dat", "c8086b6b026c1edce01bea265392e42ce46245e9f7f5e88d871232e8c6176faf"),
    "load1.txt": (
        "SchedulingInstances/load1/day01.txt",
        "770617778a56cf167d5ef389462e7ede95ac4a456eaa2cc6d3f68b60f62593d8",
    ),
    "load2.txt": (
        "SchedulingInstances/load2/day01.txt",
        "63d4ddf681780fa72ae1bcfd663f9838feefde9abb7dda91d8a4ba3b7410ca2c",
    ),
    "load3.txt": (
        "SchedulingInstances/load3/day01.txt",
        "0a73bbf82b49cb948f62e5ff1f64832f30f390d546a1d0ac91b752e4c5af9225",
    ),
}
"""Name here, path at the origin (the MIT-licensed repository PredOpt/predopt-benchmarks), sha256."""


def cached() -> Path:
    """Where ``regretless data fetch energy`` puts the files."""
    return cache_directory() / "data" / "energy"


def find(data_dir: str = "") -> Path | None:
    """The folder with the energy files: ``data_dir``, else ``$REGRETLESS_DATA``, else the user's cache; None if there is none.

    The first two may hold the files themselves or a folder ``energy`` with them; without any in it they are refused.
    """
    named = Path(data_dir) if data_dir else named_data_directory()
    if named is None:
        return cached() if (cached() / PRICES).is_file() else None
    for folder in (named / "energy", named):
        if (folder / PRICES).is_file():
            return folder
    what = "--data-dir" if data_dir else "REGRETLESS_DATA"
    raise SettingsError(
        f"no energy data in {named}: expected {PRICES} there or in its folder 'energy'; "
        f"name another directory with {what}, or download the files with 'regretless data fetch energy'"
    )


def verify(path: Path) -> None:
    """Refuses one of the known files if its content is not the published one."""
    expected = FILES[path.name][1]
    found = sha256(path)
    if found != expected:
        raise SettingsError(
            f"{path}: the file was altered: expected sha256 {expected}, got {found}; "
            "download it again with 'regretless data fetch energy'"
        )


def sha256(path: Path) -> str:
    """The checksum of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(
    folder: Path, origin: str = ORIGIN, tell: Callable[[str], None] = lambda line: None, seconds: float = LONGEST
) -> list[Path]:
    """Downloads what is not in ``folder`` yet, or was altered there, and verifies every checksum; all within ``seconds``.

    Raises OSError if the origin cannot be reached or takes too long, ValueError if it serves something else.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    for name, (place, checksum) in FILES.items():
        known = (folder / name).is_file() and sha256(folder / name) == checksum
        tell(f"{name}: {'already there' if known else 'downloading'}")
        if known:
            continue
        try:
            content = call_with_limit(max(end - time.monotonic(), 0.0), _downloaded, origin + place, checksum)
        except TimeLimitError:
            raise OSError(f"cannot download {origin + place}: it takes more than {seconds:g} seconds") from None
        with files.atomic(folder / name) as file:
            file.write(content)
    return [folder / name for name in FILES]


def _downloaded(url: str, checksum: str) -> bytes:
    """What a URL serves, if that has this checksum."""
    import pooch
    import requests

    pooch.get_logger().setLevel("ERROR")
    with tempfile.TemporaryDirectory() as place:
        try:
            return Path(pooch.retrieve(url, f"sha256:{checksum}", "download", place, progressbar=False)).read_bytes()
        except requests.exceptions.RequestException as error:
            unreachable = isinstance(error, requests.exceptions.ConnectionError | requests.exceptions.Timeout)
            reason = "the server cannot be reached" if unreachable else str(error)
            raise OSError(f"cannot download {url}: {reason}") from None
