"""The programs in ``benchmarks/`` can be imported: they follow the interface of the library."""

import importlib.util
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parents[1] / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_can_be_imported(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)
    spec = importlib.util.spec_from_file_location(f"program_{path.stem}", path)
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    assert callable(program.main)
