"""The one contract: what a policy is built for. It fixes the structure, shapes and types of every Decision and Feedback."""

from collections.abc import Hashable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PyTree

from regretless.errors import SettingsError
from regretless.feedback import Measurement, observe, regime
from regretless.oracles.base import Oracle
from regretless.types import NOT_SAMPLED, Context, Cost, Decision, Feedback, Instance, Sample, Solution


class Problem(eqx.Module):
    """A feasible set, the shape of the contexts, what a decision reveals, whether rows of that may be missing, and what changes
    in the feasible set from round to round (an example of an instance; None: nothing does).

    >>> import regretless as rg
    >>> problem = rg.Problem(rg.oracles.top_k(4, 2), (3,), "semi_bandit")
    >>> problem.example_decision().w.shape, problem.example_feedback().values.shape
    ((4,), (4,))
    >>> problem.difference(rg.Problem(rg.oracles.top_k(4, 1), (3,), "bandit"))
    "oracle: k 2 and 1; feedback: 'semi_bandit' and 'bandit'"
    """

    oracle: Oracle
    context_shape: tuple[int, ...] = eqx.field(static=True)
    feedback: Measurement
    may_miss: bool = eqx.field(static=True)
    instance_form: Hashable = eqx.field(static=True)  # structure, shapes and types of instances, None for none

    def __init__(
        self,
        oracle: Oracle,
        context_shape: tuple[int, ...],
        feedback: str | Measurement = "bandit",
        *,
        may_miss: bool = False,
        instance: Instance = None,
    ):
        if not isinstance(oracle, Oracle):
            raise SettingsError(f"problem: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
        shape = tuple(context_shape)
        sizes = all(isinstance(n, int | np.integer) and n >= 1 for n in shape)
        if not sizes or len(shape) not in (1, 2) or (len(shape) == 2 and shape[0] != oracle.dim):
            raise SettingsError(
                f"problem: expected contexts of shape (p,) or ({oracle.dim}, p), a row per cost coordinate, got {shape}"
            )
        rule = regime(feedback) if isinstance(feedback, str) else feedback
        if not isinstance(rule, Measurement):
            raise SettingsError(f"problem: expected feedback to be a name or a Measurement, got {feedback!r}")
        self.oracle, self.context_shape, self.feedback = oracle, tuple(int(n) for n in shape), rule
        self.may_miss, self.instance_form = bool(may_miss), form_of(instance)

    def with_instance(self, instance: Instance) -> "Problem":
        """The same with instances like this one."""
        return Problem(self.oracle, self.context_shape, self.feedback, may_miss=self.may_miss, instance=instance)

    def with_missing(self, may_miss: bool) -> "Problem":
        """The same with rows that may be missing, or never are."""
        instance = self.example_instance()
        return Problem(self.oracle, self.context_shape, self.feedback, may_miss=may_miss, instance=instance)

    @property
    def dim(self) -> int:
        """Number of cost coordinates."""
        return self.oracle.dim

    @property
    def has_instances(self) -> bool:
        """Whether the feasible set changes from round to round."""
        return self.instance_form is not None

    def example_context(self) -> Context:
        """A context of zeros."""
        return jnp.zeros(self.context_shape)

    def example_instance(self) -> Instance:
        """An instance of zeros; None where there are none."""
        return empty_of(self.instance_form)

    def example_decision(self) -> Decision:
        """A decision of zeros that nobody sampled."""
        return self.decision(jnp.zeros(self.dim), self.example_context(), self.example_instance())

    def example_feedback(self) -> Feedback:
        """The feedback on it when nothing costs anything."""
        return self.observe(self.example_decision(), jnp.zeros(self.dim))

    def decision(
        self, w: Float[Array, " d"], context: Context, instance: Instance = None, aux: PyTree = None, id: Any = 0
    ) -> Decision:
        """A decision that nobody sampled: a person's, an incumbent's, one from an old log.

        ``aux`` is what the oracle tells beside ``w`` where it does (zeros without it).
        """
        kind = jnp.result_type(float)
        none = jnp.zeros(self.dim, kind)
        if aux is None:
            form = self.oracle.aux_form()
            aux = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form)
        return Decision(
            id=jnp.asarray(id, jnp.int32), context=jnp.asarray(context, kind), instance=instance, cost_sample=none,
            noise=none, w=jnp.asarray(w, kind), aux=aux, status=jnp.zeros((), jnp.int32),
            log_density=jnp.asarray(jnp.nan, kind), version=jnp.asarray(NOT_SAMPLED, jnp.int32),
            member=jnp.zeros((), jnp.int32),
        )  # fmt: skip

    def record(
        self, sample: Sample, solution: Solution, context: Context, instance: Instance, id: Any = None
    ) -> Decision:
        """The decision that a policy's sample and its solution make."""
        kind = jnp.result_type(float)
        drawn: Any = sample.filled()
        return Decision(
            id=drawn.version if id is None else jnp.asarray(id, jnp.int32),
            context=jnp.asarray(context, kind),
            instance=instance,
            cost_sample=drawn.cost,
            noise=drawn.noise,
            w=jnp.asarray(solution.w, kind),
            aux=solution.aux,
            status=jnp.asarray(solution.status, jnp.int32),
            log_density=drawn.log_density,
            version=drawn.version,
            member=drawn.member,
        )

    def observe(self, decision: Decision, cost: Cost, seen: Bool[Array, " m"] | None = None) -> Feedback:
        """What ``decision`` reveals when the cost is ``cost``; ``seen`` marks the rows that arrive (None: all)."""
        told = observe(self.feedback, decision, cost)
        return self.with_seen(told, seen)

    def with_seen(self, told: Feedback, seen: Bool[Array, " m"] | None) -> Feedback:
        """Feedback with the mask of its rows that this problem has: an array where rows may be missing, None where not."""
        if self.may_miss and seen is None:
            seen = jnp.ones(told.values.shape, bool)
        if not self.may_miss and seen is not None:
            raise SettingsError("problem: rows of the feedback are missing, but it was made with may_miss=False")
        return Feedback(told.operator, told.linkage, told.values, seen)

    def require(self, context: Context) -> None:
        """Refuses a context of another shape."""
        if context.shape != self.context_shape:
            raise SettingsError(f"context: expected shape {self.context_shape}, got {context.shape}")

    def difference(self, other: "Problem") -> str:
        """In what another problem differs, in words; empty if in nothing."""
        said = []
        if self.oracle is not other.oracle:
            mine, its = self.oracle.fingerprint(), other.oracle.fingerprint()
            parts = [
                f"{key} {mine.get(key, 'none')} and {its.get(key, 'none')}"
                for key in {**mine, **its}
                if mine.get(key) != its.get(key)
            ]
            said += [f"oracle: {', '.join(parts)}"] if parts else []
        if self.context_shape != other.context_shape:
            said.append(f"shape of a context: {self.context_shape} and {other.context_shape}")
        if self.feedback is not other.feedback and self.feedback != other.feedback:
            said.append(f"feedback: {self.feedback.name!r} and {other.feedback.name!r}")
        if self.instance_form != other.instance_form:
            said.append(f"instances: {form_words(self.instance_form)} and {form_words(other.instance_form)}")
        if self.may_miss != other.may_miss:
            words = {True: "rows may be missing", False: "rows are never missing"}
            said.append(f"feedback: {words[self.may_miss]} and {words[other.may_miss]}")
        return "; ".join(said)

    def require_played_on(self, world: "Problem", who: str) -> None:
        """Refuses another world than this problem; where rows may be missing, they may also all arrive."""
        said = self.difference(world if world.may_miss else world.with_missing(self.may_miss))
        if said:
            raise SettingsError(
                f"{who} was built for another problem than it is to be played on: {said}; "
                "build it for this one, such as with benchmark.problem(feedback=…, may_miss=…)"
            )


_KINDS: dict[str, type] = {"b": bool, "i": int, "u": int, "f": float}
_WORDS = {"b": "booleans", "i": "integers", "u": "integers", "f": "numbers"}


def form_of(instance: Instance) -> Hashable:
    """Structure, shapes and kinds of number of an instance, hashable; None for none."""
    if instance is None:
        return None
    leaves, structure = jax.tree.flatten(instance)
    return structure, tuple((tuple(np.shape(leaf)), np.dtype(_dtype(leaf)).kind) for leaf in leaves)


def _dtype(leaf: Any) -> Any:
    return leaf.dtype if hasattr(leaf, "dtype") else np.asarray(leaf).dtype


def empty_of(form: Any) -> Instance:
    """An instance of zeros of this form."""
    if form is None:
        return None
    structure, described = form
    return jax.tree.unflatten(structure, [jnp.zeros(shape, _KINDS.get(kind, float)) for shape, kind in described])


def form_words(form: Any) -> str:
    """A form of instances in words."""
    if form is None:
        return "none"
    structure, described = form
    leaves = [f"{_WORDS.get(kind, kind)} {list(shape)}" for shape, kind in described]
    return str(jax.tree.unflatten(structure, leaves)).replace("'", "")
