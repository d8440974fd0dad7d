"""Modules of the user, from the working directory or installed, that register their parts when they are imported."""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from regretless.errors import RegretlessError, SettingsError


def load(name: str, asked_by: str = "--import", folder: Path | None = None) -> ModuleType:
    """Import and return a module of the user; raise SettingsError for anything that goes wrong.

    A file or package of that name in the folder, by default the working directory, comes first. The folder goes to the
    end of the search path, so that what lies there never replaces a module that this program needs.
    """
    if not all(part.isidentifier() for part in name.split(".")):
        raise SettingsError(f"{asked_by}: expected the name of a module, such as 'mine' or 'plant.sets', got {name!r}")
    here = str(folder or Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
    where = f"{asked_by}: cannot import {name!r}"
    module: ModuleType = call(lambda: _load_local(name, here) or importlib.import_module(name), where)
    return module


def call(function: Callable[[], Any], where: str) -> Any:
    """Call a function of the user; raise SettingsError for anything that goes wrong but Ctrl-C."""
    try:
        return function()
    except RegretlessError as error:
        raise SettingsError(f"{where}: {error}") from None
    except ModuleNotFoundError as error:
        raise SettingsError(f"{where}: {error}; is it in this directory, or installed?") from None
    except SyntaxError as error:
        raise SettingsError(f"{where}: {error.filename}, line {error.lineno}: {error.msg}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise SettingsError(f"{where}: it failed with {type(error).__name__}: {error}") from None


def _load_local(name: str, folder: str) -> ModuleType | None:
    """Return the module from a file in the folder; None if there is none, or it is loaded already."""
    head = name.split(".")[0]
    spec = None if head in sys.modules else importlib.machinery.PathFinder.find_spec(head, [folder])
    if spec is None or spec.loader is None or spec.origin is None:
        return None
    sys.modules[head] = module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[head]
        raise
    return module if head == name else importlib.import_module(name)


def load_object(where: str, asked_by: str, folder: Path | None = None) -> Any:
    """Return the object at ``module:object``."""
    module, _, name = where.partition(":")
    if not module or not name:
        raise SettingsError(f"expected {asked_by} module:object, got {where!r}")
    loaded = load(module, asked_by, folder)
    if not hasattr(loaded, name):
        raise SettingsError(f"module {module!r} has no {name!r}: expected {asked_by} module:object")
    return getattr(loaded, name)
