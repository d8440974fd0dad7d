"""Whole runs: a scan over rounds, a vmap over replications and over hyper-parameter values.

The environment's stream is drawn once and shown to every policy, so that comparisons are paired. A long horizon runs in
segments: a compiled program plays some hundred rounds and hands its state to the next call, which is when progress is told
and where a run can be stopped. What happens in one replication stands in ``rounds.py``, how replications become one program
in ``programs.py``, how a solver on the host takes part in ``hosted.py``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback as feedbacks
from regretless.benchmarks.base import Benchmark
from regretless.benchmarks.references import Reference, references
from regretless.errors import SettingsError
from regretless.feedback import Measurement, check_linkage
from regretless.policies.base import Policy
from regretless.simulate import stream
from regretless.simulate.programs import Progress
from regretless.simulate.run import PLAYED, Run, groups
from regretless.simulate.stream import Game
from regretless.trace import Trace

SEGMENT = 250
MOST_SEEDS, LAST_SEED, MOST_ROUNDS = 10**6, 2**32, 10**8


class Simulation(NamedTuple):
    """Traces by policy name, the reference lines of the same stream, and where the time went."""

    traces: dict[str, Trace]
    references: list[Reference]
    seconds: dict[str, float]  # compile, run
    compiled: int  # programs of rounds that were not known yet


def quiet(task: str, done: int, total: int) -> None:
    """A progress that tells nobody."""


def simulate(
    policy: Policy,
    benchmark: Benchmark,
    *,
    feedback: str | Measurement | None = None,
    seeds: int | Iterable[int] = 30,
    horizon: int | None = None,
    delay: int = 0,
    missing: float = 0.0,
    vectorized: bool = True,
    keep_decisions: bool = False,
    chunk: int | None = None,
    precision: Literal["mixed", "single"] = "mixed",
    progress: Progress = quiet,
) -> Trace:
    """Plays one policy; ``simulate_all`` tells what the options mean.

    >>> import regretless as rg
    >>> bench = rg.benchmarks.build("topk")
    >>> policy = rg.policies.build("greedy", bench.problem(feedback="bandit"))
    >>> rg.simulate(policy, bench, seeds=2, horizon=20).regret.shape
    (2, 20)
    """
    return simulate_all(
        {"policy": policy}, benchmark, feedback=feedback, seeds=seeds, horizon=horizon, delay=delay, missing=missing,
        vectorized=vectorized, keep_decisions=keep_decisions, chunk=chunk, precision=precision, progress=progress,
    ).traces["policy"]  # fmt: skip


def simulate_all(
    policies: Mapping[str, Policy],
    benchmark: Benchmark,
    *,
    feedback: str | Measurement | None = None,
    seeds: int | Iterable[int] = 30,
    horizon: int | None = None,
    delay: int = 0,
    missing: float = 0.0,
    vectorized: bool = True,
    keep_decisions: bool = False,
    chunk: int | None = None,
    precision: Literal["mixed", "single"] = "mixed",
    config: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
) -> Simulation:
    """Plays several policies on the same stream of contexts and costs.

    Each policy meets the feedback that it was built for; ``feedback`` says which one that has to be. Policies that differ in
    numbers only run in one compiled program. ``seeds`` is a number of replications or the seeds themselves. Feedback arrives
    ``delay`` rounds late, and each of its rows fails to arrive with probability ``missing``, for policies built with
    ``may_miss``. ``vectorized=False`` runs every replication by itself, unbatched. ``chunk`` is the largest number of
    replications that run together (default: what suits the memory). ``precision="mixed"`` computes policies in float64 around a
    float32 nuisance, as the published runs did; ``"single"`` all in float32.
    """
    chosen = seeds_of(seeds)
    rounds = benchmark.horizon if horizon is None else horizon
    _check(policies, benchmark, rounds, delay, missing)
    game = Game(benchmark, delay, missing, keep_decisions)
    with jax.enable_x64(precision == "mixed"):
        _check_problems(policies, game, feedback)
        run = Run(
            game, groups(policies, merge=vectorized), _segments(rounds), len(chosen), vectorized, chunk, progress
        )  # fmt: skip
        parts = [run.play(chosen[i : i + run.size], i, len(chosen)) for i in range(0, len(chosen), run.size)]
        lines = references(benchmark, _concatenated([part.tally for part in parts]))
    traces = {}
    for name, policy in policies.items():
        mine = _concatenated([part.outcomes[name] for part in parts])
        about = {
            "policy": name, "benchmark": benchmark.describe(), "feedback": policy.problem.feedback.name, "delay": delay,
            "missing": missing, "precision": precision, **(config or {}),
        }  # fmt: skip
        traces[name] = Trace(mine.regret, mine.diagnostics, mine.diverged_at, chosen, about, mine.decisions)
    return Simulation(traces, lines, run.seconds, run.replicas.compiled[PLAYED])


def compile_all(
    policies: Mapping[str, Policy], benchmark: Benchmark, seeds: int, horizon: int, delay: int, missing: float
) -> None:
    """Compiles what ``simulate_all`` will need for so many seeds, so that it finds it; changes nothing else."""
    with jax.enable_x64(True):
        game = Game(benchmark, delay, missing)
        Run(game, groups(policies, merge=True), _segments(horizon), seeds, True, None, quiet).prepare()


def seeds_of(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """The seeds that a number of replications, or any collection of seeds, stands for.

    >>> seeds_of(3), seeds_of(range(7, 9))
    ((0, 1, 2), (7, 8))
    """
    if isinstance(seeds, int | np.integer):
        if not 1 <= seeds <= MOST_SEEDS:
            raise SettingsError(f"expected 1 to {MOST_SEEDS:,} replications, got {seeds:,}")
        return tuple(range(int(seeds)))
    if isinstance(seeds, range):
        count = max(0, -((seeds.start - seeds.stop) // seeds.step))  # len() of a range of 10²³ overflows
        if count > MOST_SEEDS:
            raise SettingsError(f"expected at most {MOST_SEEDS:,} replications, got {count:,}")
    chosen = tuple(seeds)
    whole = all(isinstance(seed, int | np.integer) and 0 <= seed < LAST_SEED for seed in chosen)
    if not chosen or not whole or len(set(chosen)) != len(chosen):
        raise SettingsError(
            f"expected at least one seed, all different whole numbers from 0 to {LAST_SEED - 1:,}, got {list(chosen)[:10]}"
        )
    return tuple(int(seed) for seed in chosen)


def _check(policies: Mapping[str, Policy], benchmark: Benchmark, horizon: int, delay: int, missing: float) -> None:
    if not policies:
        raise SettingsError("expected at least one policy, got none")
    if not 1 <= horizon <= MOST_ROUNDS:
        raise SettingsError(f"expected a horizon of at least 1 round and at most {MOST_ROUNDS:,}, got {horizon:,}")
    if benchmark.longest is not None and horizon > benchmark.longest:
        raise SettingsError(f"benchmark {benchmark.name!r} has {benchmark.longest} rounds, got a horizon of {horizon}")
    if delay < 0 or not 0.0 <= missing < 1.0:
        raise SettingsError(f"expected delay ≥ 0 and 0 ≤ missing < 1, got {delay} and {missing}")


def _check_problems(policies: Mapping[str, Policy], game: Game, feedback: str | Measurement | None) -> None:
    """Refuses policies that were built for another problem, and measurements from which no total follows."""
    stream.check_shapes(game)
    for name, policy in policies.items():
        rule = policy.problem.feedback if feedback is None else feedback
        policy.problem.require_played_on(game.benchmark.problem(rule, may_miss=game.missing > 0), f"policy {name!r}")
    for rule in {policy.problem.feedback for policy in policies.values()}:
        if rule not in feedbacks.REGISTRY.values():
            _check_linkage(game, rule)


def _check_linkage(game: Game, rule: Measurement) -> None:
    """Refuses a measurement from which the total cannot be recovered, on decisions of this very benchmark."""
    first = stream.draw(game, jax.random.key(0), jnp.int32(0), 8).rounds
    costs, instances = jax.tree.map(np.asarray, (first.cost, first.instance))
    check_linkage(rule, jax.tree.map(jnp.asarray, game.benchmark.oracle.answer(costs, instances)))


def _segments(horizon: int) -> list[int]:
    """Lengths of the segments: one length throughout if some divisor of the horizon suits, else a shorter last one."""
    if horizon <= SEGMENT:
        return [horizon]
    for length in range(SEGMENT, SEGMENT // 4, -1):
        if horizon % length == 0:
            return [length] * (horizon // length)
    return [SEGMENT] * (horizon // SEGMENT) + [horizon % SEGMENT]


def _concatenated(parts: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
