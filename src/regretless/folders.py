"""Where the program keeps and looks for files: one cache directory per user, and a directory of data that the user names."""

import os
from pathlib import Path


def cache_directory() -> Path:
    """Where compiled programs and downloads are: ``$REGRETLESS_CACHE``, or ``regretless`` in the user's cache directory."""
    if "REGRETLESS_CACHE" in os.environ:
        return Path(os.environ["REGRETLESS_CACHE"])
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "regretless"


def named_data_directory() -> Path | None:
    """``$REGRETLESS_DATA``: a directory of data that the user has; None if it is not set."""
    named = os.environ.get("REGRETLESS_DATA", "")
    return Path(named) if named else None
