"""The default policy: several learners of the cost, and one prediction made of theirs.

All learn from every round. The error of a learner is a running mean of ``|prediction − value| / (|value| +
|prediction| + floor · usual size)`` of what was measured. The costs that are solved are the mean of the learners'
predictions, weighted by ``error^(−1/temperature)``, plus what the first learner draws around its own prediction. A
learner whose error is far above the smallest has weight zero. Some learners need an advantage over the others, and have
weight zero in the first rounds.

Where noise is the largest part of every error, errors are nearly equal and say little. So the weight of a ``capped``
learner has a limit: its stacking weight relative to the first one (``ContrastMoments``). However small its error, it
excludes no other learner.

When recent errors are far above the usual ones, the world has changed, and all learners start again.
"""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from regretless import draws
from regretless.policies.adaptive.ensemble import Ensemble, EnsemblePolicy
from regretless.policies.adaptive.linear import LinearLearner, coefficients_per_block
from regretless.policies.base import MeasuredRows, Policy, PolicySpec, measured_rows, measures_coordinates
from regretless.problem import Problem
from regretless.spec import number
from regretless.stats.drift import ChangeDetector, DriftState
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

MAX_COEFFICIENTS = 5000
"""Largest number of coefficients in one covariance factor (100 MB in single precision); beyond, only networks learn."""

RIDGE = 0.3
"""Prior precision of intercepts and of all slopes of a coordinate together, in one measurement."""

SHARED_SLOPES = 0.5
"""Variance of the part of a slope that all coordinates share, in that of the coordinate's own part."""

ROW_RIDGE, MEAN_RIDGE = 3.0, 0.15
"""Prior precision of each slope of feature rows, and of all slopes in the mean row: few coefficients, soon known."""

CLIPPING = 4.0
"""Usual errors beyond which an error is cut off."""

FLOOR = 1.0
"""Share of the usual size that every prediction is expected to err by."""

LOG_FLOOR = 0.3
"""The same for logarithms where only totals are seen, as in the errors of all learners."""

FADING_ADVANTAGE = 0.3
"""Advantage (logarithm of the error ratio) that the fading learner of context vectors needs: it has much to forget."""

LOG_ROW_ADVANTAGE = 0.01
"""The same for the log-linear learner of feature rows, which may predict a total better and decide worse."""

SEPARABLE_OPTIMISM = 2.0
"""Factor of the optimism where every row measures one coordinate: of what was not chosen nothing was seen."""

FULL_EXPLORATION_FEATURES = 120
"""Features of rows from which they need the full exploration; fewer coefficients are soon known."""

MIN_ROW_EXPLORATION = 0.1
"""Smallest share of the exploration that feature rows get."""

ERROR_FLOOR = 0.3
"""Share of the usual size in the denominator of an error, so that errors of small values do not rule."""

SIZE_WINDOW = 200
"""Rounds over which the usual size of what is measured is averaged."""

LEVEL_WINDOW = 10
"""Rounds over which a predicted cost's bias is averaged where a level in all costs changes no decision."""

MIN_ERROR = 1e-3
"""Relative error below which differences do not matter."""

RANDOM_ROUNDS = 2
"""Learning steps before which the first learner decides alone, at random."""

EARLY_ROUNDS = 20
"""Rounds in which learners that need an advantage have no weight: errors of so few rounds say little."""

TIE_NOISE = 1e-9
"""Spread of the draw that breaks ties between feature rows, as a share of the largest cost: rounding decides none."""

STACKING_WINDOW = 300
"""Rounds that the limit of a capped learner's weight is estimated from."""

MIN_LEVEL_SHARE = 1e-3
"""Ridge of the level in the stacking regression, in mean square contrasts."""

DETECTOR = ChangeDetector(tolerance=MIN_ERROR)
"""Detector of changes, from the relative error of the joint prediction: of several rows the mean size, signed."""


