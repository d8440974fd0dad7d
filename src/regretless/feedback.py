"""What a decision reveals: the measurement ``H(w)`` and the linkage ``e(w)`` with ``H(w)ᵀ e(w) = w`` (Assumption 1).

=============  ==========  =========  ===================================================
name           ``H(w)``    ``e(w)``   what is seen
=============  ==========  =========  ===================================================
bandit         ``wᵀ``      1          the total cost
semi_bandit    ``diag w``  ones       the cost of each chosen part
full           ``I``       ``w``      the whole cost vector
linear         any         any        known linear measurements, such as costs of groups
=============  ==========  =========  ===================================================
"""

import abc
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, PyTree

from regretless.registry import Registry
from regretless.types import Cost, Decision, Feedback, Operator, Solution


class Total(Operator):
    """``H = wᵀ``: one row, the total cost."""

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
    """``H = diag(w)``: a row per coordinate, zero where nothing was chosen."""

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


class Identity(Operator):
    """``H = I``: every coordinate."""

    dim: int = eqx.field(static=True)

    def matvec(self, cost: Cost) -> Cost:
        return cost

    def rmatvec(self, rows: Float[Array, " d"]) -> Cost:
        return rows

    def informative(self) -> Bool[Array, " d"]:
        return jnp.ones(self.dim, bool)

    def overwrite(self, prediction: Cost, values: Float[Array, " d"], seen: Bool[Array, " d"]) -> Cost:
        return jnp.where(seen, values, prediction)

    def row_squares(self) -> Float[Array, " m"]:
        return jnp.ones(self.dim)


class Rows(Operator):
    """``H`` given row by row."""

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
    """A feedback regime: the pair ``w ↦ (H(w), e(w))``; ``aux`` is the oracle's, for what depends on more than ``w``."""

    @property
    @abc.abstractmethod
    def name(self) -> str:
        """What the regime is called."""

    @abc.abstractmethod
    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        """``H(w)`` and ``e(w)``."""

    @property
    def sparse(self) -> bool:
        """Whether coordinates that were not chosen (``w_i = 0``) are never measured."""
        return False

    @property
    def separable(self) -> bool:
        """Whether row ``i`` of ``H(w)`` measures the cost coordinate ``i`` and no other."""
        return False

    @property
    def total_only(self) -> bool:
        """Whether there is one row, the total cost."""
        return False

    @property
    def reveals_all(self) -> bool:
        """Whether the whole cost vector is seen."""
        return False

    @property
    def rows_told(self) -> int | None:
        """At most how many rows come with each feedback, where they differ by decision; None: ``measure`` fixes them."""
        return None


class Bandit(Measurement):
    """Only the total cost is seen."""

    @property
    def name(self) -> str:
        return "bandit"

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Total(w), jnp.ones(1, w.dtype)

    @property
    def sparse(self) -> bool:
        return True

    @property
    def total_only(self) -> bool:
        return True


class SemiBandit(Measurement):
    """The cost of each chosen coordinate is seen."""

    @property
    def name(self) -> str:
        return "semi_bandit"

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Diagonal(w), jnp.ones_like(w)

    @property
    def sparse(self) -> bool:
        return True

    @property
    def separable(self) -> bool:
        return True


class Full(Measurement):
    """The whole cost vector is seen."""

    @property
    def name(self) -> str:
        return "full"

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        return Identity(w.shape[-1]), w

    @property
    def separable(self) -> bool:
        return True

    @property
    def reveals_all(self) -> bool:
        return True


class Linear(Measurement):
    """Known linear measurements: ``matrix(w, aux)`` is ``H(w)``, of shape ``[m, d]``, ``linkage(w, aux)`` is ``e(w)``, ``[m]``.

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


class RowsTold(Measurement):
    """Known linear measurements that differ by decision: the rows, at most ``most``, are told with each feedback.

    There is one row more, ``w`` itself: until rows are told, and where the total cannot be recovered from them, it stands for
    the total.
    """

    most: int = eqx.field(static=True)

    @property
    def name(self) -> str:
        return "linear"

    @property
    def rows_told(self) -> int:
        return self.most

    def measure(self, w: Float[Array, " d"], aux: PyTree) -> tuple[Operator, Float[Array, " m"]]:
        rows = jnp.zeros((self.most + 1, w.shape[-1]), w.dtype).at[-1].set(w)
        return Rows(rows), jnp.zeros(self.most + 1, w.dtype).at[-1].set(1.0)


REGISTRY: Registry[Measurement] = Registry(
    "feedback",
    "feedback",
    {rule.name: rule for rule in (Bandit(), SemiBandit(), Full())},
    ("measure", "name"),
    "a regretless.feedback.Measurement, or a class of them",
)
"""Regimes by name; a plug-in's entry is a Measurement, or a class that makes one without arguments."""


def regime(name: str) -> Measurement:
    """The feedback regime called ``name``."""
    entry: Any = REGISTRY[name]
    return entry() if isinstance(entry, type) else entry


def observe(rule: Measurement, decision: Decision, cost: Cost, seen: Bool[Array, " m"] | None = None) -> Feedback:
    """The feedback that ``decision`` gets when the cost is ``cost``; ``seen`` marks the rows that arrive (None: all)."""
    operator, linkage = rule.measure(decision.w, decision.aux)
    return Feedback(operator, linkage, operator.matvec(cost), seen)


def check_linkage(rule: Measurement, solutions: Solution) -> None:
    """Raises ValueError unless ``H(w)ᵀ e(w) = w`` for each row of ``solutions`` (``[b, d]``, such as an oracle returns)."""
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
