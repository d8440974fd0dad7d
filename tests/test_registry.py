"""Registries: names, parts of other packages, and what a part must have."""

import importlib.metadata

import pytest

from regretless.errors import SettingsError
from regretless.registry import Registry


class Shape:
    """What is registered here."""

    sides = 4


class Package:
    """Stands for an installed package."""

    def __init__(self, name):
        self.name = name


def offered(name, value, package):
    entry = importlib.metadata.EntryPoint(name, value, "regretless.shapes")
    vars(entry)["dist"] = Package(package)
    return entry


@pytest.fixture
def registry(monkeypatch):
    entries = [
        offered("round", f"{__name__}:Shape", "takes-our-name"),
        offered("square", f"{__name__}:Shape", "good"),
        offered("broken", "no_such_module:Shape", "broken"),
        offered("plain", f"{__name__}:offered", "wrong"),
        offered("twice", f"{__name__}:Shape", "one"),
        offered("twice", f"{__name__}:Package", "another"),
    ]
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda group: entries)
    return Registry("shape", "shapes", {"round": Shape()}, ("sides",), "a Shape")


def test_parts_of_packages_are_loaded_when_they_are_used(registry):
    assert list(registry) == ["round", "broken", "plain", "square", "twice"]
    assert registry["square"] is Shape or registry["square"].__name__ == "Shape"
    assert registry.origin("square") == "good"


def test_our_own_names_cannot_be_taken(registry):
    assert isinstance(registry["round"], Shape)
    assert registry.origin("round") == ""
    assert registry.built_in_names == {"round"}
    with pytest.raises(SettingsError, match="'round' exists already: choose another name"):
        registry.register("round", Shape())
    registry.register("square", registry["square"])  # the same part again


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("broken", "shape 'broken' of the package broken cannot be loaded: ModuleNotFoundError"),
        ("plain", "shape 'plain': expected a Shape, got offered, which has no 'sides'"),
        ("twice", "shape 'twice' .* another and one have .* uninstall all but one"),
        ("squar", "unknown shape 'squar'; did you mean 'square'?"),
    ],
)
def test_a_part_that_cannot_be_used_is_refused_with_the_reason(registry, name, message):
    with pytest.raises(SettingsError, match=message):
        registry[name]


def test_looking_through_all_parts_leaves_out_those_that_cannot_be_loaded(registry):
    assert list(registry.usable()) == ["round", "square"]


def test_a_part_that_lacks_something_is_not_registered(registry):
    with pytest.raises(SettingsError, match="expected a Shape, got object"):
        registry.register("mine", object())
    assert "mine" not in registry
