"""Sizes of the soak tests: small in the normal suite, larger through the environment (``make soak``)."""

import os


def size(name: str, small: int) -> int:
    """Return the size called ``name``: ``REGRETLESS_SOAK_<NAME>`` if it is set, else ``small``."""
    return int(os.environ.get(f"REGRETLESS_SOAK_{name.upper()}", small))
