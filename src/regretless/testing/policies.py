"""The contract of a policy: pure functions whose records have the forms that the problem fixes; parts by name."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import benchmarks, feedback, models, oracles, policies, surrogates
from regretless.errors import SettingsError
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.registry import Registry, require_known
from regretless.testing.helpers import Checker, check_hyperparameters, compiled, copy_tree, instantiate, name_of
from regretless.testing.models import check_model, check_surrogate
from regretless.testing.problems import check_benchmark, check_feedback, check_oracle
from regretless.types import NOT_SAMPLED, Decision, Feedback, Info

DIM, FEATURES = 4, 3
"""Size of the problems that a policy is tried on."""

ROUNDS = 8
"""Rounds that are played on each of them."""


def check_policy(part: Any, problem: Problem | None = None) -> None:
    """Check that a policy keeps the contract that simulations and live learners rely on.

    Parameters
    ----------
    part : PolicySpec, subclass of it, or callable
        A specification, or a function that makes a policy for a problem.
    problem : Problem, optional
        What to try it on. By default every feedback regime, feature rows, missing rows and instances, except problems
        that the policy refuses with a SettingsError when it is built.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    check = Checker(f"policy {name_of(part)}")
    spec, build = instantiate(part, PolicySpec)
    accepted = []
    for candidate in [problem] if problem is not None else example_problems():
        try:
            with jax.enable_x64(True):
                policy = build(candidate)
        except SettingsError:
            continue
        accepted.append(candidate)
        _check_built(Checker(f"{check.part} on {candidate}"), policy, candidate)
    _check_on_host(check, build)
    check(accepted, "refuses every problem that it was tried on; build it for at least one")
    if isinstance(spec, PolicySpec):
        check_hyperparameters(check, spec, lambda other: other.build(accepted[0]), spec.unused_settings(accepted[0]))


def example_problems() -> list[Problem]:
    """Return small problems that have every difficulty, one at a time."""
    oracle = oracles.top_k(DIM, 2)
    vector, rows, mask = (FEATURES,), (DIM, FEATURES), np.ones(DIM, bool)
    return [
        *(Problem(oracle, vector, feedback.regime(name)) for name in feedback.REGISTRY),
        Problem(oracle, rows, "bandit"),
        Problem(oracle, vector, "semi_bandit", may_miss=True),
        Problem(oracle, vector, "bandit", instance=mask),
    ]


class PlayedRound(NamedTuple):
    """One round: the decision, what it revealed, the state and diagnostics after learning from it."""

    decision: Decision
    feedback: Feedback
    state: Any
    info: Info


class Player:
    """A policy with its functions compiled, each once; a solver on the host is called between programs."""

    def __init__(self, policy: Policy, check: Checker):
        self.policy, self.problem, self._check = policy, policy.problem, check
        self.start = policy.init(jax.random.key(0))
        self._sample = compiled(policy, lambda *arguments: policy.sample(*arguments))
        self.learn = compiled(policy, lambda *arguments: policy.learn(*arguments))

    @property
    def instance(self) -> Any:
        """One that allows everything."""
        example = self.problem.oracle.example_instance() if self.problem.has_instances else None
        return self.problem.example_instance() if example is None else jax.tree.map(jnp.asarray, example)

    def decide(self, key: Any, state: Any, context: Any) -> Decision:
        """Return a decision: sample, solve, record."""
        sample = self._sample(key, state, context, self.instance)
        self._check.cost("a sample", sample.cost, self.problem.dim)
        solution = self.problem.oracle.solve_one(sample.cost, self.instance)
        return self.problem.record(sample, solution, context, self.instance)

    def play(self) -> Iterator[PlayedRound]:
        """Yield some rounds, one after the other."""
        rng = np.random.default_rng(3)
        state = self.start
        for t in range(ROUNDS):
            context = jnp.asarray(rng.normal(size=self.problem.context_shape))
            decision = self.decide(jax.random.key(10 + t), state, context)
            seen = self.problem.observe(decision, jnp.asarray(2.0 + rng.normal(size=self.problem.dim)))
            state, info = self.learn(jax.random.key(50 + t), state, decision, seen)
            yield PlayedRound(decision, seen, state, info)


