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
        original: Any = target.__init__ if inspect.isclass(target) else target

        @functools.wraps(original)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            if original is target or type(arguments[0]) is target:  # a subclass that is not deprecated stays silent
                warnings.warn(message, FutureWarning, stacklevel=2)
            return original(*arguments, **options)

        if original is target:
            return wrapper  # type: ignore[return-value]
        target.__init__ = wrapper  # type: ignore[method-assign]
        return target

    return decorate
