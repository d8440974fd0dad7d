"""Measure the accuracy of a learner's health report on worlds of the arena, and how soon it notices a change.

    python benchmarks/health_worlds.py --worlds relu30out lin30drift --seeds 1000 --runs 30

Runs are played as by a live learner, and their rounds are recorded as in its health record. Every ``EVERY`` rounds
the costs are compared with the mean costs of the world, which are the truth. ``covered`` is the fraction of the 95 %
intervals that contain the true difference. A verdict is ``wrong`` if it says lower cost, higher cost or no better
than random and the opposite is true (10 % below random counts as better). In a world that changes at half time, the
delay is that of the first alarm after the change; every other alarm is false.
"""

import argparse
import contextlib
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import draws, policies
from regretless.draws import ENVIRONMENT, LEARN, REFERENCES, purpose_key
from regretless.experiments.arena import WORLDS, ArenaWorld
from regretless.live.comparison import WINDOW, BackgroundSolver, CostComparison, CostReport, HealthRecord, compare_costs
from regretless.live.health import NEGLIGIBLE_SAVING, is_no_better_than_random
from regretless.policies.scaling import Scaled
from regretless.simulation import stream
from regretless.startup import compiler_options, configure

EVERY = 200
_MIDDLE = {"items": 30, "k": 5, "drift": "abrupt"}

CHANGED = {
    world.name: world
    for world in (
        ArenaWorld("relu30drift", "own", "world_topk", {**_MIDDLE, "shape": "relu"}, horizon=2000),
        ArenaWorld("exp30drift", "own", "world_topk", {**_MIDDLE, "shape": "exp"}, horizon=2000),
        ArenaWorld(
            "out30drift",
            "own",
            "world_topk",
            {**_MIDDLE, "shape": "relu", "outliers": 0.005},
            horizon=2000,
        ),
        ArenaWorld(
            "tails30drift",
            "own",
            "world_topk",
            {**_MIDDLE, "shape": "relu", "noise": "student", "noise_size": 0.5},
            horizon=2000,
        ),
        ArenaWorld("late30drift", "own", "world_topk", _MIDDLE, delay=50, horizon=2000),
        ArenaWorld(
            "const100drift",
            "own",
            "world_topk",
            {"items": 100, "k": 10, "shape": "const", "drift": "abrupt"},
            horizon=2000,
        ),
        ArenaWorld(
            "assignment8drift",
            "own",
            "world_assignment",
            {"side": 8, "drift": "abrupt"},
            horizon=2000,
        ),
    )
}
"""Additional worlds that change at half time."""


class Played(NamedTuple):
    """Runs of one policy on one world, ``[seeds, rounds, …]``; ``id`` is the decision whose feedback arrives."""

    contexts: np.ndarray
    decisions: np.ndarray
    means: np.ndarray  # mean costs, unknown to the policy
    at_random: np.ndarray  # solutions of random costs
    instances: Any
    id: np.ndarray  # 1, 2, …; 0: nothing arrived
    residual: np.ndarray
    total: np.ndarray


def play(world: ArenaWorld, policy: str, seeds: list[int], horizon: int | None = None, scaling: bool = True) -> Played:
    """Play these seeds in one program; the policy is scaled as in a live learner."""
    benchmark = world.make() if horizon is None else _shortened(world, horizon)
    length = horizon or world.horizon or benchmark.horizon
    game = stream.SimulationSpec(benchmark, world.delay, world.missing)
    problem = benchmark.problem(world.feedback, may_miss=world.missing > 0)
    with jax.enable_x64(True):
        inner = policies.parse(policy).build(problem)
        scaled = jax.tree.map(jnp.asarray, Scaled(problem, inner) if scaling else inner)
        keys = jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
        return Played(*jax.tree.map(np.asarray, _runs(scaled, game, length, keys)))


