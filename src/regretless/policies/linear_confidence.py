"""Ridge regression of the cost with confidence sets: UCB and Thompson sampling over combinatorial sets, and SquareCB.

Costs are linear in the context, ``c_i = θ_i · z`` (``linear_design``). With ``V = λ I + Σ φ φᵀ`` over the measured rows
and ``θ̂ = V⁻¹ Σ φ v``, the costs ``ĉ`` in a context have the covariance ``σ² C``, ``C = Z V⁻¹ Zᵀ``; ``σ²`` is the mean
square of the standardised errors of predictions before each row was learned.
"""

import abc
from typing import ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

from regretless import draws
from regretless.errors import SettingsError
from regretless.policies.base import Policy, PolicySpec, measures_coordinates, with_constant
from regretless.policies.linear_design import block_sizes, predict_costs, regression_rows, require_few_coefficients
from regretless.problem import Problem
from regretless.stats.bayes_linear import LinearPosterior
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample


class RidgeState(eqx.Module):
    """What the next round needs."""

    posterior: LinearPosterior  # θ̂ and L with L Lᵀ = V⁻¹
    noise_square: Float[Array, ""]  # σ²; 1 before the first row
    rows: Float[Array, ""]
    log_det: Float[Array, ""]  # of V / λ
    version: Int[Array, ""]

    @property
    def finite(self) -> Bool[Array, ""]:
        """Whether its numbers are finite."""
        return jnp.isfinite(jnp.sum(self.posterior.mean) + self.noise_square)


class CostSpread(NamedTuple):
    """The covariance ``C`` of predicted costs, from loads ``F`` with ``C = F Fᵀ``, or only the diagonal of that."""

    loads: Float[Array, "d k"]
    independent: bool

    @property
    def deviations(self) -> Cost:
        """Standard deviation of each cost."""
        return jnp.linalg.norm(self.loads, axis=1)

    def slope(self, w: Cost) -> Cost:
        """Return the gradient of ``√(wᵀ C w)`` in ``w``; zero for ``w = 0``."""
        loads = self.loads
        product = w * jnp.sum(jnp.square(loads), axis=1) if self.independent else loads @ (w @ loads)
        return product / jnp.sqrt(jnp.maximum(w @ product, 1e-30))


class RidgePolicy(Policy):
    """Base class of policies that learn by ridge regression; they differ in ``sample``."""

    ridge: Float[Array, ""]

    def init(self, key: Key) -> RidgeState:
        blocks, n = block_sizes(self.problem)
        factor = jnp.broadcast_to(jnp.eye(n) / jnp.sqrt(self.ridge), (blocks, n, n))
        posterior = LinearPosterior(jnp.zeros((blocks, n)), factor)
        return RidgeState(posterior, jnp.ones(()), jnp.zeros(()), jnp.zeros(()), jnp.zeros((), jnp.int32))

    def mean(self, state: RidgeState, context: Context) -> Cost:
        return predict_costs(self.problem, state.posterior.mean, context)

    def learn(self, key: Key, state: RidgeState, decision: Decision, feedback: Feedback) -> tuple[RidgeState, Info]:
        total, after = feedback.total(), self.regress(state, decision, feedback)
        residual = total - self.mean(state, decision.context) @ decision.w
        return after, Info(residual, total, feedback.complete(), after.finite, {"noise": jnp.sqrt(after.noise_square)})

    def regress(self, state: RidgeState, decision: Decision, feedback: Feedback) -> RidgeState:
        """Return the regression after the rows of a feedback."""
        phi, values, used = regression_rows(self.problem, decision, feedback)
        loads = jnp.einsum("bmn,bnk->bmk", phi, state.posterior.factor)
        information = jnp.eye(phi.shape[1]) + jnp.einsum("bmk,blk->bml", loads, loads)
        errors = values - jnp.einsum("bmn,bn->bm", phi, state.posterior.mean)
        squares = jnp.square(errors) / jnp.diagonal(information, axis1=1, axis2=2)
        rows = state.rows + jnp.sum(used)
        mean_square = (state.rows * state.noise_square + jnp.sum(squares)) / jnp.maximum(rows, 1.0)
        posterior = state.posterior.condition(phi, values)
        return RidgeState(
            posterior=posterior,
            noise_square=jnp.where(rows > 0, mean_square, state.noise_square),
            rows=rows,
            log_det=state.log_det + jnp.sum(jnp.linalg.slogdet(information)[1]),
            version=state.version + 1,
        )

    def spread(self, state: RidgeState, context: Context) -> CostSpread:
        """Return the covariance of the costs in a context, in units of the noise variance."""
        z, factor = with_constant(context), state.posterior.factor
        if self.by_row:
            return CostSpread(z @ factor[0], False)
        if measures_coordinates(self.problem):
            return CostSpread(jnp.einsum("q,bqk->bk", z, factor), True)
        n = factor.shape[1]
        return CostSpread(jnp.einsum("q,dqk->dk", z, factor.reshape(self.problem.dim, -1, n)), False)


