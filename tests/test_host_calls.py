"""Calls of Python from traced functions: the same numbers as a plain loop, one call for all rows, clear refusals."""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.errors import OracleError
from regretless.host_calls import HostProgram, calls_host, host_call, host_jit


@dataclasses.dataclass(frozen=True)
class Counted:
    """A function of rows that remembers how many rows each call had; equal if its name is."""

    function: Callable[..., Any] = dataclasses.field(compare=False)
    name: str = "f"
    sizes: list[int] = dataclasses.field(default_factory=list, compare=False)

    def __call__(self, *rows):
        self.sizes.append(len(rows[0]))
        return self.function(*rows)

    def bound(self, host):
        return self


def doubling(name="f"):
    return Counted(lambda rows: 2.0 * rows, name)


def ask(function, x):
    """Return the function of one number."""
    return host_call(function, jax.ShapeDtypeStruct((), jnp.float32), x[None])[0]


def run(traced, *arguments):
    """Return the result of a traced function, cut at its calls."""
    return HostProgram(traced, arguments)(None, *arguments)


def test_a_call_returns_what_python_returns():
    double = doubling()
    assert float(ask(double, jnp.float32(3))) == 6, "at once outside of traced functions"
    assert float(run(lambda x: ask(double, x + 1) - 1, jnp.float32(3))) == 7
    assert double.sizes == [1, 1]


def test_rows_of_all_replications_are_one_call():
    double = doubling()
    x = jnp.arange(6, dtype=jnp.float32).reshape(2, 3)
    assert np.array_equal(run(jax.vmap(jax.vmap(lambda value: ask(double, value))), x), 2 * x)
    assert double.sizes == [6]
    shared = run(jax.vmap(lambda a, b: ask(double, b) + a, in_axes=(0, None)), x[:, 0], jnp.float32(5))
    assert np.array_equal(shared, 10 + x[:, 0])


def test_equal_functions_are_called_once_if_they_can_be():
    first, second, third = doubling(), doubling(), doubling("another")
    assert float(run(lambda x: ask(first, x) + ask(second, x + 1) + ask(third, x), jnp.float32(1))) == 2 + 4 + 2
    assert (first.sizes, second.sizes, third.sizes) == ([2], [], [1])
    chained = doubling()
    assert float(run(lambda x: ask(chained, ask(chained, x)), jnp.float32(1))) == 4
    assert chained.sizes == [1, 1]


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_is_a_plain_loop(reverse):
    double = doubling()

    def step(total, x):
        total = ask(double, total + x) - x
        return total, (total, 7)

    xs = jnp.array([1.0, -2.0, 0.5, 3.0], jnp.float32)
    end, (kept, sevens) = run(lambda xs: jax.lax.scan(step, jnp.float32(1), xs, reverse=reverse), xs)
    total, expected = 1.0, []
    for x in np.asarray(xs)[:: -1 if reverse else 1]:
        total = 2.0 * (total + x) - x
        expected.append(total)
    assert float(end) == total
    assert kept.tolist() == expected[:: -1 if reverse else 1]
    assert sevens.tolist() == [7] * 4
    assert double.sizes == [1] * 4


def test_loops_inside_loops_with_several_calls_and_constants():
    double, half = doubling(), Counted(lambda rows: rows / 2, "half")

    def inner(count, start, weight):
        def body(state):
            i, value, same = state
            value = ask(half, ask(double, value) + weight)
            return i + 1, value, same

        return jax.lax.while_loop(lambda state: state[0] < count, body, (0, start, start))[1:]

    def outer(weight, counts):
        def step(value, count):
            value, same = inner(count, value, weight)
            return value, same

        return jax.lax.scan(step, weight, counts)

    counts = [2, 0, 3]
    end, kept = run(outer, jnp.float32(3), jnp.array(counts))
    value, expected = 3.0, []
    for count in counts:
        expected.append(value)
        for _ in range(count):
            value = (2 * value + 3) / 2
    assert float(end) == value
    assert kept.tolist() == expected
    assert (len(double.sizes), len(half.sizes)) == (5, 5)


