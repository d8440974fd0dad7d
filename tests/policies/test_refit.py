"""Periodic refits: at the right rounds, in simulations and in a learner, and at the price of those rounds only."""

import time

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array

import regretless as rg
from regretless.policies import Policy
from regretless.simulation import Execution
from regretless.types import Info, Sample
from toys import DIM, FEATURES, Toy

WINDOW = 32


class WindowState(eqx.Module):
    """The last rounds, and the slopes that were fitted to them."""

    rows: Array
    totals: Array
    slopes: Array
    refits: Array
    version: Array


class WindowPolicy(Policy):
    """Keeps the last rounds; fits slopes to them by many steps of gradient descent, every so many rounds."""

    every: int = eqx.field(static=True)
    steps: int = eqx.field(static=True, default=20)

    @property
    def refit_every(self):
        return self.every

    def refit(self, key, state):
        gram, moments = state.rows.T @ state.rows, state.rows.T @ state.totals
        size = 1.0 + jnp.linalg.norm(gram)
        step = lambda _, slopes: slopes + (moments - gram @ slopes) / size  # noqa: E731
        slopes = jax.lax.fori_loop(0, self.steps, step, jnp.zeros(state.slopes.size))
        return WindowState(state.rows, state.totals, slopes, state.refits + 1, state.version)

    def init(self, key):
        size, count = DIM * FEATURES, jnp.zeros((), jnp.int32)
        return WindowState(jnp.zeros((WINDOW, size)), jnp.zeros(WINDOW), jnp.zeros(size), count, count)

    def sample(self, key, state, context, instance):
        return Sample(self.mean(state, context) + 0.1 * jax.random.normal(key, (DIM,)), state.version)

    def mean(self, state, context):
        return state.slopes.reshape(DIM, FEATURES) @ context

    def learn(self, key, state, decision, feedback):
        place, total = state.version % WINDOW, feedback.total()
        rows = state.rows.at[place].set(jnp.outer(decision.w, decision.context).ravel())
        totals = state.totals.at[place].set(total)
        after = WindowState(rows, totals, state.slopes, state.refits, state.version + 1)
        return after, Info(total, total, feedback.complete(), jnp.isfinite(total), {"refits": state.refits})

    def describe(self, state):
        return {"refits": state.refits}


def play(every, horizon=120, steps=20, wrap=lambda policy: policy, **options):
    world = Toy()
    policy = wrap(WindowPolicy(world.problem("bandit"), every, steps))
    recording = rg.simulation.Recording(diagnostics_every=1, decisions=True)
    return rg.simulate(policy, world, horizon=horizon, recording=recording, **options)


@pytest.mark.parametrize("vectorized", [True, False])
@pytest.mark.parametrize("wrapped", [False, True])
def test_refits_happen_after_every_so_many_rounds(vectorized, wrapped):
    wrap = (lambda policy: rg.policies.Scaled(policy.problem, policy)) if wrapped else (lambda policy: policy)
    result = play(50, seeds=3, wrap=wrap, execution=Execution(vectorized=vectorized))
    assert result.diagnostics["refits"][:, [0, 49, 50, 99, 100, 119]].tolist() == [[0, 0, 1, 1, 2, 2]] * 3


def test_a_refit_changes_decisions_from_the_next_round_on():
    often, seldom = play(40, seeds=4), play(10_000, seeds=4)
    same = np.all(often.decisions == seldom.decisions, axis=(0, 2))
    assert np.all(same[:40])
    assert not np.all(same[40:60])
    assert often.regret[:, 60:].sum() < seldom.regret[:, 60:].sum()


def test_a_learner_refits_after_every_so_many_learning_steps():
    problem = Toy().problem("bandit", may_miss=True)
    learner = rg.Learner(problem, policy=rg.policies.Scaled(problem, WindowPolicy(problem, 5)))
    rng = np.random.default_rng(0)
    seen = []
    for _ in range(12):
        choice = learner.decide(rng.normal(size=FEATURES))
        learner.learn(choice.id, total=float(rng.normal()))
        seen.append(learner.health().details["refits"])
    assert seen == [0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]
    history = rg.History(rng.normal(size=(9, FEATURES)), np.eye(DIM)[[0, 1, 2] * 3] + np.eye(DIM)[3], totals=np.ones(9))
    learner.learn_from(history)
    assert learner.health().details["refits"] == 4, "three of them after 15 and 20 steps"


def test_rare_refits_are_cheap():
    def seconds(every):
        run = lambda: play(every, horizon=500, steps=100_000, seeds=10)  # noqa: E731
        run()
        began = time.process_time()
        run()
        return time.process_time() - began

    assert seconds(50) > 5 * seconds(500)


def test_a_refit_with_a_factorisation_ends_on_several_devices():
    result = rg.simulate("eb_thompson", rg.benchmarks.TopK(), seeds=4, horizon=30)
    assert np.all(np.isfinite(result.regret))
