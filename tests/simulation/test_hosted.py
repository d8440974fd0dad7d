"""A solver on the host in simulations: the same runs as with its twin in pure JAX, and failures with its message."""

import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import draws, oracles, policies
from regretless.draws import purpose_key
from regretless.errors import OracleError
from regretless.host_calls import host_jit
from regretless.simulation.simulator import Execution, Recording, simulate
from toys import DIM, Toy, are_two, cheapest_two, make

TWIN = oracles.external(cheapest_two, DIM, batched=True, contains=are_two)
TWIN_WITH_CLOSURES = oracles.external(cheapest_two, DIM, batched=True, takes_instance=True, contains=are_two)
ALIKE = {"adaptive", "ensemble"}
"""Large programs that ask for no solves of their own, as linear_thompson: played with the pure oracle alone."""
PLAYED = [name for name, spec in policies.REGISTRY.items() if spec.by_default or name in ("ensemble", "square_cb")]
"""``square_cb`` for those that ask for solves to decide; the contract compares every policy on a host solver."""
MILP = oracles.milp(A_eq=[[1.0] * DIM], b_eq=[2.0], integrality=1)


def both(names, twin, closures=False, feedback="bandit", may_miss=False, settings=(), **options):
    """The runs of the same policies with the pure JAX oracle and with the one on the host."""
    runs = []
    for oracle in (oracles.top_k(DIM, 2), twin):
        toy = Toy(oracle, closures)
        played = [name for name in names if oracle is not twin or name not in ALIKE]
        everyone = {name: make(name, toy, feedback, may_miss=may_miss) for name in played}
        everyone |= {
            str(i): make("dfhpg", toy, feedback, may_miss=may_miss, **given) for i, given in enumerate(settings)
        }
        runs.append(simulate(everyone, toy, seeds=3, horizon=12, recording=Recording(decisions=True), **options))
    return runs


def agree(pure, hosted):
    assert pure.keys() - hosted.keys() <= ALIKE
    for name, other in hosted.items():
        trace = pure[name]
        np.testing.assert_allclose(trace.regret, other.regret, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(trace.decisions, other.decisions)
        assert not other.diverged
        assert trace.diagnostics.keys() == other.diagnostics.keys()
    for one, other in zip(pure.references, hosted.references, strict=True):
        assert one.name == other.name
        assert one.mean == pytest.approx(other.mean, rel=1e-9, abs=1e-9)


def test_every_policy_plays_as_with_the_pure_jax_oracle_on_a_feasible_set_that_changes_by_round():
    """Greedy, epsilon_greedy and thompson are one group of several, dfhpg and dfhpg_0 another."""
    pure, hosted = both(PLAYED, TWIN_WITH_CLOSURES, closures=True)
    agree(pure, hosted)
    closed = np.arange(1, 13) % DIM
    for trace in pure.values():
        assert np.all(trace.decisions[:, np.arange(12), closed] == 0)
        assert np.all(trace.decisions.sum(axis=2) == 2)
        assert np.all(trace.regret >= -1e-6)
        assert np.all(trace.diagnostics["complete"])
        assert not trace.diverged
    assert [line.name for line in pure.references] == ["random", "clairvoyant"]


def test_late_and_missing_feedback():
    agree(*both(["dfhpg", "greedy"], TWIN, feedback="semi_bandit", may_miss=True, delay=3, missing=0.3))


@pytest.mark.parametrize("surrogate", ["pairwise_diff", "map_c", "imle"])
def test_instances_and_what_is_remembered_under_them(surrogate):
    """Pools hold decisions that the present instance forbids; of two policies in a group each asks about its own."""
    settings = [{"surrogate": surrogate, "policy_lr": rate} for rate in (0.05, 0.5)]
    agree(*both([], TWIN_WITH_CLOSURES, closures=True, settings=settings))


def test_a_generative_model_asks_for_all_scenarios_at_once():
    settings = [{"model": "flow", "generative.scenarios": 4, "baseline": "nuisance_induced"}]
    agree(*both([], TWIN, settings=settings))


def test_a_mixed_integer_program():
    agree(*both(["dfhpg"], MILP))


def test_in_chunks_it_is_the_same():
    toy = Toy(TWIN)
    whole = simulate(make("greedy", toy), toy, seeds=4, horizon=10)
    parts = simulate(make("greedy", toy), toy, seeds=4, horizon=10, execution=Execution(chunk=2))
    np.testing.assert_allclose(whole.regret, parts.regret, rtol=1e-6, atol=1e-9)


def test_a_plain_python_loop_makes_the_same_decisions():
    """Sample, call the solver, record, learn: with nothing but the policy and the oracle."""
    toy = Toy(TWIN)
    policy = jax.tree.map(jnp.asarray, make("dfhpg", toy))
    trace = simulate(policy, toy, seeds=[5], horizon=12, recording=Recording(decisions=True))
    key, decisions = jax.random.key(5), []
    with jax.enable_x64(True):
        environment = toy.environment(purpose_key(key, draws.ENVIRONMENT))
        state = policy.init(purpose_key(key, draws.START))
        learn = host_jit(policy.learn, statics=0)
        for t in range(1, 13):
            played = toy.round(purpose_key(key, draws.STREAM, t), environment, jnp.int32(t))
            sample = policy.sample(purpose_key(key, draws.DECIDE, t), state, played.observation, None)
            solution = TWIN.solve_one(sample.cost)
            decision = policy.problem.record(sample, solution, played.observation, None)
            decisions.append(np.asarray(decision.w))
            seen = policy.problem.observe(decision, played.cost)
            state, _ = learn(TWIN, purpose_key(key, draws.LEARN, t), state, decision, seen)
    assert np.array_equal(trace.decisions[0], np.array(decisions))


def test_one_call_solves_all_replications_of_a_group():
    sizes = []

    def counted(costs):
        sizes.append(len(costs))
        return cheapest_two(costs)

    toy = Toy(oracles.external(counted, DIM, batched=True))
    group = {name: make(name, toy) for name in ("greedy", "epsilon_greedy", "thompson")}
    simulate(group, toy, seeds=4, horizon=6)
    assert sizes.count(3 * 4) == 6, "three policies times four replications, once a round"
    assert len(sizes) == 6 + 2, "and the reference lines in two calls"


def test_failing_solver_ends_the_run_with_its_own_message():
    calls = []

    def solve(costs):
        calls.append(len(costs))
        if len(calls) > 5:
            raise RuntimeError("licence expired")
        return cheapest_two(costs)

    toy = Toy(oracles.external(solve, DIM, batched=True))
    with pytest.raises(OracleError, match="RuntimeError: licence expired"):
        simulate(make("greedy", toy), toy, seeds=range(2), horizon=100)


def test_a_solver_that_does_not_come_back_ends_the_run():
    calls, waiting = [], threading.Event()

    def solve(costs):
        calls.append(len(costs))
        if len(calls) > 3:
            waiting.wait(20)
        return cheapest_two(costs)

    toy = Toy(oracles.external(solve, DIM, batched=True, time_limit=0.3))
    with pytest.raises(OracleError, match=r"no answer within the time limit of 0\.3 s"):
        simulate(make("greedy", toy), toy, seeds=2, horizon=20)
    waiting.set()
