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
from regretless.testing.helpers import Checker, is_equal, name_of
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
    check = Checker(f"oracle {type(oracle).__name__}")
    check(isinstance(oracle, Oracle), "expected an Oracle; subclass it, or use rg.oracles.external")
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(COST_VECTORS, oracle.dim))
    _check_solutions(check, oracle, costs)
    _check_batches(check, oracle, costs)
    _check_refusals(check, oracle)
    _check_ties(check, oracle, rng.integers(-1, 2, size=(COST_VECTORS, oracle.dim)).astype(float))
    if oracle.on_host:
        _check_host(check, oracle)
    else:
        _check_program(check, oracle, costs)
    if oracle.example_instance() is not None:
        _check_instances(check, oracle, costs)


def _check_solutions(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    solution = oracle.answer(costs)
    w = np.asarray(solution.w)
    check(w.shape == costs.shape, f"expected decisions of shape {costs.shape}, got {w.shape}")
    check(
        w.dtype == np.float64 and isinstance(solution.w, np.ndarray),
        f"answer must return NumPy arrays in float64, got {type(solution.w).__name__} of {w.dtype}",
    )
    check(np.asarray(solution.status) == SOLVED, f"expected every row to be solved, got {solution.status}")
    check(oracle.contained(w), "a decision that it returned is not feasible; solve and feasible disagree")
    values = costs @ w.T  # row i, decision j
    best = np.min(values, axis=1)
    check(
        np.diag(values) <= best + 1e-6 * np.maximum(1.0, np.abs(best)),
        "does not minimise: for some cost, a decision that it returned for another cost is cheaper; the "
        "problem is min c·w, so a maximiser must negate its costs",
    )
    most = int(np.max(np.sum(w != 0, axis=1)))
    check(
        most <= oracle.support,
        f"says that at most {oracle.support} coordinates are not zero (support), but {most} of a decision are",
    )
    again = oracle.answer(costs).w
    check(np.array_equal(w, again), "solving the same costs again gives other decisions")


def _check_batches(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    whole, one = oracle.answer(costs), oracle.answer(costs[3:4])
    check(np.array_equal(whole.w[3:4], one.w), "a row alone is solved differently than in a batch")
    empty = oracle.answer(np.zeros((0, oracle.dim))).w
    check(empty.shape == (0, oracle.dim), f"an empty batch must have an empty answer, got {empty.shape}")
    first = jax.tree.map(lambda leaf: leaf[0], one.aux)
    check.same_form(
        jax.tree.map(np.shape, first),
        jax.tree.map(np.shape, oracle.aux_form()),
        "aux_form must describe what solutions hold next to w",
    )
    try:
        json.dumps(oracle.fingerprint(), allow_nan=False)
    except (TypeError, ValueError) as error:
        check.fail(f"the fingerprint must be JSON data ({error})")
    check(oracle.fingerprint() == oracle.fingerprint(), "the fingerprint must be the same every time")


def _check_refusals(check: Checker, oracle: Oracle) -> None:
    costs = np.ones((2, oracle.dim))
    costs[1, 0] = np.nan
    try:
        oracle.answer(costs)
    except OracleError:
        return
    check.fail("costs that are not finite must raise OracleError; write _answer, not answer")


def _check_ties(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    w = oracle.answer(costs).w
    alone = np.concatenate([oracle.answer(row[None]).w for row in costs[:6]])
    check(np.array_equal(w[:6], alone), "ties must be broken the same way every time, alone and in a batch")


def _check_program(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    with jax.enable_x64(True):
        program = jax.jit(jax.vmap(lambda rows: oracle.solve(rows).w))
        many = jnp.asarray(costs).reshape(4, -1, oracle.dim)
        check(
            "callback" not in str(jax.make_jaxpr(program)(many)),
            "calls Python from inside a program, where it can hang; say on_host and write _answer",
        )
        check(
            np.array_equal(program(many).reshape(costs.shape), oracle.answer(costs).w),
            "solves differently inside a compiled program",
        )


def _check_host(check: Checker, oracle: Oracle) -> None:
    try:
        jax.jit(lambda rows: oracle.solve(rows).w)(jnp.ones((1, oracle.dim)))
    except OracleError:
        return
    check.fail(
        "says that it runs on the host, but lets itself be compiled; "
        "write solve by regretless.oracles.base.solve_on_host"
    )


def _check_instances(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    example: Any = oracle.example_instance()
    batch = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(costs), *np.shape(leaf))), example)
    check(
        np.array_equal(oracle.answer(costs, batch).w, oracle.answer(costs).w),
        "example_instance must be an instance that changes nothing",
    )
    if isinstance(oracle, MaskedOracle):
        closed = int(np.argmax(np.sum(oracle.answer(costs).w, axis=0)))  # the coordinate that is used most
        mask = np.ones((len(costs), oracle.dim), bool)
        mask[:, closed] = False
        try:
            w = oracle.answer(costs, mask).w
        except OracleError:
            return  # it cannot do without this coordinate
        check(w[:, closed] == 0, "uses a coordinate that the instance closes")
        check(oracle.contained(w, mask), "a decision under an instance is not feasible under it")


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
    check = Checker(f"feedback {getattr(rule, 'name', rule)!r}")
    check(isinstance(rule, Measurement), f"expected a Measurement, got {type(rule).__name__}; subclass it")
    check(isinstance(rule.name, str) and rule.name, f"expected a name in letters, got {rule.name!r}")
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
            _check_measurement_form(check, rule, solutions, row, measurements[0])
            _check_operator(check, operator, linkage, jnp.asarray(costs[row]))
            _check_declared(check, rule, operator, solutions.w[row], jnp.asarray(costs[row]))


def _measure(rule: Measurement, solutions: Solution, row: int) -> tuple[Operator, Any]:
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    return rule.measure(w, aux)


def _check_measurement_form(check: Checker, rule: Measurement, solutions: Solution, row: int, first: Any) -> None:
    """Check that shapes do not depend on the decision, also inside a program."""
    w, aux = jax.tree.map(lambda leaf: leaf[row], (solutions.w, solutions.aux))
    try:
        compiled = jax.jit(lambda w, aux: rule.measure(w, aux))(w, aux)
    except jax.errors.JAXTypeError as error:
        check.fail(
            f"measure cannot be compiled, because it looks at the numbers in w; use jnp.where in place of if ({error})"
        )
    check.same_form(compiled, first, "H(w) and e(w) must have the same form for every decision; pad with rows of zeros")


def _dense(operator: Operator, rows: int) -> np.ndarray:
    """Return ``H`` as a matrix, row by row."""
    return np.stack([np.asarray(operator.rmatvec(row)) for row in jnp.eye(rows)])


def _check_operator(check: Checker, operator: Operator, linkage: Any, cost: Any) -> None:
    matrix = _dense(operator, len(linkage))
    check(
        np.allclose(operator.matvec(cost), matrix @ np.asarray(cost), atol=1e-9),
        "matvec and rmatvec are not each other's transpose; matvec must be H c, rmatvec Hᵀ u",
    )
    check(
        np.array_equal(np.asarray(operator.informative()), np.any(matrix != 0, axis=1)),
        "informative must mark the rows of H that are not zero",
    )
    check(
        np.allclose(operator.row_squares(), np.sum(matrix**2, axis=1), atol=1e-9),
        "row_squares must be ‖h‖² of each row of H",
    )
    guess = jnp.full(cost.shape, 7.5)
    placed = np.asarray(operator.overwrite(guess, operator.matvec(cost), operator.informative()))
    check(
        np.all(np.isclose(placed, cost) | (placed == 7.5)),
        "overwrite must put the cost itself in the coordinates that were seen, and leave the others alone",
    )
    hidden = operator.overwrite(guess, operator.matvec(cost), jnp.zeros(len(linkage), bool))
    check(
        np.array_equal(hidden, guess), "overwrite changes a prediction although no row was seen; use its argument seen"
    )


def _check_declared(check: Checker, rule: Measurement, operator: Operator, w: Any, cost: Any) -> None:
    rows = len(operator.row_squares())
    matrix = _dense(operator, rows)
    if rule.sparse:
        check(
            not np.any(matrix[:, np.asarray(w) == 0]),
            "says that it is sparse, but measures a coordinate that was not chosen; leave sparse False",
        )
    if rule.separable:
        square = matrix.shape[0] == matrix.shape[1]
        check(
            square and not np.any(matrix - np.diag(np.diag(matrix))),
            "says that it is separable, but row i of H does not measure coordinate i alone; leave separable False",
        )
    if rule.total_only:
        check(
            rows == 1 and np.allclose(matrix[0], w),
            "says that only the total is seen, but H is not the one row w; leave total_only False",
        )
    if rule.reveals_all:
        seen = operator.overwrite(jnp.full(len(w), 7.5), operator.matvec(cost), operator.informative())
        check(
            np.allclose(seen, cost),
            "says that the whole cost is seen, but overwrite does not give it; leave reveals_all False",
        )
    if rule.max_rows is not None:
        check(
            rows == rule.max_rows + 1,
            f"declares at most {rule.max_rows} rows, but has {rows} instead of one more, for the total",
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
    check = Checker(f"benchmark {getattr(benchmark, 'name', name_of(part))!r}")
    check(isinstance(benchmark, Benchmark), f"expected a Benchmark, got {type(benchmark).__name__}")
    check(benchmark.horizon >= 1, f"expected a horizon of at least one round, got {benchmark.horizon}")
    limit = benchmark.longest
    check(limit is None or benchmark.horizon <= limit, f"its horizon is longer than the {limit} rounds it has")
    try:
        json.dumps(benchmark.describe(), allow_nan=False)
    except (TypeError, ValueError) as error:
        check.fail(f"describe must return JSON data ({error})")
    with jax.enable_x64(True):
        _check_rounds(check, benchmark)
        _check_regimes(check, benchmark)
        _check_mean(check, benchmark)


def _draw_rounds(benchmark: Benchmark, seed: int, count: int) -> tuple[Any, Any, Round]:
    """Return the environment of one replication, contexts and rounds, drawn as simulations do."""
    environment = benchmark.environment(jax.random.key(seed))
    most = count if benchmark.longest is None else min(count, benchmark.longest)
    keys = jax.random.split(jax.random.key(seed + 100), most)
    times = jnp.arange(1, most + 1, dtype=jnp.int32)
    rounds = jax.jit(jax.vmap(lambda key, t: benchmark.round(key, environment, t)))(keys, times)
    contexts = jax.jit(jax.vmap(lambda seen: benchmark.context(environment, seen)))(rounds.observation)
    return environment, contexts, rounds


def _check_rounds(check: Checker, benchmark: Benchmark) -> None:
    environment, contexts, rounds = _draw_rounds(benchmark, 0, ROUNDS)
    count, dim = rounds.cost.shape[0], benchmark.oracle.dim
    for name, array, shape in (("contexts", contexts, benchmark.context_shape), ("costs", rounds.cost, (dim,))):
        check(
            array.shape == (count, *shape),
            f"expected {name} of shape {shape}, got {array.shape[1:]}; context_shape and the oracle promise it",
        )
        check(np.isfinite(np.asarray(array)), f"{name} hold numbers that are not finite")
    if rounds.mean is not None:
        check.same_form(rounds.mean, rounds.cost, "the conditional mean must have the form of the cost")
    check(
        rounds.mean is not None or not benchmark.regret_on_mean,
        "counts regret on the conditional mean, but its rounds have none; give Round(…, mean=…)",
    )
    _, again, rounds_again = _draw_rounds(benchmark, 0, ROUNDS)
    check(
        is_equal((contexts, rounds), (again, rounds_again)),
        "the same keys must give the same rounds; draw everything from the key that is given",
    )
    first: Any = jax.tree.map(lambda leaf: leaf[0], rounds)
    promised = form_of(benchmark.problem().example_instance())
    check(form_of(first.instance) == promised, "the instances of its rounds differ in form from those of its problem")
    for name, cost in benchmark.predictions(environment, first).items():
        check(
            cost.shape == (dim,) and np.isfinite(np.asarray(cost)),
            f"the prediction {name!r} must be a finite cost of shape ({dim},), got shape {cost.shape}",
        )


def _check_regimes(check: Checker, benchmark: Benchmark) -> None:
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
            check.fail(str(error))
        difference = benchmark.problem(name).difference(benchmark.problem(rule))
        check(not difference, f"problem({name!r}) and problem(measurement({name!r})) differ: {difference}")
    check(accepted, "refuses every feedback regime")
    try:
        benchmark.measurement("no such regime")
    except SettingsError:
        return
    check.fail("accepts a feedback regime that does not exist; leave unknown names to super()")


def _check_mean(check: Checker, benchmark: Benchmark) -> None:
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
        check(
            deviation <= MEAN_ERRORS * error + 1e-9 * scale,
            f"mean is not the conditional mean of the cost given what is seen: coordinate "
            f"{worst} is off by {deviation[worst]:.3g} over {len(terms):,} rounds; give E[c|x], or leave mean out",
        )


def _standardise(values: np.ndarray) -> np.ndarray:
    spread = values.std(axis=0)
    return (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
