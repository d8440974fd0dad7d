"""A guard around a policy: the policy costs at most a stated share more than an incumbent.

The policy decides only while the total cost so far is, with the stated confidence, at most ``1 + budget`` times what
the incumbent would have paid; otherwise the incumbent decides. Overspending is recovered in rounds of the incumbent,
and the policy learns from their outcomes. The less of the budget is left, the closer the policy stays to what it
expects to be best: exploration is reduced first. For rewards the budget limits the loss: at most this share less.
Rounds whose total never becomes known are assumed to be like the others.

In a round in which the policy may decide, the incumbent still decides with some probability ``p``. Its outcomes,
weighted by ``1/p``, estimate what it would have paid in all such rounds, even if costs drift or the forecast is wrong:
with its cost ``b = m + r``, forecast and error, the excess ``Σ (y − b)`` over the policy's rounds is estimated by

    ``Σ over the policy's rounds of (y − m)  −  Σ over the incumbent's of r · (1 − p) / p``,

which is unbiased and has a variance of ``r² / p`` for each of the policy's rounds. Extreme parts of one outcome are
cut off: errors of the forecast, gains above the usual cost, losses above ten times the usual cost.
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from regretless import draws
from regretless.errors import SettingsError, short_repr
from regretless.formatting import format_amount
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, Wrapper, WrapperState, choose
from regretless.stats.bayes_linear import RunningRegression, initial_regression
from regretless.stats.confidence import mixture_radius
from regretless.types import NOT_SAMPLED, Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

INCUMBENT = -1
"""The ``member`` of the incumbent's decisions. The inner policy's decisions have its own ``member`` plus one, and any
other decision has 0: the budget does not count it."""

REPLACED = -3
"""The ``member`` of a decision of the incumbent in a round that was the inner policy's, because the solver failed. It
counts as one of the inner policy's rounds, because the draw that gave it the round is what makes estimates unbiased."""

REDUCED_EXPLORATION = -2
"""The ``member`` of a decision for which the inner policy explored less than it wanted to."""

MIN_FORECAST_ROUNDS = 10
"""Outcomes of the incumbent before which errors are not cut off and the policy never decides."""

FORECAST_MEMORY = 100.0
"""Outcomes over which the incumbent's costs and the forecast's errors are averaged."""

FORECAST_CLIPPING = 5.0
"""Usual errors of the forecast beyond which an error is cut off."""

FORECAST_RANGE = 10.0
"""Usual costs from the incumbent's mean beyond which no forecast goes."""

FORECAST_PRIOR_ROUNDS = 3.0
"""Outcomes that the belief in slopes of zero is worth."""

MAX_FORECAST_FEATURES = 64
"""Features above which the forecast is the incumbent's mean cost alone."""

MIN_INCUMBENT_SHARE = 0.1
"""Smallest share of the rounds in which the incumbent decides, so that its cost stays known."""

PRIOR_LOSS_ROUNDS = 3.0
"""Rounds that the initial belief is worth that a decision of the policy costs twice the incumbent's."""

RECENT_ROUNDS = 50.0
"""Rounds of the policy over which its losses are averaged."""

TIGHTEST_ROUNDS = 10.0
"""Rounds of the policy at which the confidence sequence is tightest."""

VARIANCE_MARGIN = 1.2
"""Factor of the variance: it is estimated itself, and outcomes with large weights have heavy tails."""

FULL_STEP_SHARE = 0.5
"""Share of the budget that must be left for decisions as different from the incumbent's as the policy wants."""

LEAVING_PENALTY = 0.5
"""Penalty for each coordinate in which a decision leaves the incumbent's, in spreads of the predicted costs, when half
of the way is allowed."""

MIN_STEP = 0.01
"""Step size below which the penalty for leaving the incumbent's decision grows no more."""

PLAUSIBLE_SPREADS = 2.0
"""Standard deviations of the policy's recent losses above their mean that a waiting decision counts with."""