def _check_built(check: Checker, policy: Any, problem: Problem) -> None:
    """Check a policy that was built for a problem."""
    check(isinstance(policy, Policy), f"expected a Policy, got {type(policy).__name__}; subclass it")
    difference = policy.problem.difference(problem)
    check(not difference, f"must keep the problem that it is built for, but they differ: {difference}")
    with jax.enable_x64(True):
        player = Player(policy, check)
        _check_start(check, player)
        rounds = []
        for t, played in enumerate(player.play()):
            _check_round(check, player, t, played)
            rounds.append(played)
        first = rounds[0]
        again = player.decide(jax.random.key(10), player.start, first.decision.context)
        check.equal(again, first.decision, "the same key, state and context must give the same decision")
        decided = policy.decide(jax.random.key(10), player.start, first.decision.context, player.instance)
        sentence = "decide must be sample, solve and Problem.record; leave it to Policy"
        check.same_form(decided, first.decision, sentence)
        check.close(decided, first.decision, sentence, 1e-5, 1e-6)
        _check_pure(check, player, first)
        _check_other_decisions(check, player, rounds)
        if problem.may_miss:
            _check_missing(check, player, first)
        _check_views(check, policy, rounds[-1])


def _check_start(check: Checker, player: Player) -> None:
    state = player.start
    check.equal(state, player.policy.init(jax.random.key(0)), "init must depend on its key alone")
    version: Any = getattr(state, "version", None)
    is_counter = version is not None and np.shape(version) == () and np.issubdtype(version.dtype, np.integer)
    needed = "its state needs a field version, the learning steps so far: an integer array, 0 at the start"
    check(is_counter and int(version) == 0, f"{needed}; got {version!r}")


def _check_round(check: Checker, player: Player, t: int, played: PlayedRound) -> None:
    """Check round ``t = 0, 1, …``."""
    problem = player.problem
    check.same_form(played.decision, problem.example_decision(), "a decision must have the form that the problem fixes")
    w, batch = np.asarray(played.decision.w)[None], jax.tree.map(lambda leaf: leaf[None], player.instance)
    check(problem.oracle.contained(w, batch), f"decided on something infeasible in round {t + 1}: {w[0]}")
    chance = float(played.decision.log_probability)
    check(
        not chance > 0, f"log_probability must be the logarithm of a probability, at most 0, or unknown; got {chance}"
    )
    version = int(played.decision.version)
    drawn_from = f"a sample must carry the version of the state that it was drawn from ({t}), got {version}"
    check(version in (t, NOT_SAMPLED), drawn_from)
    check.same_form(played.state, player.start, "learn must return a state of the form that init gives")
    steps = int(played.state.version)
    check(steps == t + 1, f"learn must count its steps in state.version: expected {t + 1}, got {steps}")
    check.finite(played.state, f"its state holds a number that is not finite after round {t + 1}")
    _check_info(Checker(f"{check.part}, round {t + 1}"), played)


def _check_info(check: Checker, played: PlayedRound) -> None:
    info = played.info
    check(isinstance(info, Info), f"learn must return (state, Info), got {type(info).__name__}")
    for name, value in info.scalars().items():
        check(np.shape(value) == (), f"Info holds scalars, but {name!r} has shape {np.shape(value)}")
    for name in ("complete", "finite"):
        dtype = getattr(info, name).dtype
        check(dtype == np.dtype(bool), f"Info.{name} must be a boolean array, got {dtype}")
    complete = bool(played.feedback.complete())
    check(bool(info.complete) == complete, f"Info.complete must be feedback.complete(), which is {complete}")
    check(bool(info.finite), "Info.finite is False although every number of the state is finite")
    total = float(played.feedback.total())
    right = not complete or np.isclose(info.total, total, rtol=1e-6)
    check(right, f"Info.total must be the cost of what was done, {total:g}, got {float(info.total):g}")


def _check_pure(check: Checker, player: Player, played: PlayedRound) -> None:
    """Check that ``learn`` depends on its arguments alone and changes none of them."""
    before = copy_tree((player.start, played.decision, played.feedback))
    after, _ = player.learn(jax.random.key(50), player.start, played.decision, played.feedback)
    check.equal(after, played.state, "learn must depend on its arguments alone")
    unchanged = "learn changes the state, the decision or the feedback in place; return new ones"
    check.equal((player.start, played.decision, played.feedback), before, unchanged)
    every, policy = player.policy.refit_every, player.policy
    check(every is None or (type(every) is int and every > 0), f"refit_every must be rounds or None, got {every!r}")
    if every is not None:
        refitted = _refit(policy)(jax.random.key(51), played.state)
        check.same_form(refitted, player.start, "refit must return a state of the form that init gives")
        check.equal(refitted.version, played.state.version, "refit must leave state.version as it is")


