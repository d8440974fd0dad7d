"""The contract of a policy: pure functions whose records have the forms that the problem fixes, whatever the feedback."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import SettingsError
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.testing.playing import ROUNDS, Player, Turn, problems
from regretless.testing.words import (
    check_numbers,
    close,
    copied,
    equal,
    finite,
    form_difference,
    name_of,
    nearly,
    require,
)
from regretless.types import NOT_SAMPLED, Info


def check_policy(part: Any, problem: Problem | None = None) -> None:
    """Check a policy's specification (a class or an object), or a function that makes a policy for a problem.

    Without ``problem`` it meets every feedback regime, feature rows, missing rows and instances, except what it refuses with a
    SettingsError when it is built.
    """
    who = f"policy {name_of(part)}"
    spec = part() if isinstance(part, type) and issubclass(part, PolicySpec) else part
    build: Callable[[Problem], Any] = spec.build if isinstance(spec, PolicySpec) else part
    accepted = []
    for each in [problem] if problem is not None else problems():
        try:
            with jax.enable_x64(True):
                policy = build(each)
        except SettingsError:
            continue
        accepted.append(each)
        check_built(f"{who} on {_words(each)}", policy, each)
    require(accepted, f"{who}: refuses every problem that it was tried on; build it for at least one")
    if isinstance(spec, PolicySpec):
        check_numbers(who, spec, lambda other: other.build(accepted[0]), spec.unused(accepted[0]))


def _words(problem: Problem) -> str:
    said = [problem.feedback.name, f"contexts of shape {problem.context_shape}"]
    said += ["missing rows"] if problem.may_miss else []
    return ", ".join([*said, *(["instances"] if problem.has_instances else [])])


def check_built(who: str, policy: Any, problem: Problem) -> None:
    """Checks a policy that was built for a problem."""
    require(isinstance(policy, Policy), f"{who}: expected a Policy, got {type(policy).__name__}; subclass it")
    said = policy.problem.difference(problem)
    require(not said, f"{who}: must keep the problem that it is built for, but they differ: {said}")
    with jax.enable_x64(True):
        player = Player(policy)
        _check_start(who, player)
        turns: list[Turn] = []
        for t, turn in enumerate(player.play()):
            _check_turn(who, player, t, turn)
            turns.append(turn)
        again = player.decide(jax.random.key(10), player.start, turns[0].decision.context)
        require(equal(again, turns[0].decision), f"{who}: the same key, state and context must give the same decision")
        _check_decide(who, player, turns[0])
        _check_halves(who, player, turns[0])
        _check_other_decisions(who, player, turns)
        if problem.may_miss:
            _check_missing(who, player, turns[0])
        _check_views(who, policy, turns[-1])


def _check_start(who: str, player: Player) -> None:
    state = player.start
    require(equal(state, player.policy.init(jax.random.key(0))), f"{who}: init must depend on its key alone")
    version: Any = getattr(state, "version", None)
    right = version is not None and np.shape(version) == () and np.issubdtype(version.dtype, np.integer)
    require(
        right and int(version) == 0,
        f"{who}: its state needs a field version, the number of learning steps so far: an integer array, 0 at the start; got "
        f"{version!r}",
    )


def _check_turn(who: str, player: Player, t: int, turn: Turn) -> None:
    """Round ``t = 0, 1, …``."""
    problem = player.problem
    said = form_difference(turn.decision, problem.example_decision())
    require(not said, f"{who}: a decision must have the form that the problem fixes, but {said}")
    w, batch = np.asarray(turn.decision.w)[None], jax.tree.map(lambda leaf: leaf[None], player.instance)
    require(problem.oracle.contained(w, batch), f"{who}: decided on something infeasible in round {t + 1}: {w[0]}")
    age = int(turn.decision.version)
    require(
        age in (t, NOT_SAMPLED),
        f"{who}: a sample must carry the version of the state that it was drawn from ({t}), got {age}",
    )
    said = form_difference(turn.state, player.start)
    require(not said, f"{who}: learn must return a state of the form that init gives, but {said}")
    require(
        int(turn.state.version) == t + 1,
        f"{who}: learn must count its steps in state.version: expected {t + 1}, got {int(turn.state.version)}",
    )
    require(finite(turn.state), f"{who}: its state holds a number that is not finite after round {t + 1}")
    _check_info(f"{who}, round {t + 1}", turn)


def _check_decide(who: str, player: Player, turn: Turn) -> None:
    """``decide`` is sample, solve, record."""
    decision = player.policy.decide(jax.random.key(10), player.start, turn.decision.context, player.instance)
    said = form_difference(decision, turn.decision)
    require(
        not said and close(decision, turn.decision, 1e-5, 1e-6),
        f"{who}: decide must be sample, solve and Problem.record, and is not; leave it to Policy {said}".rstrip(),
    )


def _check_info(who: str, turn: Turn) -> None:
    info = turn.info
    require(isinstance(info, Info), f"{who}: learn must return (state, Info), got {type(info).__name__}")
    for name, value in info.scalars().items():
        require(np.shape(value) == (), f"{who}: Info holds scalars, but {name!r} has shape {np.shape(value)}")
    for name in ("complete", "finite"):
        kind = getattr(info, name).dtype
        require(kind == np.dtype(bool), f"{who}: Info.{name} must be a boolean array, got {kind}")
    complete = bool(turn.feedback.complete())
    require(bool(info.complete) == complete, f"{who}: Info.complete must be feedback.complete(), which is {complete}")
    require(bool(info.finite), f"{who}: Info.finite is False although every number of the state is finite")
    if complete:
        total = float(turn.feedback.total())
        require(
            np.isclose(info.total, total, rtol=1e-6),
            f"{who}: Info.total must be the cost of what was done, {total:g}, got {float(info.total):g}",
        )


def _check_halves(who: str, player: Player, turn: Turn) -> None:
    """``ask``, solve, ``answer`` come to what ``learn`` does, and change nothing that they are given."""
    key, state = jax.random.key(50), player.start
    before = copied((state, turn.decision, turn.feedback))
    question = player.ask(key, state, turn.decision, turn.feedback)
    for what, rows in (("costs", question.costs), ("points", question.points)):
        require(
            rows.ndim == 2 and rows.shape[1] == player.problem.dim,
            f"{who}: ask must want {what} of shape [n, {player.problem.dim}], got {rows.shape}",
        )
    after, _ = player.answer(question)
    require(nearly(after, turn.state), f"{who}: ask, solve and answer must come to the state that learn returns")
    unchanged = equal((state, turn.decision, turn.feedback), before)
    require(unchanged, f"{who}: learn changes the state, the decision or the feedback in place; return new ones")


def _check_other_decisions(who: str, player: Player, turns: list[Turn]) -> None:
    """Late feedback, feedback twice, and a decision that nobody sampled."""
    problem, last, old = player.problem, turns[-1].state, turns[0]
    late, info = player.learn(jax.random.key(7), last, old.decision, old.feedback)
    said = form_difference(late, last)
    require(not said and finite(late), f"{who}: cannot learn from feedback that comes {ROUNDS} rounds late; {said}")
    by_hand = problem.decision(old.decision.w, old.decision.context, player.instance, old.decision.aux)
    seen = problem.observe(by_hand, jnp.arange(1.0, problem.dim + 1))
    after, info = player.learn(jax.random.key(7), last, by_hand, seen)
    require(
        finite(after) and bool(info.finite),
        f"{who}: cannot learn from a decision that nobody sampled (no density, version NOT_SAMPLED); "
        "leave out what needs the sample where decision.sampled() is false",
    )


def _check_missing(who: str, player: Player, turn: Turn) -> None:
    """What did not arrive must not matter, whatever stands in its place."""
    problem, key = player.problem, jax.random.key(50)
    state = player.start
    rows = turn.feedback.values.shape[0]
    first = int(np.argmax(np.asarray(turn.feedback.used())))
    seen = jnp.arange(rows) != first
    told = turn.feedback
    states = []
    for stand_in in (0.0, 1e6):
        values = jnp.where(seen, told.values, stand_in)
        partial = problem.with_seen(eqx.tree_at(lambda f: f.values, told, values), seen)
        after, info = player.learn(key, state, turn.decision, partial)
        require(
            not bool(info.complete), f"{who}: Info.complete must be False when a row with a say in the total is missing"
        )
        require(finite(after), f"{who}: its state is not finite after feedback with a missing row")
        states.append(after)
    require(equal(*states), f"{who}: learns from the value of a row that did not arrive; use feedback.used()")


def _check_views(who: str, policy: Policy, turn: Turn) -> None:
    """``mean``, where there is one, and ``describe``."""
    for name, value in policy.describe(turn.state).items():
        require(
            np.shape(value) == (), f"{who}: describe returns numbers by name, but {name!r} has shape {np.shape(value)}"
        )
    try:
        mean = policy.mean(turn.state, turn.decision.context)
    except NotImplementedError:
        return
    require(
        mean.shape == (policy.problem.dim,) and finite(mean),
        f"{who}: mean must be a finite cost of shape ({policy.problem.dim},), got {mean.shape}",
    )