MOST_DECISIONS = 0.5
"""Probability of the policy's decisions from which there is nothing to explain."""

MAX_LOSS = 10.0
"""Usual costs of the incumbent beyond which the loss of one round is cut off."""


MAX_AMOUNT = 1e100
"""Largest budget in money, so that sums stay finite."""


@dataclasses.dataclass(frozen=True)
class Budget:
    """What a learner may cost more than the incumbent: a share of the incumbent's cost, or an amount of money.

    Parameters
    ----------
    share : float, optional
        A share above 0 and below 1 of what the incumbent would have paid in all rounds so far.
    amount : float, optional
        An amount in the unit of the costs, above 0: the total may exceed the incumbent's by that much. Give it where
        costs are near zero or of mixed sign.
    per : float, optional
        Rounds for which the amount is meant, at least 1: it is available from the start, and grows in proportion from
        round ``per`` on. By default the amount never grows.

    Raises
    ------
    SettingsError
        If it is not exactly one of a share and an amount, or one that makes no sense.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.Budget(share=0.05)
    Budget(share=0.05)
    >>> rg.Budget(amount=2000.0, per=100)
    Budget(amount=2000.0, per=100)
    """

    share: float | None = None
    amount: float | None = None
    per: float | None = None

    def __post_init__(self) -> None:
        if (self.share is None) == (self.amount is None) or (self.per is not None and self.amount is None):
            raise SettingsError(f"budget: expected a share, or an amount (with per= if it is to grow), got {self!r}")
        limits = {"share": (0.0, 1.0), "amount": (0.0, MAX_AMOUNT), "per": (0.0, MAX_AMOUNT)}
        for name, (low, high) in limits.items():
            value = getattr(self, name)
            number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
            if value is not None and not (number and low < value < high and (name != "per" or value >= 1)):
                raise SettingsError(f"budget: {_EXPECTED[name]}, got {short_repr(value)}")

    def __repr__(self) -> str:
        given = [f"{name}={value!r}" for name, value in vars(self).items() if value is not None]
        return f"Budget({', '.join(given)})"

    @classmethod
    def coerce(cls, given: Any) -> "Budget":
        """Return a budget from a share, or as it is.

        Parameters
        ----------
        given : float or Budget
            A plain number is a share.
        """
        return given if isinstance(given, cls) else cls(share=given)

    def as_data(self) -> float | dict[str, float]:
        """Return the budget as JSON data: a number for a share."""
        if self.share is not None:
            return float(self.share)
        return {name: float(value) for name, value in vars(self).items() if value is not None}

    def numbers(self) -> np.ndarray:
        """Return the share, the amount that is available at once, and what each round adds to it."""
        growth = 0.0 if self.amount is None or self.per is None else self.amount / self.per
        return np.array([self.share or 0.0, self.amount or 0.0, growth], float)


_EXPECTED = {
    "share": "expected a share above 0 and below 1, such as 0.05 for 5 % more cost, or rg.Budget(amount=…) for money",
    "amount": "expected an amount above 0, in the unit of the costs",
    "per": "expected a number of rounds of at least 1",
}