class RidgeSpec(PolicySpec):
    """Base class of the specifications: the regression's setting.

    Parameters
    ----------
    ridge : float, default 1.0
        λ.
    """

    by_default: ClassVar[bool] = False

    ridge: float = Field(default=1.0, gt=0)

    def require(self, problem: Problem, *, parts: bool = False) -> None:
        """Refuse a problem that the policy does not exist for.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        parts : bool, default False
            Whether costs have to be seen coordinate by coordinate.

        Raises
        ------
        SettingsError
            If it cannot be used.
        """
        require_few_coefficients(problem, self.registered_name)
        if parts and not problem.feedback.separable:
            raise SettingsError(
                f"{self.registered_name}: expected feedback that shows costs one by one (semi_bandit or full), got "
                f"{problem.feedback.name!r}; for totals use linucb or eb_thompson"
            )


class CombLinUCBPolicy(RidgePolicy):
    """Solve ``ĉ_i − width · σ √C_ii``."""

    width: Float[Array, ""]

    def sample(self, key: Key, state: RidgeState, context: Context, instance: Instance) -> Sample:
        radius = self.width * jnp.sqrt(state.noise_square)
        cost = self.mean(state, context) - radius * self.spread(state, context).deviations
        return Sample(cost, state.version, log_probability=jnp.zeros(()))


class CombLinUCB(RidgeSpec):
    """CombLinUCB (Wen, Kveton & Ashkan, 2015): optimistic costs of coordinates, for costs that are seen one by one.

    Solves ``ĉ_i − width · σ √C_ii``.

    Parameters
    ----------
    width : float, default 1.0
        Standard deviations below the prediction.
    """

    width: float = Field(default=1.0, ge=0)

    def build(self, problem: Problem) -> CombLinUCBPolicy:
        """Return the policy for a problem."""
        self.require(problem, parts=True)
        return CombLinUCBPolicy(problem, **self.hyperparameters())


class CombLinTSPolicy(RidgePolicy):
    """Solve the costs of a draw from ``N(θ̂, (scale σ)² V⁻¹)``."""

    scale: Float[Array, ""]

    def sample(self, key: Key, state: RidgeState, context: Context, instance: Instance) -> Sample:
        drawn = state.posterior.draw(draws.normal(key, state.posterior.mean.shape))
        coefficients = state.posterior.mean + self.scale * jnp.sqrt(state.noise_square) * drawn
        return Sample(predict_costs(self.problem, coefficients, context), state.version)


class CombLinTS(RidgeSpec):
    """CombLinTS (Wen, Kveton & Ashkan, 2015): posterior draws of the coefficients, for costs that are seen one by one.

    Parameters
    ----------
    scale : float, default 1.0
        Spread of the draws, in posterior standard deviations.
    """

    scale: float = Field(default=1.0, ge=0)

    def build(self, problem: Problem) -> CombLinTSPolicy:
        """Return the policy for a problem."""
        self.require(problem, parts=True)
        return CombLinTSPolicy(problem, **self.hyperparameters())


class OptimisticPolicy(RidgePolicy):
    """Search the minimiser of the optimistic total ``ĉ·w − radius √(wᵀ C w)`` in the feasible set.

    It is a concave function of ``w``. Each step solves its linearisation, which never raises it; the search begins at
    the solutions of ``ĉ − radius √C_ii`` and of ``ĉ``, and the best decision found is played.
    """

    steps: int = eqx.field(static=True)

    @abc.abstractmethod
    def radius(self, state: RidgeState) -> Float[Array, ""]:
        """Return the radius of the confidence set."""

    def sample(self, key: Key, state: RidgeState, context: Context, instance: Instance) -> Sample:
        mean, spread, radius = self.mean(state, context), self.spread(state, context), self.radius(state)
        slopes = jax.vmap(spread.slope)
        costs = jnp.stack([mean - radius * spread.deviations, mean])
        w = self.oracle.solve_round(costs, instance).w
        for _ in range(self.steps):
            costs = mean - radius * slopes(w)
            w = self.oracle.solve_round(costs, instance).w
        optimistic = w @ mean - radius * jnp.sum(w * slopes(w), axis=1)
        return Sample(costs[jnp.argmin(optimistic)], state.version, log_probability=jnp.zeros(()))


class LinUCBPolicy(OptimisticPolicy):
    """The radius is ``width · σ``."""

    width: Float[Array, ""]

    def radius(self, state: RidgeState) -> Float[Array, ""]:
        return self.width * jnp.sqrt(state.noise_square)


class LinUCB(RidgeSpec):
    """LinUCB (Li et al., 2010; Chu et al., 2011) on totals of decisions, from any linear feedback.

    Minimises ``ĉ·w − width · σ √(wᵀ C w)``. The minimiser is exact if each decision chooses one coordinate, as the
    arms of a bandit; on other sets it is the best decision of a search by linearisation, with one solve a step.

    Parameters
    ----------
    width : float, default 1.0
        Standard deviations below the prediction.
    steps : int, default 3
        Linearisations of the search.
    """

    width: float = Field(default=1.0, ge=0)
    steps: int = Field(default=3, ge=0, le=100)

    def build(self, problem: Problem) -> LinUCBPolicy:
        """Return the policy for a problem."""
        self.require(problem)
        return LinUCBPolicy(problem, **self.hyperparameters())


