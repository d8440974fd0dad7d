"""The contract of a surrogate: a gradient of the right form that descends, a memory that keeps its form, numbers as leaves."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import oracles
from regretless.oracles.base import Oracle
from regretless.surrogates.base import Surrogate, SurrogateSpec
from regretless.testing.words import check_numbers, close, finite, form_difference, name_of, require

STEPS, STARTS, AROUND = 20, 400, 8
CONFIDENCE = 3.1
"""Standard errors: 99.9 % one-sided."""


def check_surrogate(part: SurrogateSpec | type[SurrogateSpec] | Callable[[Oracle], Surrogate]) -> None:
    """Check a surrogate's specification (a class or an object), or a function that makes one, on three feasible sets."""
    spec: Any = part() if isinstance(part, type) and issubclass(part, SurrogateSpec) else part
    build: Any = spec.build if isinstance(spec, SurrogateSpec) else part
    who = f"surrogate {name_of(part)}"
    for oracle in (
        oracles.top_k(15, 2),
        oracles.shortest_path(oracles.grid_edges(5, 5)),
        oracles.pricing(6, 4, 2, 3),
    ):
        made = build(oracle)
        require(isinstance(made, Surrogate), f"{who}: expected a Surrogate, got {type(made).__name__}; subclass it")
        _check_descent(who, made)
    small = build(oracles.top_k(6, 2))
    with jax.enable_x64(True):
        _check_call(who, small)
        _check_several(who, small)
        _check_instance(who, small)
    if isinstance(spec, SurrogateSpec):
        check_numbers(who, spec, lambda other: other.build(oracles.top_k(6, 2)))


def drawn(dim: int, seed: int = 0) -> tuple[Any, Any]:
    """A prediction and a target."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=dim)), jnp.asarray(rng.normal(size=dim))


def _check_call(who: str, surrogate: Surrogate) -> None:
    dim, memory = surrogate.oracle.dim, surrogate.init()
    prediction, target = drawn(dim)
    noise = surrogate.draw(jax.random.key(1))
    require(
        close(noise, surrogate.draw(jax.random.key(1)), 0, 0),
        f"{who}: draw must depend on its key alone; put everything random there, not into queries or gradient",
    )
    costs = surrogate.queries(memory, prediction, target, noise)
    require(
        costs.ndim == 2 and costs.shape[1] == dim,
        f"{who}: queries must return cost vectors [q, {dim}], got shape {costs.shape}; for none, jnp.zeros((0, d))",
    )
    gradient, after = surrogate(memory, prediction, target, noise)
    require(
        gradient.shape == (dim,) and gradient.dtype == prediction.dtype,
        f"{who}: expected a gradient of shape ({dim},) in the type of the prediction ({prediction.dtype}), got "
        f"{gradient.shape} of {gradient.dtype}",
    )
    require(finite(gradient), f"{who}: the gradient holds a number that is not finite; guard divisions")
    said = form_difference(after, memory)
    require(not said, f"{who}: the memory must keep its form from call to call, but {said}")
    compiled, _ = jax.jit(lambda *arguments: surrogate(*arguments))(memory, prediction, target, noise)
    require(close(compiled, gradient), f"{who}: gives another gradient inside a compiled program")
    still, _ = surrogate(after, target, target, noise)
    require(finite(still), f"{who}: the gradient is not finite where the prediction is the target")


def _check_several(who: str, surrogate: Surrogate) -> None:
    """Several predictions at once, as a generative model asks."""
    memory, dim, count = surrogate.init(), surrogate.oracle.dim, 3
    predictions = jnp.stack([drawn(dim, seed)[0] for seed in range(count)])
    target = drawn(dim)[1]
    noise = jax.vmap(surrogate.draw)(jax.random.split(jax.random.key(2), count))
    costs = jax.vmap(lambda c, eta: surrogate.queries(memory, c, target, eta))(predictions, noise)
    solved = surrogate.oracle.answer(np.asarray(costs).reshape(-1, dim)).w if costs.size else np.zeros((0, dim))
    solutions = jnp.asarray(solved).reshape(count, -1, dim)
    gradients, after = surrogate.finish_all(memory, predictions, target, noise, solutions)
    require(
        gradients.shape == (count, dim) and finite(gradients),
        f"{who}: finish_all must return a finite gradient per prediction, got shape {gradients.shape}",
    )
    said = form_difference(after, memory)
    require(not said, f"{who}: the memory must keep its form when several predictions are used, but {said}")


def _check_instance(who: str, surrogate: Surrogate) -> None:
    """Under an instance, with everything remembered that it forbids."""
    dim, memory = surrogate.oracle.dim, surrogate.init()
    closed = jnp.arange(dim) != 0
    for seed in range(4):
        prediction, target = drawn(dim, seed)
        away = jnp.zeros(dim).at[0].set(-9.0)  # the first item is always wanted
        noise = surrogate.draw(jax.random.key(seed))
        _, memory = surrogate(memory, prediction + away, target + away, noise)
    points = surrogate.points(memory)
    require(
        points.ndim == 2 and points.shape[1] == dim,
        f"{who}: points must return remembered decisions [n, {dim}], got shape {points.shape}",
    )
    none = surrogate.available(memory, jnp.zeros(len(points), bool))
    said = form_difference(none, memory)
    require(not said, f"{who}: available must keep the form of the memory, but {said}")
    gradient, after = surrogate(memory, prediction, target, noise, closed)
    require(finite(gradient), f"{who}: the gradient is not finite when a remembered decision is infeasible now")
    said = form_difference(after, memory)
    require(not said, f"{who}: the memory must keep its form under an instance, but {said}")


def _check_descent(who: str, surrogate: Surrogate) -> None:
    """Mean change of ``E c·w*(ĉ + ½ξ)`` over random starts, below zero with one-sided confidence 99.9 %.

    A prediction far from the target takes twenty small steps, so that surrogates with a memory have one. The cost is that of
    a policy that plays around its prediction: a surrogate may push worse neighbours away without changing the decision at the
    prediction itself.
    """
    oracle = surrogate.oracle

    def change(key: Any) -> Any:
        keys = jax.random.split(key, 3 + STEPS)
        target, start = (jax.random.normal(keys[i], (oracle.dim,)) for i in (0, 1))
        around = 0.5 * jax.random.normal(keys[2], (AROUND, oracle.dim))
        spent = lambda c: jnp.mean(oracle.solve(c + around).w @ target)  # noqa: E731

        def step(carry: Any, key: Any) -> tuple[Any, None]:
            prediction, memory = carry
            gradient, memory = surrogate(memory, prediction, target, surrogate.draw(key))
            gradient = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1e-12)
            return (prediction - 0.1 * gradient, memory), None

        (end, _), _ = jax.lax.scan(step, (start, surrogate.init()), keys[3:])
        return spent(end) - spent(start)

    changes = np.asarray(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), STARTS)))
    error = changes.std(ddof=1) / len(changes) ** 0.5
    require(
        changes.mean() < -CONFIDENCE * error,
        f"{who}: ĉ − η · gradient does not lower the task cost on {type(oracle).__name__} (mean change {changes.mean():.3g} ± "
        f"{error:.2g} after {STEPS} steps); costs are minimised here: check the sign of the gradient",
    )
