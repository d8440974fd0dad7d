"""Whole runs: against a plain loop, repeated, chunked, segmented, late, incomplete, diverging, failing."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks, draws, feedback, policies
from regretless.benchmarks import Round
from regretless.draws import purpose_key
from regretless.errors import SettingsError
from regretless.oracles import top_k
from regretless.simulation import programs, stream
from regretless.simulation.run import LANES
from regretless.simulation.simulator import Execution, Recording, seeds_of, segment_lengths, simulate
from regretless_dfhpg import presets
from toys import DIM, Toy, make

TOY = Toy()
DECISIONS = Recording(decisions=True)
UNBATCHED = Execution(vectorized=False)


def plain_loop(policy, benchmark, seed, horizon, delay=0, missing=0.0):
    """The same game as a Python loop over the policy's three functions."""
    key, problem = jax.random.key(seed), policy.problem
    environment = benchmark.environment(purpose_key(key, draws.ENVIRONMENT))
    policy = jax.tree.map(jnp.asarray, policy)
    state, waiting, decisions = policy.init(purpose_key(key, draws.START)), [], []
    decide = jax.jit(lambda *arguments: policy.decide(*arguments))
    learn = jax.jit(lambda *arguments: policy.learn(*arguments))
    for t in range(1, horizon + 1):
        played = benchmark.round(purpose_key(key, draws.STREAM, t), environment, jnp.int32(t))
        context = benchmark.context(environment, played.observation)
        decision = decide(purpose_key(key, draws.DECIDE, t), state, context, played.instance)
        decisions.append(np.asarray(decision.w))
        got = problem.observe(decision, played.cost)
        if missing:
            seen = jax.random.uniform(purpose_key(key, draws.MISSING, t), got.values.shape) >= missing
            got = problem.with_seen(got, seen)
        waiting.append((decision, got))
        if t > delay:
            decision, got = waiting.pop(0)
            if got.seen is None or np.any(got.used()):
                state, _ = learn(purpose_key(key, draws.LEARN, t), state, decision, got)
    return np.array(decisions)


def tuned(name, benchmark_name, benchmark, **more):
    """A policy with those of the published settings that it has."""
    published = presets.preset(benchmark_name, 8, "gaussian_linear", "bandit").values
    known = policies.REGISTRY[name].model_fields
    own = {key: value for key, value in published.items() if key.partition(".")[0] in known}
    return policies.parse(name, {**own, **more}).build(benchmark.problem())


@pytest.mark.parametrize("name", ["dfhpg", "epsilon_greedy"])
@pytest.mark.parametrize("benchmark_name", ["topk", "shortest_path"])
def test_unbatched_scan_makes_the_decisions_of_a_plain_loop(name, benchmark_name):
    benchmark = benchmarks.parse(benchmark_name).build()
    policy = tuned(name, benchmark_name, benchmark)
    trace = simulate(policy, benchmark, seeds=[5], horizon=100, execution=UNBATCHED, recording=DECISIONS)
    with jax.enable_x64(True):
        expected = plain_loop(policy, benchmark, 5, 100)
    assert np.array_equal(trace.decisions[0], expected)


@pytest.mark.parametrize("benchmark_name", ["topk", "pricing"])
def test_vmapped_run_agrees_with_the_unbatched_one_for_a_hundred_rounds_in_float64(benchmark_name):
    benchmark = benchmarks.parse(benchmark_name).build()
    double = {"nuisance.precision": "double"}
    both = {name: tuned(name, benchmark_name, benchmark, **double) for name in ("dfhpg", "dfhpg_0")}
    batched = simulate(both, benchmark, seeds=range(2), horizon=100, recording=DECISIONS)
    assert batched.programs <= 1
    for name, policy in both.items():
        alone = simulate({name: policy}, benchmark, seeds=range(2), horizon=100, recording=DECISIONS)
        assert alone.programs == 0, "two large policies of one structure share the program of each alone"
        assert np.array_equal(batched[name].regret, alone[name].regret)
        alone = simulate(policy, benchmark, seeds=range(2), horizon=100, recording=DECISIONS, execution=UNBATCHED)
        assert np.array_equal(batched[name].decisions, alone.decisions)
        np.testing.assert_allclose(batched[name].regret, alone.regret, rtol=1e-9, atol=1e-6)


