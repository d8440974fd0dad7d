"""The contract that every policy is built for: feasible set, contexts, feedback and the form of instances."""

from collections.abc import Hashable, Sequence
from typing import Any, Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.feedback import Measurement, observe, regime
from regretless.oracles.base import Oracle, check_finite
from regretless.types import NOT_SAMPLED, SOLVED, Context, Cost, Decision, Feedback, Instance, Sample, Solution


class Problem(eqx.Module):
    """Describe a decision problem: it fixes the structure, shapes and types of every Decision and Feedback.

    Parameters
    ----------
    oracle : Oracle
        The feasible set with its solver, see ``rg.oracles``. Its ``dim`` is the number ``d`` of cost coordinates.
    context : int, tuple of int or Columns
        What is known before deciding: ``p`` for a vector of ``p`` numbers, ``(d, p)`` for a row of features per cost
        coordinate, the columns of contexts by name, or a shape such as ``(height, width, 3)`` for models that take it.
    feedback : str or Measurement, default "bandit"
        What a decision reveals: ``"bandit"`` (the total), ``"semi_bandit"`` (the cost of each chosen coordinate),
        ``"full"`` (all costs), or a measurement of your own, see ``rg.feedback``.
    may_miss : bool, optional
        Whether rows of the feedback may fail to arrive. By default a ``Learner`` assumes that they may, a simulation
        that they do not.
    instance : pytree of arrays, optional
        An example of what changes in the feasible set from round to round; None if nothing does.
    sense : {"min", "max"}, default "min"
        ``"max"`` if the numbers that a ``Learner`` receives and shows are rewards. Policies always minimise.
    offset : sequence of float, optional
        A part of the cost (or reward) of each coordinate that is known in advance and need not be learned. A
        ``Learner`` subtracts it from what it learns from and adds it to what it solves.

    Raises
    ------
    SettingsError
        If the arguments do not fit together.

    Examples
    --------
    >>> import regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), 3, "semi_bandit")
    >>> problem
    Problem(TopK(dim=4), context=3, feedback='semi_bandit')
    >>> problem.example_decision().w.shape, problem.example_feedback().values.shape
    ((4,), (4,))
    >>> problem.difference(rg.Problem(rg.oracles.top_k(4, 1), 3, "bandit"))
    "oracle: k 2 and 1; feedback: 'semi_bandit' and 'bandit'"
    """

    oracle: Oracle
    context_shape: tuple[int, ...] = eqx.field(static=True)
    feedback: Measurement
    may_miss: bool | None = eqx.field(static=True)
    instance_form: Hashable = eqx.field(static=True)  # structure, shapes and types of instances, None for none
    sense: Literal["min", "max"] = eqx.field(static=True)
    offset: tuple[float, ...] | None = eqx.field(static=True)
    columns: Columns | None = eqx.field(static=True)

    def __init__(
        self,
        oracle: Oracle,
        context: int | tuple[int, ...] | Columns,
        feedback: str | Measurement = "bandit",
        *,
        may_miss: bool | None = None,
        instance: Instance = None,
        sense: Literal["min", "max"] = "min",
        offset: Sequence[float] | Float[Array, " d"] | np.ndarray | None = None,
    ):
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"problem: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
        rule = regime(feedback) if isinstance(feedback, str) else feedback
        if not isinstance(rule, Measurement):
            raise SettingsError(f"problem: expected feedback to be a name or a Measurement, got {feedback!r}")
        if may_miss is not None and not isinstance(may_miss, bool | np.bool_):
            raise SettingsError(f"problem: expected may_miss to be True, False or None, got {may_miss!r}")
        if sense not in ("min", "max"):
            raise SettingsError(f"problem: expected sense 'min' (costs) or 'max' (rewards), got {sense!r}")
        self.oracle, self.feedback, self.sense = oracle, rule, sense
        self.columns = context if isinstance(context, Columns) else None
        self.context_shape = _context_shape(context, oracle.dim)
        self.may_miss = None if may_miss is None else bool(may_miss)
        self.instance_form = form_of(instance)
        self.offset = None
        if offset is not None:
            self.offset = tuple(map(float, check_finite("problem: offset", offset, (oracle.dim,))))

    def __repr__(self) -> str:
        shown = {**self._arguments(), "feedback": self.feedback.name, "instance": None}
        unset = {"may_miss": None, "instance": None, "sense": "min", "offset": None}
        described = [f"{name}={value!r}" for name, value in shown.items() if name not in unset or value != unset[name]]
        described += [f"instance={form_words(self.instance_form)}"] if self.has_instances else []
        return f"Problem({', '.join([f'{self.oracle.kind}(dim={self.dim})', *described])})"

    def for_policy(self) -> "Problem":
        """Return the problem that a policy solves: costs to minimise, contexts as numbers, no offset."""
        return self._changed(sense="min", offset=None, context=self.context_shape)

    def with_instance(self, instance: Instance) -> "Problem":
        """Return the same problem with instances of this form.

        Parameters
        ----------
        instance : pytree of arrays
            An example of what changes in the feasible set.
        """
        return self._changed(instance=instance)

    def with_missing(self, may_miss: bool) -> "Problem":
        """Return the same problem with feedback whose rows may be missing, or never are.

        Parameters
        ----------
        may_miss : bool
            Whether rows of the feedback may fail to arrive.
        """
        return self._changed(may_miss=may_miss)

    def _changed(self, **changes: Any) -> "Problem":
        return Problem(self.oracle, **{**self._arguments(), **changes})

    def _arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor after the first one."""
        shape = self.context_shape
        return {
            "context": self.columns if self.columns is not None else shape[0] if len(shape) == 1 else shape,
            "feedback": self.feedback,
            "may_miss": self.may_miss,
            "instance": self.example_instance(),
            "sense": self.sense,
            "offset": self.offset,
        }

    @property
    def dim(self) -> int:
        """Number of cost coordinates."""
        return self.oracle.dim

    @property
    def sign(self) -> float:
        """1 if the user's numbers are costs, -1 if they are rewards."""
        return -1.0 if self.sense == "max" else 1.0

    @property
    def has_instances(self) -> bool:
        """Whether the feasible set changes from round to round."""
        return self.instance_form is not None

    def example_context(self) -> Context:
        """Return a context of zeros."""
        return jnp.zeros(self.context_shape)

    def example_instance(self) -> Instance:
        """Return an instance of zeros, None if the feasible set never changes."""
        return empty_of(self.instance_form)

    def example_decision(self) -> Decision:
        """Return a decision of zeros that no policy sampled."""
        return self.decision(jnp.zeros(self.dim), self.example_context(), self.example_instance())

    def example_feedback(self) -> Feedback:
        """Return the feedback on the example decision if all costs are zero."""
        return self.observe(self.example_decision(), jnp.zeros(self.dim))

    def decision(
        self, w: Float[Array, " d"], context: Context, instance: Instance = None, aux: PyTree = None, id: Any = 0
    ) -> Decision:
        """Return a decision that no policy sampled: a person's, an incumbent's, one from an old log.

        Parameters
        ----------
        w : array of shape (d,)
            What was done.
        context : array of shape ``context_shape``
            What was known.
        instance : pytree, optional
            What changed in the feasible set in this round.
        aux : pytree, optional
            What the oracle returns next to ``w``; zeros by default.
        id : int, default 0
            The decision's number.
        """
        if aux is None:
            aux = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), self.oracle.aux_form())
        sample = Sample(jnp.zeros(self.dim), jnp.asarray(NOT_SAMPLED))
        return self.record(sample, Solution(w, jnp.asarray(SOLVED), aux), context, instance, id)

    def record(
        self, sample: Sample, solution: Solution, context: Context, instance: Instance, id: Any = None
    ) -> Decision:
        """Return the decision that a policy's sample and its solution make.

        Parameters
        ----------
        sample : Sample
            What the policy drew.
        solution : Solution
            What the oracle returned for ``sample.cost``.
        context : array of shape ``context_shape``
            What was known.
        instance : pytree or None
            What changed in the feasible set.
        id : int, optional
            The decision's number; by default the policy's learning steps.
        """
        dtype = jnp.result_type(float)
        filled: Any = sample.filled()
        return Decision(
            id=filled.version if id is None else jnp.asarray(id, jnp.int32),
            context=jnp.asarray(context, dtype),
            instance=instance,
            cost_sample=filled.cost,
            noise=filled.noise,
            w=jnp.asarray(solution.w, dtype),
            aux=solution.aux,
            status=jnp.asarray(solution.status, jnp.int32),
            log_density=filled.log_density,
            version=filled.version,
            member=filled.member,
            log_probability=filled.log_probability,
        )

    def observe(self, decision: Decision, cost: Cost, seen: Bool[Array, " m"] | None = None) -> Feedback:
        """Return what ``decision`` reveals if the cost is ``cost``; ``seen`` marks the rows that arrive (None: all).

        Parameters
        ----------
        decision : Decision
            What was done.
        cost : array of shape (d,)
            The whole cost vector.
        seen : boolean array of shape (m,), optional
            The rows that arrive.
        """
        return self.with_seen(observe(self.feedback, decision, cost), seen)

    def with_seen(self, feedback: Feedback, seen: Bool[Array, " m"] | None) -> Feedback:
        """Return the feedback with this problem's mask of rows: an array if rows may be missing, otherwise None.

        Parameters
        ----------
        feedback : Feedback
            What was observed.
        seen : boolean array of shape (m,) or None
            The rows that arrived; None: all.

        Raises
        ------
        SettingsError
            If rows are missing that may not be.
        """
        if self.may_miss and seen is None:
            seen = jnp.ones(feedback.values.shape, bool)
        if not self.may_miss and seen is not None:
            raise SettingsError("problem: rows of the feedback are missing, but it was made with may_miss=False")
        return Feedback(feedback.operator, feedback.linkage, feedback.values, seen)

    def require(self, context: Context) -> None:
        """Refuse a context of another shape.

        Parameters
        ----------
        context : array
            The context to check.

        Raises
        ------
        SettingsError
            If its shape is not ``context_shape``.
        """
        if context.shape != self.context_shape:
            raise SettingsError(f"context: expected shape {self.context_shape}, got {context.shape}")

    def difference(self, other: "Problem") -> str:
        """Describe what differs between this problem and another one; empty if nothing does.

        Parameters
        ----------
        other : Problem
            The problem to compare with.
        """
        differences = []
        if self.oracle is not other.oracle:
            here, there = self.oracle.fingerprint(), other.oracle.fingerprint()
            names = [name for name in {**here, **there} if here.get(name) != there.get(name)]
            fields = [f"{name} {here.get(name, 'none')} and {there.get(name, 'none')}" for name in names]
            differences += [f"oracle: {', '.join(fields)}"] if fields else []
        if self.context_shape != other.context_shape:
            differences.append(f"shape of a context: {self.context_shape} and {other.context_shape}")
        if self.columns != other.columns:
            differences.append(f"columns: {self.columns} and {other.columns}")
        if self.feedback is not other.feedback and self.feedback != other.feedback:
            differences.append(f"feedback: {self.feedback.name!r} and {other.feedback.name!r}")
        if self.instance_form != other.instance_form:
            differences.append(f"instances: {form_words(self.instance_form)} and {form_words(other.instance_form)}")
        if bool(self.may_miss) != bool(other.may_miss):
            one, two = ("rows may be missing" if side.may_miss else "rows are never missing" for side in (self, other))
            differences.append(f"feedback: {one} and {two}")
        for name in ("sense", "offset"):
            here, there = getattr(self, name), getattr(other, name)
            differences += [] if here == there else [f"{name}: {here} and {there}"]
        return "; ".join(differences)

    def require_played_on(self, world: "Problem", who: str) -> None:
        """Refuse a world with another problem; one built for missing rows may be played where all rows arrive.

        Parameters
        ----------
        world : Problem
            The problem of the world.
        who : str
            What was built for this problem, for the message.

        Raises
        ------
        SettingsError
            If the problems differ; the message names the differences.
        """
        expected = world if world.may_miss else world.with_missing(bool(self.may_miss))
        difference = self.for_policy().difference(expected.for_policy())
        if difference:
            raise SettingsError(
                f"{who} was built for another problem than the one it meets: {difference}; "
                "build it for this one, such as with benchmark.problem(feedback=…, may_miss=…)"
            )


