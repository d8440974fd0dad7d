"""A test of an optional package that cannot run is skipped, or fails if CI is set."""

import math

import pytest

import extra


def test_returns_an_installed_package(monkeypatch):
    monkeypatch.setenv("CI", "true")
    assert extra.required("math") is math


def test_skips_without_the_package(monkeypatch):
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make extras"):
        extra.required("no_such_package")


def test_fails_without_the_package_if_ci_is_set(monkeypatch):
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="nothing may be skipped"):
        extra.required("no_such_package")


def test_does_not_hide_a_broken_package(monkeypatch, tmp_path):
    monkeypatch.delenv("CI", raising=False)
    (tmp_path / "broken_package.py").write_text("import no_such_dependency")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="no_such_dependency"):
        extra.required("broken_package")
