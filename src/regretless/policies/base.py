"""What a policy is: pure functions. Nothing is remembered between ``decide`` and ``learn`` except in the Decision.

``decide`` is ``sample``, solve, ``Problem.record``. A policy that needs more solves, while it samples or learns, calls
``self.oracle.solve_round`` as often as it likes. Where the oracle is pure JAX, one program does all of it; a solver on
the host is called between two programs (``host_calls``).
"""

import abc
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from regretless.draws import REFIT
from regretless.oracles.base import Oracle
from regretless.problem import Problem
from regretless.registry import SpecRegistry
from regretless.spec import Spec
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample, State


class Policy(eqx.Module):
    """A learning algorithm for one problem, as pure functions: ``init``, ``sample`` and ``learn``.

    Numbers are array leaves and choices are static fields, so that a sweep over numbers is a ``vmap``.

    Parameters
    ----------
    problem : Problem
        What the policy was built for.
    """

    problem: Problem

    @property
    def level_free(self) -> bool:
        """Whether a level in all costs is learned without a prior, so that the centre of contexts does not matter."""
        return False

    @property
    def by_row(self) -> bool:
        """Whether coordinates are described by feature rows."""
        return len(self.problem.context_shape) == 2

    @property
    def oracle(self) -> Oracle:
        """The problem's feasible set."""
        return self.problem.oracle

    @property
    def refit_every(self) -> int | None:
        """Rounds, in a ``Learner`` learning steps, between two calls of ``refit``; None if it is never called."""
        return None

    def refit(self, key: Key, state: Any) -> Any:
        """Return the state after periodic work that is too expensive for every round, such as training from scratch.

        Parameters
        ----------
        key : Key
            For randomised training.
        state : pytree
            The present state.

        Returns
        -------
        pytree
            The new state, of the same form.
        """
        return state

    @property
    def calls_python(self) -> bool:
        """Whether any part of it apart from the oracle calls Python, such as a model."""
        is_python = lambda part: part is not self and getattr(part, "calls_python", False) is True  # noqa: E731
        return any(map(is_python, jax.tree.leaves(self, is_leaf=is_python)))

    @property
    def on_host(self) -> bool:
        """Whether it, or its oracle, calls Python, so that no single program can play it."""
        return self.oracle.on_host or self.calls_python

    @abc.abstractmethod
    def init(self, key: Key) -> Any:
        """Return the state before the first round.

        Parameters
        ----------
        key : Key
            For random initial values.

        Returns
        -------
        pytree
            Any tree of arrays with a field ``version``, the number of learning steps.
        """

    @abc.abstractmethod
    def sample(self, key: Key, state: Any, context: Context, instance: Instance) -> Sample:
        """Return the cost vector whose solution will be played.

        Parameters
        ----------
        key : Key
            For exploration.
        state : pytree
            The present state.
        context : array of shape ``problem.context_shape``
            What is known before deciding.
        instance : pytree or None
            The part of the feasible set that changes from round to round.

        Returns
        -------
        Sample
            The cost vector and what ``learn`` needs to know about the draw.
        """

    @abc.abstractmethod
    def learn(self, key: Key, state: Any, decision: Decision, feedback: Feedback) -> tuple[Any, Info]:
        """Return the state after the feedback on a decision, and diagnostics of the step.

        Parameters
        ----------
        key : Key
            For randomised training.
        state : pytree
            The present state.
        decision : Decision
            The decision, perhaps of an earlier state or not by this policy.
        feedback : Feedback
            What was seen of its cost.

        Returns
        -------
        state : pytree
            The new state, of the same form.
        info : Info
            Scalar diagnostics.
        """

    def decide(self, key: Key, state: State, context: Context, instance: Instance = None) -> Decision:
        """Return a decision: sample, solve, record.

        Parameters
        ----------
        key : Key
            For exploration.
        state : pytree
            The present state.
        context : array of shape ``problem.context_shape``
            What is known before deciding.
        instance : pytree, optional
            What changed in the feasible set.
        """
        self.problem.require(context)
        sample = self.sample(key, state, context, instance)
        return self.problem.record(sample, self.oracle.solve_one(sample.cost, instance), context, instance)

    def mean(self, state: Any, context: Context) -> Cost:
        """Return the expected cost in a context; greedy decisions and explanations need it.

        Parameters
        ----------
        state : pytree
            The present state.
        context : array of shape ``problem.context_shape``
            What is known before deciding.
        """
        raise NotImplementedError(
            f"{type(self).__name__} has no mean prediction: write its method mean(state, context)"
        )

    def describe(self, state: Any) -> dict[str, Array]:
        """Return numbers of the state that explain a decision, by name.

        Parameters
        ----------
        state : pytree
            The present state.
        """
        return {}


class Wrapper(Policy):
    """Base class of policies around another one.

    Parameters
    ----------
    problem : Problem
        What the policy was built for.
    inner : Policy
        The other policy.
    """

    inner: Policy

    @property
    def refit_every(self) -> int | None:
        return self.inner.refit_every


class WrapperState(eqx.Module):
    """Base class of states that hold that of an inner policy."""

    inner: Any

    @property
    def version(self) -> Int[Array, ""]:
        """Learning steps so far."""
        return self.inner.version


