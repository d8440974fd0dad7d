"""The contracts of oracles, feedback regimes and benchmarks: what a problem is made of."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import feedback, oracles
from regretless.benchmarks.base import Benchmark, BenchmarkSpec, Round
from regretless.errors import OracleError, SettingsError
from regretless.feedback import Measurement, check_linkage
from regretless.oracles.base import MaskedOracle, Oracle
from regretless.problem import form_of
from regretless.testing.helpers import form_difference, is_equal, name_of, require
from regretless.types import SOLVED, Operator, Solution

COST_VECTORS = 24
"""Random cost vectors that an oracle solves."""

DIM, DECISIONS = 6, 8
"""Costs and decisions that a feedback regime is tried on."""

ROUNDS, MEAN_ROUNDS = 16, 8192
"""Rounds whose form is checked, and rounds that a conditional mean is compared with."""

MEAN_ERRORS = 6.0
"""Standard errors that a mean may be off, in the worst of some thousand comparisons."""


def check_oracle(oracle: Oracle) -> None:
    """Check that an oracle is exact, feasible, repeatable and the same in every form, on random costs and on ties.

    Parameters
    ----------
    oracle : Oracle
        The feasible set.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    who = f"oracle {type(oracle).__name__}"
    require(isinstance(oracle, Oracle), f"{who}: expected an Oracle; subclass it, or use rg.oracles.external")
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(COST_VECTORS, oracle.dim))
    _check_solutions(who, oracle, costs)
    _check_batches(who, oracle, costs)
    _check_refusals(who, oracle)
    _check_ties(who, oracle, rng.integers(-1, 2, size=(COST_VECTORS, oracle.dim)).astype(float))
    if oracle.on_host:
        _check_host(who, oracle)
    else:
        _check_program(who, oracle, costs)
    if oracle.example_instance() is not None:
        _check_instances(who, oracle, costs)