class OFULPolicy(OptimisticPolicy):
    """The radius is ``σ √(2 log(1/δ) + log det(V/λ)) + √λ · norm``."""

    delta: Float[Array, ""]
    norm: Float[Array, ""]

    def radius(self, state: RidgeState) -> Float[Array, ""]:
        confidence = jnp.sqrt(2.0 * jnp.log(1.0 / self.delta) + state.log_det)
        return jnp.sqrt(state.noise_square) * confidence + jnp.sqrt(self.ridge) * self.norm


class OFUL(RidgeSpec):
    """OFUL (Abbasi-Yadkori, Pál & Szepesvári, 2011): ``linucb`` with the radius of a self-normalised confidence set.

    Radius: ``σ √(2 log(1/δ) + log det(V/λ)) + √λ · norm``, which holds at all times with probability ``1 − δ`` if the
    errors are sub-Gaussian with ``σ`` and ``‖θ‖ ≤ norm``. Here ``σ`` is estimated.

    Parameters
    ----------
    delta : float, default 0.05
        δ.
    norm : float, default 1.0
        Bound of ``‖θ‖``.
    steps : int, default 3
        Linearisations of the search.
    """

    delta: float = Field(default=0.05, gt=0, lt=1)
    norm: float = Field(default=1.0, ge=0)
    steps: int = Field(default=3, ge=0, le=100)

    def build(self, problem: Problem) -> OFULPolicy:
        """Return the policy for a problem."""
        self.require(problem)
        return OFULPolicy(problem, **self.hyperparameters())


class SquareCBPolicy(RidgePolicy):
    """Draw one of several candidates, with probabilities inverse to what it is predicted to cost more than the best."""

    gain: Float[Array, ""]
    spread_scale: Float[Array, ""]
    candidates: int = eqx.field(static=True)

    def sample(self, key: Key, state: RidgeState, context: Context, instance: Instance) -> Sample:
        costs, chances = self.lottery(state, context, instance)
        drawn = jnp.sum(draws.uniform(key) >= jnp.cumsum(chances)[:-1])
        return Sample(costs[drawn], state.version, log_probability=jnp.log(chances[drawn]))

    def lottery(
        self, state: RidgeState, context: Context, instance: Instance
    ) -> tuple[Float[Array, "k d"], Float[Array, " k"]]:
        """Return the costs whose solutions are candidates, and the probability of each; equal candidates count once.

        Nothing in it is random: perturbations depend on the number of learning steps alone.
        """
        mean, noise = self.mean(state, context), jnp.sqrt(state.noise_square)
        fixed = jax.random.fold_in(jax.random.key(0), state.version)
        directions = draws.normal(fixed, (self.candidates - 1, *state.posterior.mean.shape))
        perturbed = state.posterior.mean + self.spread_scale * noise * jax.vmap(state.posterior.draw)(directions)
        predict = lambda coefficients: predict_costs(self.problem, coefficients, context)  # noqa: E731
        costs = jnp.concatenate([mean[None], jax.vmap(predict)(perturbed)])
        w = self.oracle.solve_round(costs, instance).w
        same = jnp.all(jnp.abs(w[:, None] - w[None]) < 1e-9, axis=2)
        first = jnp.argmax(same, axis=1)
        unique = first == jnp.arange(self.candidates)
        totals = w @ mean
        best = first[jnp.argmin(totals)]
        count = jnp.sum(unique)
        gamma = self.gain * jnp.sqrt(count * (1.0 + state.version)) / noise
        chances = jnp.where(unique, 1.0 / (count + gamma * (totals - totals[best])), 0.0).at[best].set(0.0)
        return costs, chances.at[best].set(1.0 - jnp.sum(chances))


class SquareCB(RidgeSpec):
    """SquareCB (Foster & Rakhlin, 2020): inverse-gap weighting over a set of candidates; it knows its probabilities.

    Candidates are the solutions of the prediction and of ``candidates − 1`` posterior draws. Of ``K`` different ones
    the best has the rest of the probability, and any other ``1 / (K + γ gap)``, with ``gap`` what it is predicted to
    cost more and ``γ = gain √(K t) / σ``.

    Parameters
    ----------
    gain : float, default 1.0
        Factor of γ: the larger, the less is explored.
    spread_scale : float, default 1.0
        Spread of the posterior draws that make candidates, in standard deviations.
    candidates : int, default 16
        Number of candidates.
    """

    gain: float = Field(default=1.0, gt=0)
    spread_scale: float = Field(default=1.0, ge=0)
    candidates: int = Field(default=16, ge=2, le=10**4)

    def build(self, problem: Problem) -> SquareCBPolicy:
        """Return the policy for a problem."""
        self.require(problem)
        return SquareCBPolicy(problem, **self.hyperparameters())
