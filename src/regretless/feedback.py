"""Feedback, what a decision reveals: measurement ``H(w)`` and linkage ``e(w)`` with ``H(w)ᵀ e(w) = w`` (Assumption 1).

=============  ==========  =========  ===================================================
name           ``H(w)``    ``e(w)``   what is observed
=============  ==========  =========  ===================================================
bandit         ``wᵀ``      1          the total cost
semi_bandit    ``diag w``  ones       the cost of each chosen part
full           ``I``       ``w``      the whole cost vector
linear         any         any        known linear measurements, such as costs of groups
=============  ==========  =========  ===================================================
"""

import abc
from collections.abc import Callable
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from regretless.registry import Registry
from regretless.types import Cost, Decision, Feedback, Operator, Solution


class Total(Operator):
    """``H = wᵀ``: one row, the total cost.

    Parameters
    ----------
    w : array of shape (d,)
        The decision.
    """

    w: Float[Array, " d"]

    def matvec(self, cost: Cost) -> Float[Array, " 1"]:
        return jnp.sum(self.w * cost)[None]

    def rmatvec(self, rows: Float[Array, " 1"]) -> Cost:
        return rows[0] * self.w

    def informative(self) -> Bool[Array, " 1"]:
        return jnp.ones(1, bool)

    def row_squares(self) -> Float[Array, " m"]:
        return jnp.sum(jnp.square(self.w))[None]


class Diagonal(Operator):
    """``H = diag(w)``: a row per coordinate, zero where nothing was chosen.

    Parameters
    ----------
    w : array of shape (d,)
        The decision, or other weights of the coordinates.
    """

    w: Float[Array, " d"]

    def matvec(self, cost: Cost) -> Float[Array, " d"]:
        return self.w * cost

    def rmatvec(self, rows: Float[Array, " d"]) -> Cost:
        return self.w * rows

    def informative(self) -> Bool[Array, " d"]:
        return self.w != 0

    def overwrite(self, prediction: Cost, values: Float[Array, " d"], seen: Bool[Array, " d"]) -> Cost:
        return jnp.where(seen, values / jnp.where(seen, self.w, 1.0), prediction)

    def row_squares(self) -> Float[Array, " m"]:
        return jnp.square(self.w)


class Rows(Operator):
    """``H`` given row by row.

    Parameters
    ----------
    matrix : array of shape (m, d)
        ``H``.
    """

    matrix: Float[Array, "m d"]

    def matvec(self, cost: Cost) -> Float[Array, " m"]:
        return self.matrix @ cost

    def rmatvec(self, rows: Float[Array, " m"]) -> Cost:
        return rows @ self.matrix

    def informative(self) -> Bool[Array, " m"]:
        return jnp.any(self.matrix != 0, axis=1)

    def row_squares(self) -> Float[Array, " m"]:
        return jnp.sum(jnp.square(self.matrix), axis=1)


class Measurement(eqx.Module):
    """Base class of feedback regimes: the pair ``w ↦ (H(w), e(w))`` with ``H(w)ᵀ e(w) = w``.

    Subclass it, write ``name`` and ``measure``, and set the flags that hold.
    """

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """The name of the regime."""

    @abc.abstractmethod
    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        """Return ``H(w)`` and ``e(w)``.

        Parameters
        ----------
        w : array of shape (d,)
            The decision.
        aux : pytree
            What the oracle returns next to ``w``, for measurements that depend on more than ``w``.
        """

    sparse: ClassVar[bool] = False
    """Whether coordinates that were not chosen (``w_i = 0``) are never measured."""

    separable: ClassVar[bool] = False
    """Whether row ``i`` of ``H(w)`` measures the cost coordinate ``i`` and no other."""

    total_only: ClassVar[bool] = False
    """Whether the only row is the total cost."""

    reveals_all: ClassVar[bool] = False
    """Whether the whole cost vector is observed."""

    @property
    def max_rows(self) -> int | None:
        """Largest number of rows that come with each feedback; None if ``measure`` fixes the rows."""
        return None


class Bandit(Measurement):
    """Observe the total cost only."""

    name = "bandit"
    sparse: ClassVar[bool] = True
    total_only: ClassVar[bool] = True

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Total(w), jnp.ones(1, w.dtype)


class SemiBandit(Measurement):
    """Observe the cost of each chosen coordinate."""

    name = "semi_bandit"
    sparse: ClassVar[bool] = True
    separable: ClassVar[bool] = True

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Diagonal(w), jnp.ones_like(w)


