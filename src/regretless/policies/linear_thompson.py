"""Linear Thompson sampling: exact Bayesian linear regression of the cost from any linear feedback.

``c = B (1, x)`` with a row of coefficients per cost coordinate for a context vector, ``c = (1, X) β`` with shared
coefficients for feature rows. A measurement row ``h`` of ``H(w)`` with value ``v`` is the regression row ``φ = h ⊗
(1, x)`` (``φ = h (1, X)``) with target ``v``. The posterior after rows ``φ_k`` is ``N(β̄, s² A⁻¹)`` with ``A =
diag(ridge) + Σ φ_k φ_kᵀ`` and ``A β̄ = Σ φ_k v_k``; ``w*(ĉ)`` is played for ``ĉ`` predicted by a draw from it.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.linear_design import block_sizes, predict_costs, regression_rows, require_few_coefficients
from regretless.problem import Problem
from regretless.stats.bayes_linear import ErrorScale, LinearPosterior, initial_scale
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random: nothing is known yet about the size of costs and contexts."""

RESIDUAL_DECAY = 0.98
"""Decay per step of the running mean of squared residuals: a memory of about fifty rounds."""


class LinearThompsonState(eqx.Module):
    """What the next round needs; the posterior's coefficients are in blocks that are learned together."""

    posterior: LinearPosterior  # mean β̄, factor L with L Lᵀ = A⁻¹
    ridge: Float[Array, "blocks n"]  # the prior's diagonal part of A
    row_square: Float[Array, ""]  # Σ ‖φ‖²
    residual_square: Float[Array, ""]  # running mean of squared residuals
    scale: ErrorScale  # of the residuals
    version: Int[Array, ""]


