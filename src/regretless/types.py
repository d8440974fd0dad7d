"""Records that travel between the parts of the library, and the shapes they have.

Costs are minimised, ``w*(c) = argmin over w in S of c·w``. Letters in shapes: ``d`` cost coordinates, ``p`` context
features, ``b`` rows of a batch, ``m`` rows of a measurement.
"""

import abc
from typing import Any, Protocol

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

Context = Float[Array, "*shape"]
"""What is known before deciding: a vector ``[p]``, or one feature row per cost coordinate ``[d, p]``."""

Cost = Float[Array, " d"]

Instance = Any
"""What changes in the feasible set from round to round: a pytree of fixed shape, or None; the oracle defines it."""

Key = PRNGKeyArray

SOLVED = 0
"""Status of a solved row; every other value means that the row's ``w`` must not be used."""

NOT_SAMPLED = -(2**30)
"""Version of a decision that no policy drew from its distribution, such as a greedy one: older than any limit for late
score terms, so that only the other parts learn from it."""


class Solution(eqx.Module):
    """Answers of an oracle, one row per cost vector; ``aux`` has what ``w`` lacks, such as start times.

    Parameters
    ----------
    w : array of shape (b, d)
        The decisions.
    status : integer array of shape (b,)
        ``SOLVED`` (0), or why a row has no solution.
    aux : pytree, optional
        What ``w`` lacks, with a leading axis of ``b``.
    """

    w: Float[Array, "*b d"]
    status: Int[Array, "*b"]
    aux: PyTree = None


class Sample(eqx.Module):
    """What a policy drew for a context: the cost vector to solve, and what ``learn`` needs to know about the draw.

    Parameters
    ----------
    cost : array of shape (d,)
        ``ĉ``, the cost vector to solve.
    version : integer array
        Learning steps of the policy so far.
    noise : array of shape (d,), optional
        ``ε``, with ``ĉ = μ_θ(x, ε)``; by default zeros.
    log_density : array, optional
        ``log p_θ(ĉ|x)``; by default unknown, stored as NaN.
    member : integer array, optional
        Which policy of a mixture drew; by default the only one, 0.
    log_probability : array, optional
        Logarithm of the probability with which the policy decides as this sample does, in this state and context: 0
        if nothing is random. By default unknown, stored as NaN.
    """

    cost: Cost
    version: Int[Array, ""]
    noise: Cost | None = None
    log_density: Float[Array, ""] | None = None
    member: Int[Array, ""] | None = None
    log_probability: Float[Array, ""] | None = None

    def filled(self) -> "Sample":
        """Return the sample with an array in place of each None, in the types of a Decision."""
        kind, whole = jnp.result_type(float), jnp.int32
        known = lambda number: jnp.asarray(jnp.nan if number is None else number, kind)  # noqa: E731
        return Sample(
            cost=self.cost.astype(kind),
            version=jnp.asarray(self.version, whole),
            noise=jnp.zeros(self.cost.shape, kind) if self.noise is None else self.noise.astype(kind),
            log_density=known(self.log_density),
            member=jnp.zeros((), whole) if self.member is None else jnp.asarray(self.member, whole),
            log_probability=known(self.log_probability),
        )


class Decision(eqx.Module):
    """Everything ``learn`` needs to know about a decision, so that feedback may come late, out of order or never.

    The Problem fixes its structure, shapes and types. A decision that no policy sampled (a person's, an incumbent's,
    one from an old log) has the version NOT_SAMPLED, no density and probability (NaN) and zeros for ``cost_sample``
    and ``noise``.

    Parameters
    ----------
    id : integer array
        The decision's number.
    context : array
        What was known before deciding.
    instance : pytree or None
        What changed in the feasible set in this round.
    cost_sample : array of shape (d,)
        ``ĉ``, the cost vector that was solved.
    noise : array of shape (d,)
        ``ε``, with ``ĉ = μ_θ(x, ε)``.
    w : array of shape (d,)
        What was done.
    aux : pytree or None
        What the oracle returned next to ``w``.
    status : integer array
        ``SOLVED``, or why there is no solution.
    log_density : array
        ``log p_θ(ĉ|x)`` when deciding; NaN if there is none.
    version : integer array
        Learning steps of ``θ`` when deciding.
    member : integer array
        Which policy of a mixture decided; 0 if there is only one.
    log_probability : array
        Logarithm of the probability with which ``w`` was chosen; NaN if it is not known.
    """

    id: Int[Array, ""]
    context: Context
    instance: Instance
    cost_sample: Cost
    noise: Cost
    w: Float[Array, " d"]
    aux: PyTree
    status: Int[Array, ""]
    log_density: Float[Array, ""]
    version: Int[Array, ""]
    member: Int[Array, ""]
    log_probability: Float[Array, ""]

    def sampled(self) -> Bool[Array, ""]:
        """Return whether a policy drew this decision from its distribution."""
        return self.version != NOT_SAMPLED


