"""Simulate policies on a benchmark: many replications in compiled programs, or with a solver on the host between them.

The environment's stream is drawn once and shown to every policy, so that comparisons are paired. A long horizon runs in
segments: a compiled program plays some hundred rounds and hands its state to the next call, which is when progress is
reported and where a run can be stopped.
"""

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypedDict, Unpack, overload

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback as feedbacks
from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.errors import SettingsError
from regretless.feedback import Measurement, check_linkage
from regretless.oracles.base import Oracle, check_integer
from regretless.policies.base import Policy, PolicySpec
from regretless.policies.scaling import build_policy
from regretless.problem import Problem
from regretless.results import DIAGNOSTICS_EVERY, Result, Results, describe_environment, without_nan
from regretless.simulation import stream
from regretless.simulation.programs import Progress, no_progress
from regretless.simulation.run import PLAY, Callback, Saving, SimulationRun, group_policies
from regretless.simulation.stream import SimulationSpec, summarise_references
from regretless.spec import Spec

MAX_SEEDS, SEED_LIMIT, MAX_ROUNDS = 10**6, 2**32, 10**8
MAX_LISTED = 16
"""Numbers of an array that are listed in a configuration; longer arrays are given by their hash."""


@dataclasses.dataclass(frozen=True)
class Recording:
    """What a simulation keeps in addition to the regret.

    Parameters
    ----------
    diagnostics_every : int, default 10
        Rounds between two kept diagnostics.
    decisions : bool, default False
        Whether to keep every decision, ``[replications, rounds, d]``.
    states : bool, default False
        Whether to keep the final state of the policy; a run that is kept in a file cannot.
    """

    diagnostics_every: int = DIAGNOSTICS_EVERY
    decisions: bool = False
    states: bool = False


@dataclasses.dataclass(frozen=True)
class Monitor:
    """Functions that follow a running simulation.

    Parameters
    ----------
    callback : callable, optional
        Receives ``Metrics``; the run ends there if it returns True.
    every : int, default 100
        Rounds between two calls of it; it is also called at the end.
    progress : callable, optional
        Receives what is being done, how much of it is finished and how much there is.
    """

    callback: Callback | None = None
    every: int = 100
    progress: Progress = no_progress


@dataclasses.dataclass(frozen=True)
class Execution:
    """How a simulation is computed.

    Parameters
    ----------
    precision : {"mixed", "single"}, default "mixed"
        ``"mixed"`` computes policies in float64 around a float32 nuisance, as the published runs did; ``"single"``
        computes everything in float32.
    chunk : int, optional
        The largest number of replications that run together; by default what suits the memory.
    vectorized : bool, default True
        If False, run every replication by itself, unbatched.
    merge : bool, default True
        Whether policies that differ in numbers only run in one program; if False, rounding of one does not depend on
        the others.
    save : path, optional
        A file that the run is kept in: the same call continues from it after a kill, bit for bit, and reads the
        results from it when it is finished.
    """

    precision: Literal["mixed", "single"] = "mixed"
    chunk: int | None = None
    vectorized: bool = True
    merge: bool = True
    save: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        if self.precision not in ("mixed", "single"):
            raise SettingsError(f"expected precision 'mixed' or 'single', got {self.precision!r}")
        if self.chunk is not None and check_integer("chunk", self.chunk) < 1:
            raise SettingsError(f"expected a chunk of at least 1 replication, got {self.chunk}")


PolicyLike = Policy | PolicySpec | str
"""A policy, its specification or its name."""

BenchmarkLike = Benchmark | BenchmarkSpec | str
"""A benchmark, its specification or its name."""


class SimulationOptions(TypedDict, total=False):
    """The options of ``simulate``."""

    feedback: str | Measurement | None
    seeds: int | Iterable[int]
    horizon: int | None
    delay: int
    missing: float
    recording: Recording
    monitor: Monitor
    execution: Execution


