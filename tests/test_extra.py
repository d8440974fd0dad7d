"""A test of an extra that cannot run is skipped, and fails where CI is set."""

import math

import pytest

import extra


def test_gives_the_package_that_is_there(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert extra.required("math") is math


def test_skips_what_is_missing(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make extras"):
        extra.required("no_such_package")


def test_fails_what_is_missing_where_ci_is_set(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="nothing may be skipped"):
        extra.required("no_such_package")


def test_does_not_hide_a_package_that_is_broken(monkeypatch, tmp_path):
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "broken_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        extra.required("broken_package")