def test_repeated_run_is_bit_identical_even_if_compiled_again():
    runs = []
    for recompile in (False, False, True):
        if recompile:
            programs.forget()
        runs.append(simulate(make("dfhpg", TOY), TOY, seeds=range(3), horizon=60, recording=DECISIONS))
    for other in runs[1:]:
        assert np.array_equal(runs[0].regret, other.regret)
        assert np.array_equal(runs[0].decisions, other.decisions)
        assert all(np.array_equal(value, other.diagnostics[key]) for key, value in runs[0].diagnostics.items())


def test_stream_is_the_same_whatever_else_runs_and_however_it_is_cut():
    alone = simulate(make("greedy", TOY), TOY, seeds=range(4), horizon=40)
    names = ["linear_thompson", "greedy", "dfhpg"]
    every = simulate({name: make(name, TOY) for name in names}, TOY, seeds=range(4), horizon=40)
    assert list(every) == names
    np.testing.assert_allclose(alone.regret, every["greedy"].regret, rtol=1e-6, atol=1e-9)
    chunked = simulate(make("greedy", TOY), TOY, seeds=range(4), horizon=40, execution=Execution(chunk=2))
    np.testing.assert_allclose(alone.regret, chunked.regret, rtol=1e-6, atol=1e-9)
    padded = simulate(make("greedy", TOY), TOY, seeds=range(3), horizon=40, execution=Execution(chunk=2))
    np.testing.assert_allclose(alone.regret[:3], padded.regret, rtol=1e-6, atol=1e-9)
    longer = simulate(make("greedy", TOY), TOY, seeds=range(4), horizon=257)
    np.testing.assert_allclose(alone.regret, longer.regret[:, :40], rtol=1e-6, atol=1e-9)
    assert longer.regret.shape == (4, 257)
    assert longer.diagnostics["residual"].shape == (4, 25)
    uneven = simulate(make("greedy", TOY), TOY, seeds=range(4), horizon=395)  # segments of 250 and of 145 rounds
    for name in ("residual", "total"):
        np.testing.assert_allclose(alone.diagnostics[name], longer.diagnostics[name][:, :4], rtol=1e-6)
        np.testing.assert_allclose(longer.diagnostics[name], uneven.diagnostics[name][:, :25], rtol=1e-4, atol=1e-6)
    shifted = simulate(make("greedy", TOY), TOY, seeds=range(2, 6), horizon=40)
    np.testing.assert_allclose(alone.regret[2:], shifted.regret[:2], rtol=1e-6, atol=1e-9)


def test_all_segments_but_the_last_are_of_one_length():
    assert segment_lengths(2000) == [250] * 8
    assert segment_lengths(395) == [250, 145]
    assert sum(segment_lengths(1999)) == 1999


@pytest.mark.parametrize(
    ("world", "names", "first", "second"),
    [
        (benchmarks.TopK, ["greedy", "dfhpg_1"], {"degree": 8}, {"degree": 1, "noise_radius": 0.0}),
        (benchmarks.Pricing, ["greedy"], {"degree": 8}, {"degree": 2}),
        (benchmarks.TopKWorld, ["greedy"], {"noise_size": 0.25}, {"noise_size": 0.0}),
    ],
)
def test_another_horizon_number_of_seeds_degree_or_noise_compiles_nothing(world, names, first, second):
    programs.forget()
    group = {name: name for name in names}
    play = lambda seeds=3, horizon=20, **settings: simulate(group, world(**settings), seeds=seeds, horizon=horizon)  # noqa: E731
    first = play(**first)
    assert first.programs == len(names)
    same = [play(horizon=261), play(seeds=LANES + 1), play(**second)]
    assert [results.programs for results in same] == [0] * 3
    for results in same[:2]:
        np.testing.assert_array_equal(results["greedy"].regret[:3, :20], first["greedy"].regret)


@pytest.mark.parametrize("name", ["dfhpg", "greedy"])
def test_feedback_five_rounds_late(name):
    policy = make(name, TOY)
    late = simulate(policy, TOY, seeds=[3], horizon=40, delay=5, execution=UNBATCHED, recording=DECISIONS)
    with jax.enable_x64(True):
        assert np.array_equal(late.decisions[0], plain_loop(policy, TOY, 3, 40, delay=5))
    prompt = simulate(policy, TOY, seeds=[3], horizon=40, execution=UNBATCHED, recording=DECISIONS)
    assert not np.array_equal(late.decisions, prompt.decisions)
    if name == "dfhpg":
        trust = late.diagnostics["trust"][0]
        assert np.all((trust >= 0) & (trust <= 10))
        assert np.any(trust != 1)