@overload
def simulate(policy: PolicyLike, benchmark: BenchmarkLike, **options: Unpack[SimulationOptions]) -> Result: ...
@overload
def simulate(
    policy: Mapping[str, PolicyLike], benchmark: BenchmarkLike, **options: Unpack[SimulationOptions]
) -> Results: ...
def simulate(
    policy: PolicyLike | Mapping[str, Any],
    benchmark: BenchmarkLike,
    *,
    feedback: str | Measurement | None = None,
    seeds: int | Iterable[int] = 30,
    horizon: int | None = None,
    delay: int = 0,
    missing: float = 0.0,
    recording: Recording = Recording(),  # noqa: B008 -- frozen
    monitor: Monitor = Monitor(),  # noqa: B008 -- frozen
    execution: Execution = Execution(),  # noqa: B008 -- frozen
) -> Result | Results:
    """Simulate one policy, or several on the same stream of contexts and costs.

    Parameters
    ----------
    policy : Policy, PolicySpec, str, or mapping of str to one of them
        What decides and learns; a specification or a name is built for the benchmark, with scaling. Policies that
        differ in numbers only run in one compiled program.
    benchmark : Benchmark, BenchmarkSpec or str
        The stream of contexts and costs, with its feasible set.
    feedback : str or Measurement, optional
        The feedback that every policy must have been built for; by default each meets its own. Specifications and
        names are built for it, by default for ``"bandit"``.
    seeds : int or iterable of int, default 30
        Number of replications, or their seeds.
    horizon : int, optional
        Number of rounds; by default the benchmark's.
    delay : int, default 0
        Rounds after which feedback arrives.
    missing : float, default 0
        Probability with which each row of the feedback fails to arrive, for policies built with ``may_miss``.
    recording : Recording
        What is kept in addition to the regret.
    monitor : Monitor
        Callbacks.
    execution : Execution
        Precision, memory, and a file to continue from.

    Returns
    -------
    Result, or Results for a mapping
        Regret by round, diagnostics, reference lines and the complete configuration.

    Raises
    ------
    SettingsError
        If a policy was built for another problem, or an argument is out of range.
    OracleError
        If the feasible set is empty in some round.

    Examples
    --------
    >>> import regretless as rg
    >>> bench = rg.benchmarks.TopK().build()
    >>> policy = rg.policies.Greedy().build(bench.problem(feedback="bandit"))
    >>> rg.simulate(policy, bench, seeds=2, horizon=20).regret.shape
    (2, 20)
    """
    given = policy if isinstance(policy, Mapping) else {_label_of(policy): policy}
    specs = {name: part if isinstance(part, Policy) else PolicySpec.coerce(part) for name, part in given.items()}
    world_spec: Any = benchmark if isinstance(benchmark, Benchmark) else BenchmarkSpec.coerce(benchmark)
    benchmark = world_spec if isinstance(world_spec, Benchmark) else world_spec.build()
    chosen = seeds_of(seeds)
    rounds = benchmark.horizon if horizon is None else horizon
    _check(specs, benchmark, rounds, delay, missing)
    for name, every in (("diagnostics_every", recording.diagnostics_every), ("the callback's interval", monitor.every)):
        if check_integer(name, every) < 1:
            raise SettingsError(f"expected {name} to be a number of rounds, at least 1, got {every!r}")
    if recording.states and execution.save is not None:
        raise SettingsError("a run that is kept in a file has no final states: leave out save or states=True")
    spec = SimulationSpec(benchmark, delay, missing, recording.decisions, recording.diagnostics_every)
    with jax.enable_x64(execution.precision == "mixed"):
        problem = benchmark.problem(feedback or "bandit", may_miss=missing > 0)
        named = {
            name: part if isinstance(part, Policy) else build_policy(part, problem) for name, part in specs.items()
        }
        _check_problems(named, spec, feedback, problem)
        groups = group_policies(named, merge=execution.vectorized and execution.merge)
        lengths = segment_lengths(rounds, monitor.every if monitor.callback else None)
        run = SimulationRun(
            spec, groups, lengths, len(chosen), monitor.progress, vectorized=execution.vectorized, chunk=execution.chunk
        )
        run.keep_states = recording.states
        request = {"seeds": list(chosen), "horizon": rounds, "precision": execution.precision}
        saving = None if execution.save is None else Saving(execution.save, {**request, **run.describe()})
        outcome, played = run.play(chosen, monitor.callback, monitor.every, saving)
        lines = tuple(summarise_references(benchmark, outcome.tally))
    world = {
        "benchmark": {**describe_part(world_spec), **benchmark.describe()},
        "horizon": rounds,
        "delay": delay,
        "missing": missing,
        "precision": execution.precision,
        **({"stopped_early": True} if played < rounds else {}),
    }
    results = []
    for name, member in named.items():
        record = outcome.records[name]
        rule = member.problem.feedback
        shown = rule.name if rule in feedbacks.REGISTRY.values() else {"name": rule.name, **describe_part(rule)}
        arm = {"policy": describe_part(specs[name]), "feedback": shown}
        result = Result(
            label=name,
            regret=record.regret,
            diverged_at=outcome.diverged_at[name],
            seeds=chosen,
            config={**without_nan(arm), **without_nan(world)},
            diagnostics=record.info,
            diagnostics_every=recording.diagnostics_every,
            decisions=record.w,
            references=lines,
            seconds=run.seconds,
            environment=describe_environment(),
            states=jax.tree.map(lambda *parts: np.concatenate(parts), *run.states.get(name, [None])),
        )
        results.append(result)
    if isinstance(policy, Mapping):
        return Results(results, seconds=run.seconds, programs=run.replicas.compiled[PLAY])
    return results[0]


