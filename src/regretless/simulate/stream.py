"""The stream of rounds that every policy meets, and the sums that its reference lines are made of."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from regretless.benchmarks.base import Benchmark, Round
from regretless.benchmarks.references import Tally, questions, tally
from regretless.errors import SettingsError
from regretless.keys import ENVIRONMENT, REFERENCES, STREAM, purpose_key
from regretless.trace import DIAGNOSTICS_EVERY
from regretless.types import Key


class Game(eqx.Module):
    """What is played: a benchmark, how its feedback travels, and what is kept of it."""

    benchmark: Benchmark
    delay: int = eqx.field(static=True, default=0)
    missing: float = eqx.field(static=True, default=0.0)
    keep_decisions: bool = eqx.field(static=True, default=False)
    diagnostics_every: int = eqx.field(static=True, default=DIAGNOSTICS_EVERY)


class Drawn(NamedTuple):
    """Rounds ``start + 1 … start + length`` of one replication, and the costs to be solved for its reference lines."""

    environment: PyTree  # the benchmark's, the same in all rounds
    rounds: Round  # leading axis of rounds
    costs: Float[Array, "lines length d"]
    unusable: Int[Array, ""]  # first round that holds a non-finite number, 0 if none does


class Segment(NamedTuple):
    """The same, solved."""

    environment: PyTree
    rounds: Round
    best: Float[Array, " length"]  # min c·w of each round
    tally: Tally
    unusable: Int[Array, ""]


def draw(game: Game, seed_key: Key, start: Int[Array, ""], length: int) -> Drawn:
    """The stream's next ``length`` rounds after round ``start``."""
    benchmark = game.benchmark
    environment = benchmark.environment(purpose_key(seed_key, ENVIRONMENT))
    times = start + 1 + jnp.arange(length, dtype=jnp.int32)
    rounds = jax.vmap(lambda t: benchmark.round(purpose_key(seed_key, STREAM, t), environment, t))(times)
    finite = jnp.ones(length, bool)
    for leaf in jax.tree.leaves((rounds.observation, rounds.cost, rounds.mean)):
        finite = finite & jnp.all(jnp.isfinite(leaf.reshape(length, -1)), axis=1)
    unusable = jnp.where(jnp.all(finite), 0, times[jnp.argmin(finite)])
    costs = questions(benchmark, purpose_key(seed_key, REFERENCES, start), environment, rounds)
    return Drawn(environment, rounds, costs, unusable)


def conclude(game: Game, drawn: Drawn, w: Float[Array, "lines length d"]) -> Segment:
    """The segment with the solutions of its reference lines."""
    costs = jax.vmap(game.benchmark.judged)(drawn.rounds)
    sums = tally(game.benchmark, drawn.rounds, costs, w)
    return Segment(drawn.environment, drawn.rounds, jnp.sum(costs * w[0], axis=1), sums, drawn.unusable)


def draw_and_solve(game: Game, seed_key: Key, start: Int[Array, ""], length: int) -> Segment:
    """The next segment in one program, for an oracle that is pure JAX."""
    drawn = draw(game, seed_key, start, length)
    solve = lambda costs: game.benchmark.oracle.solve(costs, drawn.rounds.instance).w  # noqa: E731
    return conclude(game, drawn, jax.vmap(solve)(drawn.costs))


def first_round(game: Game, seed_key: Key) -> tuple[PyTree, Round, Array]:
    """The environment and a round, to know their shapes."""
    environment = game.benchmark.environment(seed_key)
    return environment, game.benchmark.round(seed_key, environment, jnp.int32(1)), jnp.int32(1)


def check_shapes(game: Game) -> None:
    """Refuses a benchmark whose rounds do not have the shapes that it promises."""
    benchmark = game.benchmark

    def first(key: Key) -> tuple[Array, Array]:
        environment, played, _ = first_round(game, key)
        return benchmark.context(environment, played.observation), played.cost

    context, cost = jax.eval_shape(first, jax.random.key(0))
    for what, shape, promised in (
        ("context", context.shape, benchmark.context_shape),
        ("cost", cost.shape, (benchmark.oracle.dim,)),
    ):
        if shape != promised:
            raise SettingsError(f"benchmark {benchmark.name!r}: expected a {what} of shape {promised}, got {shape}")