class ContrastMoments(eqx.Module):
    """Stacking weight of each learner relative to the first one, from running means of products.

    The first learner's error ``e = v − v̂₀`` is regressed on the difference ``v̂ − v̂₀`` of the two predictions, in
    which noise averages out. Only differences between coordinates decide anything. So the difference is split into
    ``L``, by which all coordinates are more expensive, ``(Σ h) (mean of ĉ − mean of ĉ₀)``, and the rest ``D``; the
    weight is the coefficient of ``D`` in a regression of ``e`` on both. A learner that merely knows the level of a
    round better deserves none.
    """

    error_contrast: Float[Array, " learners"]  # mean of e D
    error_level: Float[Array, " learners"]  # mean of e L
    contrasts: Float[Array, " learners"]  # mean of D²
    contrast_level: Float[Array, " learners"]  # mean of D L
    levels: Float[Array, " learners"]  # mean of L²

    def update(self, error: Array, contrast: Array, level: Array, rows: Array, rate: Array) -> "ContrastMoments":
        """Return the moments after a round with this number of ``rows``, from ``e``, ``D`` and ``L`` of each row."""
        products = error * contrast, error * level, contrast * contrast, contrast * level, level * level
        latest = ContrastMoments(*(jnp.sum(product, axis=1) / rows for product in products))
        return jax.tree.map(lambda mean, new: mean + rate * (new - mean), self, latest)

    def stacking_weights(self) -> Float[Array, " learners"]:
        """Return the weights, between 0 and 1; 0 where nothing differs."""
        levels = self.levels + MIN_LEVEL_SHARE * self.contrasts + 1e-30
        explained = self.error_contrast - self.error_level * self.contrast_level / levels
        variation = self.contrasts - self.contrast_level * self.contrast_level / levels
        weights = jnp.clip(explained / jnp.where(variation > 0, variation, 1.0), 0.0, 1.0)
        return jnp.where(variation > 0, weights, 0.0)


def zero_moments(learners: int) -> ContrastMoments:
    """Return the moments before anything was measured."""
    return ContrastMoments(*(jnp.zeros(learners) for _ in range(5)))


class AdaptiveState(eqx.Module):
    """The learners' states, and how well each of them predicted."""

    learners: tuple[Any, ...]
    errors: Float[Array, " learners"]
    biases: Float[Array, " learners"]  # of a predicted cost, on average
    moments: ContrastMoments
    drift: DriftState  # of the joint prediction's error; counts the rounds since all learners last started
    size: Float[Array, ""]  # usual size of what is measured
    restarts: Int[Array, ""]
    version: Int[Array, ""]