def describe_part(part: Any) -> Any:
    """Return a policy, a benchmark, their specification or a part as JSON data: its kind with every choice and number.

    Problems are left out, because the benchmark and the feedback describe them; long arrays are given by their hash.
    """
    if isinstance(part, Oracle):
        return part.fingerprint()
    if isinstance(part, Spec):
        return {"kind": part.registered_name, **{name: describe_part(value) for name, value in part.names().items()}}
    if isinstance(part, eqx.Module):
        fields = {field.name: getattr(part, field.name, None) for field in dataclasses.fields(part)}
        kept = {name: value for name, value in fields.items() if value is not None and not isinstance(value, Problem)}
        return {"kind": type(part).__name__, **{name: describe_part(value) for name, value in kept.items()}}
    if isinstance(part, Mapping):
        return {str(name): describe_part(value) for name, value in part.items()}
    if isinstance(part, tuple | list):
        return [describe_part(value) for value in part]
    if isinstance(part, np.ndarray | np.generic | jax.Array):
        array = np.asarray(part)
        if array.size <= MAX_LISTED:
            return array.tolist()
        digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]
        return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}
    if part is None or isinstance(part, bool | int | float | str):
        return part
    return getattr(part, "__qualname__", type(part).__qualname__)


def seeds_of(seeds: int | Iterable[int]) -> tuple[int, ...]:
    """Return the seeds that a number of replications, or any collection of seeds, stands for.

    >>> seeds_of(3), seeds_of(range(7, 9))
    ((0, 1, 2), (7, 8))
    """
    if isinstance(seeds, str | bool) or not isinstance(seeds, int | np.integer | Iterable):
        raise SettingsError(f"expected a number of replications or seeds, got {seeds!r}")
    if isinstance(seeds, int | np.integer):
        if not 1 <= seeds <= MAX_SEEDS:
            raise SettingsError(f"expected 1 to {MAX_SEEDS:,} replications, got {seeds:,}")
        return tuple(range(int(seeds)))
    if isinstance(seeds, range):
        count = max(0, -((seeds.start - seeds.stop) // seeds.step))  # len() of a range of 10²³ overflows
        if count > MAX_SEEDS:
            raise SettingsError(f"expected at most {MAX_SEEDS:,} replications, got {count:,}")
    chosen = tuple(seeds)
    usable = all(isinstance(seed, int | np.integer) and 0 <= seed < SEED_LIMIT for seed in chosen)
    if not chosen or not usable or len(set(chosen)) != len(chosen):
        raise SettingsError(
            f"expected at least one seed, all different integers from 0 to {SEED_LIMIT - 1:,}, got {list(chosen)[:10]}"
        )
    return tuple(int(seed) for seed in chosen)


def _label_of(policy: PolicyLike) -> str:
    if isinstance(policy, Spec):
        return policy.registered_name.rpartition(":")[2]
    return policy if isinstance(policy, str) else type(policy).__name__


def _check(named: Mapping[str, Any], benchmark: Benchmark, horizon: int, delay: int, missing: float) -> None:
    if not named:
        raise SettingsError("expected at least one policy, got none")
    if not 1 <= check_integer("horizon", horizon) <= MAX_ROUNDS:
        raise SettingsError(f"expected a horizon of at least 1 round and at most {MAX_ROUNDS:,}, got {horizon:,}")
    if benchmark.longest is not None and horizon > benchmark.longest:
        raise SettingsError(f"benchmark {benchmark.name!r} has {benchmark.longest} rounds, got a horizon of {horizon}")
    is_number = isinstance(missing, int | float | np.number)
    if check_integer("delay", delay) < 0 or not is_number or not 0.0 <= missing < 1.0:
        raise SettingsError(f"expected delay ≥ 0 and 0 ≤ missing < 1, got {delay} and {missing!r}")


def _check_problems(
    named: Mapping[str, Policy], spec: SimulationSpec, feedback: str | Measurement | None, problem: Problem
) -> None:
    """Refuse policies that were built for another problem, and feedback from which no total follows."""
    stream.check_shapes(spec)
    for name, policy in named.items():
        own = feedback is None and policy.problem.feedback != problem.feedback
        met = spec.benchmark.problem(policy.problem.feedback, may_miss=spec.missing > 0) if own else problem
        policy.problem.require_played_on(met, f"policy {name!r}")
    for rule in {policy.problem.feedback for policy in named.values()}:
        if rule not in feedbacks.REGISTRY.values():
            first = stream.draw_rounds(spec, jax.random.key(0), jnp.int32(0), 8)
            costs, instances = jax.tree.map(np.asarray, (first.cost, first.instance))
            check_linkage(rule, jax.tree.map(jnp.asarray, spec.benchmark.oracle.answer(costs, instances)))


def segment_lengths(horizon: int, stops: int | None = None) -> list[int]:
    """Return the numbers of rounds of segments: all of the largest size but the last.

    With ``stops`` a segment ends after every ``stops`` rounds.
    """
    if stops is not None and stops < horizon:
        rest = horizon % stops
        return segment_lengths(stops) * (horizon // stops) + (segment_lengths(rest) if rest else [])
    whole, rest = divmod(horizon, stream.SEGMENT_ROUNDS)
    return [stream.SEGMENT_ROUNDS] * whole + [rest] * (rest > 0)