def _runs(policy: Any, game: stream.SimulationSpec, length: int, keys: Any) -> Any:
    """Play all runs in one program, compiled without expensive optimisations."""
    numbers, static = eqx.partition((policy, game), eqx.is_array)

    def play_all(numbers: Any, keys: Any) -> Any:
        policy, game = eqx.combine(numbers, static)
        return jax.vmap(lambda key: _run(policy, game, length, key))(keys)

    return jax.jit(play_all).lower(numbers, keys).compile(compiler_options())(numbers, keys)


def _shortened(world: ArenaWorld, horizon: int) -> Any:
    return world._replace(horizon=horizon).make()


def _run(policy: Any, game: stream.SimulationSpec, length: int, seed_key: Any) -> tuple[Any, ...]:
    """Play one run."""
    benchmark = game.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    played = stream.draw_rounds(game, seed_key, jnp.int32(0), length)
    anything = draws.normal(purpose_key(seed_key, REFERENCES), played.cost.shape)
    at_random = benchmark.oracle.solve(anything, played.instance).w
    best = jnp.zeros(length)
    replication = stream.Replication(policy, game, seed_key, environment)

    def step(carry: Any, inputs: Any) -> Any:
        t, current, least = inputs
        sample = replication.draw_sample(carry.state, current, t)
        solution = policy.oracle.solve_one(sample.cost, current.instance)
        decision, feedback = replication.act(current, sample, solution, t)
        arrival = replication.arrive(carry, decision, feedback, t)
        state, info = policy.learn(purpose_key(seed_key, LEARN, t), carry.state, arrival.decision, arrival.feedback)
        carry, _ = replication.finish_round(carry, arrival, state, info, current, least, t)
        known = info.complete & arrival.arrived
        return carry, (decision.w, jnp.where(known, arrival.decision.id, 0), info.residual, info.total)

    times = 1 + jnp.arange(length, dtype=jnp.int32)
    _, (w, id, residual, total) = jax.lax.scan(step, stream.begin(policy, game, seed_key), (times, played, best))
    contexts = jax.vmap(lambda seen: benchmark.context(environment, seen))(played.observation)
    means = jax.vmap(benchmark.regret_cost)(played)
    return contexts, w, means, at_random, played.instance, id, residual, total


class Look(NamedTuple):
    """A health report at one moment, and the true mean costs of the learner, the best fixed decision and random."""

    at: int
    costs: CostReport
    learner: float
    fixed: float
    random: float


class Run(NamedTuple):
    """The reports and alarms of one run."""

    looks: list[Look]
    alarms: list[tuple[int, int]]  # noticed, since


def watched(played: Played, run: int, oracle: Any) -> Run:
    """Record the rounds of a run in the order of their feedback."""
    contexts, decisions, means = (np.asarray(part[run], float) for part in played[:3])
    record = HealthRecord.empty(contexts.shape[1:], decisions.shape[1])
    instances = None if played.instances is None else played.instances[run]
    solver = BackgroundSolver(oracle, contextlib.nullcontext)
    learned: list[Any] = []
    report = Run([], [])
    for t, id in enumerate(played.id[run].tolist(), 1):
        if id:
            instance = None if instances is None else instances[id - 1]
            decision: Any = SimpleNamespace(
                id=id,
                member=0,
                cost_sample=np.ones(1),
                context=contexts[id - 1],
                w=decisions[id - 1],
                instance=instance,
            )
            learned = [*learned[-WINDOW:], decision]
            info = {"residual": float(played.residual[run, t - 1]), "total": float(played.total[run, t - 1])}
            before, record = record, record.after_feedback(info, id, decision)
            if record.alarm[0] != before.alarm[0]:
                report.alarms.append((t, int(record.alarm[1])))
        recent = record.recent_rounds(learned) if t % EVERY == 0 or t == EVERY // 2 else None
        if recent is not None:
            costs = compare_costs(*record.opening_rounds(len(recent.totals)), recent, instances is None, solver)
            last = [int(decision.id) - 1 for decision in learned[-len(recent.totals) :]]
            true, drawn = means[last], np.asarray(played.at_random[run], float)
            usual = true.mean(axis=0)
            fixed = float("nan")
            if instances is None:
                fixed = float(usual @ np.asarray(oracle.answer(usual[None], None).w[0]))
            at_random = usual @ drawn.mean(axis=0) if instances is None else np.mean(np.sum(true * drawn[last], axis=1))
            report.looks.append(
                Look(t, costs, float(np.mean(np.sum(true * decisions[last], axis=1))), fixed, float(at_random))
            )
    return report


