"""Linear Thompson sampling: Bayesian linear regression of the cost, learnt exactly from any linear feedback. Nothing to tune.

``c = B (1, x)`` with a row of coefficients per cost coordinate for a context vector, ``c = (1, X) β`` with shared
coefficients for feature rows. A measurement row ``h`` of ``H(w)`` with value ``v`` is the regression row ``φ = h ⊗ (1, x)``
(``φ = h (1, X)``) with target ``v``. The posterior after rows ``φ_k`` is ``N(β̄, s² A⁻¹)`` with ``A = diag(ridge) + Σ φ_k φ_kᵀ``
and ``A β̄ = Σ φ_k v_k``; ``w*(ĉ)`` is played for ``ĉ`` predicted by a draw from it. `docs/linear-thompson.md` tells why.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws, posterior, settings
from regretless.errors import SettingsError
from regretless.parts import number
from regretless.policies.base import Policy
from regretless.problem import Problem
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random: nothing is known yet about the size of costs and contexts."""

DECAY = 0.98
"""Of the running mean of squared residuals."""

FEW = 5
"""Measured rows before which no residual is cut off."""

LIMIT = 5000
"""Most coefficients of one covariance factor (200 MB)."""


class LinearThompsonState(eqx.Module):
    """What the next round needs. With ``blocks``, coefficients are ``[d, q]`` and the factor holds a matrix for each block."""

    theta: Float[Array, "..."]  # β̄
    factor: Float[Array, "..."]  # L with L Lᵀ = A⁻¹
    ridge: Float[Array, "..."]  # the prior's diagonal part of A
    row_square: Float[Array, ""]  # Σ ‖φ‖²
    rows: Float[Array, ""]  # how many rows that is
    residual_square: Float[Array, ""]  # running mean of squared residuals
    residual_size: Float[Array, ""]  # running median of their sizes
    version: Int[Array, ""]