class AdaptivePolicy(Policy):
    """Play the decision that is best for the joint prediction of ``learners``, called ``names``."""

    learners: tuple[LinearLearner | EnsemblePolicy, ...]
    memory: Float[Array, ""]  # rounds over which errors are averaged
    temperature: Float[Array, ""]
    margin: Float[Array, ""]  # logarithm of the error ratio to the best learner beyond which a weight is zero
    min_advantage: Float[Array, " learners"]  # logarithm of the error ratio by which each must be better than the free
    capped: Bool[Array, " learners"]  # learners whose weight has a limit; never the first
    names: tuple[str, ...] = eqx.field(static=True)
    level_free = True

    def init(self, key: Key) -> AdaptiveState:
        states = tuple(learner.init(jax.random.fold_in(key, i)) for i, learner in enumerate(self.learners))
        none, zero = jnp.zeros(len(self.learners)), jnp.zeros((), jnp.int32)
        moments = zero_moments(len(self.learners))
        return AdaptiveState(states, none, none, moments, DETECTOR.init(), jnp.zeros(()), zero, zero)

    def weights(self, state: AdaptiveState) -> Float[Array, " learners"]:
        """Return the weight of each learner in the joint prediction."""
        scores = -jnp.log(state.errors + MIN_ERROR)
        early = state.drift.rounds < EARLY_ROUNDS
        usable = jnp.stack([getattr(learner, "usable", jnp.asarray(True)) for learner in state.learners])
        free = self.min_advantage <= 0
        best_free = jnp.max(jnp.where(usable & free, scores, -jnp.inf))
        ahead = (scores >= best_free + self.min_advantage) & (~early | jnp.isneginf(best_free))
        scores = jnp.where(usable & (free | ahead), scores, -jnp.inf)
        rival = jnp.where(self.capped, jnp.max(scores), jnp.max(jnp.where(self.capped, -jnp.inf, scores)))
        excluded = rival - scores > self.margin
        weights = jax.nn.softmax(jnp.where(excluded, -jnp.inf, scores / self.temperature))
        # With feature rows a capped learner has no weight until its stacking weight is known.
        cap = jnp.where(early, 0.0 if self.by_row else 1.0, state.moments.stacking_weights())
        capped = jnp.where(self.capped, jnp.minimum(weights, cap), 0.0)
        uncapped = jnp.where(self.capped, 0.0, weights)
        rest = uncapped * (1.0 - jnp.sum(capped)) / jnp.maximum(jnp.sum(uncapped), 1e-30)
        return jnp.where(jnp.sum(uncapped) > 0, capped + rest, weights)

    def mean(self, state: AdaptiveState, context: Context) -> Cost:
        return _combine(self.weights(state), self._predict(state, context))

    def sample(self, key: Key, state: AdaptiveState, context: Context, instance: Instance) -> Sample:
        weights, predictions = self.weights(state), self._predict(state, context)
        drawn = self.learners[0].sample(key, state.learners[0], context, instance).cost
        joint = _combine(weights, predictions) + drawn - predictions[0]
        cost = jnp.where(state.version < RANDOM_ROUNDS, drawn, joint)
        if self.by_row:
            cost = cost + TIE_NOISE * jnp.max(jnp.abs(cost)) * draws.normal(jax.random.fold_in(key, 1), cost.shape)
        return Sample(cost, state.version, member=jnp.argmax(weights).astype(jnp.int32))

    def learn(
        self, key: Key, state: AdaptiveState, decision: Decision, feedback: Feedback
    ) -> tuple[AdaptiveState, Info]:
        measured = measured_rows(self.problem, decision, feedback, jnp.float32)
        arrived, count = jnp.any(measured.used), jnp.maximum(jnp.sum(measured.used), 1)
        rounds, weights = state.drift.rounds + arrived, self.weights(state)
        size = self._usual_size(state, measured, rounds)
        costs = self._predict(state, decision.context)
        predictions = [measured.predict(cost) for cost in costs]
        errors, biases = self._errors(state, measured, predictions, size)
        keys = [jax.random.fold_in(key, i) for i in range(len(self.learners))]
        learned = (
            learner.learn(k, own, decision, feedback)
            for learner, k, own in zip(self.learners, keys, state.learners, strict=True)
        )
        states, infos = zip(*learned, strict=True)
        rate = jnp.where(arrived, jnp.maximum(1.0 / self.memory, 1.0 / jnp.maximum(rounds, 1)), 0.0)
        errors = state.errors + rate * (errors - state.errors)
        level_rate = jnp.where(arrived, 1.0 / jnp.clip(rounds, 1, LEVEL_WINDOW), 0.0)
        biases = state.biases + level_rate * (biases - state.biases) * self.by_row
        moments = self._update_moments(state, measured, predictions, costs, size)
        joint_errors = _relative_errors(measured, _combine(weights, predictions), size)
        joint_errors = jnp.where(measured.used, joint_errors, 0.0)
        joint_error = jnp.sum(jnp.abs(joint_errors)) / count * jnp.sign(jnp.sum(joint_errors))
        drift = DETECTOR.update(state.drift, joint_error, arrived)
        changed = DETECTOR.changed(drift) & (not self.by_row)
        restarted = tuple(
            learner.reset_if(k, own, changed) for learner, k, own in zip(self.learners, keys, states, strict=True)
        )
        errors_kept, biases, moments, drift = jax.tree.map(
            lambda leaf, old: jnp.where(changed, 0, leaf).astype(old.dtype),
            (errors, biases, moments, drift),
            (state.errors, state.biases, state.moments, state.drift),
        )
        after = AdaptiveState(
            restarted, errors_kept, biases, moments, drift, size, state.restarts + changed, state.version + 1
        )
        total = feedback.total()
        info = Info(
            residual=total - _combine(weights, costs) @ decision.w,
            total=total,
            complete=feedback.complete(),
            finite=jnp.all(jnp.stack([info.finite for info in infos])),
            more=self._diagnostics(weights, errors, state.restarts),
        )
        return after, info

    def describe(self, state: AdaptiveState) -> dict[str, Array]:
        return self._diagnostics(self.weights(state), state.errors, state.restarts)

    def _diagnostics(self, weights: Array, errors: Array, restarts: Array) -> dict[str, Array]:
        named = {f"weight_{name}": weights[i] for i, name in enumerate(self.names)}
        named |= {f"error_{name}": errors[i] for i, name in enumerate(self.names)}
        return named if self.by_row else named | {"restarts": restarts}

    def _predict(self, state: AdaptiveState, context: Context) -> list[Cost]:
        """Return the costs that each learner expects."""
        return [learner.mean(own, context) for learner, own in zip(self.learners, state.learners, strict=True)]

    def _usual_size(self, state: AdaptiveState, measured: MeasuredRows, rounds: Array) -> Float[Array, ""]:
        """Return the running mean size of what is measured."""
        sizes = jnp.sum(jnp.where(measured.used, jnp.abs(measured.values), 0.0))
        size = sizes / jnp.maximum(jnp.sum(measured.used), 1)
        step = jnp.where(jnp.any(measured.used), (size - state.size) / jnp.clip(rounds, 1, SIZE_WINDOW), 0.0)
        return state.size + step.astype(state.size.dtype)

    def _errors(
        self, state: AdaptiveState, measured: MeasuredRows, predictions: list[Array], size: Array
    ) -> tuple[Float[Array, " learners"], Float[Array, " learners"]]:
        """Return each learner's mean relative error in this round, corrected for its bias, and its bias."""
        count, sums = jnp.maximum(jnp.sum(measured.used), 1), measured.sums()
        errors, biases = [], []
        for i, predicted in enumerate(predictions):
            residuals = jnp.where(measured.used, measured.values - predicted, 0.0)
            biases.append(jnp.sum(residuals) / jnp.where(jnp.sum(sums) == 0, 1.0, jnp.sum(sums)))
            wrong = jnp.abs(residuals - sums * state.biases[i]) / _error_unit(measured, predicted, size)
            errors.append(jnp.sum(jnp.where(measured.used, wrong, 0.0)) / count)
        return jnp.stack(errors), jnp.stack(biases)

    def _update_moments(
        self, state: AdaptiveState, measured: MeasuredRows, predictions: list[Array], costs: list[Cost], size: Array
    ) -> ContrastMoments:
        """Return how the learners differ from the first after this round, in units of what is measured."""
        first, unit = predictions[0], _error_unit(measured, predictions[0], size)
        means = jnp.stack([jnp.mean(cost) for cost in costs])
        error = jnp.where(measured.used, (measured.values - first) / unit, 0.0)
        difference = jnp.where(measured.used, (jnp.stack(predictions) - first) / unit, 0.0)
        level = jnp.where(measured.used, (means - means[0])[:, None] * measured.sums() / unit, 0.0)
        arrived = jnp.any(measured.used)
        rate = jnp.where(arrived, 1.0 / jnp.clip(state.drift.rounds + arrived, 1, STACKING_WINDOW), 0.0)
        count = jnp.maximum(jnp.sum(measured.used), 1)
        return state.moments.update(error, difference - level, level, count, rate)


