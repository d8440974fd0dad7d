"""Where files are kept, whatever the environment says or does not say."""

import tempfile
from pathlib import Path

import pytest

from regretless.startup import cache_directory, named_data_directory, programs_directory


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("REGRETLESS_CACHE", "XDG_CACHE_HOME", "REGRETLESS_DATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/home/someone")


@pytest.mark.parametrize(
    ("own", "common", "expected"),
    [
        ("/mine", "/common", "/mine"),
        (None, "/common", "/common/regretless"),
        ("", "/common", "/common/regretless"),
        ("", "", "/home/someone/.cache/regretless"),
        ("off", None, "/home/someone/.cache/regretless"),
        (None, None, "/home/someone/.cache/regretless"),
    ],
)
def test_an_empty_variable_is_none(monkeypatch, own, common, expected):
    for name, value in (("REGRETLESS_CACHE", own), ("XDG_CACHE_HOME", common)):
        if value is not None:
            monkeypatch.setenv(name, value)
    assert cache_directory() == Path(expected)
    assert programs_directory() == (None if own == "off" else Path(expected) / "programs")


def test_a_user_without_a_home_has_a_cache_all_the_same(monkeypatch):
    def no_home():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", no_home)
    assert cache_directory().parent == Path(tempfile.gettempdir())
    assert cache_directory().name.startswith("regretless-")


def test_data_are_looked_for_where_the_user_says(monkeypatch):
    assert named_data_directory() is None
    monkeypatch.setenv("REGRETLESS_DATA", "")
    assert named_data_directory() is None
    monkeypatch.setenv("REGRETLESS_DATA", "/data")
    assert named_data_directory() == Path("/data")
