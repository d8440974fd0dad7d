"""Packages that only some tests need: absent, the tests are skipped; absent where CI is set, they fail."""

import importlib
import os

import pytest


def required(module):
    """A module of an extra's package, for the top of a test file."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise  # it is there, and broken
    reason = f"needs {package}, which is not installed; install the extras with: make extras"
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (CI is set: nothing may be skipped)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
