"""A linear learner of the cost with a prior that fits most problems.

``c = B (1, x)`` with a row of coefficients per cost coordinate; for feature rows ``c = (1, X − X̄, X̄) β`` with
shared ones and the round's mean row ``X̄``, because what makes a round expensive need not make a coordinate expensive
within it. With the link ``log`` the same holds for ``log |c|`` where all costs have one sign, linearised around the
present estimate.

Coefficients are deviations from one level that all coordinates share. Nothing is assumed about the level, because a
constant in all costs changes no decision. The slopes of a feature have a part that all coordinates share, too. Costs
that have not been tried are believed to be ``optimism`` prior deviations below the level. Costs are drawn from the
posterior with its standard deviations times ``exploration``. Errors beyond ``clipping`` times their usual size are cut
off. A prediction is expected to err by a share of itself and of the usual size (``floor``): large predictions err more,
and the logarithm of a small one says little.
"""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from regretless import draws
from regretless.policies.base import MeasuredRows, Policy, choose, measured_rows, measures_coordinates, with_constant
from regretless.problem import Problem
from regretless.stats.bayes_linear import NORMAL_MEDIAN, ErrorScale, FlatLevel, LinearPosterior, initial_scale
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random: nothing is known yet about the size of costs."""

MIN_SIZE_RATE = 0.01
"""Smallest weight of a row in the mean size of what is measured: a memory of a hundred rows."""

MAX_ROW_WEIGHT = 3.0
"""Largest factor by which a row is weighted up because a small error is expected of it."""

MIN_LOG_RATIO = 1e-3
"""Smallest ratio of a value to its prediction whose logarithm is learned: no total of nearly zero moves it further."""

MAX_LINEAR_SIZE = 1e6
"""Size of a prediction beyond which its expected error no longer grows, so that no weight becomes zero."""

MAX_LOG_COST = 30.0
"""Largest absolute logarithm of a predicted cost."""


class LinearLearnerState(eqx.Module):
    """What the next round needs; coefficients are in blocks that are learned together."""

    posterior: LinearPosterior  # its level is the one that all coordinates share
    scale: ErrorScale  # of standardised errors
    unit: Float[Array, ""]  # precision of one measurement: the prior's unit
    size: Float[Array, ""]  # mean size of what is measured
    sign: Float[Array, ""]  # of all costs, for the link log
    usable: Bool[Array, ""]  # False once a cost of the other sign was seen, for the link log
    version: Int[Array, ""]


class LinearLearner(Policy):
    """Robust Bayesian regression of all costs in single precision; its numbers are array leaves."""

    intercept_ridge: Float[Array, ""]  # prior precision of intercepts: noise variance over that of the deviations
    slope_ridge: Float[Array, ""]  # the same for all slopes of a coordinate together; of feature rows, for each slope
    mean_ridge: Float[Array, ""]  # the same for all slopes in the round's mean row together
    shared: Float[Array, ""]  # variance of the shared part of slopes, in that of the deviations
    forgetting: Float[Array, ""]  # share of the precision that is lost per step
    exploration: Float[Array, ""]  # spread of the draws, in posterior standard deviations
    optimism: Float[Array, ""]  # prior deviations by which untried costs are believed to be lower
    clipping: Float[Array, ""]  # usual errors beyond which one is cut off
    floor: Float[Array, ""]  # share of the mean size that every prediction is expected to err by
    log: bool = eqx.field(static=True, default=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of blocks of coefficients that are learned together, and of coefficients in each."""
        coefficients = coefficients_per_block(self.problem)
        return (self.problem.dim if measures_coordinates(self.problem) else 1), coefficients

    def init(self, key: Key) -> LinearLearnerState:
        zero, one = jnp.zeros((), jnp.float32), jnp.ones((), jnp.float32)
        blocks, size = self.shape
        deviation = self._deviations()
        if size == len(deviation):
            factor = jnp.diag(deviation)
        else:
            d = self.problem.dim
            joint = deviation * (jnp.sqrt(1.0 + d * self._shared_variances()) - 1.0) / d
            factor = jnp.kron(jnp.eye(d, dtype=jnp.float32), jnp.diag(deviation))
            factor = factor + jnp.kron(jnp.ones((d, d), jnp.float32), jnp.diag(joint))
        posterior = LinearPosterior(
            mean=jnp.zeros((blocks, size), jnp.float32),
            factor=jnp.broadcast_to(factor, (blocks, size, size)),
            level=FlatLevel(self._level_loading(), zero),
        )
        return LinearLearnerState(
            posterior=posterior,
            scale=initial_scale(jnp.float32),
            unit=one,
            size=zero,
            sign=one,
            usable=jnp.asarray(True),
            version=jnp.zeros((), jnp.int32),
        )

    def reset_if(self, key: Key, state: LinearLearnerState, flag: Bool[Array, ""]) -> LinearLearnerState:
        """Return the state, or if ``flag`` a new one."""
        return choose(flag, self.init(key), state)

    def mean(self, state: LinearLearnerState, context: Context) -> Cost:
        return self._costs(state, state.posterior.mean, context).astype(float)

    def sample(self, key: Key, state: LinearLearnerState, context: Context, instance: Instance) -> Sample:
        posterior_key, random_key = jax.random.split(key)
        posterior, noise = state.posterior, NORMAL_MEDIAN * state.scale.median
        drawn = posterior.draw(jax.random.normal(posterior_key, posterior.mean.shape, jnp.float32))
        coefficients = posterior.mean + self.exploration * noise * drawn
        if not self.by_row and posterior.level is not None:
            below = self.optimism * noise / jnp.sqrt(self.intercept_ridge * state.unit)
            coefficients = coefficients - below * posterior.level.loading * (state.sign if self.log else 1.0)
        random = draws.normal(random_key, (self.problem.dim,))
        costs = self._costs(state, coefficients, context).astype(float)
        return Sample(jnp.where(state.version < RANDOM_ROUNDS, random, costs), state.version)

    def learn(
        self, key: Key, state: LinearLearnerState, decision: Decision, feedback: Feedback
    ) -> tuple[LinearLearnerState, Info]:
        measured = measured_rows(self.problem, decision, feedback, jnp.float32)
        features = self._features(decision.context)
        residual = feedback.total() - self.mean(state, decision.context) @ decision.w
        after = self._forget(self._begin(state, measured), jnp.any(measured.used) & (state.scale.rows == 0))
        if self.shape[0] > 1 or len(measured.values) == 1:
            after = self._learn_rows(after, features, measured)
        else:

            def learn_row(state: LinearLearnerState, row: MeasuredRows) -> tuple[LinearLearnerState, None]:
                return self._learn_rows(state, features, jax.tree.map(lambda leaf: leaf[None], row)), None

            after, _ = jax.lax.scan(learn_row, after, measured)
        if self.log:  # a cost without a logarithm is not learned, and ends the learner
            unusable = eqx.tree_at(lambda s: s.usable, state, jnp.asarray(False))
            after = choose(after.usable, after, unusable)
        after = eqx.tree_at(lambda s: s.version, after, state.version + 1)
        finite = jnp.isfinite(jnp.sum(after.posterior.mean) + after.scale.median)
        return after, Info(residual, feedback.total(), feedback.complete(), finite)

    def _begin(self, state: LinearLearnerState, measured: MeasuredRows) -> LinearLearnerState:
        """Return the state with the prior's unit, sign and level taken from the first measured row."""
        first = (state.scale.rows == 0) & jnp.any(measured.used)
        row = jax.tree.map(lambda leaf: leaf[jnp.argmax(measured.used)], measured)
        h = row.weights
        total, square = jnp.sum(h), jnp.sum(jnp.square(h))
        mean, sign, usable = state.posterior.mean, state.sign, state.usable
        if self.log:
            sign = jnp.where(first, jnp.sign(row.values), sign)
            same_sign = jnp.all(jnp.where(measured.used, measured.values * sign > 0, True))
            usable = usable & same_sign & jnp.all(measured.weights >= 0)
            level = jnp.log(jnp.maximum(jnp.abs(row.values) / jnp.maximum(total, 1e-6), 1e-20))
            mean = jnp.where(first, level * self._level_loading(), mean)
            total, square = jnp.ones(()), square / jnp.maximum(jnp.square(total), 1e-12)
        if self.by_row:
            square = jnp.maximum(jnp.square(total), square)
        unit = jnp.where(first, square, state.unit).astype(jnp.float32)
        return eqx.tree_at(lambda s: (s.posterior.mean, s.unit, s.sign, s.usable), state, (mean, unit, sign, usable))

    def _forget(self, state: LinearLearnerState, first: Bool[Array, ""]) -> LinearLearnerState:
        """Return the state with a posterior widened up to the prior, in the ``first`` round in the prior's unit."""
        posterior, level = state.posterior, state.posterior.level
        assert level is not None
        keep = 1.0 - self.forgetting
        inflation = jnp.where(first, 1.0 / jnp.sqrt(state.unit), 1.0 / jnp.sqrt(keep)).astype(jnp.float32)
        factor = inflation * posterior.factor
        prior = self._variances() / state.unit
        variance = jnp.sum(jnp.square(factor), axis=2)
        within = jnp.minimum(1.0, jnp.sqrt(prior / jnp.maximum(variance, 1e-30)))
        kept = jnp.where(self.forgetting > 0, within, 1.0)
        start = self._level_loading()
        loading = jnp.where(jnp.any(level.loading != 0), start + kept * (level.loading - start), level.loading)
        widened = LinearPosterior(
            posterior.mean, kept[..., None] * factor, FlatLevel(loading, keep * level.information)
        )
        return eqx.tree_at(lambda s: s.posterior, state, widened)

    def _learn_rows(self, state: LinearLearnerState, features: Array, measured: MeasuredRows) -> LinearLearnerState:
        """Return the state after one measured row for each block: an exact step around the present coefficients."""
        used = measured.used
        predicted, phi = self._predict_rows(state, features, measured.weights)
        size = self._mean_size(state, measured)
        error, weight = self._weigh(state, size, predicted, measured.values)
        error, phi = jnp.where(used, error * weight, 0.0), jnp.where(used[:, None], phi * weight[:, None], 0.0)
        projection = state.posterior.project(phi[:, None])
        spread = state.posterior.spread(projection)[:, 0]
        standardised = jnp.where(used, jnp.abs(error) / spread, 0.0)
        believed = state.scale.clip(error, self.clipping, jnp.sqrt(projection.variances[:, 0]))
        posterior = state.posterior.update(projection, believed[:, None])
        return dataclasses.replace(state, posterior=posterior, scale=state.scale.update(standardised, used), size=size)

    def _mean_size(self, state: LinearLearnerState, measured: MeasuredRows) -> Float[Array, ""]:
        """Return the running mean size of what is measured."""
        count = jnp.sum(measured.used)
        sizes = jnp.where(measured.used, jnp.abs(measured.values), 0.0)
        rate = jnp.minimum(1.0, jnp.maximum(count / jnp.maximum(state.scale.rows + count, 1.0), MIN_SIZE_RATE))
        later = state.size + rate * (jnp.sum(sizes) / jnp.maximum(count, 1) - state.size)
        return jnp.where(jnp.any(measured.used), later, state.size)

    def _weigh(self, state: LinearLearnerState, size: Array, predicted: Array, values: Array) -> tuple[Array, Array]:
        """Return the errors (with the link log of logarithms), and the weights of rows for noise of equal size."""
        floor = self.floor * size
        if self.log:
            value = jnp.maximum(values * state.sign, MIN_LOG_RATIO * predicted)
            error, weight = jnp.log(value / predicted), (1.0 + self.floor) * predicted / (predicted + floor)
        else:
            error = values - predicted
            expected = jnp.minimum(jnp.abs(predicted), MAX_LINEAR_SIZE) + floor
            weight = (1.0 + self.floor) * size / (expected + 1e-30)
        equal = (state.scale.rows < RANDOM_ROUNDS) | (self.floor <= 0)
        return error, jnp.where(equal, 1.0, jnp.minimum(weight, MAX_ROW_WEIGHT))

    def _predict_rows(self, state: LinearLearnerState, features: Array, weights: Array) -> tuple[Array, Array]:
        """Return each row's prediction, and its derivative (with ``log`` that of its logarithm) in the coefficients."""
        mean = state.posterior.mean
        if self.shape[0] > 1:
            linear, phi = mean @ features, jnp.broadcast_to(features, mean.shape)
            if self.log:
                return weights * _exp(linear) + 1e-20, phi
            return weights * linear, weights[:, None] * phi
        h = weights[0]
        linear = features @ mean[0] if self.by_row else mean[0].reshape(self.problem.dim, -1) @ features
        predicted = h @ linear
        if self.log:
            costs = _exp(linear)
            predicted = jnp.maximum(h @ costs, 1e-20)
            h = h * costs / predicted
        phi = h @ features if self.by_row else (h[:, None] * features).reshape(-1)
        return predicted[None], phi[None]

    def _costs(self, state: LinearLearnerState, coefficients: Array, context: Context) -> Array:
        features = self._features(context)
        if self.by_row:  # in double precision: rows whose features differ alike shall differ alike in their costs
            linear = features.astype(float) @ coefficients[0].astype(float)
        else:
            linear = coefficients.reshape(self.problem.dim, -1) @ features
        return state.sign * _exp(linear) if self.log else linear

    def _features(self, context: Context) -> Array:
        """Return ``(1, x)``, or ``(1, X − X̄, X̄)`` row by row."""
        x = context.astype(jnp.float32)
        if self.by_row:
            mean = jnp.broadcast_to(jnp.mean(x, axis=0), x.shape)
            x = jnp.concatenate([x - mean, mean], axis=-1)
        return with_constant(x)

    def _deviations(self) -> Float[Array, " features"]:
        """Return prior deviations of one coordinate's coefficients; the intercept of feature rows is the level."""
        p = self.problem.context_shape[-1]
        if self.by_row:
            intercept, ridges = jnp.zeros(()), [self.slope_ridge, self.mean_ridge * p]
        else:
            intercept, ridges = 1.0 / jnp.sqrt(self.intercept_ridge), [self.slope_ridge * p]
        slopes = [jnp.full(p, 1.0 / jnp.sqrt(ridge)) for ridge in ridges]
        return jnp.concatenate([intercept[None], *slopes]).astype(jnp.float32)

    def _shared_variances(self) -> Float[Array, " features"]:
        """Return the variance of the part that all coordinates share, relative to their own; zero for the level."""
        slopes = jnp.broadcast_to(self.shared, (features_per_coordinate(self.problem) - 1,))
        return jnp.concatenate([jnp.zeros(1), slopes]).astype(jnp.float32)

    def _variances(self) -> Float[Array, " n"]:
        """Return the prior variances of a block's coefficients."""
        variances = jnp.square(self._deviations())
        if self.shape[1] == len(variances):
            return variances
        return jnp.tile(variances * (1.0 + self._shared_variances()), self.problem.dim)

    def _level_loading(self) -> Float[Array, "b n"]:
        """Return one for each intercept, zero for each slope."""
        features = features_per_coordinate(self.problem)
        blocks, size = self.shape
        return jnp.tile(jnp.zeros(features, jnp.float32).at[0].set(1.0), (blocks, size // features))


def _exp(linear: Array) -> Array:
    return jnp.exp(jnp.clip(linear, -MAX_LOG_COST, MAX_LOG_COST))


def features_per_coordinate(problem: Problem) -> int:
    """Return how many features a coordinate's cost is linear in; rows count twice, as deviations and as means."""
    return 1 + problem.context_shape[-1] * len(problem.context_shape)


def coefficients_per_block(problem: Problem) -> int:
    """Return how many coefficients are learned together for a problem."""
    shared = len(problem.context_shape) == 2 or problem.feedback.separable
    return features_per_coordinate(problem) * (1 if shared else problem.dim)
