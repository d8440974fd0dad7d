"""Whole runs: a scan over rounds, a vmap over replications and over hyper-parameter values.

The environment's stream is drawn once and shown to every policy, so that comparisons are paired. A long horizon runs in
segments: a compiled program plays some hundred rounds and hands its state to the next call, which is when progress is told
and where a run can be stopped. What happens in one replication stands in ``rounds.py``, how replications become one program
in ``programs.py``, how a solver on the host takes part in ``hosted.py``.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback as feedbacks
from regretless.benchmarks.base import Benchmark
from regretless.benchmarks.references import references
from regretless.errors import SettingsError
from regretless.feedback import Measurement, check_linkage
from regretless.policies.base import Policy
from regretless.simulate import stream
from regretless.simulate.metrics import Callback, Watch
from regretless.simulate.programs import Progress
from regretless.simulate.result import Simulation
from regretless.simulate.run import PLAYED, Run, groups
from regretless.simulate.saving import Saving
from regretless.simulate.stream import Game
from regretless.trace import DIAGNOSTICS_EVERY, Trace

SEGMENT = 250
MOST_SEEDS, LAST_SEED, MOST_ROUNDS = 10**6, 2**32, 10**8


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
    diagnostics_every: int = DIAGNOSTICS_EVERY,
    callback: Callback | None = None,
    callback_every: int = 100,
    save: str | os.PathLike[str] | None = None,
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
        vectorized=vectorized, keep_decisions=keep_decisions, chunk=chunk, precision=precision,
        diagnostics_every=diagnostics_every, callback=callback, callback_every=callback_every, save=save, progress=progress,
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
    diagnostics_every: int = DIAGNOSTICS_EVERY,
    callback: Callback | None = None,
    callback_every: int = 100,
    save: str | os.PathLike[str] | None = None,
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

    Diagnostics are kept of every ``diagnostics_every``-th round. ``callback`` is told the ``Metrics`` after every
    ``callback_every`` rounds and at the end; the run ends there if it returns True. ``save`` is a file that the run is kept in:
    the same call goes on from it after a kill, bit for bit, and reads the result from it when it is finished.
    """
    chosen = seeds_of(seeds)
    rounds = benchmark.horizon if horizon is None else horizon
    _check(policies, benchmark, rounds, delay, missing)
    _check_intervals(diagnostics_every, callback_every)
    game = Game(benchmark, delay, missing, keep_decisions, diagnostics_every)
    with jax.enable_x64(precision == "mixed"):
        _check_problems(policies, game, feedback)
        run = Run(
            game, groups(policies, merge=vectorized), _segments(rounds, callback_every if callback else None), len(chosen),
            vectorized, chunk, progress,
        )  # fmt: skip
        watch = None if callback is None else Watch(callback, callback_every)
        asked = {"seeds": list(chosen), "horizon": rounds, "precision": precision}
        parts, played = run.play(chosen, watch, None if save is None else Saving(save, {**asked, **run.describe()}))
        lines = references(benchmark, _concatenated([part.tally for part in parts]))
    traces = {}
    for name, policy in policies.items():
        mine = _concatenated([part.outcomes[name] for part in parts])
        about = {
            "policy": name, "benchmark": benchmark.describe(), "feedback": policy.problem.feedback.name, "delay": delay,
            "missing": missing, "precision": precision, **({"stopped_early": True} if played < rounds else {}),
            **(config or {}),
        }  # fmt: skip
        traces[name] = Trace(
            mine.regret, mine.diagnostics, mine.diverged_at, chosen, about, mine.decisions, diagnostics_every
        )
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


def _check_intervals(diagnostics_every: int, callback_every: int) -> None:
    for name, every in (("diagnostics_every", diagnostics_every), ("callback_every", callback_every)):
        if isinstance(every, bool) or not isinstance(every, int | np.integer) or every < 1:
            raise SettingsError(f"expected {name} to be a number of rounds, at least 1, got {every!r}")


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


def _segments(horizon: int, stops: int | None = None) -> list[int]:
    """Lengths of the segments: one length throughout if some divisor of the horizon suits, else a shorter last one.

    With ``stops`` a segment ends after every so many rounds.
    """
    if stops is not None and stops < horizon:
        rest = horizon % stops
        return _segments(stops) * (horizon // stops) + (_segments(rest) if rest else [])
    if horizon <= SEGMENT:
        return [horizon]
    for length in range(SEGMENT, SEGMENT // 4, -1):
        if horizon % length == 0:
            return [length] * (horizon // length)
    return [SEGMENT] * (horizon // SEGMENT) + [horizon % SEGMENT]


def _concatenated(parts: Sequence[Any]) -> Any:
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)
