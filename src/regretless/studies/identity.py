"""The address of a result: a hash of the configuration, the seeds and the code that computes it."""

import functools
import hashlib
import importlib.metadata
import json
from importlib import resources
from typing import Any

SILENT = ("cli/", "report/")
"""Folders whose code no number depends on."""

ARRANGING = {
    "__init__.py", "archive.py", "campaign.py", "definitions.py", "engine_processes.py", "engine_ray.py", "estimate.py",
    "identity.py", "plan.py", "spaces.py", "speed.py", "store.py", "tuning.py", "tuning_speed.py",
    "tuning_trials.py", "verdicts.py",
}  # fmt: skip
"""The files of ``studies`` that arrange, store and tune; numbers depend on the others."""


def canonical(value: Any) -> bytes:
    """JSON with sorted keys and without spaces: equal values give equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


@functools.cache
def code_version() -> str:
    """The package's version and a hash of its source and data files, without those that no number depends on."""
    digest = hashlib.sha256()
    root = resources.files("regretless")
    for name, content in sorted(_files(root, "")):
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"{importlib.metadata.version('regretless')}+{digest.hexdigest()[:12]}"


def _files(folder: Any, prefix: str) -> list[tuple[str, bytes]]:
    found = []
    for item in folder.iterdir():
        name = prefix + item.name
        if item.is_dir():
            if item.name != "__pycache__" and f"{name}/" not in SILENT:
                found += _files(item, f"{name}/")
        elif item.name.endswith((".py", ".csv", ".json", ".txt", ".dat")) and (
            prefix != "studies/" or item.name not in ARRANGING
        ):
            found.append((name, item.read_bytes()))
    return found


def address(identity: dict[str, Any], code: str) -> str:
    """The key of a result.

    >>> address({"seeds": 3}, "1") == address({"seeds": 3}, "1") != address({"seeds": 4}, "1")
    True
    """
    return hashlib.sha256(canonical({"cell": identity, "code": code})).hexdigest()
