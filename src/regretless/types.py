"""Records that travel between the parts of the library, and the shapes they have.

Everything is cost minimisation, ``w*(c) = argmin over w in S of c·w``. Shapes are written with these letters: ``d`` cost
coordinates, ``p`` context features, ``b`` rows of a batch, ``m`` rows of a measurement.
"""

import abc
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PRNGKeyArray, PyTree

Context = Float[Array, "*shape"]
"""What is seen before deciding: a vector ``[p]``, or one feature row per cost coordinate ``[d, p]``."""

Cost = Float[Array, " d"]

Instance = Any
"""What changes in the feasible set from round to round: a pytree of fixed shape, or None; the oracle knows its meaning."""

Info = dict[str, Array]
"""Scalar diagnostics of one learning step, by name. The entry ``finite`` is False once the state holds a non-finite number."""

Key = PRNGKeyArray

SOLVED = 0
"""Status of a solved row; every other value means that the row's ``w`` must not be used."""

NOT_SAMPLED = -(2**30)
"""Version of a decision that no policy drew from its distribution (a greedy one, say): older than any limit for late score
terms, so that only the other parts learn from it."""


class Solution(eqx.Module):
    """Answers of an oracle, one row per cost vector; ``aux`` carries what ``w`` cannot (start times, say)."""

    w: Float[Array, "*b d"]
    status: Int[Array, "*b"]
    aux: PyTree = None


class Decision(eqx.Module):
    """Everything ``learn`` needs to know about a decision, so that feedback may come late, out of order or never."""

    id: Int[Array, ""]
    context: Context
    instance: Instance
    cost_sample: Cost  # ĉ, the cost vector that was solved
    noise: PyTree  # ε, with ĉ = μ_θ(x, ε)
    w: Float[Array, " d"]
    aux: PyTree
    status: Int[Array, ""]
    log_density: Float[Array, ""] | None  # log p_θ(ĉ|x) when deciding; None if the model has none
    version: Int[Array, ""]  # how many learning steps θ had seen when deciding


class Operator(eqx.Module):
    """A linear measurement ``H(w)`` of the cost, never held as a dense ``d × d`` matrix."""

    @abc.abstractmethod
    def matvec(self, cost: Float[Array, " d"]) -> Float[Array, " m"]:
        """``H c``: what this measurement shows of the cost ``c``."""

    @abc.abstractmethod
    def rmatvec(self, rows: Float[Array, " m"]) -> Float[Array, " d"]:
        """``Hᵀ u``: weights of the measurement rows carried back to the cost coordinates."""

    @abc.abstractmethod
    def informative(self) -> Bool[Array, " m"]:
        """Rows that say something; a row of zeros does not."""

    def overwrite(self, prediction: Cost, values: Float[Array, " m"], seen: Bool[Array, " m"]) -> Cost:
        """The prediction with the single coordinates that were seen put in place; other measurements leave it as it is."""
        return prediction


class Feedback(eqx.Module):
    """What was seen after acting: ``v = H(w) c`` with its linkage ``e(w)``, so that ``y = c·w = e(w)·v``.

    ``seen`` marks the rows that arrived; None says that all of them did, and spares the programs the question.
    """

    operator: Operator
    linkage: Float[Array, " m"]
    values: Float[Array, " m"]
    seen: Bool[Array, " m"] | None = None

    def used(self) -> Bool[Array, " m"]:
        """Rows that can be learnt from: they say something and they arrived."""
        informative = self.operator.informative()
        return informative if self.seen is None else informative & self.seen

    def complete(self) -> Bool[Array, ""]:
        """Whether the total ``y`` can be recovered: no row with a say in it is missing."""
        if self.seen is None:
            return jnp.asarray(True)
        return jnp.all(self.seen | ~self.operator.informative() | (self.linkage == 0))

    def total(self) -> Float[Array, ""]:
        """``y = e(w)·v``, the cost of what was done (meaningless unless ``complete()``)."""
        seen = True if self.seen is None else self.seen
        return jnp.sum(jnp.where(seen, self.linkage * self.values, 0.0))

    def loss_gradient(self, prediction: Cost) -> Cost:
        """Gradient in ``f`` of ``½ · mean over used rows of (H f − v)²``, the loss that the nuisance is fitted with."""
        used = self.used()
        error = jnp.where(used, self.operator.matvec(prediction) - self.values, 0.0)
        return self.operator.rmatvec(error) / jnp.maximum(jnp.sum(used), 1)

    def overwrite(self, prediction: Cost) -> Cost:
        """Puts the cost coordinates that were seen one by one in place of their predictions."""
        return self.operator.overwrite(prediction, self.values, self.used())