class State(Protocol):
    """A policy's state: the number of learning steps so far, and what the next round needs."""

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""


class Info(eqx.Module):
    """Scalar diagnostics of one learning step: four that every policy reports, and more by name.

    Parameters
    ----------
    residual : array
        Total minus its prediction before learning; meaningless unless ``complete``.
    total : array
        The cost of what was done.
    complete : boolean array
        Whether the total is known.
    finite : boolean array
        False once the state holds a number that is not finite.
    more : dict of str to array, optional
        Further diagnostics by name.
    """

    residual: Float[Array, ""]
    total: Float[Array, ""]
    complete: Bool[Array, ""]
    finite: Bool[Array, ""]
    more: dict[str, Array] = eqx.field(default_factory=dict)

    def scalars(self) -> dict[str, Array]:
        """Return everything by name."""
        common = {"residual": self.residual, "total": self.total, "complete": self.complete, "finite": self.finite}
        return {**common, **self.more}


class Operator(eqx.Module):
    """A linear measurement ``H(w)`` of the cost, never held as a dense ``d × d`` matrix."""

    @abc.abstractmethod
    def matvec(self, cost: Float[Array, " d"]) -> Float[Array, " m"]:
        """Return ``H c``, what this measurement shows of the cost ``c``.

        Parameters
        ----------
        cost : array of shape (d,)
            ``c``.
        """

    @abc.abstractmethod
    def rmatvec(self, rows: Float[Array, " m"]) -> Float[Array, " d"]:
        """Return ``Hᵀ u``, weights of the measurement rows carried back to the cost coordinates.

        Parameters
        ----------
        rows : array of shape (m,)
            ``u``.
        """

    @abc.abstractmethod
    def informative(self) -> Bool[Array, " m"]:
        """Mark non-zero rows; a row of zeros has no information about the cost."""

    @abc.abstractmethod
    def row_squares(self) -> Float[Array, " m"]:
        """Return ``‖h‖²`` of each row."""

    def overwrite(self, prediction: Cost, values: Float[Array, " m"], seen: Bool[Array, " m"]) -> Cost:
        """Return the prediction with single observed coordinates in place; other measurements leave it unchanged.

        Parameters
        ----------
        prediction : array of shape (d,)
            The predicted costs.
        values : array of shape (m,)
            What was measured.
        seen : boolean array of shape (m,)
            Which rows were measured.
        """
        return prediction


class Feedback(eqx.Module):
    """What was observed after acting: ``v = H(w) c`` with its linkage ``e(w)``, so that ``y = c·w = e(w)·v``.

    ``seen`` marks the rows that arrived; None: all rows arrived, no mask is compiled.

    Parameters
    ----------
    operator : Operator
        ``H(w)``.
    linkage : array of shape (m,)
        ``e(w)``.
    values : array of shape (m,)
        ``v``; what it has in rows that did not arrive is not used.
    seen : boolean array of shape (m,), optional
        Which rows arrived.
    """

    operator: Operator
    linkage: Float[Array, " m"]
    values: Float[Array, " m"]
    seen: Bool[Array, " m"] | None = None

    def used(self) -> Bool[Array, " m"]:
        """Mark the rows to learn from: non-zero and arrived."""
        informative = self.operator.informative()
        return informative if self.seen is None else informative & self.seen

    def complete(self) -> Bool[Array, ""]:
        """Return whether the total ``y`` can be recovered: no row with a weight in it is missing."""
        if self.seen is None:
            return jnp.asarray(True)
        return jnp.all(self.seen | ~self.operator.informative() | (self.linkage == 0))

    def total(self) -> Float[Array, ""]:
        """Return ``y = e(w)·v``, the cost of what was done (meaningless unless ``complete()``)."""
        seen = True if self.seen is None else self.seen
        return jnp.sum(jnp.where(seen, self.linkage * self.values, 0.0))

    def loss_gradient(self, prediction: Cost) -> Cost:
        """Return the gradient in ``f`` of ``½ · mean over used rows of (H f − v)²``, the loss of the nuisance.

        Parameters
        ----------
        prediction : array of shape (d,)
            ``f``, the predicted costs.
        """
        used = self.used()
        error = jnp.where(used, self.operator.matvec(prediction) - self.values, 0.0)
        return self.operator.rmatvec(error) / jnp.maximum(jnp.sum(used), 1)

    def sum_gradient(self, prediction: Cost) -> Cost:
        """Return the gradient in ``f`` of ``‖H f − v‖²`` over the used rows, the loss of the paper.

        Parameters
        ----------
        prediction : array of shape (d,)
            ``f``, the predicted costs.
        """
        return 2.0 * jnp.sum(self.used()) * self.loss_gradient(prediction)

    def overwrite(self, prediction: Cost) -> Cost:
        """Return the prediction with observed cost coordinates in place.

        Parameters
        ----------
        prediction : array of shape (d,)
            The predicted costs.
        """
        return self.operator.overwrite(prediction, self.values, self.used())
