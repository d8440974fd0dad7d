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

from regretless import draws, posterior
from regretless.errors import SettingsError
from regretless.feedback import Diagonal, Total
from regretless.policies.base import Policy
from regretless.problem import Problem, number
from regretless.settings import Settings
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random: nothing is known yet about the size of costs and contexts."""

DECAY = 0.98
"""Of the running mean of squared residuals."""

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
    version: Int[Array, ""]


class LinearThompson(Policy):
    """Draws ``β ~ N(β̄, (scale · residual std)² A⁻¹)``, predicts ``ĉ`` with it and plays ``w*(ĉ)``.

    ``scale`` is 0.1 unless set otherwise; at each step ``A`` loses the share ``forgetting`` and gains as much of its prior.
    ``separable`` says that every measurement row sees one coordinate of a context vector's costs: ``A`` then falls into
    blocks. ``support`` is a promise that decisions have at most so many entries; ``refreshed`` coordinates of the ridge are
    brought up to date at each step.
    """

    scale: Float[Array, ""]
    forgetting: Float[Array, ""]
    context_shape: tuple[int, ...] = eqx.field(static=True)
    separable: bool = eqx.field(static=True, default=False)
    support: int | None = eqx.field(static=True, default=None)
    refreshed: int = eqx.field(static=True, default=1)

    @property
    def coefficients(self) -> tuple[int, int]:
        """Number of blocks of coefficients that are learnt together, and how many coefficients each has."""
        return _sizes(self.oracle.dim, self.context_shape, self.separable)

    def init(self, key: Key) -> LinearThompsonState:
        blocks, size = self.coefficients
        zero = jnp.zeros(())
        return LinearThompsonState(
            theta=jnp.zeros((blocks, size)),
            factor=jnp.broadcast_to(jnp.eye(size), (blocks, size, size)),
            ridge=jnp.zeros((blocks, size)),
            row_square=zero,
            rows=zero,
            residual_square=zero,
            version=jnp.zeros((), jnp.int32),
        )

    def mean(self, state: LinearThompsonState, context: Context) -> Cost:
        return self._costs(state.theta, context)

    def decide(self, key: Key, state: LinearThompsonState, context: Context, instance: Instance) -> Decision:
        if context.shape != self.context_shape:
            raise ValueError(f"context: expected shape {self.context_shape}, got {context.shape}")
        posterior_key, random_key = jax.random.split(key)
        spread = self.scale * jnp.sqrt(state.residual_square)
        noise = draws.normal(posterior_key, state.theta.shape)
        drawn = state.theta + spread * jax.vmap(jnp.matmul)(state.factor, noise)
        sample = jnp.where(
            state.version < RANDOM_ROUNDS, draws.normal(random_key, (self.oracle.dim,)), self._costs(drawn, context)
        )
        solution = self.oracle.solve_one(sample, instance)
        return Decision(
            state.version, context, instance, sample, None, solution.w, solution.aux, solution.status, None,
            state.version,
        )  # fmt: skip

    def learn(
        self, key: Key, state: LinearThompsonState, decision: Decision, feedback: Feedback
    ) -> tuple[LinearThompsonState, Info]:
        rows, values = self._regression(decision, feedback)  # [blocks, m, size], [blocks, m]
        residuals = values - jax.vmap(jnp.matmul)(rows, state.theta)
        count = jnp.sum(feedback.used())
        mean_residual = jnp.sum(jnp.square(residuals)) / jnp.maximum(count, 1)
        row_square, seen = state.row_square + jnp.sum(jnp.square(rows)), state.rows + count
        wanted = row_square / jnp.maximum(seen, 1.0) / state.theta.size  # the ridge, as it is known now
        first = (state.rows == 0) & (row_square > 0)

        keep = 1.0 - self.forgetting
        ridge = jnp.where(first, wanted, keep * state.ridge)
        inflation = jnp.where(first, 1.0 / jnp.sqrt(jnp.where(first, wanted, 1.0)), 1.0 / jnp.sqrt(keep))
        places = (state.version * self.refreshed + jnp.arange(self.refreshed)) % ridge.shape[1]
        missing = jnp.maximum(wanted - ridge[:, places], 0.0)
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
        info = {
            "residual": feedback.total() - self._costs(state.theta, decision.context) @ decision.w,
            "total": feedback.total(),
            "spread": self.scale * jnp.sqrt(average),
            "ridge": wanted,
            "complete": feedback.complete(),
            "finite": jnp.isfinite(jnp.sum(theta) + average),
        }
        after = LinearThompsonState(
            theta, factor, ridge.at[:, places].add(missing), row_square, seen, average, state.version + 1
        )
        return after, info

    def _regression(self, decision: Decision, feedback: Feedback) -> tuple[Array, Array]:
        """Rows ``φ`` with their targets, block by block; what cannot be learnt from is zero."""
        features, used = self._features(decision.context), feedback.used()
        values = jnp.where(used, feedback.values, 0.0)
        if self.separable:
            weights = jnp.where(used, feedback.operator.rmatvec(jnp.ones_like(feedback.values)), 0.0)
            return weights[:, None, None] * features, values[:, None]
        matrix = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values)))
        matrix = jnp.where(used[:, None], matrix, 0.0)
        sparse = isinstance(feedback.operator, Diagonal) and self.support is not None and self.support < len(values)
        if sparse:  # rows of zeros are left out
            kept = jnp.nonzero(used, size=self.support, fill_value=len(values))[0]
            matrix = matrix.at[kept].get(mode="fill", fill_value=0.0)
            values = values.at[kept].get(mode="fill", fill_value=0.0)
        if len(self.context_shape) == 2:
            return (matrix @ features)[None], values[None]
        return (matrix[:, :, None] * features).reshape(1, len(values), -1), values[None]

    def _carried(self, state: LinearThompsonState, decision: Decision, rows: Array, feedback: Feedback) -> Array | None:
        """``φ · L`` from the few coordinates of a decision that is not dense; None where there is nothing to save."""
        dim = self.oracle.dim
        dense = self.support is None or 2 * self.support > dim
        if dense or len(self.context_shape) == 2 or not isinstance(feedback.operator, Total):
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
        return theta.reshape(self.oracle.dim, -1) @ features


def linear_thompson(settings: Settings, problem: Problem) -> LinearThompson:
    """Draws linear coefficients from their exact posterior and plays ``w*`` of the predicted cost; needs no tuning."""
    rule, oracle, shape = problem.feedback, problem.oracle, problem.context_shape
    separable = rule.separable and len(shape) == 1
    size = _sizes(oracle.dim, shape, separable)[1]
    if size > LIMIT:
        raise SettingsError(
            f"linear_thompson: {size} coefficients are learnt together, expected at most {LIMIT} (a factor of "
            f"{size}² numbers); describe each coordinate by a row of features, see costs one by one (semi_bandit), "
            "or use dfhpg"
        )
    return LinearThompson(
        oracle=oracle,
        scale=number(settings.posterior_scale),
        forgetting=number(settings.forgetting),
        context_shape=shape,
        separable=separable,
        support=oracle.support if rule.sparse else None,
        refreshed=min(size, max(1, math.ceil(settings.forgetting * size))),
    )


def _sizes(dim: int, context_shape: tuple[int, ...], separable: bool) -> tuple[int, int]:
    """How many blocks, and how many coefficients in each."""
    features = 1 + context_shape[-1]
    if len(context_shape) == 2:
        return 1, features
    return (dim, features) if separable else (1, dim * features)
