"""The contracts of oracles, feedback regimes and benchmarks: what a problem is made of."""

import contextlib
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
from regretless.testing.helpers import Checker, name_of
from regretless.types import SOLVED

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
    _check_solutions(check, oracle, np.abs(costs) if oracle.nonnegative else costs)
    for rows in (costs, rng.integers(-1, 2, size=costs.shape).astype(float)):  # the second one has ties
        _check_repeatable(check, oracle, rows)
    _check_forms(check, oracle)
    lost = np.where(np.arange(2 * oracle.dim) == oracle.dim, np.nan, 1.0).reshape(2, -1)
    with check.raises(OracleError, "costs that are not finite must raise OracleError; write _answer, not answer"):
        oracle.answer(lost)
    if not oracle.on_host:
        _check_program(check, oracle, costs)
    else:
        compiled = (
            "says that it runs on the host, but lets itself be compiled; write solve by oracles.host.solve_on_host"
        )
        with check.raises(OracleError, compiled):
            jax.jit(lambda rows: oracle.solve(rows).w)(jnp.ones((1, oracle.dim)))
    if oracle.example_instance() is not None:
        _check_instances(check, oracle, costs)


def _check_solutions(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    solution: Any = oracle.answer(costs)
    w = solution.w
    is_double = isinstance(w, np.ndarray) and w.dtype == np.float64
    check(is_double, f"answer must return NumPy arrays in float64, got {type(w).__name__} of {w.dtype}")
    check.shape("decisions", w, costs.shape)
    check(solution.status == SOLVED, f"expected every row to be solved, got {solution.status}")
    check(oracle.contained(w), "a decision that it returned is not feasible; solve and feasible disagree")
    values = costs @ w.T  # row i, decision j
    best = np.min(values, axis=1)
    minimal = np.diag(values) <= best + 1e-6 * np.maximum(1.0, np.abs(best))
    check(minimal, "does not minimise: its decision for another cost is cheaper; to maximise, negate the costs")
    used = int(np.max(np.sum(w != 0, axis=1)))
    limit = f"says that at most {oracle.support} coordinates are not zero (support), but {used} of a decision are"
    check(used <= oracle.support, limit)


def _check_repeatable(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    w = oracle.answer(costs).w
    check(np.array_equal(w, oracle.answer(costs).w), "solving the same costs again gives other decisions")
    alone = np.concatenate([oracle.answer(row[None]).w for row in costs[:6]])
    check(np.array_equal(w[:6], alone), "a row alone is solved differently than in a batch; are ties broken by chance?")


def _check_forms(check: Checker, oracle: Oracle) -> None:
    check.shape("the answer to an empty batch", oracle.answer(np.zeros((0, oracle.dim))).w, (0, oracle.dim))
    aux = jax.tree.map(lambda leaf: leaf.shape[1:], oracle.answer(np.ones((1, oracle.dim))).aux)
    promised = jax.tree.map(np.shape, oracle.aux_form())
    check.same_form(aux, promised, "aux_form must describe what solutions hold next to w")
    check.is_json(oracle.fingerprint(), "the fingerprint must be JSON data")
    check(oracle.fingerprint() == oracle.fingerprint(), "the fingerprint must be the same every time")


def _check_program(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    with jax.enable_x64(True):
        program = jax.jit(jax.vmap(lambda rows: oracle.solve(rows).w))
        many = jnp.asarray(costs).reshape(4, -1, oracle.dim)
        calls_python = "callback" in str(jax.make_jaxpr(program)(many))
        check(not calls_python, "calls Python from inside a program, where it can hang; say on_host and write _answer")
        same = np.array_equal(program(many).reshape(costs.shape), oracle.answer(costs).w)
        check(same, "solves differently inside a compiled program")


def _check_instances(check: Checker, oracle: Oracle, costs: np.ndarray) -> None:
    example: Any = oracle.example_instance()
    batch = jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(costs), *np.shape(leaf))), example)
    w = oracle.answer(costs).w
    same = np.array_equal(oracle.answer(costs, batch).w, w)
    check(same, "example_instance must be an instance that changes nothing")
    if isinstance(oracle, MaskedOracle):
        most_used = int(np.argmax(np.sum(w, axis=0)))
        mask = np.ones(costs.shape, bool)
        mask[:, most_used] = False
        with contextlib.suppress(OracleError):  # it may not do without this coordinate
            w = oracle.answer(costs, mask).w
            check(w[:, most_used] == 0, "uses a coordinate that the instance closes")
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
        first = None
        for row, cost in enumerate(costs):
            w, aux = jax.tree.map(lambda leaf, row=row: leaf[row], (solutions.w, solutions.aux))
            measured = rule.measure(w, aux)
            first = first or measured
            try:
                compiled = jax.jit(lambda *arguments: rule.measure(*arguments))(w, aux)
            except jax.errors.JAXTypeError as error:
                check.fail(f"measure cannot be compiled; use jnp.where in place of if for what depends on w ({error})")
            check.same_form(compiled, first, "H(w) and e(w) need one form for all decisions; pad with rows of zeros")
            _check_operator(check, rule, measured, np.asarray(w), jnp.asarray(cost))