def line(name: str, policy: str, runs: list[Run], rounds: int, change: int | None) -> str:
    """Return a row of the table."""
    looks = [look for run in runs for look in run.looks]
    fixed = [(look.costs.best_fixed, look.learner - look.fixed) for look in looks if look.costs.best_fixed is not None]
    random = [
        (look.costs.random, look.learner - look.random, look.random) for look in looks if look.costs.random is not None
    ]
    plain = [(estimate, true) for estimate, true, _ in random]
    called = [(is_no_better_than_random(estimate), true / abs(cost)) for estimate, true, cost in random]
    cells = [
        f"{name:17} {policy:9}",
        f"{len(runs):3d} × {rounds}",
        f"{np.mean([true for _, true in called]):+6.0%}" if called else "  none",
        f"{np.mean([flagged for flagged, _ in called]):5.0%}" if called else " none",
        f"{np.mean([flagged and true < -NEGLIGIBLE_SAVING for flagged, true in called]):5.1%}" if called else " none",
        _fractions(plain),
        _fractions(fixed),
    ]
    first = [next((t for t, _ in run.alarms if change is not None and t > change), None) for run in runs]
    false = sum(sum(change is None or t <= change for t, _ in run.alarms) for run in runs)
    steps = len(runs) * (rounds if change is None else change)
    cells.append(f"{false} ({5000 * false / steps:.2f})")
    if change is not None:
        late = [t - change for t in first if t is not None]
        inside = sum(delay <= 150 for delay in late)
        median = np.median(late) if late else float("nan")
        cells.append(f"{inside}/{len(runs)} (median {median:.0f}, most {max(late, default=-1)})")
    return "  ".join(cells)


def _fractions(pairs: list[tuple[CostComparison, float]]) -> str:
    """Return the fractions of lower, higher and wrong verdicts, and of intervals that contain the truth."""
    if not pairs:
        return f"{'none':27}"
    lower = np.mean([estimate.high < 0 for estimate, _ in pairs])
    higher = np.mean([estimate.low > 0 for estimate, _ in pairs])
    wrong = np.mean([(estimate.high < 0 <= true) or (estimate.low > 0 >= true) for estimate, true in pairs])
    covered = np.mean([estimate.low <= true <= estimate.high for estimate, true in pairs])
    return f"{lower:4.0%} {higher:4.0%} {wrong:5.1%}  {covered:4.0%}   "


def change_of(world: ArenaWorld, rounds: int) -> int | None:
    """Return the round after which the world changes, or None."""
    kind = world.settings.get("drift", "none")
    at = {"abrupt": rounds // 2, "seasons": rounds // 8}.get(kind)
    return None if at is None else at + world.delay


HEADER = (
    "world             policy     runs        true   no better than random, wrong  "
    "than random: lower higher wrong covered  than the best fixed: the same  "
    "false alarms (in 5,000 rounds)  noticed within 150"
)


def main() -> None:
    """Print a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    every = {**WORLDS, **CHANGED}
    parser.add_argument("--worlds", nargs="*", default=["relu30out", "tails30", "lin30late", "lin30lost", "lin30drift"])
    parser.add_argument("--policy", default="adaptive")
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--seeds", type=int, default=1000, help="the first of them")
    given = parser.parse_args()
    configure("auto")
    print(HEADER, flush=True)
    for name in given.worlds:
        world = every[name]
        played = play(world, given.policy, list(range(given.seeds, given.seeds + given.runs)))
        rounds = played.id.shape[1]
        runs = [watched(played, run, world.make().oracle) for run in range(given.runs)]
        print(line(name, given.policy, runs, rounds, change_of(world, rounds)), flush=True)


if __name__ == "__main__":
    main()
