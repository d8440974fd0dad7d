"""A change detector on signed prediction errors, for compiled programs and for the host alike.

Errors are centred and pre-whitened: the part that the error before predicts, by the autocorrelation of the last errors,
is subtracted. What is left has a usual size. While nothing changes, the sizes in units of the usual one have mean 1 at
most, whatever their distribution, so that betting against this, ``Π (1 + bet · (size − ratio))``, is a nonnegative
supermartingale up to an error of the usual size below ``ratio``. Its CUSUM exceeds ``1/p`` at most once in ``1/p``
errors on average (Shin, Ramdas and Rinaldo, 2024, "E-detectors").
"""

import math
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp

MIN_CAPPED_ERRORS = 10
"""Errors before which the usual size says too little to cut errors off."""

MAX_AUTOCORRELATION = 0.99
"""Largest autocorrelation that is removed."""

MAX_CORRELATED = 1.5
"""Deviations, in mean sizes, at which they are cut off for the autocorrelation: it must not absorb a new level."""


MAX_FREE_EVIDENCE = 2.0
"""Evidence beyond which mean and autocorrelation stay as they are, so that they do not explain a change away."""


class DriftState(NamedTuple):
    """Running moments of the errors, and the evidence of a change; arrays of one shape, a detector for each entry.

    Parameters
    ----------
    rounds : integer array
        Errors so far.
    mean : array
        Mean error.
    size : array
        Mean absolute deviation from it.
    last : array
        The last error minus the mean, cut off.
    centre, lagged, squared : array
        Of deviations in units of ``size``, cut off: their mean, mean product of neighbours, and mean square.
    usual : array
        Mean size of what is left after pre-whitening.
    evidence : array
        Logarithm of the CUSUM.
    rising : integer array
        Errors since the evidence was last zero.
    """

    rounds: Any
    mean: Any
    size: Any
    last: Any
    centre: Any
    lagged: Any
    squared: Any
    usual: Any
    evidence: Any
    rising: Any


class ChangeDetector(NamedTuple):
    """Report when prediction errors have become larger than they usually are, autocorrelated errors included.

    Errors that grow by a factor of five are noticed after about 15 errors, by a factor of three after about 30. A
    learner that improves has smaller errors than usual, which is no change; neither are a few absurd errors.

    Parameters
    ----------
    usual : int, default 100
        Errors over which the moments are averaged, and errors before which nothing is reported.
    false_alarm : float, default 5e-5
        Largest probability of a false alarm per error. The bound holds for any distribution whose usual size is
        estimated to within ``ratio``; measured rates are below it.
    ratio : float, default 1.25
        Growth of the usual size that is not evidence of a change.
    bet : float, default 0.6
        Stake of the bet against sizes as usual, below ``1 / ratio``: large ones notice large changes sooner.
    cap : float, default 6
        Largest size that is believed, in usual ones.
    tolerance : float, default 0
        Added to the usual size, in units of the errors: differences between errors that are nearly zero are no change.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> detector, errors = ChangeDetector(), rng.normal(size=200) * np.repeat([1.0, 5.0], [150, 50])
    >>> state = detector.init(xp=np)
    >>> for t, error in enumerate(errors, 1):
    ...     state = detector.update(state, error, xp=np)
    ...     if detector.changed(state):
    ...         break
    >>> t, t - int(state.rising) + 1  # the round of the alarm, and about the first round of the change
    (171, 153)
    """

    usual: int = 100
    false_alarm: float = 5e-5
    ratio: float = 1.25
    bet: float = 0.6
    cap: float = 6.0
    tolerance: float = 0.0

    def init(self, shape: tuple[int, ...] = (), xp: ModuleType = jnp) -> DriftState:
        """Return the state before any error, zeros in arrays of ``xp`` (``jax.numpy`` or ``numpy``).

        Parameters
        ----------
        shape : tuple of int, default ()
            A detector for each entry.
        xp : module
            ``jax.numpy`` in a program, ``numpy`` on the host.
        """
        zero, count = xp.zeros(shape), xp.zeros(shape, "int32")
        return DriftState(count, *(zero,) * 8, count)

    def update(self, state: DriftState, error: Any, observed: Any = True, xp: ModuleType = jnp) -> DriftState:
        """Return the state after an error.

        Parameters
        ----------
        state : DriftState
            The state before.
        error : array
            Signed prediction error.
        observed : array of bool, default True
            If False, the state stays as it is.
        xp : module
            ``jax.numpy`` in a program, ``numpy`` on the host.
        """
        rounds = state.rounds + observed
        rate = xp.where(observed, xp.clip(2.0 / (rounds + 1), 1.0 / self.usual, 1.0), 0.0)  # forgets early errors
        slow = xp.where(state.evidence > MAX_FREE_EVIDENCE, 0.0, rate)
        early = rounds <= MIN_CAPPED_ERRORS
        limit = xp.where(early, xp.inf, self.cap * (state.size + self.tolerance))
        deviation = xp.clip(error - state.mean, -limit, limit)
        square = state.centre * state.centre
        carry = (state.lagged - square) / xp.maximum(state.squared - square, 1e-30)
        carry = xp.clip(carry, 0.0, MAX_AUTOCORRELATION)
        left = xp.abs(deviation - carry * state.last)
        unit = xp.maximum(state.usual + self.tolerance, 1e-30)
        capped = xp.minimum(left / unit, self.cap)
        step = xp.where(observed & (rounds > self.usual), xp.log1p(self.bet * (capped - self.ratio)), 0.0)
        evidence = xp.maximum(state.evidence + step, 0.0)
        size = state.size + rate * (xp.abs(deviation) - state.size)
        scaled = (part / xp.maximum(size, 1e-30) for part in (deviation, state.last))
        now, before = (xp.clip(part, -MAX_CORRELATED, MAX_CORRELATED) for part in scaled)
        return DriftState(
            rounds=rounds,
            mean=state.mean + slow * deviation,
            size=size,
            last=xp.where(observed, deviation, state.last),
            centre=state.centre + slow * (now - state.centre),
            lagged=state.lagged + slow * (now * before - state.lagged),
            squared=state.squared + slow * (now * now - state.squared),
            usual=state.usual + rate * (xp.where(early, left, capped * unit) - state.usual),
            evidence=evidence,
            rising=xp.where(evidence > 0.0, state.rising + observed, 0),
        )

    def changed(self, state: DriftState) -> Any:
        """Return whether the recent errors are larger than usual beyond chance.

        Parameters
        ----------
        state : DriftState
            The present state.
        """
        return state.evidence > -math.log(self.false_alarm)