class LinearThompsonPolicy(Policy):
    """Draw ``β ~ N(β̄, (scale · residual std)² A⁻¹)``, predict ``ĉ`` with it and play ``w*(ĉ)``.

    At each step ``A`` loses the share ``forgetting`` and gains as much of its prior.
    """

    posterior_scale: Float[Array, ""]
    forgetting: Float[Array, ""]
    intercept_ridge: Float[Array, ""]
    slope_ridge: Float[Array, ""]
    clipping: Float[Array, ""]
    support: int | None = eqx.field(static=True)  # largest number of non-zero entries of a decision; None: any
    refreshed: int = eqx.field(static=True)  # coordinates of the ridge that are brought up to date at each step

    @property
    def coefficients(self) -> tuple[int, int]:
        """Number of blocks of coefficients that are learned together, and of coefficients in each."""
        return block_sizes(self.problem)

    def init(self, key: Key) -> LinearThompsonState:
        blocks, size = self.coefficients
        factor = jnp.broadcast_to(jnp.diag(1.0 / jnp.sqrt(self._prior())), (blocks, size, size))
        return LinearThompsonState(
            posterior=LinearPosterior(jnp.zeros((blocks, size)), factor),
            ridge=jnp.zeros((blocks, size)),
            row_square=jnp.zeros(()),
            residual_square=jnp.zeros(()),
            scale=initial_scale(),
            version=jnp.zeros((), jnp.int32),
        )

    def mean(self, state: LinearThompsonState, context: Context) -> Cost:
        return predict_costs(self.problem, state.posterior.mean, context)

    def sample(self, key: Key, state: LinearThompsonState, context: Context, instance: Instance) -> Sample:
        posterior_key, random_key = jax.random.split(key)
        spread = self.posterior_scale * jnp.sqrt(state.residual_square)
        mean = state.posterior.mean
        drawn = mean + spread * state.posterior.draw(draws.normal(posterior_key, mean.shape))
        random = draws.normal(random_key, (self.problem.dim,))
        costs = predict_costs(self.problem, drawn, context)
        return Sample(jnp.where(state.version < RANDOM_ROUNDS, random, costs), state.version)

    def learn(
        self, key: Key, state: LinearThompsonState, decision: Decision, feedback: Feedback
    ) -> tuple[LinearThompsonState, Info]:
        rows, values, used = regression_rows(self.problem, decision, feedback)
        predicted = jnp.einsum("bmn,bn->bm", rows, state.posterior.mean)
        residuals = state.scale.clip(values - predicted, self.clipping)
        scale = state.scale.update(jnp.abs(values - predicted), used, first_rows=RANDOM_ROUNDS)
        square = jnp.sum(jnp.square(residuals)) / jnp.maximum(jnp.sum(used), 1)
        decayed = RESIDUAL_DECAY * state.residual_square + (1.0 - RESIDUAL_DECAY) * square
        residual_square = jnp.where(state.scale.rows == 0, square, decayed)

        row_square = state.row_square + jnp.sum(jnp.square(rows))
        unit = row_square / jnp.maximum(scale.rows, 1.0) / rows.shape[0] / rows.shape[2]  # one observation's precision
        first = (state.scale.rows == 0) & (row_square > 0)
        keep = 1.0 - self.forgetting
        ridge = jnp.where(first, unit * self._prior(), keep * state.ridge)
        inflation = 1.0 / jnp.sqrt(jnp.where(first, unit, keep))
        places = (state.version * self.refreshed + jnp.arange(self.refreshed)) % ridge.shape[1]
        missing = jnp.maximum(unit * self._prior()[places] - ridge[:, places], 0.0)
        prior_rows = jnp.sqrt(missing)[..., None] * jax.nn.one_hot(places, rows.shape[2])  # zeros that the prior lacks
        loads = self._sparse_loads(state.posterior, rows, decision)
        if loads is not None:
            loads = jnp.concatenate([loads, jnp.sqrt(missing)[..., None] * state.posterior.factor[:, places]], axis=1)
        values = jnp.concatenate([predicted + residuals, jnp.zeros(missing.shape)], axis=1)
        posterior = state.posterior.condition(jnp.concatenate([rows, prior_rows], axis=1), values, loads, inflation)
        after = LinearThompsonState(
            posterior, ridge.at[:, places].add(missing), row_square, residual_square, scale, state.version + 1
        )
        total = feedback.total()
        info = Info(
            residual=total - self.mean(state, decision.context) @ decision.w,
            total=total,
            complete=feedback.complete(),
            finite=jnp.isfinite(jnp.sum(posterior.mean) + residual_square),
            more={"spread": self.posterior_scale * jnp.sqrt(residual_square), "ridge": unit},
        )
        return after, info

    def _sparse_loads(self, posterior: LinearPosterior, rows: Array, decision: Decision) -> Array | None:
        """Return ``Φ L`` from the few coordinates of a decision that is not dense; None where that saves nothing."""
        dim = self.problem.dim
        dense = self.support is None or 2 * self.support > dim
        if dense or self.by_row or not self.problem.feedback.total_only:
            return None
        chosen = jnp.nonzero(decision.w, size=self.support, fill_value=dim)[0]
        weights = rows.reshape(dim, -1).at[chosen].get(mode="fill", fill_value=0.0)
        factor = posterior.factor.reshape(dim, -1, rows.shape[-1]).at[chosen].get(mode="fill", fill_value=0.0)
        return jnp.einsum("kq,kqn->n", weights, factor)[None, None]

    def _prior(self) -> Float[Array, " n"]:
        """Return the ridge of each coefficient of a block, in observations."""
        features = 1 + self.problem.context_shape[-1]
        coordinate = jnp.where(jnp.arange(features) == 0, self.intercept_ridge, self.slope_ridge)
        return jnp.tile(coordinate, self.coefficients[1] // features)


class LinearThompson(PolicySpec):
    """Linear Thompson sampling: Bayesian linear regression of the cost, learned exactly from any linear feedback.

    Parameters
    ----------
    posterior_scale : float, default 0.1
        Spread of the draws, in residual standard deviations.
    forgetting : float, default 0.0
        Share of what was learned that is forgotten per step.
    intercept_ridge : float, default 9.0
        Weight of the prior on intercepts, in observations.
    slope_ridge : float, default 81.0
        The same for slopes.
    clipping : float, default 4.0
        Usual residuals beyond which one is cut off; 0 for no limit.
    """

    posterior_scale: float = Field(default=0.1, ge=0)
    forgetting: float = Field(default=0.0, ge=0, lt=1)
    intercept_ridge: float = Field(default=9.0, gt=0)
    slope_ridge: float = Field(default=81.0, gt=0)
    clipping: float = Field(default=4.0, ge=0)

    def build(self, problem: Problem) -> LinearThompsonPolicy:
        """Return the policy for a problem."""
        require_few_coefficients(problem, "linear_thompson")
        return LinearThompsonPolicy(
            problem,
            **self.hyperparameters(),
            support=problem.oracle.support if problem.feedback.sparse else None,
            refreshed=max(1, math.ceil(self.forgetting * block_sizes(problem)[1])),
        )
