"""After warm_up no call compiles."""

import jax
import numpy as np
import pytest

from live.learners import build
from regretless import oracles
from regretless.errors import SettingsError

DIM, FEATURES = 5, 2  # of no other test: what was compiled for those would not be compiled again
COMPILED = "/jax/core/compile/backend_compile_duration"


def cheapest_two(costs):
    """A batched solver on the host."""
    w = np.zeros(costs.shape)
    np.put_along_axis(w, np.argsort(costs, axis=1)[:, :2], 1.0, axis=1)
    return w


@pytest.fixture
def compiled():
    """Names of the programs that were compiled, in a list that grows."""
    found = []
    listener = lambda name, seconds, **about: found.append(name) if name == COMPILED else None  # noqa: E731
    jax.monitoring.register_event_duration_secs_listener(listener)
    yield found
    jax.monitoring.unregister_event_duration_listener(listener)


@pytest.mark.parametrize(
    ("oracle", "policy", "feedback", "incumbent"),
    [
        (oracles.top_k(DIM, 2), "linear_thompson", "semi_bandit", [1.0, 1.0, 0.0, 0.0, 0.0]),
        (oracles.external(cheapest_two, DIM, batched=True), "dfhpg", "bandit", None),
    ],
    ids=["pure JAX, guarded", "a solver on the host that learning asks"],
)
def test_no_call_compiles_after_it(compiled, oracle, policy, feedback, incumbent):
    learner = build(oracle, context=FEATURES, policy=policy, feedback=feedback, incumbent=incumbent)
    learner.warm_up([3])
    first = len(compiled)
    assert first > 4
    assert learner.health().decisions == 0  # nothing was decided
    for t in range(4):
        one = learner.decide(np.full(FEATURES, t))
        greedy = learner.decide(np.ones(FEATURES), explore=False)
        several = learner.decide_batch(np.ones((3 + t % 2, FEATURES)))
        for choice in (one, greedy, *several):
            parts = {int(i): 1.0 + t for i in np.flatnonzero(choice.w)}
            if feedback == "bandit":
                learner.learn(choice.id, total=sum(parts.values()))
            else:
                learner.learn(choice.id, components=dict([parts.popitem()]) if t % 2 else parts)
        learner.explain(one)
    learner.health()
    assert len(compiled) == first


def test_says_what_is_no_number_of_contexts():
    learner = build(oracles.top_k(DIM, 2), context=FEATURES)
    with pytest.raises(SettingsError, match="numbers of contexts"):
        learner.warm_up([0])


def test_refuses_a_solver_that_maximises():
    learner = build(oracles.external(lambda cost: np.eye(DIM)[np.argmax(cost)], DIM), context=FEATURES)
    with pytest.raises(SettingsError, match="expected a solver that minimises"):
        learner.warm_up([])
