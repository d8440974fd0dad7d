"""Print whether a guarded policy keeps its budget, and what it saves, on twenty worlds.

    python benchmarks/guarded.py --runs 400

For each seed, the incumbent is the best fixed decision of the first 200 rounds. The excess is what was decided beyond
the incumbent's cost, in mean costs that no policy observes, and decisions whose feedback has not come count, too. The
budget is 5 % of the incumbent's cost, or where costs are near zero as much money as 5 % of its cost before the shift.
"""

import argparse
import sys
import time
from collections import defaultdict
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from regretless import policies
from regretless.draws import DECIDE, ENVIRONMENT, LEARN, START, purpose_key
from regretless.experiments.arena import WORLDS
from regretless.policies.guard import INCUMBENT, Guarded, add_guard, is_policys
from regretless.simulation import stream
from regretless.simulation.stream import SimulationSpec
from regretless.startup import configure

FIRST = 200
"""Rounds whose best fixed decision is the incumbent."""

FROM_ROUND = 100
"""Round from which the budget has to be kept at every time."""

PER = 100
"""Rounds for which a budget in money is meant."""


class GuardedWorld(NamedTuple):
    """A world of the arena with other levels of cost, a drift of the incumbent, and a schedule of feedback."""

    kind: str
    base: str
    shift: str = ""  # "items": the mean over all coordinates becomes zero; "incumbent": the incumbent's mean
    money: bool = False
    drift: float = 0.0  # change of the incumbent's costs from the first round to the last, as a share
    delay: int = 0
    outage: tuple[int, int] | None = None  # no feedback in these rounds; then all of it
    batch: tuple[int, int] | None = None


GUARDED_WORLDS = {
    "lin30": GuardedWorld("plain", "lin30late"),
    "relu30": GuardedWorld("plain", "relu30"),
    "exp30": GuardedWorld("plain", "exp30"),
    "tails30": GuardedWorld("plain", "tails30"),
    "assignment8": GuardedWorld("plain", "assignment8"),
    "rewards30": GuardedWorld("plain", "rewards30"),
    "lin30 signed": GuardedWorld("signed", "lin30late", "items"),
    "relu30 signed": GuardedWorld("signed", "relu30", "items"),
    "lin30 signed, money": GuardedWorld("signed", "lin30late", "items", True),
    "lin30 near zero": GuardedWorld("near zero", "lin30late", "incumbent", True),
    "relu30 near zero": GuardedWorld("near zero", "relu30", "incumbent", True),
    "assignment8 near zero": GuardedWorld("near zero", "assignment8", "incumbent", True),
    "lin30 late": GuardedWorld("late", "lin30late", delay=50),
    "relu30 late": GuardedWorld("late", "relu30", delay=50),
    "lin30 outage": GuardedWorld("outage", "lin30late", outage=(250, 550)),
    "relu30 outage": GuardedWorld("outage", "relu30", outage=(250, 550)),
    "lin30 batch": GuardedWorld("batch", "lin30late", batch=(60, 460)),
    "relu30 batch": GuardedWorld("batch", "relu30", batch=(200, 600)),
    "lin30 drift up": GuardedWorld("drift", "lin30late", drift=0.2),
    "lin30 drift down": GuardedWorld("drift", "lin30late", drift=-0.2),
}


class WorldNumbers(NamedTuple):
    """What differs between worlds of one benchmark, as data to one program."""

    shift_items: Any
    shift_incumbent: Any
    money: Any
    drift: Any
    arrived: Any  # [rounds]: decisions whose feedback has come once a round is decided


class GuardedRun(NamedTuple):
    """One run; costs are fractions of the incumbent's mean absolute cost."""

    excess: Any  # mean over all rounds
    worst: Any  # largest excess so far as a share of what the budget allows, from round FROM_ROUND on
    quarter: Any  # mean excess of the last quarter
    by_policy: Any  # share of the last quarter's rounds that the policy decided


def schedule(world: GuardedWorld, rounds: int) -> np.ndarray:
    """Return for each round how many decisions' feedback has come after it."""
    arrived = np.maximum(np.arange(1, rounds + 1) - world.delay, 0)
    for pause in (world.outage, world.batch):
        if pause is not None:
            first, last = pause
            arrived[first : last - 1] = arrived[first - 1]
    return arrived.astype(np.int32)


def numbers_of(world: GuardedWorld, rounds: int) -> WorldNumbers:
    """Return a world's numbers."""
    numbers = (world.shift == "items", world.shift == "incumbent", world.money, world.drift)
    return WorldNumbers(*map(np.float64, numbers), schedule(world, rounds))


@eqx.filter_jit
def play_all(policy: Guarded, game: SimulationSpec, setting: WorldNumbers, keys: Any, rounds: int) -> GuardedRun:
    """Play all seeds in one program, which serves every world of the same benchmark."""
    return jax.vmap(lambda key: play_one(policy, game, setting, key, rounds))(keys)


