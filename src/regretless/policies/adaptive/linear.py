"""A linear learner of the cost with a prior that fits most problems: the costs, or their logarithms, are linear in the context.

``c = B (1, x)`` with a row of coefficients per cost coordinate; for feature rows ``c = (1, X − X̄, X̄) β`` with shared ones and
the round's mean row ``X̄``, because what makes a round dear need not make a coordinate dear within it. With the link ``log`` the
same holds for ``log |c|`` where all costs have one sign, linearised around what is believed. The coefficients are deviations
from one level that all coordinates share, about which nothing is assumed: a constant in all costs changes no decision. The
slopes of a feature have a part that all coordinates share, too. What has not been tried is believed to be ``optimism`` prior
deviations cheaper than the level, and costs are drawn from the posterior, ``exploration`` wide. Errors beyond ``clipping``
times their usual size are cut off. A prediction is expected to err by a share of itself and of the usual size (``floor``):
large ones err more, and the logarithm of a small one tells little.
"""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless import draws
from regretless.policies.adaptive.base import Learning
from regretless.policies.adaptive.measured import Measured, measured
from regretless.problem import Problem
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random."""

FEW = 5
"""Measured rows before which no error is cut off."""

NORMAL = 1.4826
"""Standard deviation of a normal variable over the median of its size."""

FLAT = 1e4
"""Variance of the level before anything was measured."""


class LinearState(eqx.Module):
    """What the next round needs: coefficients in blocks that are learnt together, ``[blocks, size]``."""

    theta: Float[Array, "b n"]  # coefficients, the level included
    untried: Float[Array, "b n"]  # how far each still follows the level
    factor: Float[Array, "b n n"]  # L with L Lᵀ = covariance in units of the noise's
    information: Float[Array, ""]  # about the level
    weight: Float[Array, ""]  # of one measurement: the prior's unit
    error: Float[Array, ""]  # median size of standardised errors
    size: Float[Array, ""]  # mean size of what is measured
    sign: Float[Array, ""]  # of all costs, for the link log
    usable: Bool[Array, ""]  # False once a cost of the other sign was seen, for the link log
    rows: Float[Array, ""]  # measured so far
    version: Int[Array, ""]


class Linear(Learning):
    """One learner; its numbers are leaves. Single precision will do: the factor's condition is a root of the covariance's."""

    intercept_ridge: Float[Array, ""]  # prior precision of intercepts: noise variance over that of the deviations
    slope_ridge: Float[Array, ""]  # the same for all slopes of a coordinate together; of feature rows, for each slope
    mean_ridge: Float[Array, ""]  # the same for all slopes in the round's mean row together
    shared: Float[Array, ""]  # variance of the shared part of slopes, in that of the deviations
    forgetting: Float[Array, ""]
    exploration: Float[Array, ""]
    optimism: Float[Array, ""]
    clipping: Float[Array, ""]
    floor: Float[Array, ""]  # share of the mean size that every prediction is expected to err by
    log: bool = eqx.field(static=True, default=False)

    @property
    def by_row(self) -> bool:
        """Whether coordinates are described by feature rows and share their coefficients."""
        return len(self.problem.context_shape) == 2

    @property
    def blocks(self) -> int:
        """How many sets of coefficients are learnt apart from each other."""
        return self.problem.dim if self.problem.feedback.separable and not self.by_row else 1

    @property
    def features(self) -> int:
        """One more than a context has; feature rows count twice, as deviations and as means."""
        return features(self.problem)

    @property
    def coefficients(self) -> int:
        """In one block."""
        return self.features if self.by_row or self.blocks > 1 else self.features * self.problem.dim

    def init(self, key: Key) -> LinearState:
        zero, one = jnp.zeros((), jnp.float32), jnp.ones((), jnp.float32)
        deviation = self._deviations()
        if self.coefficients == self.features:
            factor = jnp.diag(deviation)
        else:
            d = self.problem.dim
            together = deviation * (jnp.sqrt(1.0 + d * self._shared()) - 1.0) / d
            factor = jnp.kron(jnp.eye(d, dtype=jnp.float32), jnp.diag(deviation))
            factor = factor + jnp.kron(jnp.ones((d, d), jnp.float32), jnp.diag(together))
        shape = (self.blocks, self.coefficients)
        return LinearState(
            theta=jnp.zeros(shape, jnp.float32), untried=self._level(),
            factor=jnp.broadcast_to(factor, (*shape, shape[1])), information=zero, weight=one, error=zero, size=zero,
            sign=one, usable=jnp.asarray(True), rows=zero, version=jnp.zeros((), jnp.int32),
        )  # fmt: skip

    def mean(self, state: LinearState, context: Context) -> Cost:
        return self._costs(state, state.theta, context).astype(float)

    def sample(self, key: Key, state: LinearState, context: Context, instance: Instance) -> Sample:
        posterior_key, random_key = jax.random.split(key)
        noise = NORMAL * state.error
        drawn = jnp.einsum("bnk,bk->bn", state.factor, jax.random.normal(posterior_key, state.theta.shape, jnp.float32))
        theta = state.theta + self.exploration * noise * drawn
        if not self.by_row:
            below = self.optimism * noise / jnp.sqrt(self.intercept_ridge * state.weight)
            theta = theta - below * state.untried * (state.sign if self.log else 1.0)
        random = draws.normal(random_key, (self.problem.dim,))
        cost = jnp.where(state.version < RANDOM_ROUNDS, random, self._costs(state, theta, context).astype(float))
        return Sample(cost, state.version)

    def learn(self, key: Key, state: LinearState, decision: Decision, feedback: Feedback) -> tuple[LinearState, Info]:
        seen = measured(self.problem, decision, feedback)
        features = self._features(decision.context)
        residual = feedback.total() - self.mean(state, decision.context) @ decision.w
        after = self._prepared(state, features, seen)
        if self.blocks > 1 or len(seen.values) == 1:
            after = self._take(after, features, seen)
        else:
            one = lambda state, row: (self._take(state, features, jax.tree.map(lambda leaf: leaf[None], row)), None)  # noqa: E731
            after, _ = jax.lax.scan(one, after, seen)
        if self.log:  # what has no logarithm is not learnt, and ends it
            kept = eqx.tree_at(lambda s: s.usable, state, jnp.asarray(False))
            after = jax.tree.map(lambda new, old: jnp.where(after.usable, new, old), after, kept)
        after = eqx.tree_at(lambda s: s.version, after, state.version + 1)
        finite = jnp.isfinite(jnp.sum(after.theta) + after.error)
        return after, Info(residual, feedback.total(), feedback.complete(), finite)

    def _prepared(self, state: LinearState, features: Array, seen: Measured) -> LinearState:
        """The state before the rows are taken in: the prior's unit, signs and forgetting."""
        first = (state.rows == 0) & jnp.any(seen.used)
        one = jax.tree.map(lambda leaf: leaf[jnp.argmax(seen.used)], seen)
        h = one.weights
        total, square = jnp.sum(h), jnp.sum(jnp.square(h))
        theta, sign, usable = state.theta, state.sign, state.usable
        if self.log:
            sign = jnp.where(first, jnp.sign(one.values), sign)
            one_sign = jnp.all(jnp.where(seen.used, seen.values * sign > 0, True)) & jnp.all(seen.weights >= 0)
            usable = usable & one_sign
            level = jnp.log(jnp.maximum(jnp.abs(one.values) / jnp.maximum(total, 1e-6), 1e-20))
            theta = jnp.where(first, level * self._level(), theta)
            total, square = jnp.ones(()), square / jnp.maximum(jnp.square(total), 1e-12)
        if self.by_row:
            square = jnp.maximum(jnp.square(total), square)
        weight = jnp.where(first, square, state.weight).astype(jnp.float32)
        inflation = jnp.where(first, 1.0 / jnp.sqrt(weight), 1.0 / jnp.sqrt(1.0 - self.forgetting)).astype(jnp.float32)
        factor = inflation * state.factor
        # Nothing is forgotten beyond the prior: no coefficient's variance grows past the one that it began with.
        prior = self._variances() / weight
        variance = jnp.sum(jnp.square(factor), axis=2)
        kept = jnp.where(self.forgetting > 0, jnp.minimum(1.0, jnp.sqrt(prior / jnp.maximum(variance, 1e-30))), 1.0)
        level = self._level()
        untried = jnp.where(jnp.any(state.untried != 0), level + kept * (state.untried - level), state.untried)
        return eqx.tree_at(
            lambda s: (s.theta, s.untried, s.factor, s.information, s.weight, s.sign, s.usable),
            state,
            (
                theta,
                untried,
                kept[..., None] * factor,
                (1.0 - self.forgetting) * state.information,
                weight,
                sign,
                usable,
            ),
        )

    def _take(self, state: LinearState, features: Array, seen: Measured) -> LinearState:
        """One measured row for each block: an exact step of the posterior around the present coefficients."""
        used = seen.used
        predicted, phi = self._predicted(state, features, seen.weights)
        count = state.rows + jnp.sum(used)
        share = jnp.where(used, jnp.abs(seen.values), 0.0)
        rate = jnp.minimum(1.0, jnp.maximum(jnp.sum(used) / jnp.maximum(count, 1.0), 0.01))
        size = jnp.where(
            jnp.any(used), state.size + rate * (jnp.sum(share) / jnp.maximum(jnp.sum(used), 1) - state.size), state.size
        )
        floor = self.floor * size
        if self.log:
            value = jnp.maximum(seen.values * state.sign, 1e-3 * predicted)
            error, near = jnp.log(value / predicted), (1.0 + self.floor) * predicted / (predicted + floor)
        else:
            error = seen.values - predicted
            near = (1.0 + self.floor) * size / (jnp.minimum(jnp.abs(predicted), 1e6) + floor + 1e-30)
        scale = jnp.where((state.rows < RANDOM_ROUNDS) | (self.floor <= 0), 1.0, jnp.minimum(near, 3.0))
        error, phi = error * scale, phi * scale[:, None]
        error, phi = jnp.where(used, error, 0.0), jnp.where(used[:, None], phi, 0.0)

        F = jnp.einsum("bn,bnk->bk", phi, state.factor)
        G = jnp.einsum("bnk,bk->bn", state.factor, F)
        S = 1.0 + jnp.sum(jnp.square(F), axis=1)
        a = jnp.sum(phi * state.untried, axis=1)
        spread = jnp.sqrt(S + jnp.square(a) / (state.information + 1.0 / FLAT))
        standard = jnp.where(used, jnp.abs(error) / spread, 0.0)
        early = jnp.maximum(jnp.max(standard), state.error)
        above = jnp.sum(jnp.where(used, jnp.sign(standard - state.error), 0.0)) / jnp.maximum(jnp.sum(used), 1)
        step = jnp.maximum(0.03, 1.0 / (2.0 + state.rows))
        usual = jnp.where(state.rows < FEW, early, state.error * jnp.exp(step * above))
        limit = self.clipping * state.error * jnp.sqrt(S)
        cut = (self.clipping > 0) & (state.rows >= FEW) & (state.error > 0)
        error = jnp.where(cut, jnp.clip(error, -limit, limit), error)

        known = state.information + jnp.sum(jnp.square(a) / S)
        level = jnp.sum(a * error / S) / (known + 1.0 / FLAT)
        theta = state.theta + G * ((error - a * level) / S)[:, None] + state.untried * level
        factor = state.factor - (G / (S + jnp.sqrt(S))[:, None])[:, :, None] * F[:, None, :]
        untried = state.untried - G * (a / S)[:, None]
        return LinearState(
            theta, untried, factor, known, state.weight, jnp.where(jnp.any(used), usual, state.error), size, state.sign,
            state.usable, count, state.version,
        )  # fmt: skip

    def _predicted(self, state: LinearState, features: Array, weights: Array) -> tuple[Array, Array]:
        """What each row is expected to show, and its derivative in the coefficients; with ``log`` that of its logarithm."""
        if self.blocks > 1:
            linear = state.theta @ features
            phi = jnp.broadcast_to(features, state.theta.shape)
            if self.log:
                return weights * _exp(linear) + 1e-20, phi
            return weights * linear, weights[:, None] * phi
        h = weights[0]
        linear = features @ state.theta[0] if self.by_row else state.theta[0].reshape(self.problem.dim, -1) @ features
        predicted = h @ linear
        if self.log:
            costs = _exp(linear)
            predicted = jnp.maximum(h @ costs, 1e-20)
            h = h * costs / predicted
        phi = h @ features if self.by_row else (h[:, None] * features).reshape(-1)
        return predicted[None], phi[None]

    def _costs(self, state: LinearState, theta: Array, context: Context) -> Array:
        features = self._features(context)
        if self.by_row:  # in double precision: rows whose features differ alike shall differ alike in their costs
            linear = features.astype(float) @ theta[0].astype(float)
        else:
            linear = theta.reshape(self.problem.dim, -1) @ features
        return state.sign * _exp(linear) if self.log else linear

    def _features(self, context: Context) -> Array:
        """``(1, x)``, or ``(1, X − X̄, X̄)`` row by row."""
        x = context.astype(jnp.float32)
        if self.by_row:
            mean = jnp.broadcast_to(jnp.mean(x, axis=0), x.shape)
            x = jnp.concatenate([x - mean, mean], axis=-1)
        return jnp.concatenate([jnp.ones((*x.shape[:-1], 1), jnp.float32), x], axis=-1)

    def _deviations(self) -> Float[Array, " features"]:
        """Prior standard deviations of the coefficients of one coordinate; feature rows have one intercept, the level."""
        p = self.problem.context_shape[-1]
        if self.by_row:
            own, ridges = jnp.zeros(()), [self.slope_ridge, self.mean_ridge * p]
        else:
            own, ridges = 1.0 / jnp.sqrt(self.intercept_ridge), [self.slope_ridge * p]
        slopes = [jnp.full(p, 1.0 / jnp.sqrt(ridge)) for ridge in ridges]
        return jnp.concatenate([own[None], *slopes]).astype(jnp.float32)

    def _shared(self) -> Float[Array, " features"]:
        """Variance of what all coordinates share, in that of their own deviations; the level is learnt without a prior."""
        slopes = jnp.broadcast_to(self.shared, (self.features - 1,))
        return jnp.concatenate([jnp.zeros(1), slopes]).astype(jnp.float32)

    def _variances(self) -> Float[Array, " n"]:
        """Prior variances of a block's coefficients."""
        own = jnp.square(self._deviations())
        if self.coefficients == self.features:
            return own
        return jnp.tile(own * (1.0 + self._shared()), self.problem.dim)

    def _level(self) -> Float[Array, "b n"]:
        """One for each intercept, zero for each slope."""
        one = jnp.zeros(self.features, jnp.float32).at[0].set(1.0)
        return jnp.tile(one, (self.blocks, self.coefficients // self.features))


def _exp(linear: Array) -> Array:
    return jnp.exp(jnp.clip(linear, -30.0, 30.0))


def features(problem: Problem) -> int:
    """How many features a coordinate's cost is linear in."""
    return 1 + problem.context_shape[-1] * len(problem.context_shape)


def coefficients(problem: Problem) -> int:
    """How many coefficients are learnt together for a problem."""
    shared = len(problem.context_shape) == 2 or problem.feedback.separable
    return features(problem) * (1 if shared else problem.dim)


def numbers(**values: float) -> dict[str, Any]:
    """Settings as leaves in single precision."""
    assert all(math.isfinite(value) for value in values.values())
    return {name: jnp.asarray(value, jnp.float32) for name, value in values.items()}