@pytest.mark.parametrize("mode", ["bandit", "semi_bandit", "full"])
@pytest.mark.parametrize("name", ["dfhpg", "greedy"])
def test_rows_that_never_arrive(name, mode):
    policy = make(name, TOY, mode, may_miss=True)
    options = {"seeds": [3], "horizon": 40, "missing": 0.3, "execution": UNBATCHED}
    trace = simulate(policy, TOY, feedback=mode, recording=Recording(1, decisions=True), **options)
    with jax.enable_x64(True):
        expected = plain_loop(policy, TOY, 3, 40, missing=0.3)
    assert np.array_equal(trace.decisions[0], expected)
    assert 0 < np.mean(trace.diagnostics["complete"]) < 1
    assert not trace.diverged


def test_reference_lines_are_what_they_say():
    run = simulate({"greedy": make("greedy", TOY)}, TOY, seeds=range(3), horizon=50)
    lines = {line.name: line.mean for line in run.references}
    fixed, known = [], []
    for seed in range(3):
        with jax.enable_x64(True):
            played = stream.draw_rounds(stream.SimulationSpec(TOY), jax.random.key(seed), jnp.int32(0), 50)
            costs, means = np.asarray(played.cost), np.asarray(played.mean)
        best = np.sort(costs, axis=1)[:, :2].sum()
        fixed.append(np.sort(costs.sum(axis=0))[:2].sum() - best)
        known.append(np.take_along_axis(costs, np.argsort(means, axis=1)[:, :2], axis=1).sum() - best)
    assert lines["best_fixed"] == pytest.approx(np.mean(fixed), rel=1e-6)
    assert lines["clairvoyant"] == pytest.approx(np.mean(known), rel=1e-6, abs=1e-9)
    assert lines["random"] > lines["best_fixed"] > lines["clairvoyant"]


def test_what_rounding_leaves_of_two_equal_sums_is_no_regret():
    best = np.array([1e5, 2e5])
    spent = [best, best * (1 + 1e-15), best + np.array([0.0, 3.0])]
    total = stream.ReferenceTally(np.stack(spent, axis=1), None)
    random, clairvoyant = stream.summarise_references(TOY, total)
    assert (random.mean, random.standard_error) == (0.0, 0.0)
    assert clairvoyant.mean == 1.5


def test_diverging_replication_is_counted_with_its_round_and_left_out():
    run = simulate(
        {"wild": make("greedy", TOY, policy_lr=1e308), "calm": make("greedy", TOY)}, TOY, seeds=range(3), horizon=30
    )
    wild, calm = run["wild"], run["calm"]
    assert wild.diverged == 3
    assert np.all((wild.diverged_at > 0) & (wild.diverged_at <= 30))
    assert np.isnan(wild.mean())
    assert not calm.diverged
    assert calm.compare(wild).pairs == 0


def test_wrong_linkage_is_refused_before_anything_runs():
    wrong = feedback.Linear(lambda w, aux: jnp.ones((1, DIM)), lambda w, aux: jnp.ones(1), label="everything")
    with pytest.raises(ValueError, match="'everything': expected H"):
        simulate(make("greedy", TOY, wrong), TOY, seeds=range(2), horizon=10)


class Spoilt(Toy):
    """A toy whose costs stop being numbers in round 7, or whose contexts have another shape than promised."""

    def round(self, key, environment, t):
        played = super().round(key, environment, t)
        return Round(played.observation, jnp.where(t >= 7, jnp.nan, played.cost), played.mean)


class Misshapen(Toy):
    def context(self, environment, observation):
        return observation[:2]


