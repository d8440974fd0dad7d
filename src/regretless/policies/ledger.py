"""How much was spent beyond what an incumbent would have paid: the sums that a guard decides by.

In a round that the policy may have, the incumbent decides all the same with some probability ``p``. Its outcomes, weighted by
``1 / p``, say what it would have paid in all such rounds, whatever drifts and whatever is wrong with the forecast: with its
cost ``b = m + r``, forecast and error, the excess ``Σ (y − b)`` over the policy's rounds is estimated by

    ``Σ over the policy's rounds of (y − m)  −  Σ over the incumbent's of r · (1 − p) / p``,

which is right on average and has a variance of ``r² / p`` for each of the policy's rounds. What is absurd in one outcome is cut
off: errors of the forecast, gains beyond the usual cost itself, losses beyond ten of it.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from regretless.policies.forecast import FIRST, Forecast, no_forecast
from regretless.types import Context

CHECKS = 0.1
"""Least share of the rounds in which the incumbent decides, so that it is known what it costs."""

DOUBTS = 3.0
"""Rounds of belief that a decision costs twice the incumbent's, before there is evidence."""

RECENT = 50.0
"""Rounds of the policy over which its losses are averaged."""

START = 10.0
"""Rounds of the policy at which the bound is tightest: it holds at all times, and has to be tightest somewhere."""

PATIENCE = 0.5
"""Share of the budget that has to be left before the policy explores as far as it wants to."""

MOST_ODDS = (1.0 - CHECKS) / CHECKS
"""Odds of the policy against the incumbent with the whole budget left; they fall with what is left of it. Many rounds
of the incumbent among few of the policy make the estimate sharp where it matters."""

LARGEST_LOSS = 10.0


class Ledger(eqx.Module):
    """Sums over the outcomes so far, bounded whatever their number."""

    forecast: Forecast
    excess: Float[Array, ""]  # estimate of what was spent beyond the incumbent's cost
    variance: Float[Array, " 2"]  # of that: by the errors expected in the policy's rounds, and by those that were seen
    paid: Float[Array, ""]  # what the incumbent would have paid in all rounds
    tried: Float[Array, ""]  # outcomes of the policy's decisions
    losses: Float[Array, ""]  # mean of what these cost more, where they did
    lag: Float[Array, ""]  # learning steps between a decision and its outcome, about the longest

    def bound(self, confidence: Float[Array, ""]) -> Float[Array, ""]:
        """What the excess is at most, one round ahead, with this confidence at all times together (a normal mixture)."""
        each = jnp.square(self.forecast.spread())
        total, start = jnp.max(self.variance) + each, START * each
        width = jnp.log1p(total / jnp.maximum(start, 1e-300)) - 2.0 * jnp.log(2.0 * (1.0 - confidence))
        return self.excess + jnp.sqrt((total + start) * jnp.maximum(width, 0.0))

    def allowed(self, budget: Float[Array, ""]) -> Float[Array, ""]:
        """What the excess may be."""
        return budget * jnp.abs(self.paid)

    def reach(self) -> Float[Array, ""]:
        """What one decision may cost more than the incumbent's."""
        known = jnp.minimum(self.tried, RECENT)
        return (DOUBTS * self.forecast.size + known * self.losses) / (DOUBTS + known)

    def chance(self, budget: Float[Array, ""], confidence: Float[Array, ""]) -> Float[Array, ""]:
        """With what probability the policy may decide, while ``lag`` outcomes are still to come."""
        reach = jnp.maximum(self.reach(), 1e-300)
        room = self.allowed(budget) - self.bound(confidence)
        rounds = jnp.maximum(room - reach, 0.0) / ((1.0 + self.lag) * reach)
        odds = jnp.minimum(rounds, MOST_ODDS * self.left(budget, confidence))
        return jnp.where(self.forecast.seen >= FIRST, odds / (1.0 + odds), 0.0)

    def left(self, budget: Float[Array, ""], confidence: Float[Array, ""]) -> Float[Array, ""]:
        """Which share of what the excess may be is left, from 0 to 1."""
        allowed = self.allowed(budget)
        return jnp.clip((allowed - self.bound(confidence)) / jnp.maximum(allowed, 1e-300), 0.0, 1.0)

    def daring(self, budget: Float[Array, ""], confidence: Float[Array, ""]) -> Float[Array, ""]:
        """How far the policy may explore, from 0 (it plays what it expects to be best) to 1 (what it wants to)."""
        return jnp.minimum(self.left(budget, confidence) / PATIENCE, 1.0)

    def somebody_paid(self, context: Context, total: Float[Array, ""]) -> "Ledger":
        """After an outcome of somebody else, who may have been the incumbent: a forecast can begin with it."""
        return eqx.tree_at(lambda ledger: ledger.forecast, self, self.forecast.fitted(context, total))

    def incumbent_paid(self, context: Context, total: Float[Array, ""], probability: Float[Array, ""]) -> "Ledger":
        """After an outcome of the incumbent, who decided with this probability."""
        m, limit = self.forecast.of(context), self.forecast.limit()
        r = jnp.clip(total - m, -limit, limit)
        seen = (1.0 - probability) * jnp.square(r / probability)
        return Ledger(
            self.forecast.after(context, total), self.excess - r * (1.0 - probability) / probability,
            self.variance.at[1].add(seen), self.paid + m + r / probability, self.tried, self.losses, self.lag,
        )  # fmt: skip

    def policy_paid(self, context: Context, total: Float[Array, ""], probability: Float[Array, ""]) -> "Ledger":
        """After an outcome of the policy, while the incumbent decides with about this probability."""
        m, size, spread = self.forecast.of(context), self.forecast.size, self.forecast.spread()
        least = jnp.maximum(self.forecast.limit(), size)
        more = jnp.clip(total - m, -least, LARGEST_LOSS * size + self.forecast.limit())
        tried = self.tried + 1.0
        losses = self.losses + (jnp.maximum(more, 0.0) - self.losses) / jnp.minimum(tried, RECENT)
        variance = self.variance.at[0].add(jnp.square(spread) / probability)
        return Ledger(self.forecast, self.excess + more, variance, self.paid + m, tried, losses, self.lag)

    def waited(self, steps: Float[Array, ""]) -> "Ledger":
        """After an outcome that took so many learning steps to come."""
        return eqx.tree_at(lambda ledger: ledger.lag, self, jnp.maximum(steps, self.lag * (1.0 - 1.0 / RECENT)))


def no_ledger(context_shape: tuple[int, ...]) -> Ledger:
    """Nothing spent yet."""
    zero = jnp.zeros(())
    return Ledger(no_forecast(context_shape), zero, jnp.zeros(2), zero, zero, zero, zero)


def chosen(which: Bool[Array, ""], one: Ledger, other: Ledger) -> Ledger:
    """One of two."""
    return jax.tree.map(lambda a, b: jnp.where(which, a, b), one, other)