class Forecast(eqx.Module):
    """What an incumbent will pay: a regression on the context or its mean cost, whichever has erred less."""

    regression: RunningRegression
    errors: Float[Array, " 2"]  # mean squared errors of the regression and of the mean
    size: Float[Array, ""]  # usual size of a cost
    scored: Float[Array, ""]  # outcomes so far whose errors count
    fitted: Float[Array, ""]  # all outcomes that it was fitted to

    def candidates(self, context: Context) -> Float[Array, " 2"]:
        """Return the forecasts of the regression and of the mean."""
        level, reach = self.regression.level, FORECAST_RANGE * self.size
        regression = self.regression.predict(self._features(context))
        return jnp.stack([jnp.clip(regression, level - reach, level + reach), level])

    def predict(self, context: Context) -> Float[Array, ""]:
        """Return the expected cost of the incumbent."""
        regression, level = self.candidates(context)
        return jnp.where(self.errors[0] < self.errors[1], regression, level)

    def spread(self) -> Float[Array, ""]:
        """Return the usual size of an error, larger while there are few."""
        return jnp.sqrt(jnp.min(self.errors)) * (1.0 + 4.0 / jnp.maximum(self.scored, 1.0))

    def limit(self) -> Float[Array, ""]:
        """Return the size of errors beyond which they are cut off."""
        return jnp.where(self.scored < MIN_FORECAST_ROUNDS, jnp.inf, FORECAST_CLIPPING * self.spread())

    def score(self, context: Context, cost: Float[Array, ""]) -> "Forecast":
        """Return the forecast after the incumbent paid ``cost``, with the error that it made before."""
        scored, limit = self.scored + 1.0, self.limit()
        errors = jnp.clip(cost - self.candidates(context), -limit, limit)
        rate = jnp.clip(2.0 / scored, 2.0 / FORECAST_MEMORY, 1.0)  # early errors are large, and soon forgotten
        mean_squares = self.errors + rate * (jnp.square(errors) - self.errors)
        return dataclasses.replace(self.fit(context, cost), errors=mean_squares, scored=scored)

    def fit(self, context: Context, cost: Float[Array, ""]) -> "Forecast":
        """Return the forecast after a cost that may have been the incumbent's: no error is counted."""
        fitted, limit, expected = self.fitted + 1.0, self.limit(), self.predict(context)
        believed = expected + jnp.clip(cost - expected, -limit, limit)
        rate = jnp.maximum(1.0 / fitted, 1.0 / FORECAST_MEMORY)
        features, rounds = self._features(context), jnp.minimum(fitted, FORECAST_MEMORY)
        regression = self.regression.update(
            features, believed, rate=rate, rounds=rounds, prior_rounds=FORECAST_PRIOR_ROUNDS
        )
        size = self.size + rate * (jnp.abs(believed) - self.size)
        return Forecast(regression, self.errors, size, self.scored, fitted)

    def _features(self, context: Context) -> Float[Array, " k"]:
        """Return ``(1, x)``, with the mean of feature rows."""
        x = context if context.ndim == 1 else jnp.mean(context, axis=0)
        return jnp.concatenate([jnp.ones(1, x.dtype), x[: len(self.regression.products) - 1]])


def initial_forecast(context_shape: tuple[int, ...]) -> Forecast:
    """Return the forecast before any outcome."""
    features = 1 + (context_shape[-1] if context_shape[-1] <= MAX_FORECAST_FEATURES else 0)
    zero = jnp.zeros(())
    return Forecast(initial_regression(features), jnp.zeros(2), zero, zero, zero)