def _check_operator(check: Checker, rule: Measurement, measured: Any, w: np.ndarray, cost: Any) -> None:
    """Check the functions of ``H(w)`` against its matrix, and what the regime declares about it."""
    operator, linkage = measured
    rows, guess = len(linkage), jnp.full(cost.shape, 7.5)
    matrix = np.stack([operator.rmatvec(row) for row in jnp.eye(rows)])
    values, seen = operator.matvec(cost), operator.informative()
    matches = np.allclose(values, matrix @ cost, atol=1e-9)
    check(matches, "matvec and rmatvec are not each other's transpose; matvec must be H c, rmatvec Hᵀ u")
    marked = np.array_equal(seen, np.any(matrix != 0, axis=1))
    check(marked, "informative must mark the rows of H that are not zero")
    squares = np.allclose(operator.row_squares(), np.sum(matrix**2, axis=1), atol=1e-9)
    check(squares, "row_squares must be ‖h‖² of each row of H")
    placed = operator.overwrite(guess, values, seen)
    in_place = np.isclose(placed, cost) | (placed == guess)
    check(in_place, "overwrite must put the cost itself in the coordinates that were seen, and leave the others alone")
    hidden = operator.overwrite(guess, values, jnp.zeros(rows, bool))
    check(
        np.array_equal(hidden, guess), "overwrite changes a prediction although no row was seen; use its argument seen"
    )
    is_diagonal = rows == len(w) and not np.any(matrix - np.diag(np.diag(matrix)))
    declarations = {
        "sparse": (not np.any(matrix[:, w == 0]), "it is sparse, but measures a coordinate that was not chosen"),
        "separable": (is_diagonal, "it is separable, but row i of H does not measure coordinate i alone"),
        "total_only": (rows == 1 and np.allclose(matrix, w), "only the total is seen, but H is not the one row w"),
        "reveals_all": (np.allclose(placed, cost), "the whole cost is seen, but overwrite does not give it"),
    }
    for name, (holds, sentence) in declarations.items():
        check(holds or not getattr(rule, name), f"says that {sentence}; leave {name} False")
    limit = rule.max_rows
    fits = limit is None or rows == limit + 1
    check(fits, f"declares at most {limit} rows, but has {rows} instead of one more, for the total")


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
    check.is_json(benchmark.describe(), "describe must return JSON data")
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
    dim = benchmark.oracle.dim
    for name, array, shape in (("contexts", contexts, benchmark.context_shape), ("costs", rounds.cost, (dim,))):
        check.shape(name, array[0], shape, "; context_shape and the oracle promise it")
        check.finite(array, f"{name} hold numbers that are not finite")
    if rounds.mean is not None:
        check.same_form(rounds.mean, rounds.cost, "the conditional mean must have the form of the cost")
    elif benchmark.regret_on_mean:
        check.fail("counts regret on the conditional mean, but its rounds have none; give Round(…, mean=…)")
    _, *again = _draw_rounds(benchmark, 0, ROUNDS)
    sentence = "the same keys must give the same rounds; draw everything from the key that is given"
    check.equal((contexts, rounds), again, sentence)
    first: Any = jax.tree.map(lambda leaf: leaf[0], rounds)
    promised = form_of(benchmark.problem().example_instance())
    check(form_of(first.instance) == promised, "the instances of its rounds differ in form from those of its problem")
    for name, cost in benchmark.predictions(environment, first).items():
        check.cost(f"the prediction {name!r}", cost, dim)


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
    with check.raises(SettingsError, "accepts a feedback regime that does not exist; leave unknown names to super()"):
        benchmark.measurement("no such regime")


def _check_mean(check: Checker, benchmark: Benchmark) -> None:
    """Check ``E[(c − mean) · g(x)] = 0`` for bounded functions g: 1, the mean and the features of the context."""
    if benchmark.longest is not None and benchmark.longest < MEAN_ROUNDS:
        return  # recorded rounds have the mean of the recording
    _, contexts, rounds = _draw_rounds(benchmark, 1, MEAN_ROUNDS)
    if rounds.mean is None:
        return
    mean, features = np.asarray(rounds.mean), np.asarray(contexts).reshape(len(contexts), -1)[:, :8]
    surprise = np.asarray(rounds.cost) - mean
    scale = np.max(np.abs(mean)) + np.max(np.abs(surprise))
    for weight in (np.ones_like(mean), _bounded(mean), *_bounded(features).T[:, :, None]):
        terms = surprise * weight
        error = terms.std(axis=0, ddof=1) / len(terms) ** 0.5
        deviation = np.abs(terms.mean(axis=0))
        worst = int(np.argmax(deviation - MEAN_ERRORS * error))
        place = f"coordinate {worst} is off by {deviation[worst]:.3g} over {len(terms):,} rounds"
        sentence = f"mean is not the conditional mean of the cost E[c|x]: {place}; correct it, or leave mean out"
        check(deviation <= MEAN_ERRORS * error + 1e-9 * scale, sentence)


def _bounded(values: np.ndarray) -> np.ndarray:
    """Return the values standardised and limited to [-1, 1]."""
    spread = values.std(axis=0)
    return np.tanh((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0))