def _combine(weights: Float[Array, " learners"], predictions: list[Array]) -> Array:
    """Return the weighted mean; what a learner of weight zero predicts does not matter, even if it is not finite."""
    parts = jnp.where(weights[:, None] > 0, weights[:, None] * jnp.stack(predictions), 0.0)
    return jnp.sum(parts, axis=0)


def _error_unit(measured: MeasuredRows, predicted: Array, size: Array) -> Array:
    """Return the divisor of each row's error: the size of value and prediction, and a share of the usual size."""
    return jnp.abs(measured.values) + jnp.abs(predicted) + ERROR_FLOOR * size + 1e-30


def _relative_errors(measured: MeasuredRows, predicted: Array, size: Array) -> Array:
    return (measured.values - predicted) / _error_unit(measured, predicted, size)


class Adaptive(PolicySpec):
    """Linear, log-linear and fading linear learners and a small ensemble of networks; their joint prediction decides.

    The defaults are meant for every problem.

    Parameters
    ----------
    exploration : float, default 0.2
        Spread of the draws from the linear learner, in posterior standard deviations.
    optimism : float, default 1.0
        Prior deviations by which untried costs are believed to be lower than the others.
    forgetting : float, default 0.005
        Share of its information that the fading learner forgets per step; 0 for no fading learner.
    memory : float, default 100.0
        Rounds over which a learner's errors are averaged.
    temperature : float, default 1.0
        Weights are proportional to ``error ** (-1 / temperature)``: near 0 the best learner decides alone.
    margin : float, default 0.4
        Logarithm of the error ratio to the best learner beyond which a weight is zero.
    networks : int, default 3
        Number of networks in the ensemble; 0 for none.
    steps : int, default 4
        Training steps of the ensemble after each round.
    early_steps : int, default 8
        The same in the first 100 rounds, falling to ``steps`` later; no effect unless above ``steps``.

    Examples
    --------
    >>> import regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), context=3, feedback="bandit")
    >>> rg.policies.Adaptive(exploration=0.1).build(problem).names
    ('linear', 'log_linear', 'fading', 'networks')
    """

    exploration: float = Field(default=0.2, ge=0)
    optimism: float = Field(default=1.0, ge=0)
    forgetting: float = Field(default=0.005, ge=0, lt=1)
    memory: float = Field(default=100.0, ge=1)
    temperature: float = Field(default=1.0, gt=0)
    margin: float = Field(default=0.4, gt=0)
    networks: int = Field(default=3, ge=0, le=64)
    steps: int = Field(default=4, ge=1, le=1000)
    early_steps: int = Field(default=8, ge=1, le=1000)

    def build(self, problem: Problem) -> AdaptivePolicy:
        """Return the policy for a problem."""
        learners = self._linear_learners(problem) if coefficients_per_block(problem) <= MAX_COEFFICIENTS else {}
        if self.networks or not learners:
            ensemble = Ensemble(members=max(self.networks, 1), steps=self.steps, early_steps=self.early_steps)
            learners["networks"] = ensemble.build(problem)
        by_row = len(problem.context_shape) == 2
        advantages = {"log_linear": LOG_ROW_ADVANTAGE} if by_row else {"fading": FADING_ADVANTAGE}
        return AdaptivePolicy(
            problem,
            learners=tuple(learners.values()),
            memory=number(self.memory),
            temperature=number(self.temperature),
            margin=number(self.margin),
            min_advantage=jnp.asarray([advantages.get(name, 0.0) for name in learners]),
            capped=jnp.asarray([name == "networks" and len(learners) > 1 for name in learners]),
            names=tuple(learners),
        )

    def _linear_learners(self, problem: Problem) -> dict[str, LinearLearner | EnsemblePolicy]:
        """Return a linear, a log-linear and a fading learner by name."""
        by_row = len(problem.context_shape) == 2
        share = problem.context_shape[-1] / FULL_EXPLORATION_FEATURES if by_row else 1.0

        def learner(log: bool = False, floor: float = FLOOR, forgetting: float = 0.0) -> LinearLearner:
            numbers = {
                "intercept_ridge": RIDGE,
                "slope_ridge": ROW_RIDGE if by_row else RIDGE,
                "mean_ridge": MEAN_RIDGE,
                "shared": 0.0 if by_row else SHARED_SLOPES,
                "forgetting": forgetting,
                "exploration": self.exploration * min(max(share, MIN_ROW_EXPLORATION), 1.0),
                "optimism": self.optimism * (SEPARABLE_OPTIMISM if measures_coordinates(problem) else 1.0),
                "clipping": CLIPPING,
                "floor": floor,
            }
            return LinearLearner(problem, **{k: jnp.asarray(v, jnp.float32) for k, v in numbers.items()}, log=log)

        log_floor = LOG_FLOOR if problem.feedback.total_only else FLOOR
        learners: dict[str, LinearLearner | EnsemblePolicy] = {
            "linear": learner(),
            "log_linear": learner(log=True, floor=log_floor),
        }
        if self.forgetting:
            learners["fading"] = learner(forgetting=self.forgetting)
        return learners