REGISTRY: SpecRegistry["PolicySpec"] = SpecRegistry(
    "policy",
    "policies",
    {
        "adaptive": "regretless.policies.adaptive.policy:Adaptive",
        "greedy": "regretless.policies.regression:Greedy",
        "epsilon_greedy": "regretless.policies.regression:EpsilonGreedy",
        "thompson": "regretless.policies.regression:Thompson",
        "dfhpg_1": "regretless.policies.dfhpg.specs:DFHPG1",
        "dfhpg": "regretless.policies.dfhpg.specs:DFHPG",
        "dfhpg_0": "regretless.policies.dfhpg.specs:DFHPG0",
        "linear_thompson": "regretless.policies.linear_thompson:LinearThompson",
        "ensemble": "regretless.policies.adaptive.ensemble:Ensemble",
        "eb_thompson": "regretless.policies.eb_thompson:EBThompson",
        "linucb": "regretless.policies.linear_confidence:LinUCB",
        "oful": "regretless.policies.linear_confidence:OFUL",
        "comb_lin_ucb": "regretless.policies.linear_confidence:CombLinUCB",
        "comb_lin_ts": "regretless.policies.linear_confidence:CombLinTS",
        "square_cb": "regretless.policies.linear_confidence:SquareCB",
        "epoch_spo": "regretless.policies.epoch_spo:EpochSPO",
    },
    ("registry", "build"),
    "a subclass of regretless.policies.PolicySpec",
)


class PolicySpec(Spec):
    """Base class of policies as settings: subclass it, list the settings as fields and write ``build``.

    Examples
    --------
    >>> import regretless as rg
    >>> rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0))
    rg.policies.DFHPG(surrogate=rg.surrogates.DBB(lam=5.0))
    """

    registry: ClassVar[SpecRegistry[Any] | None] = REGISTRY
    namespace: ClassVar[str] = "rg.policies."

    supports_generative: ClassVar[bool] = False
    """Whether the policy exists for generative models too."""

    any_context: ClassVar[bool] = False
    """Whether contexts may have three axes or more, such as images."""

    by_default: ClassVar[bool] = True
    """Whether the policy is played where no policy is named."""

    presets: ClassVar[bool] = True
    """Whether the paper's tuned settings are meant for the policy."""

    search_space: ClassVar[Mapping[str, Any] | None] = None
    """What tuning searches, by dotted name; None: a range around each default."""

    @abc.abstractmethod
    def build(self, problem: Problem) -> Policy:
        """Return the policy for a problem.

        Parameters
        ----------
        problem : Problem
            What the policy decides.
        """


class MeasuredRows(NamedTuple):
    """Rows ``h`` of ``H(w)`` with their values: ``[m, d]``, or ``[d]`` if row ``i`` measures coordinate ``i`` alone."""

    weights: Float[Array, "..."]
    values: Float[Array, " m"]
    used: Bool[Array, " m"]

    def predict(self, cost: Float[Array, " d"]) -> Float[Array, " m"]:
        """Return what the rows would show of a cost vector."""
        return self.weights * cost if self.weights.ndim == 1 else self.weights @ cost

    def sums(self) -> Float[Array, " m"]:
        """Return the sum of each row: how much a level in all costs changes its value."""
        return self.weights if self.weights.ndim == 1 else jnp.sum(self.weights, axis=1)


def measures_coordinates(problem: Problem) -> bool:
    """Return whether every row measures one coordinate of a problem with context vectors."""
    return problem.feedback.separable and len(problem.context_shape) == 1


def measured_rows(problem: Problem, decision: Decision, feedback: Feedback, dtype: jnp.dtype | type) -> MeasuredRows:
    """Return the rows of a feedback; where parts are seen one by one and few are chosen, rows of zeros are left out."""
    used = feedback.used()
    values = jnp.where(used, feedback.values, 0.0).astype(dtype)
    if measures_coordinates(problem):
        weights = jnp.where(used, feedback.operator.rmatvec(jnp.ones_like(feedback.values)), 0.0)
        return MeasuredRows(weights.astype(dtype), values, used)
    matrix = jax.vmap(feedback.operator.rmatvec)(jnp.eye(len(values), dtype=feedback.values.dtype))
    matrix = jnp.where(used[:, None], matrix, 0.0).astype(dtype)
    support = problem.oracle.support
    if problem.feedback.separable and problem.feedback.sparse and support < len(values):
        kept = jnp.nonzero(used, size=support, fill_value=len(values))[0]
        matrix, values, used = (leaf.at[kept].get(mode="fill", fill_value=0) for leaf in (matrix, values, used))
    return MeasuredRows(matrix, values, used)


def with_constant(context: Context) -> Context:
    """Return ``(1, x)``, or ``(1, X)`` row by row."""
    return jnp.concatenate([jnp.ones((*context.shape[:-1], 1), context.dtype), context], axis=-1)


def refit_if_due(policy: Policy, key: Key, state: Any, count: Int[Array, ""]) -> Any:
    """Return the state after ``count`` rounds with a refit if one is due.

    Replications are refitted in the same rounds, so that a vectorised program branches instead of computing both.
    """
    if policy.refit_every is None:
        return state
    refit = lambda state: policy.refit(jax.random.fold_in(key, REFIT), state)  # noqa: E731
    return jax.lax.cond(count % policy.refit_every == 0, refit, lambda state: state, state)


def choose(flag: Bool[Array, ""], new: PyTree, old: PyTree) -> Any:
    """Return the ``new`` tree if ``flag``, else the ``old`` one."""
    return jax.tree.map(lambda new, old: jnp.where(flag, new, old), new, old)
