"""What the parts do, beyond the contract."""

import itertools

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from regretless_garden.feedback import PairSums
from regretless_garden.mixture import member_view
from regretless_garden.models import GaussianIntercept
from regretless_garden.oracles import OneOfEach
from regretless_garden.replay import CAPACITY

import regretless as rg
from regretless.live.learner import Learner
from regretless.types import NOT_SAMPLED

PROBLEM = rg.Problem(rg.oracles.top_k(4, 2), (3,))


def test_replay_keeps_the_last_rounds_and_overwrites_the_oldest():
    policy = rg.policies.parse("replay").build(PROBLEM)
    rounds = CAPACITY + 10

    def play(state, t):
        decision = policy.decide(
            jax.random.key(t), state, jnp.full(3, t, float)
        )
        state, _ = policy.learn(
            jax.random.key(t),
            state,
            decision,
            PROBLEM.observe(decision, jnp.ones(4)),
        )
        return state, None

    state, _ = jax.jit(
        lambda: jax.lax.scan(
            play, policy.init(jax.random.key(0)), jnp.arange(rounds)
        )
    )()
    assert sorted(np.asarray(state.contexts)[:, 0]) == list(
        range(10, rounds)
    )
    assert np.all(
        np.asarray(state.feedback.values) == 2.0
    )  # two items of cost one


def test_a_mixture_marks_decisions_of_the_other_member():
    policy = rg.policies.parse(
        "mixture", {"share": 0.25, "first": "replay"}
    ).build(PROBLEM)
    state = policy.init(jax.random.key(0))
    draw = lambda key: policy.sample(key, state, jnp.ones(3), None).member  # noqa: E731
    members = np.asarray(
        jax.vmap(draw)(jax.random.split(jax.random.key(1), 4000))
    )
    assert set(members) == {0, 1}
    assert abs(members.mean() - 0.25) < 0.04  # six standard errors
    decision = eqx.tree_at(
        lambda d: d.version, PROBLEM.example_decision(), jnp.int32(7)
    )
    assert int(member_view(0, decision).version) == 7
    assert int(member_view(1, decision).version) == NOT_SAMPLED


def test_a_mixture_of_mixtures_distinguishes_its_members():
    policy = rg.policies.parse(
        "mixture", {"first": "mixture", "share": 0.5, "first.share": 0.5}
    ).build(PROBLEM)
    state = policy.init(jax.random.key(0))
    draw = lambda key: policy.sample(key, state, jnp.ones(3), None).member  # noqa: E731
    assert set(
        np.asarray(jax.vmap(draw)(jax.random.split(jax.random.key(1), 100)))
    ) == {0, 1, 2}


def test_one_of_each_is_the_best_of_all_plantings():
    oracle, costs = (
        OneOfEach(3, 2),
        np.random.default_rng(0).normal(size=(20, 6)),
    )
    every = [
        np.eye(2)[list(choice)].reshape(-1)
        for choice in itertools.product(range(2), repeat=3)
    ]
    best = np.min(costs @ np.transpose(every), axis=1)
    assert np.allclose(np.sum(costs * oracle.answer(costs).w, axis=1), best)


def test_pair_sums_of_an_odd_number_of_items():
    operator, linkage = PairSums().measure(
        jnp.array([1.0, 1.0, 0.0, 1.0, 1.0]), None
    )
    assert operator.matvec(jnp.arange(1.0, 6.0)).tolist() == [3.0, 4.0, 5.0]
    assert linkage.tolist() == [1.0, 1.0, 1.0]


def test_the_intercept_needs_no_feature():
    model = GaussianIntercept().build(2, (3,))
    theta = jnp.zeros((2, 4)).at[:, -1].set(jnp.array([5.0, 7.0]))
    assert model.mean(theta, jnp.zeros(3)).tolist() == [5.0, 7.0]


def test_the_live_learner_uses_them_around_a_solver_on_the_host(tmp_path):
    oracle = rg.oracles.milp(
        A_ub=[[3.0, 4.0, 2.0, 5.0]], b_ub=[9.0], integrality=1
    )
    mixture = {
        "first": "dfhpg",
        "first.surrogate": "half_spo",
        "second": "replay",
    }
    learner = Learner(
        oracle,
        context=3,
        feedback="pair_sums",
        policy=rg.policies.parse("mixture", mixture),
    )
    rng = np.random.default_rng(0)
    for _ in range(5):
        decision = learner.decide(rng.normal(size=3))
        assert (
            learner.learn(decision.id, costs=rng.normal(size=4)).message
            == "learned"
        )
    learner.save(tmp_path / "garden.db")
    again = Learner.open(tmp_path / "garden.db", oracle)
    assert np.array_equal(
        learner.decide(np.ones(3)).cost_sample,
        again.decide(np.ones(3)).cost_sample,
    )
