"""The contract of a model of the cost: samples, mean, density and gradients that belong together."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.models.base import GenerativeModel, Model, ModelSpec, PointModel, PointModelSpec
from regretless.testing.words import check_numbers, close, form_difference, name_of, require

DIM, FEATURES, SCALE, SAMPLES = 4, 3, 0.3, 20_000
STEP = 1e-6
"""Of finite differences."""

Build = Callable[[int, tuple[int, ...]], Model]


def check_model(part: ModelSpec | type[ModelSpec] | Build) -> None:
    """Check a model's specification (a class or an object), or a function of (number of costs, shape of a context)."""
    who = f"model {name_of(part)}"
    spec: Any = part() if isinstance(part, type) and issubclass(part, ModelSpec) else part
    build = _builder(spec) if isinstance(spec, ModelSpec) else spec
    for shape in ((FEATURES,), (DIM, FEATURES)):
        with jax.enable_x64(True):
            model = build(DIM, shape)
            require(isinstance(model, Model), f"{who}: expected a Model, got {type(model).__name__}; subclass it")
            context = jax.random.normal(jax.random.key(1), shape)
            start = model.init(jax.random.key(0))
            _check_form(who, model, start, context)
            params = jax.tree.map(lambda leaf: 2.0 * leaf.astype(jnp.float64), start)
            if isinstance(model, PointModel):
                _check_point(who, model, params, context)
            elif isinstance(model, GenerativeModel):
                _check_generative(who, model, params, context)
            else:
                raise AssertionError(f"{who}: subclass PointModel (has a mean) or GenerativeModel (has samples)")
    if isinstance(spec, ModelSpec):
        check_numbers(who, spec, lambda other: _builder(other)(DIM, (FEATURES,)))


def _builder(spec: ModelSpec) -> Build:
    if isinstance(spec, PointModelSpec):
        return lambda dim, shape: spec.build(dim, shape, SCALE)
    return spec.build


def _check_form(who: str, model: Model, params: Any, context: Any) -> None:
    require(
        jax.tree.leaves(params) and form_difference(model.init(jax.random.key(0)), params) == "",
        f"{who}: init must return parameters as a tree of arrays, of one form whatever the key",
    )
    noise = model.draw(jax.random.key(2))
    require(noise.shape == (DIM,), f"{who}: the noise needs one number per cost coordinate, got shape {noise.shape}")
    cost = model.sample(params, context, noise)
    require(
        cost.shape == (DIM,) and cost.dtype == jnp.float64,
        f"{who}: expected a sample of shape ({DIM},) in the program's type float64, got {cost.shape} of {cost.dtype}",
    )
    again = jax.jit(lambda *arguments: model.sample(*arguments))(params, context, noise)
    require(close(cost, again, 1e-5, 1e-6), f"{who}: samples of the same noise must be the same, compiled or not")
    density: Any = model.log_density(params, context, cost)
    require(
        density is None or density.shape == (),
        f"{who}: log_density must be one number, or None for a model that has none, got shape {np.shape(density)}",
    )


def _check_point(who: str, model: PointModel, params: Any, context: Any) -> None:
    samples = np.asarray(
        jax.jit(jax.vmap(lambda key: model.sample(params, context, model.draw(key))))(
            jax.random.split(jax.random.key(2), SAMPLES)
        )
    )
    mean = np.asarray(model.mean(params, context))
    error = samples.std(axis=0, ddof=1) / SAMPLES**0.5
    require(
        np.abs(samples.mean(axis=0) - mean) <= 5 * error + 1e-12,
        f"{who}: mean is not the mean of its samples: {mean} against {samples.mean(axis=0)} ± {error}",
    )
    _check_pullback(who, model, params, context)
    noise = model.draw(jax.random.key(3))
    cost = model.sample(params, context, noise)
    if model.log_density(params, context, cost) is None:
        return
    # E over p of q/p is 1 for any density q that p covers: checks the density's shape and its constant.
    density = jax.jit(jax.vmap(lambda cost: model.log_density(params, context, cost)))(samples)
    spread = 0.5 * samples.std(axis=0)
    other = np.sum(-0.5 * ((samples - mean) / spread) ** 2 - np.log(spread * (2 * np.pi) ** 0.5), axis=1)
    ratio = np.exp(other - np.asarray(density))
    require(
        abs(ratio.mean() - 1) < 5 * ratio.std() / SAMPLES**0.5,
        f"{who}: log_density is not the density of its samples (a density ratio has mean {ratio.mean():.3g}, not 1)",
    )
    expected = jax.grad(lambda theta: model.log_density(theta, context, cost))(params)
    for fresh, given in ((True, noise), (False, noise), (False, jnp.full(DIM, 7.0))):
        score = model.score(params, context, cost, given, jnp.asarray(fresh))
        require(
            close(score, expected, 1e-6),
            f"{who}: score must be the gradient of log_density in the parameters"
            + (
                ""
                if fresh
                else "; when the noise is not fresh, it must be taken from the cost and the parameters instead"
            ),
        )


