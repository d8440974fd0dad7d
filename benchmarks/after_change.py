"""Print how fast policies recover from an abrupt change: ``python benchmarks/after_change.py [POLICY …]``.

Thirty items, of which five are chosen; at half time all coefficients are drawn again (the arena's ``lin30drift``,
seeds 1000 to 1029). A row is the mean regret of a round, divided by that of the best fixed decision after the change.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np

from regretless.startup import configure

SEEDS, WINDOW, SHOWN = range(1000, 1030), 50, 400


def main(names: list[str]) -> None:
    """Print a row for each window of rounds after the change."""
    configure("auto")
    from regretless import policies
    from regretless.experiments.arena import WORLDS
    from regretless.policies.scaling import Scaled
    from regretless.simulation.simulator import simulate
    from regretless.simulation.stream import SimulationSpec, draw

    world = WORLDS["lin30drift"]
    benchmark, half = world.make(), world.horizon // 2
    problem = benchmark.problem("bandit")
    played = {name: Scaled(problem, policies.parse(name).build(problem)) for name in names}
    traces = simulate(played, benchmark, seeds=SEEDS, horizon=world.horizon, delay=world.delay, missing=world.missing)

    def fixed(seed: jax.Array) -> jax.Array:
        """Return the regret of the best fixed decision in each round after the change."""
        segment = draw(SimulationSpec(benchmark), jax.random.key(seed), jnp.int32(half), jnp.int32(half), half)
        costs = jax.vmap(benchmark.regret_cost)(segment.rounds)
        return costs @ benchmark.oracle.solve(jnp.sum(costs, axis=0)[None], None).w[0] - segment.best

    best = np.asarray(jax.jit(jax.vmap(fixed))(jnp.asarray(SEEDS))).mean(axis=1)
    print(f"| rounds after the change | {' | '.join(f'`{name}`' for name in names)} |")
    print(f"| --- |{' --- |' * len(names)}")
    for start in range(0, SHOWN, WINDOW):
        cells = []
        for name in names:
            rounds = traces[name].regret[:, half + start : half + start + WINDOW].mean(axis=1)
            ratios = rounds / best.mean()
            cells.append(f"{ratios.mean():.2f} ± {ratios.std(ddof=1) / len(ratios) ** 0.5:.2f}")
        print(f"| {start + 1}–{start + WINDOW} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:] or ["adaptive", "linear_thompson"])
