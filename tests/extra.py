"""Optional packages of some tests: without them the tests are skipped, or fail if CI is set."""

import importlib
import os

import pytest


def required(module):
    """Import a module of an optional package, at the top of a test file."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise  # it is installed, but broken
    reason = f"needs {package}, which is not installed; install the extras with: make extras"
    if os.environ.get("CI"):
        pytest.fail(f"{reason} (CI is set: nothing may be skipped)", pytrace=False)
    pytest.skip(reason, allow_module_level=True)
