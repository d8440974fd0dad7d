"""Parts by name: our own, registered ones, and those that other packages offer."""

import importlib.metadata

import pytest

from regretless.errors import SettingsError
from regretless.registry import Registry, require_known


class Entry:
    """What an installed package would offer."""

    def __init__(self, name, part):
        self.name, self.value, self.part, self.dist, self.loaded = name, f"shop:{name}", part, None, 0

    def load(self):
        self.loaded += 1
        if isinstance(self.part, Exception):
            raise self.part
        return self.part


@pytest.fixture
def offered(monkeypatch):
    """A registry to which a package offers three parts, one of which is broken and one of which has a name that we use."""
    entries = [Entry("flat", 3), Entry("broken", ImportError("no module named shop")), Entry("round", 9)]
    asked = []

    def entry_points(group):
        asked.append(group)
        return entries

    monkeypatch.setattr(importlib.metadata, "entry_points", entry_points)
    return Registry("shape", "shapes", {"round": 1, "square": 2}), entries, asked


def test_plug_ins_are_listed_and_loaded_when_they_are_used(offered):
    registry, entries, asked = offered
    assert list(registry) == ["round", "square", "broken", "flat"]
    assert len(registry) == 4
    assert "flat" in registry
    assert asked == ["regretless.shapes"]
    assert [entry.loaded for entry in entries] == [0, 0, 0]
    assert registry["flat"] == registry["flat"] == 3
    assert entries[0].loaded == 1
    assert registry.origin("flat") == "shop:flat"
    assert registry.origin("square") == ""


def test_a_broken_package_harms_nobody_else(offered):
    registry, _, _ = offered
    with pytest.raises(SettingsError, match=r"shape 'broken' .* cannot be loaded: ImportError: no module named shop"):
        registry["broken"]
    assert registry["square"] == 2


def test_our_own_names_come_first(offered):
    assert offered[0]["round"] == 1


def test_registering():
    registry = Registry("shape", "nothing offers these", {"round": 1})
    registry.register("flat", 3)
    assert registry["flat"] == 3
    with pytest.raises(SettingsError, match="shape 'round' exists already: choose another name"):
        registry.register("round", 2)
    with pytest.raises(
        SettingsError, match="expected a name of letters, digits and underscores for a shape, got 'a b'"
    ):
        registry.register("a b", 2)
    assert list(registry) == ["round", "flat"]


def test_a_module_that_is_imported_again_registers_again():
    def made():
        class Same:
            pass

        return Same

    registry = Registry("shape", "nothing offers these", {})
    registry.register("same", made())
    registry.register("same", made())


def test_unknown_names_have_a_hint():
    with pytest.raises(SettingsError, match="unknown policy 'gredy'; did you mean 'greedy'"):
        require_known("policy", "gredy", ["greedy", "dfhpg"])
    with pytest.raises(SettingsError, match="unknown policy 'zzz'; choose from dfhpg, greedy"):
        require_known("policy", "zzz", ["greedy", "dfhpg"])
    with pytest.raises(SettingsError, match="unknown setting 'x' of Lazy; there is none"):
        require_known("setting", "x", [], " of Lazy")
    require_known("policy", "greedy", ["greedy"])
