"""Hierarchical linear Thompson sampling whose variances are learned from the data (empirical Bayes).

The coefficients of a coordinate are a shared part and its own part, ``θ_i = μ + u_i`` for ``z = (1, x)``, with four
prior variances: of the shared intercept (the level), shared slopes, own intercepts (item effects) and own slopes. These
and the variance ``σ²`` of the noise are fitted by expectation maximisation on the sufficient statistics ``G = Σ φ φᵀ``,
``b = Σ φ v``, ``Σ v²`` and the number of rows: five steps every 25 rounds. In between, the posterior follows every
round exactly.

- If rows combine coordinates, such as totals, the posterior is that of all ``θ`` together, with prior covariance
  ``K = τ_shared 11ᵀ + τ_own I`` for each feature; it is ``N(A⁻¹ b, σ² A⁻¹)`` with ``A = σ² K⁻¹ + G``.
- If every row measures one coordinate, given ``μ`` the coordinates are independent: blocks ``D_i = σ²/τ_own + G_i``.
- Feature rows have shared coefficients only.
"""

from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.policies.base import Policy, PolicySpec, choose, measures_coordinates
from regretless.policies.linear_design import block_sizes, predict_costs, regression_rows, require_few_coefficients
from regretless.problem import Problem
from regretless.stats.bayes_linear import LinearPosterior, inverse_of_lower
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

EM_ROUNDS = 25
"""Rounds between two fits of the variances."""

EM_STEPS = 5
"""Steps of expectation maximisation in each fit."""

MIN_VARIANCE = 1e-8
"""Smallest variance of noise and coefficients, in mean squares of the values."""


class Variances(NamedTuple):
    """The four groups of coefficients, and the noise."""

    level: Float[Array, ""]
    shared_slopes: Float[Array, ""]
    item_effects: Float[Array, ""]
    item_slopes: Float[Array, ""]
    noise: Float[Array, ""]

    def by_feature(self, features: int) -> tuple[Float[Array, " q"], Float[Array, " q"]]:
        """Return the variances of shared and own coefficients for ``(1, x)``."""
        first = jnp.arange(features) == 0
        shared = jnp.where(first, self.level, self.shared_slopes)
        return shared, jnp.where(first, self.item_effects, self.item_slopes)


class EBThompsonState(eqx.Module):
    """What the next round needs."""

    posterior: LinearPosterior  # of θ; where coordinates are measured one by one, given that μ is zero
    gram: Float[Array, "blocks n n"]  # Σ φ φᵀ
    moments: Float[Array, "blocks n"]  # Σ φ v
    square: Float[Array, ""]  # Σ v²
    rows: Float[Array, ""]
    variances: Variances
    version: Int[Array, ""]


class SharedPosterior(NamedTuple):
    """The shared coefficients where coordinates are measured one by one, in units of the noise variance."""

    mean: Float[Array, " q"]
    factor: Float[Array, "q q"]  # U with U Uᵀ their covariance
    response: Float[Array, "d q q"]  # D_i⁻¹ Λ: how coordinates follow μ


