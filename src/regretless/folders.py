"""Where the program keeps and looks for files: one cache directory per user, and a directory of data that the user names."""

import os
import tempfile
from pathlib import Path

OFF = "off"
"""What ``REGRETLESS_CACHE`` says so that no compiled program is kept."""


def programs_directory() -> Path | None:
    """Where compiled programs are kept; None where nobody wants that (``REGRETLESS_CACHE=off``)."""
    return None if os.environ.get("REGRETLESS_CACHE") == OFF else cache_directory() / "programs"


def cache_directory() -> Path:
    """Where compiled programs and downloads are: ``$REGRETLESS_CACHE``, or ``regretless`` in the user's cache directory."""
    named, common = os.environ.get("REGRETLESS_CACHE"), os.environ.get("XDG_CACHE_HOME")
    if named and named != OFF:
        return Path(named)
    if common:
        return Path(common) / "regretless"
    try:
        return Path.home() / ".cache" / "regretless"
    except RuntimeError:  # a user without a name and without a home
        return Path(tempfile.gettempdir()) / f"regretless-{os.getuid()}"


def named_data_directory() -> Path | None:
    """``$REGRETLESS_DATA``: a directory of data that the user has; None if it is not set."""
    named = os.environ.get("REGRETLESS_DATA", "")
    return Path(named) if named else None
