"""The contract of an oracle: exact, feasible, repeatable, the same in every form, and told apart by its fingerprint."""

import json
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import OracleError
from regretless.oracles.base import MaskedOracle, Oracle
from regretless.testing.words import form_difference, require
from regretless.types import SOLVED

ROWS = 24


def check_oracle(oracle: Oracle) -> None:
    """Checks an oracle on random costs and on costs with ties."""
    who = f"oracle {type(oracle).__name__}"
    require(isinstance(oracle, Oracle), f"{who}: expected an Oracle; subclass it, or use rg.oracles.external")
    rng = np.random.default_rng(0)
    costs = rng.normal(size=(ROWS, oracle.dim))
    _check_solutions(who, oracle, costs)
    _check_forms(who, oracle, costs)
    _check_refusals(who, oracle)
    _check_ties(who, oracle, rng.integers(-1, 2, size=(ROWS, oracle.dim)).astype(float))
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
        f"{who}: a decision that it returned is not feasible by its own word; solve and feasible disagree",
    )
    spent = costs @ w.T  # row i, decision j
    best = np.min(spent, axis=1)
    require(
        np.diag(spent) <= best + 1e-6 * np.maximum(1.0, np.abs(best)),
        f"{who}: does not minimise: for some cost a decision that it returned for another cost is cheaper; the problem is "
        "min c·w, so a maximiser must negate its costs",
    )
    most = int(np.max(np.sum(w != 0, axis=1)))
    require(
        most <= oracle.support,
        f"{who}: says that at most {oracle.support} coordinates are not zero (support), but {most} of a decision are",
    )
    again = oracle.answer(costs).w
    require(np.array_equal(w, again), f"{who}: solving the same costs again gives other decisions")


def _check_forms(who: str, oracle: Oracle, costs: np.ndarray) -> None:
    whole, one = oracle.answer(costs), oracle.answer(costs[3:4])
    require(np.array_equal(whole.w[3:4], one.w), f"{who}: a row alone is solved otherwise than in a batch")
    empty = oracle.answer(np.zeros((0, oracle.dim))).w
    require(empty.shape == (0, oracle.dim), f"{who}: an empty batch must have an empty answer, got {empty.shape}")
    first = jax.tree.map(lambda leaf: leaf[0], one.aux)
    said = form_difference(jax.tree.map(np.shape, first), jax.tree.map(np.shape, oracle.aux_form()))
    require(not said, f"{who}: aux_form must describe what the solutions tell beside w, but {said}")
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
    require(np.array_equal(w[:6], alone), f"{who}: ties must fall the same way every time, alone and in a batch")


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
            f"{who}: solves otherwise inside a compiled program",
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
        dearest = int(np.argmax(np.sum(oracle.answer(costs).w, axis=0)))  # the coordinate that is used most
        mask = np.ones((len(costs), oracle.dim), bool)
        mask[:, dearest] = False
        try:
            w = oracle.answer(costs, mask).w
        except OracleError:
            return  # it cannot do without this coordinate
        require(w[:, dearest] == 0, f"{who}: uses a coordinate that the instance closes")
        require(oracle.contained(w, mask), f"{who}: a decision under an instance is not feasible under it")