def play_one(policy: Guarded, game: SimulationSpec, setting: WorldNumbers, key: Any, rounds: int) -> GuardedRun:
    """Play one seed with its incumbent."""
    benchmark, problem = game.benchmark, policy.problem
    drawn = stream.draw_rounds(game, key, jnp.int32(0), rounds)
    means = jax.vmap(benchmark.regret_cost)(drawn)
    fixed = benchmark.oracle.solve_one(jnp.mean(means[:FIRST], axis=0)).w
    unshifted = jnp.mean(means[:FIRST] @ fixed)
    shift = setting.shift_items * jnp.mean(means) + setting.shift_incumbent * unshifted / jnp.sum(fixed)
    growth = 1.0 + setting.drift * jnp.arange(rounds)[:, None] / rounds * fixed
    costs, means = drawn.cost * growth - shift, means * growth - shift
    amount = policy.budget[0] * jnp.abs(unshifted) * PER
    budget = jnp.where(setting.money > 0, jnp.stack([jnp.zeros(()), amount, amount / PER]), policy.budget)
    policy = eqx.tree_at(lambda whole: (whole.incumbent, whole.budget), policy, (1.0 - 2.0 * fixed, budget))
    environment = benchmark.environment(purpose_key(key, ENVIRONMENT))
    contexts = jax.vmap(lambda seen: benchmark.context(environment, seen))(drawn.observation)

    def learn(i: Any, carried: Any) -> Any:
        state, decisions = carried
        decision = jax.tree.map(lambda leaf: leaf[i], decisions)
        state, _ = policy.learn(purpose_key(key, LEARN, i), state, decision, problem.observe(decision, costs[i]))
        return state, decisions

    def play(t: Any, carried: Any) -> Any:
        state, decisions, learned = carried
        places = jnp.arange(rounds)
        waiting = jnp.sum(is_policys(decisions.member) & (places >= learned) & (places < t))
        state = policy.with_waiting(state, waiting)
        decision = policy.decide(purpose_key(key, DECIDE, t), state, contexts[t])
        decisions = jax.tree.map(lambda room, leaf: room.at[t].set(leaf), decisions, decision)
        state, decisions = jax.lax.fori_loop(learned, setting.arrived[t], learn, (state, decisions))
        return state, decisions, setting.arrived[t]

    empty = jax.tree.map(lambda leaf: jnp.zeros((rounds, *leaf.shape), leaf.dtype), problem.example_decision())
    start = policy.init(purpose_key(key, START)), empty, jnp.int32(0)
    _, decisions, _ = jax.lax.fori_loop(0, rounds, play, start)
    extra, usual = jnp.sum(means * (decisions.w - fixed), axis=1), jnp.abs(costs @ fixed)
    allowed = budget[0] * jnp.cumsum(usual) + jnp.maximum(budget[1], budget[2] * jnp.arange(1, rounds + 1))
    last, scale = slice(-(rounds // 4), None), jnp.mean(usual)
    return GuardedRun(
        jnp.mean(extra) / scale,
        jnp.max((jnp.cumsum(extra) / allowed)[FROM_ROUND:]),
        jnp.mean(extra[last]) / scale,
        jnp.mean(decisions.member[last] != INCUMBENT),
    )


def build_game(base: str, policy: str, budget: float) -> tuple[SimulationSpec, Guarded]:
    """Return a benchmark of the arena and a guarded policy for it."""
    benchmark = WORLDS[base].make()
    problem = benchmark.problem("bandit")
    inner = policies.Scaled(problem, policies.parse(policy).build(problem))
    return SimulationSpec(benchmark), add_guard(inner, jnp.zeros(problem.dim), budget=budget)


def main() -> None:
    """Print a line for each world, and one for each kind of world."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400, help="over all worlds")
    parser.add_argument(
        "--first-seed", type=int, default=1000, help="choose on seeds from 100000, report on 1000 and after"
    )
    parser.add_argument("--worlds", nargs="*", default=list(GUARDED_WORLDS), help="some of the twenty, by name")
    parser.add_argument("--policy", default="linear_thompson")
    parser.add_argument("--budget", type=float, default=0.05)
    parser.add_argument("--rounds", type=int, default=1500, help="of each run")
    given = parser.parse_args()
    configure("auto")
    count = max(1, given.runs // len(given.worlds))
    keys = jax.vmap(jax.random.key)(np.arange(given.first_seed, given.first_seed + count, dtype=np.uint32))
    games: dict[str, tuple[SimulationSpec, Guarded]] = {}
    kept: dict[str, list[bool]] = defaultdict(list)
    print("world                  excess  largest part of the budget  last quarter ± 2 SE  decided by the policy then")
    for name in sorted(given.worlds, key=lambda name: GUARDED_WORLDS[name].base):
        world = GUARDED_WORLDS[name]
        with jax.enable_x64(True):
            if world.base not in games:
                games[world.base] = build_game(world.base, given.policy, given.budget)
            game, policy = games[world.base]
            played = play_all(policy, game, numbers_of(world, given.rounds), keys, given.rounds)
        runs = jax.tree.map(np.asarray, played)
        kept[world.kind] += (runs.worst <= 1.0).tolist()
        doubt = 2 * runs.quarter.std(ddof=1) / count**0.5 if count > 1 else float("nan")
        kept_by = f"kept by {np.sum(runs.worst <= 1.0)} of {count}"
        quarter = f"{runs.quarter.mean():+7.1%} ± {doubt:.1%}"
        parts = (
            f"{runs.excess.mean():+7.1%}  {runs.worst.max():5.0%} ({kept_by})  {quarter}  {runs.by_policy.mean():.0%}"
        )
        print(f"{name:21} {parts}", flush=True)
        print(f"{time.process_time():.0f} s of processor time", file=sys.stderr, flush=True)
    for kind, every in kept.items():
        print(f"{kind}: the budget held at every time in {sum(every)} of {len(every)} runs ({np.mean(every):.1%})")


if __name__ == "__main__":
    main()