class Ledger(eqx.Module):
    """What was spent beyond the incumbent's cost, in sums over the outcomes so far."""

    forecast: Forecast
    excess: Float[Array, ""]  # estimate of what was spent beyond the incumbent's cost
    variance: Float[Array, " 2"]  # of that: by the errors expected in the policy's rounds, and by those that were seen
    turnover: Float[Array, ""]  # what the incumbent would have paid or received in all rounds, without signs
    rounds: Float[Array, ""]  # outcomes of the policy and of the incumbent
    tried: Float[Array, ""]  # outcomes of the policy's decisions
    losses: Float[Array, " 2"]  # recent mean of what these cost more than the incumbent's, and of its square
    largest: Float[Array, ""]  # largest recent one

    def bound(self, confidence: Float[Array, ""], waiting: Float[Array, ""]) -> Float[Array, ""]:
        """Return the upper confidence limit of the excess, at all times together, with decisions that wait."""
        one_round = jnp.square(self.forecast.spread())
        variance = VARIANCE_MARGIN * jnp.max(self.variance) + one_round
        known = self.excess + mixture_radius(variance, TIGHTEST_ROUNDS * one_round, confidence)
        return known + waiting * self.plausible_loss()

    def allowed(self, budget: Float[Array, " 3"]) -> Float[Array, ""]:
        """Return the largest excess that the budget allows."""
        return budget[0] * jnp.maximum(self.turnover, 0.0) + jnp.maximum(budget[1], budget[2] * self.rounds)

    def expected_loss(self) -> Float[Array, ""]:
        """Return how much more one decision of the policy is expected to cost than the incumbent's, at least zero."""
        return jnp.maximum(self._loss_moments()[0], 0.0)

    def plausible_loss(self) -> Float[Array, ""]:
        """Return how much more one decision of the policy may cost than the incumbent's: an upper limit of recent ones.

        Decisions whose feedback has not come count with it.
        """
        mean, spread = self._loss_moments()
        return jnp.maximum(mean, 0.0) + PLAUSIBLE_SPREADS * spread

    def next_loss(self) -> Float[Array, ""]:
        """Return what must be left for the policy to decide: at least the largest recent loss."""
        return jnp.maximum(self.plausible_loss(), self.largest)

    def _loss_moments(self) -> tuple[Float[Array, ""], Float[Array, ""]]:
        """Return mean and standard deviation of the policy's recent losses, together with the initial belief."""
        known, prior = jnp.minimum(self.tried, RECENT_ROUNDS), self.forecast.size + 2.0 * self.forecast.spread()
        believed = jnp.stack([prior, 2.0 * jnp.square(prior)])
        mean, square = (PRIOR_LOSS_ROUNDS * believed + known * self.losses) / (PRIOR_LOSS_ROUNDS + known)
        return mean, jnp.sqrt(jnp.maximum(square - jnp.square(mean), 0.0))

    def room(
        self, budget: Float[Array, " 3"], confidence: Float[Array, ""], waiting: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return what the policy may certainly still spend."""
        return self.allowed(budget) - self.bound(confidence, waiting)

    def policy_probability(
        self, budget: Float[Array, " 3"], confidence: Float[Array, ""], waiting: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return the probability with which the policy may decide.

        The odds are the number of rounds that the budget pays for, and fall with what is left of it: many rounds of the
        incumbent among few of the policy make the estimate sharp where that matters.
        """
        room = self.room(budget, confidence, waiting) - self.next_loss()
        rounds = jnp.maximum(room, 0.0) / jnp.maximum(self.expected_loss(), 1e-300)
        max_odds = (1.0 - MIN_INCUMBENT_SHARE) / MIN_INCUMBENT_SHARE
        odds = jnp.minimum(rounds, max_odds * self.budget_left(budget, confidence, waiting))
        return jnp.where(self.forecast.scored >= MIN_FORECAST_ROUNDS, odds / (1.0 + odds), 0.0)

    def budget_left(
        self, budget: Float[Array, " 3"], confidence: Float[Array, ""], waiting: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return the share of the allowed excess that is left, from 0 to 1."""
        allowed = jnp.maximum(self.allowed(budget), 1e-300)
        return jnp.clip(self.room(budget, confidence, waiting) / allowed, 0.0, 1.0)

    def step_size(
        self, budget: Float[Array, " 3"], confidence: Float[Array, ""], waiting: Float[Array, ""]
    ) -> Float[Array, ""]:
        """Return how far the policy may leave the incumbent and explore, from 0 to 1 (as far as it wants to)."""
        return jnp.minimum(self.budget_left(budget, confidence, waiting) / FULL_STEP_SHARE, 1.0)

    def after_other(self, context: Context, total: Float[Array, ""]) -> "Ledger":
        """Return the ledger after the outcome of any other decision, which the forecast of the incumbent can use."""
        return dataclasses.replace(self, forecast=self.forecast.fit(context, total))

    def after_incumbent(self, context: Context, total: Float[Array, ""], probability: Float[Array, ""]) -> "Ledger":
        """Return the ledger after an outcome of the incumbent, who decided with this probability."""
        m, size, limit = self.forecast.predict(context), self.forecast.size, self.forecast.limit()
        r = jnp.clip(total - m, -limit, limit)
        variance = (1.0 - probability) * jnp.square(r / probability)
        return dataclasses.replace(
            self,
            forecast=self.forecast.score(context, total),
            excess=self.excess - r * (1.0 - probability) / probability,
            variance=self.variance.at[1].add(variance),
            turnover=self.turnover + size + (jnp.abs(m + r) - size) / probability,
            rounds=self.rounds + 1.0,
        )

    def after_policy(self, context: Context, total: Float[Array, ""], probability: Float[Array, ""]) -> "Ledger":
        """Return the ledger after an outcome of the policy, while the incumbent had about this probability."""
        m, size, limit = self.forecast.predict(context), self.forecast.size, self.forecast.limit()
        loss = jnp.clip(total - m, -MAX_LOSS * size - limit, MAX_LOSS * size + limit)
        tried = self.tried + 1.0
        recent = jnp.stack([loss, jnp.square(loss)])
        return dataclasses.replace(
            self,
            excess=self.excess + loss,
            variance=self.variance.at[0].add(jnp.square(self.forecast.spread()) / probability),
            turnover=self.turnover + size,
            rounds=self.rounds + 1.0,
            tried=tried,
            losses=self.losses + (recent - self.losses) / jnp.minimum(tried, RECENT_ROUNDS),
            largest=jnp.maximum(loss, self.largest * (1.0 - 1.0 / RECENT_ROUNDS)),
        )


def initial_ledger(context_shape: tuple[int, ...]) -> Ledger:
    """Return the ledger before any outcome."""
    zero = jnp.zeros(())
    return Ledger(initial_forecast(context_shape), zero, jnp.zeros(2), zero, zero, zero, jnp.zeros(2), zero)


class GuardedState(WrapperState):
    """The inner policy's state, the ledger, and how many of the policy's decisions wait for feedback."""

    ledger: Ledger
    waiting: Float[Array, ""]


class Guarded(Wrapper):
    """Play ``inner`` within the ``budget``, and otherwise the incumbent; ``add_guard`` makes one.

    Whoever plays it says with ``with_waiting`` before each decision how many of the policy's decisions wait for
    feedback. ``learn`` takes off those whose feedback comes.

    Parameters
    ----------
    inner : Policy
        The policy that is guarded.
    budget : array of shape ``[3]``
        What it may cost more than the incumbent, as ``Budget.numbers`` returns it.
    confidence : array
        Probability with which the budget is kept at all times.
    incumbent : array of shape ``[d]``, optional
        Costs whose solution is the incumbent's decision. If None, the caller puts the incumbent's decision in place
        where the ``member`` of a sample is ``INCUMBENT``.
    """

    budget: Float[Array, " 3"]
    confidence: Float[Array, ""]
    incumbent: Cost | None

    def refit(self, key: Key, state: GuardedState) -> GuardedState:
        return GuardedState(self.inner.refit(key, state.inner), state.ledger, state.waiting)

    def init(self, key: Key) -> GuardedState:
        return GuardedState(self.inner.init(key), initial_ledger(self.problem.context_shape), jnp.zeros(()))

    def with_waiting(self, state: GuardedState, count: Any) -> GuardedState:
        """Return the state in which ``count`` of the policy's decisions wait for feedback."""
        return GuardedState(state.inner, state.ledger, jnp.asarray(count, float))

    def sample(self, key: Key, state: GuardedState, context: Context, instance: Instance) -> Sample:
        usual = None if self.incumbent is None else self.oracle.solve_one(self.incumbent, instance).w
        return self.admit(key, state, self.propose(key, state, context, instance, usual))

    def propose(
        self,
        key: Key,
        state: GuardedState,
        context: Context,
        instance: Instance,
        usual: Float[Array, " d"] | None,
        *,
        explore: bool = True,
    ) -> Sample:
        """Return what the inner policy wants, closer to the incumbent's decision ``usual`` the less budget is left.

        Exploration is reduced first. Then leaving the incumbent's decision is penalised, so that the decision is the
        least different one that is expected to gain at least the penalty for each coordinate that it changes. A
        ``usual`` that is None or not finite is not known.
        """
        try:
            mean = self.inner.mean(state.inner, context)
        except NotImplementedError:
            return self.inner.sample(key, state.inner, context, instance)
        if explore:
            wanted = self.inner.sample(key, state.inner, context, instance)
        else:
            wanted = Sample(mean, jnp.int32(NOT_SAMPLED), log_probability=jnp.zeros(()))
        drawn: Any = wanted.filled()
        share = state.ledger.step_size(self.budget, self.confidence, state.waiting)
        reduced = share < 1.0
        cost = mean + share * (drawn.cost - mean)
        if usual is not None:
            penalty = LEAVING_PENALTY * jnp.std(mean) * (1.0 / jnp.maximum(share, MIN_STEP) - 1.0)
            leaving = jnp.where(usual == 0, 1.0, -jnp.sign(usual))
            cost = cost + jnp.where(jnp.all(jnp.isfinite(usual)), penalty * leaving, 0.0)
        return dataclasses.replace(
            drawn,
            cost=jnp.where(reduced, cost, drawn.cost),
            noise=jnp.where(reduced, 0.0, drawn.noise),
            log_density=jnp.where(reduced, jnp.nan, drawn.log_density),
            member=jnp.where(reduced, REDUCED_EXPLORATION - 1, drawn.member),
            log_probability=jnp.where(reduced, jnp.nan, drawn.log_probability),
        )

    def admit(self, key: Key, state: GuardedState, wanted: Sample) -> Sample:
        """Return the sample to play: the one that the inner policy wants, or the incumbent's decision.

        The log-density of the incumbent's decision is the logarithm of the probability with which it decides now. That
        of a decision is known where one of both decides for certain, because both may decide the same.
        """
        drawn: Any = wanted.filled()
        probability = state.ledger.policy_probability(self.budget, self.confidence, state.waiting)
        keeps = draws.uniform(jax.random.fold_in(key, 1)) >= probability
        cost = drawn.cost if self.incumbent is None else jnp.where(keeps, self.incumbent, drawn.cost)
        return Sample(
            cost=cost,
            version=jnp.where(keeps, state.version, drawn.version),
            noise=jnp.where(keeps, 0.0, drawn.noise),
            log_density=jnp.where(keeps, jnp.log1p(-probability), drawn.log_density),
            member=jnp.where(keeps, INCUMBENT, drawn.member + 1).astype(jnp.int32),
            log_probability=jnp.where(
                probability <= 0.0, 0.0, jnp.where(probability >= 1.0, drawn.log_probability, jnp.nan)
            ),
        )

    def mean(self, state: GuardedState, context: Context) -> Cost:
        return self.inner.mean(state.inner, context)

    def describe(self, state: GuardedState) -> dict[str, Array]:
        return {**self.inner.describe(state.inner), **self._diagnostics(state)}

    def learn(self, key: Key, state: GuardedState, decision: Decision, feedback: Feedback) -> tuple[GuardedState, Info]:
        incumbent = decision.member == INCUMBENT
        not_sampled = decision.member < 0
        shown = dataclasses.replace(
            decision,
            version=jnp.where(not_sampled, NOT_SAMPLED, decision.version).astype(decision.version.dtype),
            log_density=jnp.where(not_sampled, jnp.nan, decision.log_density),
            cost_sample=jnp.where(incumbent | (decision.member == REPLACED), 0.0, decision.cost_sample),
            member=jnp.maximum(decision.member - 1, 0),
        )
        ledger = self._record(state, decision, feedback, incumbent)
        inner, info = self.inner.learn(key, state.inner, shown, feedback)
        waiting = jnp.maximum(state.waiting - is_policys(decision.member), 0.0)
        after = GuardedState(inner, ledger, waiting)
        more = {**info.more, **self._diagnostics(after), "guard_incumbent": incumbent}
        return after, dataclasses.replace(info, more=more)

    def _record(
        self, state: GuardedState, decision: Decision, feedback: Feedback, incumbent: Bool[Array, ""]
    ) -> Ledger:
        """Return the ledger after an outcome; only known totals of decisions by the policy and the incumbent count."""
        before, context, total = state.ledger, decision.context, feedback.total()
        probability = jnp.where(incumbent, jnp.exp(decision.log_density), 1.0)
        keeps = 1.0 - before.policy_probability(self.budget, self.confidence, state.waiting)
        counted = choose(
            incumbent, before.after_incumbent(context, total, probability), before.after_policy(context, total, keeps)
        )
        known = choose(decision.member != 0, counted, before.after_other(context, total))
        return choose(feedback.complete(), known, before)

    def _diagnostics(self, state: GuardedState) -> dict[str, Array]:
        """Return the guard's account: what ``describe_guard`` puts in words."""
        ledger, now = state.ledger, (self.budget, self.confidence, state.waiting)
        return {
            "guard_excess": ledger.excess,
            "guard_bound": ledger.bound(self.confidence, state.waiting),
            "guard_allowed": ledger.allowed(self.budget),
            "guard_chance": ledger.policy_probability(*now),
            "guard_step": ledger.step_size(*now),
            "guard_loss": ledger.plausible_loss(),
            "guard_next": ledger.next_loss(),
            "guard_waiting": state.waiting,
            "guard_known": ledger.forecast.scored,
            "guard_growth": self.budget[0] * ledger.forecast.size
            + jnp.where(self.budget[2] * ledger.rounds >= self.budget[1], self.budget[2], 0.0),
        }


def is_policys(member: Any) -> Any:
    """Return whether decisions count as the guarded policy's, by their ``member``.

    Parameters
    ----------
    member : int or integer array
        What the decision's record says about who decided.
    """
    return (member != INCUMBENT) & (member != 0)


def describe_guard(details: Mapping[str, float], *, always: bool = False) -> str | None:
    """Return what a guard does now, why, and what would open it; None without a guard.

    Parameters
    ----------
    details : mapping of str to float
        Figures of a guarded policy by name, as ``Guarded.describe`` returns them.
    always : bool, default False
        If False, return None for a guard that gives most decisions to the policy.
    """
    if "guard_chance" not in details:
        return None
    account = {name.removeprefix("guard_"): value for name, value in details.items() if name.startswith("guard_")}
    chance, allowed, bound = account["chance"], account["allowed"], account["bound"]
    left = f"{format_amount(max(allowed - bound, 0.0))} of {format_amount(allowed)} is certainly left"
    if chance >= MOST_DECISIONS and not always:
        return None
    if chance > 0.0:
        step = "" if account["step"] >= 1.0 else ", close to the incumbent's"
        return f"the guard leaves {chance:.0%} of the decisions to the learner{step}: {left} of the budget"
    closed = "the guard gives every decision to the incumbent"
    if account["known"] < MIN_FORECAST_ROUNDS:
        return f"{closed} until its cost is known from {MIN_FORECAST_ROUNDS} rounds, now {account['known']:.0f}"
    short = max(bound + account["next"] - allowed, 0.0)
    waiting, loss = account["waiting"], account["loss"]
    if waiting * loss >= short:
        count = f"{waiting:.0f} decisions wait for feedback and count {format_amount(loss)} each"
        return f"{closed}: {count}, as much as they plausibly cost more; it opens when their feedback comes"
    spent = f"at most {format_amount(bound)} was spent beyond the incumbent's cost, and one more decision may cost "
    spent += f"{format_amount(account['next'])}, of {format_amount(allowed)} that the budget allows"
    way = f"a budget that is larger by {format_amount(short)}"
    if account["growth"] > 0.0:
        way = f"about {format_amount(math.ceil(short / account['growth']))} rounds of the incumbent, or {way}"
    return f"{closed}: {spent}; {way} would open it"


def add_guard(
    inner: Policy, incumbent: Cost | None, *, budget: float | Budget = 0.05, confidence: float = 0.95
) -> Guarded:
    """Return a policy that costs at most a share or an amount more than an incumbent, with the stated confidence.

    Parameters
    ----------
    inner : Policy
        The policy to guard.
    incumbent : array of shape ``[d]`` or None
        Costs whose solution is the incumbent's decision; ``incumbent_costs`` finds them. None: the caller puts the
        incumbent's decision in place.
    budget : float or Budget, default 0.05
        What the policy may cost more than the incumbent; a number is a share, 0 leaves every round to the incumbent.
    confidence : float, default 0.95
        Probability with which the budget is kept at all times.

    Raises
    ------
    SettingsError
        If one of the arguments cannot be used.

    Examples
    --------
    >>> import jax, jax.numpy as jnp, regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), (3,), "bandit")
    >>> inner = rg.policies.LinearThompson().build(problem)
    >>> policy = add_guard(inner, incumbent_costs(problem.oracle, [1.0, 0.0, 0.0, 1.0]), budget=0.05)
    >>> state = policy.init(jax.random.key(0))
    >>> policy.decide(jax.random.key(1), state, jnp.ones(3)).w.tolist()
    [1.0, 0.0, 0.0, 1.0]
    """
    if isinstance(budget, Budget):
        numbers = budget.numbers()
    elif np.isfinite(budget) and budget >= 0:
        numbers = np.array([budget, 0.0, 0.0])
    else:
        raise SettingsError(f"guard: expected a budget of at least 0, such as 0.05 for 5 % more cost, got {budget}")
    if not 0.5 <= confidence < 1:
        raise SettingsError(f"guard: expected a confidence from 0.5 to below 1, such as 0.95, got {confidence}")
    dim = inner.problem.dim
    if incumbent is not None and (np.shape(incumbent) != (dim,) or not np.all(np.isfinite(incumbent))):
        raise SettingsError(
            f"guard: expected the incumbent as {dim} finite costs, which its decision solves, got shape "
            f"{np.shape(incumbent)}; incumbent_costs(oracle, w) finds them for a decision w"
        )
    costs = None if incumbent is None else jnp.asarray(incumbent, float)
    return Guarded(inner.problem, inner, jnp.asarray(numbers, float), jnp.asarray(confidence, float), costs)


def incumbent_costs(oracle: Oracle, w: Any) -> np.ndarray:
    """Return costs whose solution is the decision ``w``: what ``add_guard`` needs to know of a fixed decision.

    Parameters
    ----------
    oracle : Oracle
        The feasible set.
    w : array-like of shape ``[d]``
        The decision.

    Raises
    ------
    SettingsError
        If no such costs are found.
    """
    decision = np.asarray(w, float)
    if decision.shape == (oracle.dim,):
        example = oracle.example_instance()
        instance: Any = None if example is None else jax.tree.map(lambda leaf: np.asarray(leaf)[None], example)
        for costs in (1.0 - 2.0 * decision, -decision):
            if np.allclose(oracle.answer(costs[None], instance).w[0], decision):
                return costs
    raise SettingsError(
        f"guard: expected {oracle.dim} numbers that are the solution of some costs, got {decision.tolist()}; "
        "give the guard such costs themselves"
    )
