"""Mark public names that will be removed, with a warning that names the replacement."""

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=Callable[..., Any])


def deprecated(*, since: str, instead: str) -> Callable[[T], T]:
    """Mark a public function or class as deprecated.

    A call warns once per place in the caller's code. The name keeps working for at least two minor versions
    (CONTRIBUTING.md).

    Parameters
    ----------
    since : str
        The version that deprecates the name, such as ``"0.4"``.
    instead : str
        What to use instead, as code: ``"regretless.run"``.

    Returns
    -------
    Callable
        A decorator for the function or class.

    Examples
    --------
    >>> @deprecated(since="0.4", instead="regretless.run")
    ... def run_all():
    ...     return 1
    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     run_all()
    1
    >>> print(caught[0].message)
    run_all is deprecated since version 0.4: use regretless.run instead
    """

    def decorate(target: T) -> T:
        message = f"{target.__qualname__} is deprecated since version {since}: use {instead} instead"

        def warn() -> None:
            warnings.warn(message, FutureWarning, stacklevel=3)

        if inspect.isclass(target):
            _warn_on_construction(target, warn)
            return target

        @functools.wraps(target)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            warn()
            return target(*arguments, **options)

        return wrapper  # type: ignore[return-value]

    return decorate


def _warn_on_construction(cls: type, warn: Callable[[], None]) -> None:
    original = cls.__init__  # type: ignore[misc]

    @functools.wraps(original)
    def initialize(self: Any, *arguments: Any, **options: Any) -> None:
        if type(self) is cls:  # a subclass that is not deprecated stays silent
            warn()
        original(self, *arguments, **options)

    cls.__init__ = initialize  # type: ignore[misc]