def _check_on_host(check: Checker, build: Callable[[Problem], Policy]) -> None:
    """Check that a policy learns the same from a solver on the host as from one in pure JAX."""
    problems = [problem for problem in example_problems() if problem.instance_form is None]
    problem = next((problem for problem in problems if _accepts(build, problem)), None)
    if problem is None:
        return
    oracle: Any = problem.oracle
    twin = oracles.external(lambda cost: np.asarray(oracle.answer(cost[None]).w[0]), DIM)
    states = []
    for solver in (oracle, twin):
        with jax.enable_x64(True):
            policy = build(Problem(solver, problem.context_shape, problem.feedback, may_miss=problem.may_miss))
            state = [played.state for played in Player(policy, check).play()][-1]
            states.append(state if policy.refit_every is None else _refit(policy)(jax.random.key(9), state))
    # Adam amplifies the rounding of tiny gradients, so that one number in fifty may differ.
    sentence = "with a solver on the host it must come to the state that it comes to in one program"
    check.close(states[1], states[0], sentence, 1e-4, 1e-6, share=0.98)


def _accepts(build: Callable[[Problem], Policy], problem: Problem) -> bool:
    try:
        with jax.enable_x64(True):
            build(problem)
    except SettingsError:
        return False
    return True


def _refit(policy: Policy) -> Callable[..., Any]:
    """Return ``refit`` as a program; a solver on the host is called in between."""
    return compiled(policy, lambda *arguments: policy.refit(*arguments))


def _check_other_decisions(check: Checker, player: Player, rounds: list[PlayedRound]) -> None:
    """Check late feedback, feedback twice, and a decision that was not sampled."""
    problem, last, first = player.problem, rounds[-1].state, rounds[0]
    late, _ = player.learn(jax.random.key(7), last, first.decision, first.feedback)
    sentence = f"cannot learn from feedback that comes {ROUNDS} rounds late"
    check.same_form(late, last, sentence)
    check.finite(late, sentence)
    by_hand = problem.decision(first.decision.w, first.decision.context, player.instance, first.decision.aux)
    seen = problem.observe(by_hand, jnp.arange(1.0, problem.dim + 1))
    after, info = player.learn(jax.random.key(7), last, by_hand, seen)
    sentence = "cannot learn from a decision that was not sampled; use decision.sampled() for what needs the sample"
    check.finite(after, sentence)
    check(bool(info.finite), sentence)


def _check_missing(check: Checker, player: Player, played: PlayedRound) -> None:
    """Check that the value of a row that did not arrive has no effect."""
    problem, observed = player.problem, played.feedback
    first = int(np.argmax(np.asarray(observed.used())))
    seen = jnp.arange(observed.values.shape[0]) != first
    states = []
    for stand_in in (0.0, 1e6):
        values = jnp.where(seen, observed.values, stand_in)
        partial = problem.with_seen(eqx.tree_at(lambda f: f.values, observed, values), seen)
        after, info = player.learn(jax.random.key(50), player.start, played.decision, partial)
        check(not bool(info.complete), "Info.complete must be False when a row that the total needs is missing")
        check.finite(after, "its state is not finite after feedback with a missing row")
        states.append(after)
    check.equal(states[0], states[1], "learns from the value of a row that did not arrive; use feedback.used()")


def _check_views(check: Checker, policy: Policy, played: PlayedRound) -> None:
    """Check ``mean``, where there is one, and ``describe``."""
    for name, value in policy.describe(played.state).items():
        shape = np.shape(value)
        check(shape == (), f"describe returns numbers by name, but {name!r} has shape {shape}")
    try:
        mean = policy.mean(played.state, played.decision.context)
    except NotImplementedError:
        return
    check.cost("mean", mean, policy.problem.dim)


FAMILIES: dict[str, tuple[Registry[Any], Any]] = {
    "policies": (policies.REGISTRY, check_policy),
    "surrogates": (surrogates.REGISTRY, check_surrogate),
    "models": (models.REGISTRY, check_model),
    "oracles": (oracles.REGISTRY, check_oracle),
    "benchmarks": (benchmarks.REGISTRY, check_benchmark),
    "feedback": (feedback.REGISTRY, check_feedback),
}


def check_registered(family: str, name: str) -> None:
    """Run the checks of a family on a registered part.

    Parameters
    ----------
    family : str
        One of "policies", "surrogates", "models", "oracles", "benchmarks" and "feedback".
    name : str
        The name in the registry of the family. An oracle is made without arguments.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    SettingsError
        If the family or name is unknown, or an oracle needs arguments; build one and call ``check_oracle``.
    """
    require_known("family", family, FAMILIES)
    registry, check = FAMILIES[family]
    part: Any = registry[name]
    if family == "oracles":
        needed = [p for p in inspect.signature(part).parameters.values() if p.default is p.empty and p.kind <= 1]
        if needed:
            raise SettingsError(f"oracle {name!r} is made with arguments: build one and call check_oracle(it)")
        part = part()
    check(part)
