"""Import optional packages, or say which command installs them."""

from importlib import import_module
from types import ModuleType

from regretless.errors import MissingExtraError


def require(module: str, *, extra: str) -> ModuleType:
    """Import a module of an optional package.

    Parameters
    ----------
    module : str
        The module's full name, such as ``"matplotlib.pyplot"``.
    extra : str
        The extra of this library that installs the package, such as ``"plots"``.

    Returns
    -------
    ModuleType
        The module.

    Raises
    ------
    MissingExtraError
        If the package is not installed; the message names the pip command. An installed package that fails to import
        raises its own error.

    Examples
    --------
    >>> require("json", extra="plots").dumps([1])
    '[1]'
    >>> require("no_such_package.plots", extra="plots")
    Traceback (most recent call last):
    ...
    regretless.errors.MissingExtraError: this needs the package no_such_package: pip install 'regretless[plots]'
    """
    package = module.partition(".")[0]
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] != package:
            raise
        command = f"pip install 'regretless[{extra}]'"
        raise MissingExtraError(f"this needs the package {package}: {command}", name=package) from None