class LinearThompson(Policy):
    """Draws ``β ~ N(β̄, (scale · residual std)² A⁻¹)``, predicts ``ĉ`` with it and plays ``w*(ĉ)``.

    ``scale`` is 0.1 unless set otherwise; at each step ``A`` loses the share ``forgetting`` and gains as much of its prior.
    ``separable`` says that every measurement row sees one coordinate of a context vector's costs: ``A`` then falls into
    blocks. ``support`` is a promise that decisions have at most so many entries; ``refreshed`` coordinates of the ridge are
    brought up to date at each step.
    """

    class Settings(settings.Settings):
        """How far it explores, and how fast it forgets."""

        posterior_scale: float = Field(0.1, ge=0, description="spread of the draws, in residual standard deviations")
        forgetting: float = Field(0.0, ge=0, lt=1, description="share of what it learnt that is forgotten per step")
        intercept_ridge: float = Field(9.0, gt=0, description="weight of the prior on intercepts, in observations")
        slope_ridge: float = Field(81.0, gt=0, description="the same for slopes")
        clipping: float = Field(4.0, ge=0, description="usual residuals beyond which one is cut off; 0: none is")

    scale: Float[Array, ""]
    forgetting: Float[Array, ""]
    intercept_ridge: Float[Array, ""]
    slope_ridge: Float[Array, ""]
    clipping: Float[Array, ""]
    separable: bool = eqx.field(static=True)
    support: int | None = eqx.field(static=True)
    refreshed: int = eqx.field(static=True)

    @classmethod
    def build(cls, problem: Problem, settings: settings.Settings) -> "LinearThompson":
        assert isinstance(settings, cls.Settings)
        rule, oracle, shape = problem.feedback, problem.oracle, problem.context_shape
        separable = rule.separable and len(shape) == 1
        size = _sizes(oracle.dim, shape, separable)[1]
        if size > LIMIT:
            raise SettingsError(
                f"linear_thompson: {size} coefficients are learnt together, expected at most {LIMIT} (a factor of "
                f"{size}² numbers); describe each coordinate by a row of features, see costs one by one (semi_bandit), "
                "or use dfhpg"
            )
        return cls(
            problem,
            scale=number(settings.posterior_scale),
            forgetting=number(settings.forgetting),
            intercept_ridge=number(settings.intercept_ridge),
            slope_ridge=number(settings.slope_ridge),
            clipping=number(settings.clipping),
            separable=separable,
            support=oracle.support if rule.sparse else None,
            refreshed=min(size, max(1, math.ceil(settings.forgetting * size))),
        )

    @property
    def context_shape(self) -> tuple[int, ...]:
        """The problem's."""
        return self.problem.context_shape

    @property
    def coefficients(self) -> tuple[int, int]:
        """Number of blocks of coefficients that are learnt together, and how many coefficients each has."""
        return _sizes(self.problem.dim, self.context_shape, self.separable)

    def init(self, key: Key) -> LinearThompsonState:
        blocks, size = self.coefficients
        zero = jnp.zeros(())
        return LinearThompsonState(
            theta=jnp.zeros((blocks, size)),
            factor=jnp.broadcast_to(jnp.diag(1.0 / jnp.sqrt(self._prior())), (blocks, size, size)),
            ridge=jnp.zeros((blocks, size)),
            row_square=zero,
            rows=zero,
            residual_square=zero,
            residual_size=zero,
            version=jnp.zeros((), jnp.int32),
        )

    def mean(self, state: LinearThompsonState, context: Context) -> Cost:
        return self._costs(state.theta, context)

    def sample(self, key: Key, state: LinearThompsonState, context: Context, instance: Instance) -> Sample:
        posterior_key, random_key = jax.random.split(key)
        spread = self.scale * jnp.sqrt(state.residual_square)
        noise = draws.normal(posterior_key, state.theta.shape)
        drawn = state.theta + spread * jax.vmap(jnp.matmul)(state.factor, noise)
        cost = jnp.where(
            state.version < RANDOM_ROUNDS, draws.normal(random_key, (self.problem.dim,)), self._costs(drawn, context)
        )
        return Sample(cost, state.version)

    def learn(
        self, key: Key, state: LinearThompsonState, decision: Decision, feedback: Feedback
    ) -> tuple[LinearThompsonState, Info]:
        rows, values = self._regression(decision, feedback)  # [blocks, m, size], [blocks, m]
        residuals = values - jax.vmap(jnp.matmul)(rows, state.theta)
        count = jnp.sum(feedback.used())
        residual_size = self._residual_size(state, residuals, count)
        cut = (self.clipping > 0) & (state.rows >= FEW) & (state.residual_size > 0)
        limit = jnp.where(cut, self.clipping * state.residual_size, jnp.inf)
        values, residuals = values - residuals + jnp.clip(residuals, -limit, limit), jnp.clip(residuals, -limit, limit)
        mean_residual = jnp.sum(jnp.square(residuals)) / jnp.maximum(count, 1)
        row_square, seen = state.row_square + jnp.sum(jnp.square(rows)), state.rows + count
        one = row_square / jnp.maximum(seen, 1.0) / state.theta.size  # one observation's share, as it is known now
        wanted = one * self._prior()
        first = (state.rows == 0) & (row_square > 0)

        keep = 1.0 - self.forgetting
        ridge = jnp.where(first, wanted, keep * state.ridge)
        inflation = jnp.where(first, 1.0 / jnp.sqrt(jnp.where(first, one, 1.0)), 1.0 / jnp.sqrt(keep))
        places = (state.version * self.refreshed + jnp.arange(self.refreshed)) % ridge.shape[1]
        missing = jnp.maximum(wanted[places] - ridge[:, places], 0.0)
        prior_rows = jnp.sqrt(missing)[..., None] * jax.nn.one_hot(places, ridge.shape[1])
        carried = self._carried(state, decision, rows, feedback)
        if carried is not None:
            carried = jnp.concatenate([carried, jnp.sqrt(missing)[..., None] * state.factor[:, places]], axis=1)
        theta, factor = jax.vmap(posterior.assimilate, in_axes=(0, 0, None, 0, 0, None if carried is None else 0))(
            state.theta, state.factor, inflation,
            jnp.concatenate([rows, prior_rows], axis=1), jnp.concatenate([values, jnp.zeros(missing.shape)], axis=1),
            carried,
        )  # fmt: skip

        average = jnp.where(
            state.rows == 0, mean_residual, DECAY * state.residual_square + (1.0 - DECAY) * mean_residual
        )
        y = feedback.total()
        more = {"spread": self.scale * jnp.sqrt(average), "ridge": one}
        residual = y - self._costs(state.theta, decision.context) @ decision.w
        info = Info(residual, y, feedback.complete(), jnp.isfinite(jnp.sum(theta) + average), more)
        after = LinearThompsonState(
            theta, factor, ridge.at[:, places].add(missing), row_square, seen, average, residual_size, state.version + 1
        )
        return after, info

    def _prior(self) -> Float[Array, " size"]:
        """The ridge of each coefficient of a block, in observations."""
        features = 1 + self.context_shape[-1]
        one = jnp.where(jnp.arange(features) == 0, self.intercept_ridge, self.slope_ridge)
        return jnp.tile(one, self.coefficients[1] // features)

    def _residual_size(self, state: LinearThompsonState, residuals: Array, count: Array) -> Float[Array, ""]:
        """The running median with this round's residuals: each step goes up or down by a share that falls to 3 %."""
        sizes = jnp.abs(residuals)
        above = jnp.sum(jnp.where(sizes > 0, jnp.sign(sizes - state.residual_size), 0.0)) / jnp.maximum(count, 1)
        later = state.residual_size * jnp.exp(above / jnp.minimum(2.0 + state.rows, 30.0))
        return jnp.where(state.rows < 2, jnp.maximum(jnp.max(sizes), state.residual_size), later)

    def _regression(self, decision: Decision, feedback: Feedback) -> tuple[Array, Array]:
        """Rows ``φ`` with their targets, block by block; what cannot be learnt from is zero."""
        features, used = self._features(decision.context), feedback.used()
        values = jnp.where(used, feedback.values, 0.0)
        if self.separable:
            weights = jnp.where(used, feedback.operator.rmatvec(jnp.ones_like(feedback.values)), 0.0)
            return weights[:, None, None] * features, values[:, None]
        matrix = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values)))
        matrix = jnp.where(used[:, None], matrix, 0.0)
        coordinates = self.problem.feedback.separable
        if coordinates and self.support is not None and self.support < len(values):  # rows of zeros are left out
            kept = jnp.nonzero(used, size=self.support, fill_value=len(values))[0]
            matrix = matrix.at[kept].get(mode="fill", fill_value=0.0)
            values = values.at[kept].get(mode="fill", fill_value=0.0)
        if len(self.context_shape) == 2:
            return (matrix @ features)[None], values[None]
        return (matrix[:, :, None] * features).reshape(1, len(values), -1), values[None]

    def _carried(self, state: LinearThompsonState, decision: Decision, rows: Array, feedback: Feedback) -> Array | None:
        """``φ · L`` from the few coordinates of a decision that is not dense; None where there is nothing to save."""
        dim = self.problem.dim
        dense = self.support is None or 2 * self.support > dim
        if dense or len(self.context_shape) == 2 or not self.problem.feedback.total_only:
            return None
        chosen = jnp.nonzero(decision.w, size=self.support, fill_value=dim)[0]
        weights = rows.reshape(dim, -1).at[chosen].get(mode="fill", fill_value=0.0)
        factor = state.factor.reshape(dim, -1, rows.shape[-1]).at[chosen].get(mode="fill", fill_value=0.0)
        return jnp.einsum("kq,kqn->n", weights, factor)[None, None]

    def _features(self, context: Context) -> Array:
        """``(1, x)``, or ``(1, X)`` row by row."""
        return jnp.concatenate([jnp.ones((*context.shape[:-1], 1)), context], axis=-1)

    def _costs(self, theta: Array, context: Context) -> Cost:
        features = self._features(context)
        if len(self.context_shape) == 2:
            return features @ theta.reshape(-1)
        return theta.reshape(self.problem.dim, -1) @ features


def _sizes(dim: int, context_shape: tuple[int, ...], separable: bool) -> tuple[int, int]:
    """How many blocks, and how many coefficients in each."""
    features = 1 + context_shape[-1]
    if len(context_shape) == 2:
        return 1, features
    return (dim, features) if separable else (1, dim * features)
