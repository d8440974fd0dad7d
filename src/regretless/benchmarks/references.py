"""Reference lines: what a decision maker would lose who knows more, or less, than any policy. Computed from the stream."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from regretless import draws
from regretless.benchmarks.base import Benchmark, Round
from regretless.results import Reference
from regretless.types import Key

ROUNDING = 1e-12


class Tally(NamedTuple):
    """Sums over the rounds of one replication's segment."""

    best: Float[Array, ""]  # Σ min_w c·w
    random: Float[Array, ""]  # Σ c·w*(N(0, I))
    clairvoyant: Float[Array, ""] | None  # Σ c·w*(E[c|x])
    cost: Float[Array, " d"] | None  # Σ c, for the best fixed decision; None if the feasible set changes
    predicted: dict[str, Float[Array, ""]]  # Σ c·w*(prediction), for each prediction that the benchmark has


def questions(benchmark: Benchmark, key: Key, environment: PyTree, rounds: Round) -> Float[Array, "lines rounds d"]:
    """The cost vectors whose solutions the lines of one replication need: the judged costs, random ones, the conditional means
    where they are known, and each prediction that the benchmark has.
    """
    costs = jax.vmap(benchmark.judged)(rounds)
    predictions = jax.vmap(lambda played: benchmark.predictions(environment, played))(rounds)
    lines = [costs, draws.normal(key, costs.shape)]
    lines += [] if rounds.mean is None else [rounds.mean]
    return jnp.stack([*lines, *predictions.values()])


def tally(
    benchmark: Benchmark, rounds: Round, costs: Float[Array, "rounds d"], w: Float[Array, "lines rounds d"]
) -> Tally:
    """The sums that the reference lines of one replication are made of; ``w`` solves what ``questions`` asked."""
    best, random, *others = jnp.sum(costs * w, axis=(1, 2))
    clairvoyant = None if rounds.mean is None else others.pop(0)
    first = jax.tree.map(lambda leaf: leaf[0], rounds)
    names = jax.eval_shape(lambda: benchmark.predictions(benchmark.environment(jax.random.key(0)), first))
    return Tally(
        best=best,
        random=random,
        clairvoyant=clairvoyant,
        cost=jnp.sum(costs, axis=0) if rounds.instance is None else None,
        predicted=dict(zip(names, others, strict=True)),
    )


def references(benchmark: Benchmark, total: Tally) -> list[Reference]:
    """The reference lines from the tally of the whole horizon, in float64 and with a leading axis of replications."""
    total = jax.tree.map(np.asarray, total)
    lines = [_line("random", total.random, total.best)]
    if total.cost is not None:
        fixed = np.asarray(benchmark.oracle.answer(np.asarray(total.cost, np.float64), None).w, np.float64)
        lines.append(_line("best_fixed", np.sum(total.cost * fixed, axis=1), total.best))
    if total.clairvoyant is not None:
        lines.append(_line("clairvoyant", total.clairvoyant, total.best))
    return [*lines, *(_line(name, spent, total.best) for name, spent in total.predicted.items())]


def _line(name: str, spent: Any, best: Any) -> Reference:
    """The line of one decision maker; what rounding leaves of two equal sums is no regret."""
    regret = np.where(np.isclose(spent, best, rtol=ROUNDING, atol=0.0), 0.0, spent - best)
    error = float(np.std(regret, ddof=1) / len(regret) ** 0.5) if len(regret) > 1 else float("nan")
    return Reference(name, float(np.mean(regret)), error)
