"""A change detector on prediction errors, for compiled programs and for the host alike."""

from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp


class DriftState(NamedTuple):
    """Running means of the errors; arrays of one shape, a detector for each entry.

    Parameters
    ----------
    recent : array
        Mean error over the recent window.
    usual : array
        Mean error over the long window.
    rounds : integer array
        Errors so far.
    rising : integer array
        Errors since the recent mean was last less than half way to a change, in logarithms.
    """

    recent: Any
    usual: Any
    rounds: Any
    rising: Any


class ChangeDetector(NamedTuple):
    """Compare the recent mean of prediction errors with their usual mean.

    A change is reported while the mean over the last ``recent`` errors is more than ``ratio`` times the mean over the
    last ``usual`` ones (plus ``tolerance``). One error counts as no more than ``cap`` usual ones, so that a few
    absurd values are no change. A learner that improves lowers the recent mean first, which is no change either.

    Parameters
    ----------
    recent : int, default 10
        Errors in the short window: a change by a factor of five is noticed after about eight of them.
    usual : int, default 100
        Errors in the long window, and errors before which nothing is reported.
    ratio : float, default 2
        Recent over usual mean error that is a change. Normal errors reach it less than once in 100,000 rounds.
    cap : float, default 4
        Largest error that is believed, in usual ones.
    tolerance : float, default 0
        Added to the usual error, in units of the errors: differences between errors that are nearly zero are no change.

    Examples
    --------
    >>> import numpy as np
    >>> detector, errors = ChangeDetector(), np.r_[np.ones(150), 5.0 * np.ones(20)]
    >>> state = detector.init(xp=np)
    >>> for t, error in enumerate(errors, 1):
    ...     state = detector.update(state, error, xp=np)
    ...     if detector.changed(state):
    ...         break
    >>> t, t - int(state.rising) + 1  # the round of the alarm, and about the first round of the rise
    (155, 152)
    """

    recent: int = 10
    usual: int = 100
    ratio: float = 2.0
    cap: float = 4.0
    tolerance: float = 0.0

    def init(self, shape: tuple[int, ...] = (), xp: ModuleType = jnp) -> DriftState:
        """Return the state before any error, in arrays of ``xp`` (``jax.numpy`` or ``numpy``).

        Parameters
        ----------
        shape : tuple of int, default ()
            A detector for each entry.
        xp : module
            ``jax.numpy`` in a program, ``numpy`` on the host.
        """
        zero, count = xp.zeros(shape), xp.zeros(shape, "int32")
        return DriftState(zero, zero, count, count)

    def update(self, state: DriftState, error: Any, observed: Any = True, xp: ModuleType = jnp) -> DriftState:
        """Return the state after an error of this size.

        Parameters
        ----------
        state : DriftState
            The state before.
        error : array
            Size of the prediction error, at least zero.
        observed : array of bool, default True
            If False, the state stays as it is.
        xp : module
            ``jax.numpy`` in a program, ``numpy`` on the host.
        """
        rounds = state.rounds + observed
        capped = xp.minimum(error, self.cap * (state.usual + self.tolerance))
        error = xp.where(rounds > self.recent, capped, error)

        def average(mean: Any, window: int) -> Any:
            return mean + xp.where(observed, 1.0 / xp.minimum(xp.maximum(rounds, 1), window), 0.0) * (error - mean)

        recent, usual = average(state.recent, self.recent), average(state.usual, self.usual)
        rising = xp.where(recent > self.ratio**0.5 * (usual + self.tolerance), state.rising + observed, 0)
        return DriftState(recent, usual, rounds, rising)

    def changed(self, state: DriftState) -> Any:
        """Return whether the recent errors are far above the usual ones.

        Parameters
        ----------
        state : DriftState
            The present state.
        """
        return (state.rounds >= self.usual) & (state.recent > self.ratio * (state.usual + self.tolerance))