def _check_pullback(who: str, model: PointModel, params: Any, context: Any) -> None:
    cotangent = jax.random.normal(jax.random.key(4), (DIM,))
    got = model.pullback(params, context, cotangent)
    said = form_difference(got, params)
    require(not said, f"{who}: pullback must return a gradient of the form of the parameters, but {said}")
    slopes = _slopes(lambda theta: model.mean(theta, context) @ cotangent, params)
    require(_along(got, params, slopes), f"{who}: pullback must be the transposed Jacobian of mean times the cotangent")


def _check_generative(who: str, model: GenerativeModel, params: Any, context: Any) -> None:
    noise, cotangents = jax.random.normal(jax.random.key(2), (2, 5, DIM))
    costs, pullback = model.scenarios(params, context, noise)
    alone = jnp.stack([model.sample(params, context, row) for row in noise])
    require(close(costs, alone, 1e-9), f"{who}: scenarios must be the samples of each row of noise")
    require(np.std(alone, axis=0) > 0, f"{who}: samples must depend on the noise")
    got = pullback(cotangents)
    said = form_difference(got, params)
    require(
        not said, f"{who}: the way back of scenarios must return gradients of the form of the parameters, but {said}"
    )
    slopes = _slopes(lambda theta: jnp.sum(model.scenarios(theta, context, noise)[0] * cotangents), params)
    require(_along(got, params, slopes), f"{who}: the way back of scenarios is not their transposed Jacobian")
    cost, drawn = jnp.arange(1.0, DIM + 1) - 2.0, model.draw_loss(jax.random.key(4))
    gradient = model.loss_gradient(params, context, cost, drawn)
    slopes = _slopes(lambda theta: model.loss(theta, context, cost, drawn), params)
    require(_along(gradient, params, slopes), f"{who}: loss_gradient is not the gradient of loss")
    density = model.log_density(params, context, alone[0])
    if density is not None:
        jacobian = jax.jacfwd(lambda z: model.sample(params, context, z))(noise[0])
        base = -0.5 * jnp.sum(noise[0] ** 2) - 0.5 * DIM * np.log(2 * np.pi)
        expected = base - jnp.linalg.slogdet(jacobian)[1]
        require(
            np.isclose(density, expected, rtol=1e-6),
            f"{who}: log_density is {density:.6g} where the change of variables gives {expected:.6g}",
        )


def _slopes(value: Callable[[Any], Any], params: Any) -> list[float]:
    """Finite differences of ``value`` along a random direction in each leaf."""
    compiled = jax.jit(value)
    leaves, structure = jax.tree.flatten(params)
    found = []
    for index, direction in enumerate(_directions(params)):
        ahead, behind = ([*leaves], [*leaves])
        ahead[index], behind[index] = leaves[index] + STEP * direction, leaves[index] - STEP * direction
        found.append(
            float(compiled(jax.tree.unflatten(structure, ahead)) - compiled(jax.tree.unflatten(structure, behind)))
        )
    return [difference / (2 * STEP) for difference in found]


def _directions(params: Any) -> list[Any]:
    leaves = jax.tree.leaves(params)
    return [jax.random.normal(jax.random.fold_in(jax.random.key(3), i), leaf.shape) for i, leaf in enumerate(leaves)]


def _along(gradient: Any, params: Any, slopes: list[float]) -> bool:
    """Whether a gradient has these slopes along the random directions."""
    along = [float(jnp.sum(g * d)) for g, d in zip(jax.tree.leaves(gradient), _directions(params), strict=True)]
    return bool(np.allclose(along, slopes, rtol=2e-5, atol=1e-6))
