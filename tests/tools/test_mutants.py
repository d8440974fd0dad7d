"""The lines that mutants break are there: a mutant that breaks nothing proves nothing."""

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_every_mutant_names_a_line_and_tests_that_are_there(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    found = importlib.import_module("mutants").MUTANTS
    sys.modules.pop("mutants")
    assert len(found) > 90
    for name, mutant in found.items():
        assert (ROOT / mutant.file).read_text(encoding="utf-8").count(mutant.old) == 1, name
        assert mutant.old != mutant.new, name
        file, *test = mutant.tests.split("::")
        assert (ROOT / file).is_file(), name
        assert not test or f"def {test[0].split('[')[0]}(" in (ROOT / file).read_text(encoding="utf-8"), name
