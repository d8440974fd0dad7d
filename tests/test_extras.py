"""Optional packages are imported where they are used; a missing one is answered with the command that installs it."""

import sys

import pytest

from regretless import RegretlessError
from regretless.extras import require


def test_an_installed_module_is_returned():
    assert require("json.decoder", extra="plots").JSONDecoder


def test_a_missing_package_names_the_pip_command():
    with pytest.raises(ImportError, match=r"pip install 'regretless\[tune\]'") as caught:
        require("no_such_package.part", extra="tune")
    assert isinstance(caught.value, RegretlessError)
    assert caught.value.name == "no_such_package"


def test_an_error_inside_an_installed_package_is_not_hidden(tmp_path, monkeypatch):
    (tmp_path / "broken_package.py").write_text("import another_missing_package")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="another_missing_package") as caught:
        require("broken_package", extra="plots")
    assert not isinstance(caught.value, RegretlessError)
    sys.modules.pop("broken_package", None)
