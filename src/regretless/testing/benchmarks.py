"""The contract of a benchmark: rounds of the promised shapes from its keys alone, a true conditional mean, usable feedback."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.errors import SettingsError
from regretless.feedback import check_linkage
from regretless.problem import form_of
from regretless.testing.words import equal, form_difference, name_of, require

ROUNDS, MANY = 16, 8192
FARTHEST = 6.0
"""Standard errors that a mean may be off, in the worst of some thousand comparisons."""


def check_benchmark(part: Benchmark | BenchmarkSpec | type[BenchmarkSpec]) -> None:
    """Check a benchmark, or its specification (a class or an object)."""
    spec = part() if isinstance(part, type) else part
    benchmark = spec.build() if isinstance(spec, BenchmarkSpec) else spec
    who = f"benchmark {getattr(benchmark, 'name', name_of(part))!r}"
    require(isinstance(benchmark, Benchmark), f"{who}: expected a Benchmark, got {type(benchmark).__name__}")
    require(benchmark.horizon >= 1, f"{who}: expected a horizon of at least one round, got {benchmark.horizon}")
    limit = benchmark.longest
    require(limit is None or benchmark.horizon <= limit, f"{who}: its horizon is longer than the {limit} rounds it has")
    try:
        json.dumps(benchmark.describe(), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{who}: describe must return JSON data ({error})") from None
    with jax.enable_x64(True):
        _check_rounds(who, benchmark)
        _check_feedback(who, benchmark)
        _check_mean(who, benchmark)


def drawn(benchmark: Benchmark, seed: int, count: int) -> tuple[Any, Any, Round]:
    """The environment of one replication, contexts and rounds, drawn as simulations do."""
    environment = benchmark.environment(jax.random.key(seed))
    most = count if benchmark.longest is None else min(count, benchmark.longest)
    keys = jax.random.split(jax.random.key(seed + 100), most)
    times = jnp.arange(1, most + 1, dtype=jnp.int32)
    rounds = jax.jit(jax.vmap(lambda key, t: benchmark.round(key, environment, t)))(keys, times)
    contexts = jax.jit(jax.vmap(lambda seen: benchmark.context(environment, seen)))(rounds.observation)
    return environment, contexts, rounds


def _check_rounds(who: str, benchmark: Benchmark) -> None:
    environment, contexts, rounds = drawn(benchmark, 0, ROUNDS)
    count, dim = rounds.cost.shape[0], benchmark.oracle.dim
    for what, array, shape in (("contexts", contexts, benchmark.context_shape), ("costs", rounds.cost, (dim,))):
        require(
            array.shape == (count, *shape),
            f"{who}: expected {what} of shape {shape}, got {array.shape[1:]}; context_shape and the oracle promise it",
        )
        require(np.isfinite(np.asarray(array)), f"{who}: {what} hold numbers that are not finite")
    if rounds.mean is not None:
        said = form_difference(rounds.mean, rounds.cost)
        require(not said, f"{who}: the conditional mean must have the form of the cost, but {said}")
    require(
        rounds.mean is not None or not benchmark.regret_on_mean,
        f"{who}: counts regret on the conditional mean, but its rounds have none; give Round(…, mean=…)",
    )
    _, again, twice = drawn(benchmark, 0, ROUNDS)
    require(
        equal((contexts, rounds), (again, twice)),
        f"{who}: the same keys must give the same rounds; draw everything from the key that is given",
    )
    first: Any = jax.tree.map(lambda leaf: leaf[0], rounds)
    promised = form_of(benchmark.problem().example_instance())
    require(
        form_of(first.instance) == promised,
        f"{who}: the instances of its rounds differ in form from those of its problem",
    )
    for name, cost in benchmark.predictions(environment, first).items():
        require(
            cost.shape == (dim,) and np.isfinite(np.asarray(cost)),
            f"{who}: the prediction {name!r} must be a finite cost of shape ({dim},), got shape {cost.shape}",
        )


def _check_feedback(who: str, benchmark: Benchmark) -> None:
    """Every regime that it does not refuse recovers the total, on its own decisions."""
    _, _, rounds = drawn(benchmark, 2, 5)
    costs, instances = jax.tree.map(np.asarray, (rounds.cost, rounds.instance))
    solutions = jax.tree.map(jnp.asarray, benchmark.oracle.answer(costs, instances))
    accepted = 0
    for name in feedback.REGISTRY:
        try:
            rule = benchmark.measurement(name)
        except SettingsError:
            continue
        accepted += 1
        try:
            check_linkage(rule, solutions)
        except ValueError as error:
            raise AssertionError(f"{who}: {error}") from None
        said = benchmark.problem(name).difference(benchmark.problem(rule))
        require(not said, f"{who}: problem({name!r}) and problem(measurement({name!r})) differ: {said}")
    require(accepted, f"{who}: refuses every feedback regime")
    try:
        benchmark.measurement("no such regime")
    except SettingsError:
        return
    raise AssertionError(f"{who}: accepts a feedback regime that does not exist; leave unknown names to super()")


def _check_mean(who: str, benchmark: Benchmark) -> None:
    """``E[(c − mean) · g(x)] = 0`` for bounded functions g of what is seen: 1, the mean's own size, the context's features."""
    if benchmark.longest is not None and benchmark.longest < MANY:
        return  # recorded rounds: what is their mean is what the recording says
    _, contexts, rounds = drawn(benchmark, 1, MANY)
    if rounds.mean is None:
        return
    mean, features = np.asarray(rounds.mean), np.asarray(contexts).reshape(len(contexts), -1)[:, :8]
    surprise = np.asarray(rounds.cost) - mean
    weights = [np.ones_like(mean), np.tanh(_standard(mean)), *(np.tanh(_standard(x))[:, None] for x in features.T)]
    scale = np.max(np.abs(mean)) + np.max(np.abs(surprise))
    for weight in weights:
        terms = surprise * weight
        error = terms.std(axis=0, ddof=1) / len(terms) ** 0.5
        off = np.abs(terms.mean(axis=0))
        worst = int(np.argmax(off - FARTHEST * error))
        require(
            off <= FARTHEST * error + 1e-9 * scale,
            f"{who}: mean is not the conditional mean of the cost given what is seen: coordinate "
            f"{worst} is off by {off[worst]:.3g} over {len(terms):,} rounds; give E[c|x], or leave mean out",
        )


def _standard(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