class Full(Measurement):
    """Observe the whole cost vector."""

    name = "full"
    separable: ClassVar[bool] = True
    reveals_all: ClassVar[bool] = True

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Diagonal(jnp.ones_like(w)), w


class Linear(Measurement):
    """Observe known linear measurements of the costs.

    Parameters
    ----------
    matrix : callable
        ``matrix(w, aux)`` returns ``H(w)`` of shape ``[m, d]``.
    linkage : callable
        ``linkage(w, aux)`` returns ``e(w)`` of shape ``[m]``, with ``H(w)ᵀ e(w) = w``.
    label : str, default "linear"
        Its name.

    Examples
    --------
    Costs of two groups of items instead of single ones:

    >>> import jax.numpy as jnp, regretless as rg
    >>> groups = jnp.array([[1., 1., 0., 0.], [0., 0., 1., 1.]])
    >>> rule = rg.feedback.Linear(lambda w, aux: groups * w, lambda w, aux: jnp.ones(2), label="group_sums")
    >>> rg.feedback.check_linkage(rule, rg.oracles.top_k(4, 2).solve(jnp.eye(4)))
    """

    matrix: Callable[..., Float[Array, "m d"]] = eqx.field(static=True)
    linkage: Callable[..., Float[Array, " m"]] = eqx.field(static=True)
    label: str = eqx.field(static=True, default="linear")

    @property
    def name(self) -> str:
        return self.label

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Rows(jnp.asarray(self.matrix(w, aux))), jnp.asarray(self.linkage(w, aux))


class ReportedRows(Measurement):
    """Observe linear measurements that differ by decision: the rows are reported with each feedback.

    There is one further row, ``w`` itself: it stands for the total until rows are reported, and if the total cannot be
    recovered from them.

    Parameters
    ----------
    limit : int
        Largest number of rows.
    """

    name = "linear"
    limit: int = eqx.field(static=True)

    @property
    def max_rows(self) -> int:
        return self.limit

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        rows = jnp.zeros((self.limit + 1, w.shape[-1]), w.dtype).at[-1].set(w)
        return Rows(rows), jnp.zeros(self.limit + 1, w.dtype).at[-1].set(1.0)


REGISTRY: Registry[Measurement] = Registry(
    "feedback",
    "feedback",
    {rule.name: rule for rule in (Bandit(), SemiBandit(), Full())},
    ("measure", "name"),
    "a regretless.feedback.Measurement, or a class of them",
)
"""Regimes by name; an entry is a Measurement, or a class that is called without arguments."""


def regime(name: str) -> Measurement:
    """Return the feedback regime called ``name``.

    Parameters
    ----------
    name : str
        A name of ``REGISTRY``.

    Raises
    ------
    SettingsError
        If there is none; the message names the nearest one.
    """
    entry: Any = REGISTRY[name]
    return entry() if isinstance(entry, type) else entry


def observe(rule: Measurement, decision: Decision, cost: Cost, seen: Bool[Array, " m"] | None = None) -> Feedback:
    """Return the feedback on a decision.

    Parameters
    ----------
    rule : Measurement
        The regime.
    decision : Decision
        What was done.
    cost : array of shape (d,)
        The cost vector.
    seen : array of bool, optional
        Marks the rows that arrive; by default all.
    """
    operator, linkage = rule.measure(decision.w, decision.aux)
    return Feedback(operator, linkage, operator.matvec(cost), seen)


def check_linkage(rule: Measurement, solutions: Solution) -> None:
    """Check that ``H(w)ᵀ e(w) = w`` for decisions.

    Parameters
    ----------
    rule : Measurement
        The regime.
    solutions : Solution
        Decisions ``[b, d]``, such as an oracle returns.

    Raises
    ------
    ValueError
        If the total cost cannot be recovered for some row.
    """
    for row in range(len(solutions.w)):
        w, aux = jax.tree.map(lambda leaf, row=row: leaf[row], (solutions.w, solutions.aux))
        operator, linkage = rule.measure(w, aux)
        carried = operator.rmatvec(linkage)
        if carried.shape != w.shape:
            raise ValueError(f"feedback {rule.name!r}: H(w)ᵀe(w) has shape {carried.shape}, expected {w.shape}")
        error = float(jnp.max(jnp.abs(carried - w)))
        if not error <= 1e-4 * max(1.0, float(jnp.max(jnp.abs(w)))):
            raise ValueError(
                f"feedback {rule.name!r}: expected H(w)ᵀe(w) = w, but they differ by {error:.3g} for "
                f"w = {w.tolist()}; give a linkage e(w) with which the total cost can be recovered"
            )