def _context_shape(context: Any, dim: int) -> tuple[int, ...]:
    """Return ``(p,)``, ``(d, p)``, or the shape of an image or another array with three axes or more."""
    if isinstance(context, Columns):
        return (dim, context.width) if context.per_coordinate else (context.width,)
    shape = (context,) if isinstance(context, int | np.integer) else context
    expected = f"contexts of shape (p,) or ({dim}, p), a row per cost coordinate, (height, width, 3) or Columns"
    try:
        sizes = tuple(shape)
    except TypeError:
        raise SettingsError(f"problem: expected {expected}, got {context!r}") from None
    whole = all(isinstance(size, int | np.integer) and not isinstance(size, bool) and size >= 1 for size in sizes)
    if not whole or not sizes or (len(sizes) == 2 and sizes[0] != dim):
        raise SettingsError(f"problem: expected {expected}, got {context!r}")
    return tuple(int(size) for size in sizes)


_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float}
_KIND_NAMES = {"b": "booleans", "i": "integers", "u": "integers", "f": "numbers"}


def form_of(instance: Instance) -> Hashable:
    """Return structure, shapes and kinds of number of an instance, hashable; None for None."""
    if instance is None:
        return None
    leaves, structure = jax.tree.flatten(instance)
    return structure, tuple((np.shape(leaf), np.dtype(getattr(leaf, "dtype", type(leaf))).kind) for leaf in leaves)


def empty_of(form: Any) -> Instance:
    """Return an instance of zeros of this form."""
    if form is None:
        return None
    structure, shapes = form
    return jax.tree.unflatten(structure, [jnp.zeros(shape, _KINDS.get(kind, float)) for shape, kind in shapes])


def form_words(form: Any) -> str:
    """Describe a form of instances."""
    if form is None:
        return "none"
    structure, shapes = form
    leaves = [f"{_KIND_NAMES.get(kind, kind)} {list(shape)}" for shape, kind in shapes]
    return str(jax.tree.unflatten(structure, leaves)).replace("'", "")
