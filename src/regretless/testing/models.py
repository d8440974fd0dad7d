"""The contracts of models and surrogates: gradients, densities and memories that are what they promise."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import oracles
from regretless.models.base import GenerativeModel, Model, ModelSpec, PointModel, PointModelSpec
from regretless.oracles.base import Oracle
from regretless.surrogates.base import Surrogate, SurrogateSpec
from regretless.testing.helpers import Checker, check_hyperparameters, compiled, instantiate, name_of

DIM, FEATURES = 4, 3
"""Size of the models that are checked."""

SCALE = 0.3
"""Standard deviation of a point model's noise."""

SAMPLES = 20_000
"""Draws that a mean and a density are compared with; five standard errors are allowed."""

DESCENT_STEPS, DESCENT_STARTS, DESCENT_NOISE = 20, 400, 8
"""Gradient steps from each start, starts, and draws around a prediction in the descent check."""

DESCENT_ERRORS = 3.1
"""Standard errors of 99.9 % one-sided confidence."""

ModelBuilder = Callable[[int, tuple[int, ...]], Model]


def check_model(part: ModelSpec | type[ModelSpec] | ModelBuilder) -> None:
    """Check that samples, mean, density and gradients of a model belong together.

    Parameters
    ----------
    part : ModelSpec, subclass of it, or callable
        A specification, or a function of the number of costs and the shape of a context. It is tried on context
        vectors and on feature rows.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    check = Checker(f"model {name_of(part)}")
    spec, _ = instantiate(part, ModelSpec)
    build = _model_builder(spec) if isinstance(spec, ModelSpec) else spec
    for shape in ((FEATURES,), (DIM, FEATURES)):
        with jax.enable_x64(True):
            model = build(DIM, shape)
            check(isinstance(model, Model), f"expected a Model, got {type(model).__name__}; subclass it")
            context = jax.random.normal(jax.random.key(1), shape)
            start = model.init(jax.random.key(0))
            _check_model_form(check, model, start, context)
            params = jax.tree.map(lambda leaf: 2.0 * leaf.astype(jnp.float64), start)
            if isinstance(model, PointModel):
                _check_point(check, model, params, context)
            elif isinstance(model, GenerativeModel):
                _check_generative(check, model, params, context)
            else:
                check.fail("subclass PointModel (has a mean) or GenerativeModel (has samples)")
    if isinstance(spec, ModelSpec):
        check_hyperparameters(check, spec, lambda other: _model_builder(other)(DIM, (FEATURES,)))


def _model_builder(spec: ModelSpec) -> ModelBuilder:
    if isinstance(spec, PointModelSpec):
        return lambda dim, shape: spec.build(dim, shape, SCALE)
    return spec.build


def _check_model_form(check: Checker, model: Model, params: Any, context: Any) -> None:
    check(jax.tree.leaves(params), "init must return parameters as a tree of arrays")
    check.same_form(model.init(jax.random.key(1)), params, "init must return parameters of one form whatever the key")
    noise = model.draw(jax.random.key(2))
    check(noise.shape == (DIM,), f"the noise needs one number per cost coordinate, got shape {noise.shape}")
    cost = model.sample(params, context, noise)
    check.shape("a sample", cost, (DIM,))
    check(cost.dtype == jnp.float64, f"expected a sample in the program's type float64, got one of {cost.dtype}")
    again = compiled(model, lambda *arguments: model.sample(*arguments))(params, context, noise)
    check.close(cost, again, "samples of the same noise must be the same, compiled or not", 1e-5, 1e-6)
    density: Any = model.log_density(params, context, cost)
    one_number = density is None or density.shape == ()
    check(one_number, f"log_density must be one number, or None if there is none, got shape {np.shape(density)}")


def _check_point(check: Checker, model: PointModel, params: Any, context: Any) -> None:
    draw = compiled(model, jax.vmap(lambda key: model.sample(params, context, model.draw(key))))
    samples = np.asarray(draw(jax.random.split(jax.random.key(2), SAMPLES)))
    mean, average = np.asarray(model.mean(params, context)), samples.mean(axis=0)
    error = samples.std(axis=0, ddof=1) / SAMPLES**0.5
    is_mean = np.abs(average - mean) <= 5 * error + 1e-12
    check(is_mean, f"mean is not the mean of its samples: {mean} against {average} ± {error}")
    cotangent = jax.random.normal(jax.random.key(4), (DIM,))
    gradient = model.pullback(params, context, cotangent)
    product = lambda theta: model.mean(theta, context) @ cotangent  # noqa: E731
    sentence = "pullback must be the transposed Jacobian of mean times the cotangent"
    _check_gradient(check, gradient, product, params, sentence)
    noise = model.draw(jax.random.key(3))
    cost = model.sample(params, context, noise)
    if model.log_density(params, context, cost) is None:
        return
    # E over p of q/p is 1 for any density q that p covers: checks the density's shape and its constant.
    density = compiled(model, jax.vmap(lambda cost: model.log_density(params, context, cost)))(samples)
    other = np.sum(jax.scipy.stats.norm.logpdf(samples, mean, 0.5 * samples.std(axis=0)), axis=1)
    ratio = np.exp(other - np.asarray(density))
    sentence = f"log_density is not the density of its samples (a density ratio has mean {ratio.mean():.3g}, not 1)"
    check(abs(ratio.mean() - 1) < 5 * ratio.std() / SAMPLES**0.5, sentence)
    expected = jax.grad(lambda theta: model.log_density(theta, context, cost))(params)
    for fresh, given in ((True, noise), (False, noise), (False, jnp.full(DIM, 7.0))):
        score = model.score(params, context, cost, given, jnp.asarray(fresh))
        stale = "" if fresh else "; when the noise is not fresh, take it from the cost and the parameters"
        check.close(score, expected, f"score must be the gradient of log_density in the parameters{stale}")


def _check_generative(check: Checker, model: GenerativeModel, params: Any, context: Any) -> None:
    noise, cotangents = jax.random.normal(jax.random.key(2), (2, 5, DIM))
    costs, pullback = model.scenarios(params, context, noise)
    alone = jnp.stack([model.sample(params, context, row) for row in noise])
    check.close(costs, alone, "scenarios must be the samples of each row of noise", 1e-9)
    check(np.std(alone, axis=0) > 0, "samples must depend on the noise")
    total = lambda theta: jnp.sum(model.scenarios(theta, context, noise)[0] * cotangents)  # noqa: E731
    sentence = "the pullback of scenarios is not their transposed Jacobian"
    _check_gradient(check, pullback(cotangents), total, params, sentence)
    cost, drawn = jnp.arange(1.0, DIM + 1) - 2.0, model.draw_loss(jax.random.key(4))
    gradient = model.loss_gradient(params, context, cost, drawn)
    loss = lambda theta: model.loss(theta, context, cost, drawn)  # noqa: E731
    _check_gradient(check, gradient, loss, params, "loss_gradient is not the gradient of loss")
    density = model.log_density(params, context, alone[0])
    if density is not None:
        jacobian = jax.jacfwd(lambda z: model.sample(params, context, z))(noise[0])
        expected = np.sum(jax.scipy.stats.norm.logpdf(noise[0])) - jnp.linalg.slogdet(jacobian)[1]
        right = np.isclose(density, expected, rtol=1e-6)
        check(right, f"log_density is {density:.6g} where the change of variables gives {expected:.6g}")


def _check_gradient(check: Checker, gradient: Any, function: Callable[[Any], Any], params: Any, sentence: str) -> None:
    check.same_form(gradient, params, sentence)
    check.close(gradient, jax.grad(function)(params), sentence)


def check_surrogate(part: SurrogateSpec | type[SurrogateSpec] | Callable[[Oracle], Surrogate]) -> None:
    """Check that a surrogate's gradient has the right form and descends, and that its memory keeps its form.

    Parameters
    ----------
    part : SurrogateSpec, subclass of it, or callable
        A specification, or a function that makes a surrogate for an oracle. It is tried on three feasible sets.

    Raises
    ------
    AssertionError
        With a sentence that says what is wrong.
    """
    check = Checker(f"surrogate {name_of(part)}")
    spec, build = instantiate(part, SurrogateSpec)
    for oracle in (oracles.top_k(15, 2), oracles.shortest_path(oracles.grid_edges(5, 5)), oracles.pricing(6, 4, 2, 3)):
        surrogate = build(oracle)
        check(isinstance(surrogate, Surrogate), f"expected a Surrogate, got {type(surrogate).__name__}; subclass it")
        _check_descent(check, surrogate)
    small = build(oracles.top_k(6, 2))
    with jax.enable_x64(True):
        _check_call(check, small)
        _check_several(check, small)
        _check_instance(check, small)
        _check_on_host(check, small, build(oracles.milp(A_eq=[[1.0] * 6], b_eq=[2.0], integrality=1)))
    if isinstance(spec, SurrogateSpec):
        check_hyperparameters(check, spec, lambda other: other.build(oracles.top_k(6, 2)))


def _draw_costs(dim: int, seed: int = 0) -> tuple[Any, Any]:
    """Return a prediction and a target."""
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.normal(size=dim)), jnp.asarray(rng.normal(size=dim))


def _check_call(check: Checker, surrogate: Surrogate) -> None:
    dim, memory = surrogate.oracle.dim, surrogate.init()
    prediction, target = _draw_costs(dim)
    noise, again = (surrogate.draw(jax.random.key(1)) for _ in range(2))
    check.equal(noise, again, "draw must depend on its key alone; draw everything that is random there")
    costs = surrogate.queries(memory, prediction, target, surrogate.prepare(memory, prediction, target, noise, None))
    check.rows("queries must return cost vectors", costs, dim)
    gradient, after = surrogate(memory, prediction, target, noise)
    check.shape("a gradient", gradient, (dim,))
    given = prediction.dtype
    check(gradient.dtype == given, f"expected a gradient in the type of the prediction ({given}), got {gradient.dtype}")
    check.finite(gradient, "the gradient holds a number that is not finite; guard divisions")
    check.same_form(after, memory, "the memory must keep its form from call to call")
    compiled, _ = jax.jit(lambda *arguments: surrogate(*arguments))(memory, prediction, target, noise)
    check.close(compiled, gradient, "gives another gradient inside a compiled program")
    at_target, _ = surrogate(after, target, target, noise)
    check.finite(at_target, "the gradient is not finite where the prediction is the target")


def _check_several(check: Checker, surrogate: Surrogate) -> None:
    """Check several predictions at once, as a generative model needs."""
    memory, dim, count = surrogate.init(), surrogate.oracle.dim, 3
    predictions = jnp.stack([_draw_costs(dim, seed)[0] for seed in range(count)])
    target = _draw_costs(dim)[1]
    noise = jax.vmap(surrogate.draw)(jax.random.split(jax.random.key(2), count))
    noise = jax.vmap(lambda c, eta: surrogate.prepare(memory, c, target, eta, None))(predictions, noise)
    costs = jax.vmap(lambda c, eta: surrogate.queries(memory, c, target, eta))(predictions, noise)
    solved = surrogate.oracle.answer(np.asarray(costs).reshape(-1, dim)).w if costs.size else np.zeros((0, dim))
    solutions = jnp.asarray(solved).reshape(count, -1, dim)
    gradients, after = surrogate.finish_all(memory, predictions, target, noise, solutions)
    check.shape("of finish_all a gradient per prediction", gradients, (count, dim))
    check.finite(gradients, "finish_all must return finite gradients")
    check.same_form(after, memory, "the memory must keep its form when several predictions are used")


def _check_instance(check: Checker, surrogate: Surrogate) -> None:
    """Check a gradient under an instance that forbids everything remembered."""
    dim, memory = surrogate.oracle.dim, surrogate.init()
    closed = jnp.arange(dim) != 0
    for seed in range(4):
        prediction, target = _draw_costs(dim, seed)
        away = jnp.zeros(dim).at[0].set(-9.0)  # the first item is always wanted
        noise = surrogate.draw(jax.random.key(seed))
        _, memory = surrogate(memory, prediction + away, target + away, noise)
    points = surrogate.points(memory)
    check.rows("points must return remembered decisions", points, dim)
    none = surrogate.available(memory, jnp.zeros(len(points), bool))
    check.same_form(none, memory, "available must keep the form of the memory")
    gradient, after = surrogate(memory, prediction, target, noise, closed)
    check.finite(gradient, "the gradient is not finite when a remembered decision is infeasible now")
    check.same_form(after, memory, "the memory must keep its form under an instance")


def _check_on_host(check: Checker, surrogate: Surrogate, hosted: Surrogate) -> None:
    """Check that a call gives the same with a solver on the host."""
    prediction, target = _draw_costs(surrogate.oracle.dim)
    results = []
    for part in (surrogate, hosted):
        call = compiled(part.oracle, lambda *arguments, part=part: part(*arguments))
        results.append(call(part.init(), prediction, target, part.draw(jax.random.key(1))))
    check.close(
        results[1], results[0], "with a solver on the host it must give what it gives in one program", 1e-6, 1e-9
    )


def _check_descent(check: Checker, surrogate: Surrogate) -> None:
    """Check that ``E c·w*(ĉ + ½ξ)`` falls over random starts, with one-sided confidence 99.9 %.

    A prediction far from the target takes twenty small steps, so that surrogates with a memory have one. The cost is
    that of a policy that plays around its prediction: a surrogate may push worse neighbours away without changing the
    decision at the prediction itself.
    """
    oracle = surrogate.oracle

    def change(key: Any) -> Any:
        keys = jax.random.split(key, 3 + DESCENT_STEPS)
        target, start = (jax.random.normal(keys[i], (oracle.dim,)) for i in (0, 1))
        around = 0.5 * jax.random.normal(keys[2], (DESCENT_NOISE, oracle.dim))

        def task_cost(prediction: Any) -> Any:
            return jnp.mean(oracle.solve(prediction + around).w @ target)

        def step(carry: Any, key: Any) -> tuple[Any, None]:
            prediction, memory = carry
            gradient, memory = surrogate(memory, prediction, target, surrogate.draw(key))
            gradient = gradient / jnp.maximum(jnp.linalg.norm(gradient), 1e-12)
            return (prediction - 0.1 * gradient, memory), None

        (end, _), _ = jax.lax.scan(step, (start, surrogate.init()), keys[3:])
        return task_cost(end) - task_cost(start)

    changes = np.asarray(jax.jit(jax.vmap(change))(jax.random.split(jax.random.key(0), DESCENT_STARTS)))
    error = changes.std(ddof=1) / len(changes) ** 0.5
    change_text = f"mean change {changes.mean():.3g} ± {error:.2g} after {DESCENT_STEPS} steps"
    sentence = (
        f"ĉ − η · gradient does not lower the task cost on {type(oracle).__name__} ({change_text}); check the sign"
    )
    check(changes.mean() < -DESCENT_ERRORS * error, sentence)