def test_arguments_keep_their_values_after_a_loop():
    double = doubling()
    traced = lambda x: jax.lax.fori_loop(0, 3, lambda _, value: ask(double, value), x)  # noqa: E731
    x = jnp.float32(1)
    program = HostProgram(traced, (x,))
    assert [float(program(None, x)) for _ in range(2)] == [8.0, 8.0]
    assert float(x) == 1


def test_only_the_branch_that_is_taken_calls():
    double, half = doubling(), Counted(lambda rows: rows / 2, "half")
    traced = lambda flag, x: jax.lax.cond(flag, lambda x: ask(double, x), lambda x: ask(half, x), x)  # noqa: E731
    program = HostProgram(traced, (jnp.bool_(True), jnp.float32(3)))
    assert float(program(None, jnp.bool_(True), jnp.float32(3))) == 6
    assert (double.sizes, half.sizes) == ([1], [])
    assert float(program(None, jnp.bool_(False), jnp.float32(3))) == 1.5
    assert (double.sizes, half.sizes) == ([1], [1])


def test_its_results_are_constants_to_derivatives():
    double = doubling()
    slope = run(jax.grad(lambda x: x * ask(double, x)), jnp.float32(3))
    assert float(slope) == 6, "x times a constant"


def test_calls_inside_functions_with_derivatives_of_their_own():
    double = doubling()

    @jax.custom_vjp
    def straight_through(x):
        return ask(double, x)

    straight_through.defvjp(lambda x: (ask(double, x), None), lambda _, g: (g * 5,))
    assert float(run(jax.grad(straight_through), jnp.float32(3))) == 5
    assert float(run(jax.jit(lambda x: straight_through(x) + 1), jnp.float32(3))) == 7


def test_results_have_the_promised_types():
    function = Counted(lambda rows: (rows > 0, np.arange(len(rows)) + 2**40, rows[:, None] * np.ones(2)))
    forms = jax.ShapeDtypeStruct((), bool), jax.ShapeDtypeStruct((), jnp.int32), jax.ShapeDtypeStruct((2,), jnp.float32)
    positive, index, pairs = run(lambda x: host_call(function, forms, x), jnp.array([1.0, -1.0, 2.0]))
    assert positive.tolist() == [True, False, True]
    assert index.dtype == jnp.int32
    assert pairs.tolist() == [[1, 1], [-1, -1], [2, 2]]


def test_errors_of_the_function_are_raised_in_the_call():
    def failing(rows):
        raise ZeroDivisionError("the solver's own error")

    function = Counted(failing)
    with pytest.raises(ZeroDivisionError, match="own error"):
        run(lambda x: ask(function, x), jnp.float32(1))


def test_one_program_refuses_and_so_does_the_condition_of_a_loop():
    double = doubling()
    with pytest.raises(OracleError, match="cannot run inside a program that JAX compiles as one"):
        jax.jit(lambda x: ask(double, x))(jnp.float32(1))
    with pytest.raises(OracleError, match="the condition of a while_loop cannot call"):
        run(lambda x: jax.lax.while_loop(lambda v: ask(double, v) < 9, lambda v: v + 1, x), jnp.float32(1))


def test_host_jit_compiles_once_for_each_form():
    double = doubling()
    function = host_jit(lambda scale, x: scale * ask(double, x), statics=1)
    host = object()
    assert [float(function(host, 3, jnp.float32(x))) for x in (1, 2)] == [6, 12]
    assert function.compiled == 1
    assert float(function(host, 4, jnp.float32(1))) == 8
    assert function.compiled == 2
    plain = host_jit(lambda x: x + 1, statics=0)
    assert [float(plain(each, jnp.float32(1))) for each in (None, host)] == [2, 2]
    assert plain.compiled == 1, "without calls it is one program, whoever the host is"


def test_it_is_known_whether_a_function_calls():
    double = doubling()
    assert calls_host(lambda x: jax.lax.fori_loop(0, 2, lambda _, v: ask(double, v), x), jnp.float32(1))
    assert not calls_host(jnp.sin, jnp.float32(1))