def test_streams_that_cannot_be_used_are_refused():
    with pytest.raises(ValueError, match="'toy': expected finite contexts and costs, but round 7"):
        simulate(make("greedy", Spoilt()), Spoilt(), seeds=range(2), horizon=20)
    with pytest.raises(ValueError, match=r"'toy': expected a context of shape \(3,\), got \(2,\)"):
        simulate(make("greedy", Misshapen()), Misshapen(), seeds=range(2), horizon=20)
    policy = make("dfhpg", TOY)
    with pytest.raises(ValueError, match=r"context: expected shape \(3,\), got \(4,\)"):
        policy.decide(jax.random.key(0), policy.init(jax.random.key(0)), jnp.ones(4), None)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seeds": []}, "at least one seed"),
        ({"seeds": [1, 1]}, "all different"),
        ({"seeds": 0}, "expected 1 to 1,000,000 replications, got 0"),
        ({"seeds": 10**9}, "expected 1 to 1,000,000 replications, got 1,000,000,000"),
        ({"seeds": range(10**7)}, "at most 1,000,000 replications"),
        ({"seeds": [2**32]}, "integers from 0 to 4,294,967,295"),
        ({"seeds": [0.5]}, "different integers"),
        ({"seeds": 1e1}, r"expected a number of replications or seeds, got 10\.0"),
        ({"seeds": "3"}, "expected a number of replications or seeds, got '3'"),
        ({"missing": "0.1"}, "missing < 1, got 0 and '0.1'"),
        ({"horizon": 0}, "horizon of at least 1"),
        ({"delay": -1}, "delay ≥ 0"),
        ({"missing": 1.0}, "missing < 1"),
        ({"horizon": 1e2}, r"horizon: expected an integer, got 100\.0"),
        ({"delay": 1.0}, r"delay: expected an integer, got 1\.0"),
        ({"delay": True}, "delay: expected an integer, got True"),
        ({"benchmark": 3}, "expected a benchmark of regretless.benchmarks, or the name of one .*, got 3"),
        ({"policy": {"p": 3}}, "expected a policy of regretless.policies, or the name of one .*, got 3"),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        simulate(**{"policy": make("greedy", TOY), "benchmark": TOY, **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "double"}, "expected precision 'mixed' or 'single', got 'double'"),
        ({"chunk": 0}, "expected a chunk of at least 1 replication, got 0"),
        ({"chunk": 1.5}, "chunk: expected an integer, got 1.5"),
    ],
)
def test_bad_ways_to_compute_are_refused(options, message):
    with pytest.raises(SettingsError, match=message):
        Execution(**options)


def test_precision_changes_rounding_and_not_the_stream():
    topk = benchmarks.parse("topk").build()
    policy = policies.parse("greedy").build(topk.problem())
    mixed = simulate(policy, topk, seeds=range(2), horizon=20)
    single = simulate(policy, topk, seeds=range(2), horizon=20, execution=Execution(precision="single"))
    np.testing.assert_allclose(mixed.regret[:, :3], single.regret[:, :3], rtol=1e-3, atol=1e-3)
    assert mixed.config["precision"] == "mixed"


def test_a_number_of_seeds_stands_for_the_first_ones():
    assert seeds_of(3) == seeds_of(range(3)) == seeds_of([0, 1, 2]) == (0, 1, 2)
    assert seeds_of(seed for seed in (7, 3)) == (7, 3)


class Renamed(Toy):
    """Another world with the same shapes: its feasible set takes one item."""

    def __init__(self):
        super().__init__(top_k(DIM, 1))


@pytest.mark.parametrize(
    ("built", "played", "message"),
    [
        ({"feedback": "full"}, {"feedback": "bandit"}, "feedback: 'full' and 'bandit'"),
        ({}, {"missing": 0.3}, "rows are never missing and rows may be missing"),
        ({}, {"benchmark": Renamed()}, "oracle: k 2 and 1"),
        ({}, {"benchmark": Toy(closures=True)}, r"instances: none and booleans \[4\]"),
    ],
    ids=["feedback", "missing", "another k", "instances"],
)
def test_a_policy_for_another_problem_is_refused(built, played, message):
    policy = make("dfhpg", TOY, **built)
    options = {"benchmark": TOY, "seeds": 2, "horizon": 5, **played}
    with pytest.raises(SettingsError, match=rf"'\w+' was built for another problem .*{message}; build it for this one"):
        simulate(policy, **options)


def test_a_policy_for_missing_rows_may_meet_all_of_them():
    policy = make("greedy", TOY, may_miss=True)
    trace = simulate(policy, TOY, seeds=2, horizon=20)
    np.testing.assert_allclose(trace.regret, simulate(make("greedy", TOY), TOY, seeds=2, horizon=20).regret, atol=1e-9)