def _check_solutions(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    solution = oracle.answer(costs)
    w = np.asarray(solution.w)
    require(w.shape == costs.shape, f"{who}: expected decisions of shape {costs.shape}, got {w.shape}")
    require(
        w.dtype == np.float64 and isinstance(solution.w, np.ndarray),
        f"{who}: answer must return NumPy arrays in float64, got {type(solution.w).__name__} of {w.dtype}",
    )
    require(np.asarray(solution.status) == SOLVED, f"{who}: expected every row to be solved, got {solution.status}")
    require(
        oracle.contained(w),
        f"{who}: a decision that it returned is not feasible; solve and feasible disagree",
    )
    values = costs @ w.T  # row i, decision j
    best = np.min(values, axis=1)
    require(
        np.diag(values) <= best + 1e-6 * np.maximum(1.0, np.abs(best)),
        f"{who}: does not minimise: for some cost, a decision that it returned for another cost is cheaper; the "
        "problem is min c·w, so a maximiser must negate its costs",
    )
    most = int(np.max(np.sum(w != 0, axis=1)))
    require(
        most <= oracle.support,
        f"{who}: says that at most {oracle.support} coordinates are not zero (support), but {most} of a decision are",
    )
    again = oracle.answer(costs).w
    require(np.array_equal(w, again), f"{who}: solving the same costs again gives other decisions")


def _check_batches(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    whole, one = oracle.answer(costs), oracle.answer(costs[3:4])
    require(np.array_equal(whole.w[3:4], one.w), f"{who}: a row alone is solved differently than in a batch")
    empty = oracle.answer(np.zeros((0, oracle.dim))).w
    require(empty.shape == (0, oracle.dim), f"{who}: an empty batch must have an empty answer, got {empty.shape}")
    first = jax.tree.map(lambda leaf: leaf[0], one.aux)
    difference = form_difference(jax.tree.map(np.shape, first), jax.tree.map(np.shape, oracle.aux_form()))
    require(not difference, f"{who}: aux_form must describe what solutions hold next to w, but {difference}")
    try:
        json.dumps(oracle.fingerprint(), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise AssertionError(f"{who}: the fingerprint must be JSON data ({error})") from None
    require(oracle.fingerprint() == oracle.fingerprint(), f"{who}: the fingerprint must be the same every time")


def _check_refusals(who: str, oracle: Oracle) -> None:
    costs = np.ones((2, oracle.dim))
    costs[1, 0] = np.nan
    try:
        oracle.answer(costs)
    except OracleError:
        return
    raise AssertionError(f"{who}: costs that are not finite must raise OracleError; write _answer, not answer")


def _check_ties(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    w = oracle.answer(costs).w
    alone = np.concatenate([oracle.answer(row[None]).w for row in costs[:6]])
    require(np.array_equal(w[:6], alone), f"{who}: ties must be broken the same way every time, alone and in a batch")


def _check_program(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    with jax.enable_x64(True):
        program = jax.jit(jax.vmap(lambda rows: oracle.solve(rows).w))
        many = jnp.asarray(costs).reshape(4, -1, oracle.dim)
        require(
            "callback" not in str(jax.make_jaxpr(program)(many)),
            f"{who}: calls Python from inside a program, where it can hang; say on_host and write _answer",
        )
        require(
            np.array_equal(program(many).reshape(costs.shape), oracle.answer(costs).w),
            f"{who}: solves differently inside a compiled program",
        )


def _check_host(who: str, oracle: Oracle) -> None:
    try:
        jax.jit(lambda rows: oracle.solve(rows).w)(jnp.ones((1, oracle.dim)))
    except OracleError:
        return
    raise AssertionError(
        f"{who}: says that it runs on the host, but lets itself be compiled; "
        "write solve by regretless.oracles.base.solve_on_host"
    )


def _check_instances(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    example: Any = oracle.example_instance()
    batch = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(costs), *np.shape(leaf))), example)
    require(
        np.array_equal(oracle.answer(costs, batch).w, oracle.answer(costs).w),
        f"{who}: example_instance must be an instance that changes nothing",
    )
    if isinstance(oracle, MaskedOracle):
        closed = int(np.argmax(np.sum(oracle.answer(costs).w, axis=0)))  # the coordinate that is used most
        mask = np.ones((len(costs), oracle.dim), bool)
        mask[:, closed] = False
        try:
            w = oracle.answer(costs, mask).w
        except OracleError:
            return  # it cannot do without this coordinate
        require(w[:, closed] == 0, f"{who}: uses a coordinate that the instance closes")
        require(oracle.contained(w, mask), f"{who}: a decision under an instance is not feasible under it")


def check_feedback(rule: Measurement | type[Measurement], oracle: Oracle | None = None) -> None:
    """Check that a feedback regime is a linear measurement whose linkage recovers the total, and is what it declares.

    Parameters
    ----------
    rule : Measurement, or subclass of it without arguments
        The feedback regime.
    oracle : Oracle, optional
        The feasible set whose decisions are measured; by default two of six items.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    rule = rule() if isinstance(rule, type) else rule
    who = f"feedback {getattr(rule, 'name', rule)!r}"
    require(isinstance(rule, Measurement), f"{who}: expected a Measurement, got {type(rule).__name__}; subclass it")
    require(isinstance(rule.name, str) and rule.name, f"{who}: expected a name in letters, got {rule.name!r}")
    with jax.enable_x64(True):
        feasible = oracle or oracles.top_k(DIM, 2)
        costs = np.random.default_rng(0).normal(size=(DECISIONS, feasible.dim))
        solutions = jax.tree.map(jnp.asarray, feasible.answer(costs))
        try:
            check_linkage(rule, solutions)
        except (ValueError, SettingsError) as error:
            raise AssertionError(str(error)) from None
        measurements = [_measure(rule, solutions, row) for row in range(DECISIONS)]
        for row, (operator, linkage) in enumerate(measurements):
            _check_measurement_form(who, rule, solutions, row, measurements[0])
            _check_operator(who, operator, linkage, jnp.asarray(costs[row]))
            _check_declared(who, rule, operator, solutions.w[row], jnp.asarray(costs[row]))


def _measure(rule: Measurement, solutions: Solution, row: int) -> tuple[Operator, Any]:
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    return rule.measure(w, aux)


def _check_measurement_form(who: str, rule: Measurement, solutions: Solution, row: int, first: Any) -> None:
    """Check that shapes do not depend on the decision, also inside a program."""
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    try:
        compiled = jax.jit(lambda w, aux: rule.measure(w, aux))(w, aux)
    except jax.errors.JAXTypeError as error:
        raise AssertionError(
            f"{who}: measure cannot be compiled, because it looks at the numbers in w; use jnp.where in place of "
            f"if ({error})"
        ) from None
    difference = form_difference(compiled, first)
    require(
        not difference,
        f"{who}: H(w) and e(w) must have the same form for every decision, but {difference}; pad with rows of zeros",
    )


def _dense(operator: Operator, rows: int) -> np.ndarray:
    """Return ``H`` as a matrix, row by row."""
    return np.stack([np.asarray(operator.rmatvec(row)) for row in jnp.eye(rows)])


def _check_operator(who: str, operator: Operator, linkage: Any, cost: Any) -> None:
    matrix = _dense(operator, len(linkage))
    require(
        np.allclose(operator.matvec(cost), matrix @ np.asarray(cost), atol=1e-9),
        f"{who}: matvec and rmatvec are not each other's transpose; matvec must be H c, rmatvec Hᵀ u",
    )
    require(
        np.array_equal(np.asarray(operator.informative()), np.any(matrix != 0, axis=1)),
        f"{who}: informative must mark the rows of H that are not zero",
    )
    require(
        np.allclose(operator.row_squares(), np.sum(matrix**2, axis=1), atol=1e-9),
        f"{who}: row_squares must be ‖h‖² of each row of H",
    )
    guess = jnp.full(cost.shape, 7.5)
    placed = np.asarray(operator.overwrite(guess, operator.matvec(cost), operator.informative()))
    require(
        np.all(np.isclose(placed, cost) | (placed == 7.5)),
        f"{who}: overwrite must put the cost itself in the coordinates that were seen, and leave the others alone",
    )
    hidden = operator.overwrite(guess, operator.matvec(cost), jnp.zeros(len(linkage), bool))
    require(
        np.array_equal(hidden, guess),
        f"{who}: overwrite changes a prediction although no row was seen; use its argument seen",
    )


def _check_declared(who: str, rule: Measurement, operator: Operator, w: Any, cost: Any) -> None:
    rows = len(operator.row_squares())
    matrix = _dense(operator, rows)
    if rule.sparse:
        require(
            not np.any(matrix[:, np.asarray(w) == 0]),
            f"{who}: says that it is sparse, but measures a coordinate that was not chosen; leave sparse False",
        )
    if rule.separable:
        square = matrix.shape[0] == matrix.shape[1]
        require(
            square and not np.any(matrix - np.diag(np.diag(matrix))),
            f"{who}: says that it is separable, but row i of H does not measure coordinate i alone; leave separable "
            "False",
        )
    if rule.total_only:
        require(
            rows == 1 and np.allclose(matrix[0], w),
            f"{who}: says that only the total is seen, but H is not the one row w; leave total_only False",
        )
    if rule.reveals_all:
        seen = operator.overwrite(jnp.full(len(w), 7.5), operator.matvec(cost), operator.informative())
        require(
            np.allclose(seen, cost),
            f"{who}: says that the whole cost is seen, but overwrite does not give it; leave reveals_all False",
        )
    if rule.max_rows is not None:
        require(
            rows == rule.max_rows + 1,
            f"{who}: declares at most {rule.max_rows} rows, but has {rows} instead of one more, for the total",
        )


def check_benchmark(part: Benchmark | BenchmarkSpec | type[Benchmark] | type[BenchmarkSpec]) -> None:
    """Check that a benchmark's rounds have the promised shapes, a true conditional mean and usable feedback.

    Parameters
    ----------
    part : BenchmarkSpec, Benchmark, or subclass of one of them
        The benchmark.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    given: Any = part
    spec = given() if isinstance(given, type) else given
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
        _check_regimes(who, benchmark)
        _check_mean(who, benchmark)


def _draw_rounds(benchmark: Benchmark, seed: int, count: int) -> tuple[Any, Any, Round]:
    """Return the environment of one replication, contexts and rounds, drawn as simulations do."""
    environment = benchmark.environment(jax.random.key(seed))
    most = count if benchmark.longest is None else min(count, benchmark.longest)
    keys = jax.random.split(jax.random.key(seed + 100), most)
    times = jnp.arange(1, most + 1, dtype=jnp.int32)
    rounds = jax.jit(jax.vmap(lambda key, t: benchmark.round(key, environment, t)))(keys, times)
    contexts = jax.jit(jax.vmap(lambda seen: benchmark.context(environment, seen)))(rounds.observation)
    return environment, contexts, rounds


def _check_rounds(who: str, benchmark: Benchmark) -> None:
    environment, contexts, rounds = _draw_rounds(benchmark, 0, ROUNDS)
    count, dim = rounds.cost.shape[0], benchmark.oracle.dim
    for name, array, shape in (("contexts", contexts, benchmark.context_shape), ("costs", rounds.cost, (dim,))):
        require(
            array.shape == (count, *shape),
            f"{who}: expected {name} of shape {shape}, got {array.shape[1:]}; context_shape and the oracle promise it",
        )
        require(np.isfinite(np.asarray(array)), f"{who}: {name} hold numbers that are not finite")
    if rounds.mean is not None:
        difference = form_difference(rounds.mean, rounds.cost)
        require(not difference, f"{who}: the conditional mean must have the form of the cost, but {difference}")
    require(
        rounds.mean is not None or not benchmark.regret_on_mean,
        f"{who}: counts regret on the conditional mean, but its rounds have none; give Round(…, mean=…)",
    )
    _, again, rounds_again = _draw_rounds(benchmark, 0, ROUNDS)
    require(
        is_equal((contexts, rounds), (again, rounds_again)),
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


def _check_regimes(who: str, benchmark: Benchmark) -> None:
    """Check that every regime that the benchmark does not refuse recovers the total, on its own decisions."""
    _, _, rounds = _draw_rounds(benchmark, 2, 5)
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
        difference = benchmark.problem(name).difference(benchmark.problem(rule))
        require(not difference, f"{who}: problem({name!r}) and problem(measurement({name!r})) differ: {difference}")
    require(accepted, f"{who}: refuses every feedback regime")
    try:
        benchmark.measurement("no such regime")
    except SettingsError:
        return
    raise AssertionError(f"{who}: accepts a feedback regime that does not exist; leave unknown names to super()")


def _check_mean(who: str, benchmark: Benchmark) -> None:
    """Check ``E[(c − mean) · g(x)] = 0`` for bounded functions g: 1, the mean and the features of the context."""
    if benchmark.longest is not None and benchmark.longest < MEAN_ROUNDS:
        return  # recorded rounds have the mean of the recording
    _, contexts, rounds = _draw_rounds(benchmark, 1, MEAN_ROUNDS)
    if rounds.mean is None:
        return
    mean, features = np.asarray(rounds.mean), np.asarray(contexts).reshape(len(contexts), -1)[:, :8]
    surprise = np.asarray(rounds.cost) - mean
    weights = [
        np.ones_like(mean),
        np.tanh(_standardise(mean)),
        *(np.tanh(_standardise(x))[:, None] for x in features.T),
    ]
    scale = np.max(np.abs(mean)) + np.max(np.abs(surprise))
    for weight in weights:
        terms = surprise * weight
        error = terms.std(axis=0, ddof=1) / len(terms) ** 0.5
        deviation = np.abs(terms.mean(axis=0))
        worst = int(np.argmax(deviation - MEAN_ERRORS * error))
        require(
            deviation <= MEAN_ERRORS * error + 1e-9 * scale,
            f"{who}: mean is not the conditional mean of the cost given what is seen: coordinate "
            f"{worst} is off by {deviation[worst]:.3g} over {len(terms):,} rounds; give E[c|x], or leave mean out",
        )


def _standardise(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