class EBThompsonPolicy(Policy):
    """Draw coefficients with ``posterior_scale`` times their posterior deviation, and play ``w*`` of the costs."""

    posterior_scale: Float[Array, ""]

    @property
    def refit_every(self) -> int:
        return EM_ROUNDS

    @property
    def features(self) -> int:
        """Number of coefficients of one coordinate."""
        return 1 + self.problem.context_shape[-1]

    @property
    def separable(self) -> bool:
        """Whether every row measures one coordinate, in a context vector."""
        return measures_coordinates(self.problem)

    def init(self, key: Key) -> EBThompsonState:
        blocks, n = block_sizes(self.problem)
        one = jnp.ones(())
        gram, moments = jnp.zeros((blocks, n, n)), jnp.zeros((blocks, n))
        variances = Variances(one, one, one, one, one)
        posterior = self._posterior(gram, moments, variances)
        return EBThompsonState(
            posterior, gram, moments, jnp.zeros(()), jnp.zeros(()), variances, jnp.zeros((), jnp.int32)
        )

    def mean(self, state: EBThompsonState, context: Context) -> Cost:
        coefficients = state.posterior.mean
        if self.separable:
            shared = self._shared(state.posterior, state.variances)
            coefficients = coefficients + shared.response @ shared.mean
        return predict_costs(self.problem, coefficients, context)

    def sample(self, key: Key, state: EBThompsonState, context: Context, instance: Instance) -> Sample:
        own_key, shared_key = jax.random.split(key)
        spread = self.posterior_scale * jnp.sqrt(state.variances.noise)
        noise = draws.normal(own_key, state.posterior.mean.shape)
        coefficients = state.posterior.mean + spread * state.posterior.draw(noise)
        if self.separable:
            shared = self._shared(state.posterior, state.variances)
            drawn = shared.mean + spread * shared.factor @ draws.normal(shared_key, (self.features,))
            coefficients = coefficients + shared.response @ drawn
        return Sample(predict_costs(self.problem, coefficients, context), state.version)

    def learn(
        self, key: Key, state: EBThompsonState, decision: Decision, feedback: Feedback
    ) -> tuple[EBThompsonState, Info]:
        phi, values, used = regression_rows(self.problem, decision, feedback)
        posterior = state.posterior.condition(phi, values)
        after = EBThompsonState(
            posterior=posterior,
            gram=state.gram + jnp.einsum("bmn,bmk->bnk", phi, phi),
            moments=state.moments + jnp.einsum("bmn,bm->bn", phi, values),
            square=state.square + jnp.sum(jnp.square(values)),
            rows=state.rows + jnp.sum(used),
            variances=state.variances,
            version=state.version + 1,
        )
        total = feedback.total()
        residual = total - self.mean(state, decision.context) @ decision.w
        finite = jnp.isfinite(jnp.sum(posterior.mean) + jnp.sum(posterior.factor))
        return after, Info(residual, total, feedback.complete(), finite, {"noise": state.variances.noise})

    def refit(self, key: Key, state: EBThompsonState) -> EBThompsonState:
        """Return the state with variances fitted to everything seen so far, as ``Policy.refit`` says."""

        def step(_: int, variances: Variances) -> Variances:
            return self._maximise(state, variances)

        variances = jax.lax.fori_loop(0, EM_STEPS, step, state.variances)
        posterior = self._posterior(state.gram, state.moments, variances)
        fitted = eqx.tree_at(lambda s: (s.posterior, s.variances), state, (posterior, variances))
        return choose(state.rows > 0, fitted, state)

    def describe(self, state: EBThompsonState) -> dict[str, Array]:
        return {f"variance_{name}": value for name, value in state.variances._asdict().items()}

    def _posterior(
        self, gram: Float[Array, "b n n"], moments: Float[Array, "b n"], variances: Variances
    ) -> LinearPosterior:
        """Return the posterior from the sufficient statistics."""
        shared, own = variances.by_feature(self.features)
        if self.by_row or self.separable:
            prior = jnp.diag(1.0 / (shared if self.by_row else own))
        else:
            d, q = self.problem.dim, self.features
            weight = shared / (own + d * shared)
            between = (jnp.eye(d)[:, None, :, None] - weight[:, None, None]) / own[:, None, None]
            prior = (between * jnp.eye(q)[None, :, None, :]).reshape(d * q, d * q)
        factor = jnp.matrix_transpose(inverse_of_lower(jnp.linalg.cholesky(variances.noise * prior + gram)))
        return LinearPosterior(jnp.einsum("bnk,bmk,bm->bn", factor, factor, moments), factor)

    def _shared(self, posterior: LinearPosterior, variances: Variances) -> SharedPosterior:
        """Return what is known of ``μ`` if every row measures one coordinate."""
        shared, own = variances.by_feature(self.features)
        weight = variances.noise / own
        covariance = jnp.einsum("bnk,bmk->bnm", posterior.factor, posterior.factor)  # D_i⁻¹
        seen = jnp.diag(self.problem.dim * weight) - weight[:, None] * jnp.sum(covariance, axis=0) * weight
        precision = jnp.diag(variances.noise / shared) + seen
        factor = inverse_of_lower(jnp.linalg.cholesky(precision)).T
        mean = factor @ (factor.T @ (weight * jnp.sum(posterior.mean, axis=0)))
        return SharedPosterior(mean, factor, covariance * weight)

    def _maximise(self, state: EBThompsonState, variances: Variances) -> Variances:
        """Return the variances after one step of expectation maximisation."""
        posterior = self._posterior(state.gram, state.moments, variances)
        expect = self._expect_separable if self.separable else self._expect_joint
        mean, shared, own, trace = expect(state, posterior, variances)
        explained = jnp.einsum("bn,bnk,bk->", mean, state.gram, mean) - 2.0 * jnp.sum(mean * state.moments)
        rows, d = jnp.maximum(state.rows, 1.0), self.problem.dim
        noise = (state.square + explained + variances.noise * trace) / rows
        smallest = MIN_VARIANCE * state.square / rows
        fitted = Variances(shared[0], jnp.mean(shared[1:]), own[0] / d, jnp.mean(own[1:]) / d, noise)
        return Variances(*(jnp.maximum(variance, smallest) for variance in fitted))

    def _expect_joint(
        self, state: EBThompsonState, posterior: LinearPosterior, variances: Variances
    ) -> tuple[Array, Array, Array, Array]:
        """Return the mean of ``θ``, expected ``μ²`` and ``Σ_i u_i²`` by feature, and the trace of ``G A⁻¹``."""
        shared, own = variances.by_feature(self.features)
        n = posterior.mean.shape[1]
        theta = posterior.mean.reshape(-1, self.features)
        factor = posterior.factor.reshape(*theta.shape, n)
        if self.by_row:
            squares = jnp.sum(jnp.square(factor[0]), axis=1)
            second = jnp.square(theta[0]) + variances.noise * squares
            return posterior.mean, second, self.problem.dim * own, n - variances.noise * jnp.sum(squares / shared)
        d = self.problem.dim
        single = jnp.sum(jnp.square(factor), axis=(0, 2))  # Σ_i var θ_i, in units of the noise
        summed = jnp.sum(jnp.square(jnp.sum(factor, axis=0)), axis=1)  # var Σ_i θ_i
        weight = shared / (own + d * shared)  # E[μ | θ] = weight · Σ_i θ_i
        squares = jnp.sum(jnp.square(theta), axis=0) + variances.noise * single
        square_of_sum = jnp.square(jnp.sum(theta, axis=0)) + variances.noise * summed
        second = jnp.square(weight) * square_of_sum + weight * own
        deviations = squares - 2.0 * weight * square_of_sum + d * second
        trace = n - variances.noise * jnp.sum((single - weight * summed) / own)
        return posterior.mean, second, deviations, trace

    def _expect_separable(
        self, state: EBThompsonState, posterior: LinearPosterior, variances: Variances
    ) -> tuple[Array, Array, Array, Array]:
        """Return what ``_expect_joint`` does, where every row measures one coordinate."""
        shared = self._shared(posterior, variances)
        theta = posterior.mean + shared.response @ shared.mean
        second = jnp.square(shared.mean) + variances.noise * jnp.sum(jnp.square(shared.factor), axis=1)
        following = shared.response @ shared.factor
        apart = jnp.sum(jnp.square(posterior.factor), axis=2) + jnp.sum(jnp.square(following - shared.factor), axis=2)
        deviations = jnp.sum(jnp.square(theta - shared.mean) + variances.noise * apart, axis=0)
        trace = sum(jnp.einsum("bnk,bnm,bmk->", part, state.gram, part) for part in (posterior.factor, following))
        return theta, second, deviations, jnp.asarray(trace)


class EBThompson(PolicySpec):
    """Hierarchical linear Thompson sampling with learned variances (empirical Bayes): the reference of comparisons.

    Coefficients of a coordinate are a shared and an own part. Four variances (level, shared slopes, item effects, item
    slopes) and that of the noise are fitted by five steps of expectation maximisation every 25 rounds.

    Parameters
    ----------
    posterior_scale : float, default 0.3
        Spread of the draws, in posterior standard deviations.
    """

    by_default: ClassVar[bool] = False

    posterior_scale: float = Field(default=0.3, ge=0)

    def build(self, problem: Problem) -> EBThompsonPolicy:
        """Return the policy for a problem."""
        require_few_coefficients(problem, "eb_thompson")
        return EBThompsonPolicy(problem, **self.hyperparameters())
