"""Diffusion: noise levels, DDIM's steps, loss weights, and a conditional distribution that it learns."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.models import Diffusion, networks
from regretless.models.diffusion import DiffusionModel, path, schedule


def test_noise_levels_and_embedding():
    table = schedule(50)
    beta = np.linspace(1e-4, 0.02, 50)
    assert table.kept[0] == pytest.approx(1 - 1e-4)
    assert table.kept[-1] == pytest.approx(np.prod(1 - beta))
    assert table.root[7] == pytest.approx((1 - table.kept[7]) ** 0.5)
    frequencies = [1.0, 10000 ** (-1 / 3), 10000 ** (-2 / 3), 1e-4]
    expected = [np.sin(7 * f) for f in frequencies] + [np.cos(7 * f) for f in frequencies]
    np.testing.assert_allclose(table.embedding[7], expected)


def test_bound_weights_leave_out_the_time_where_they_have_no_value():
    table = schedule(20)
    beta = np.linspace(1e-4, 0.02, 20)
    assert table.elbo[0] == 0
    expected = (1 - table.kept[5]) / (2 * beta[5] * (1 - table.kept[4]) * table.kept[5])
    assert table.elbo[5] == pytest.approx(expected)
    times = jnp.concatenate(
        [DiffusionModel(2, (1,), 20, 8, "elbo").draw_loss(jax.random.key(seed))[0] for seed in range(50)]
    )
    assert set(np.unique(times)) == set(range(1, 20))
    times = jnp.concatenate([DiffusionModel(2, (1,), 20, 8).draw_loss(jax.random.key(seed))[0] for seed in range(50)])
    assert set(np.unique(times)) == set(range(20))


def test_sampling_visits_the_stated_times_and_ends_at_the_prediction():
    assert path(50, 50).times.tolist() == list(range(49, -1, -1))
    assert path(20, 8).times.tolist() == [19, 16, 14, 11, 8, 5, 3, 0]
    assert path(5, 50).times.tolist() == [4, 3, 2, 1, 0]
    steps, kept = path(20, 8), schedule(20).kept
    assert steps.keep[-1] == pytest.approx(kept[0] ** -0.5)
    assert steps.add[-1] == pytest.approx(-(((1 - kept[0]) / kept[0]) ** 0.5))


@pytest.mark.usefixtures("float64")
def test_sampling_is_ddim_step_by_step():
    model = DiffusionModel(3, (2,), 20, 8)
    params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model.init(jax.random.key(0)))
    x, c = jnp.array([0.3, -1.0]), jnp.array([0.5, -0.2, 1.1])
    expected, kept = np.asarray(c), schedule(20).kept
    times = [*path(20, 8).times, None]
    for now, following in itertools.pairwise(times):
        row = np.concatenate([expected, schedule(20).embedding[now], x])
        weight = np.concatenate([params.noisy, params.time, params.context])
        h = row @ weight + params.bias
        eps = (h / (1 + np.exp(-h))) @ params.out.weight + params.out.bias
        clean = (expected - (1 - kept[now]) ** 0.5 * eps) / kept[now] ** 0.5
        expected = clean
        if following is not None:
            expected = kept[following] ** 0.5 * clean + (1 - kept[following]) ** 0.5 * eps
    np.testing.assert_allclose(model.sample(params, x, c), expected, rtol=1e-9)


def test_ddpm_is_ancestral_sampling():
    """Over all times its steps are those of Ho et al.: the posterior's mean with ε̂, and noise of the posterior's
    variance.
    """
    steps, kept, beta = path(20, 20, "ddpm"), schedule(20).kept[::-1], np.linspace(1e-4, 0.02, 20)[::-1]
    before = np.append(kept[1:], 1.0)
    np.testing.assert_allclose(steps.spread**2, (1 - before) / (1 - kept) * beta, atol=1e-15)
    np.testing.assert_allclose(steps.keep, (1 - beta) ** -0.5)
    np.testing.assert_allclose(steps.add, -beta / ((1 - kept) * (1 - beta)) ** 0.5, rtol=1e-9)
    model = DiffusionModel(3, (2,), 20, 8, sampler="ddpm")
    params, noise = model.init(jax.random.key(0)), jax.random.normal(jax.random.key(1), (400, 3))
    fresh = np.asarray(model.fresh_noise(noise[:, None, :]))[:, :, 0]
    np.testing.assert_allclose(fresh.std(axis=(1, 2)), path(20, 8, "ddpm").spread, rtol=0.1, atol=1e-12)
    assert abs(np.corrcoef(fresh[0].ravel(), np.asarray(noise).ravel())[0, 1]) < 0.1, "nothing of ε is left in it"
    costs, _ = model.scenarios(params, jnp.ones(2), noise[:2])
    np.testing.assert_allclose(model.sample(params, jnp.ones(2), noise[0]), costs[0], rtol=1e-5)


def test_an_unweighted_regulariser_leaves_the_weights_out():
    plain = Diffusion(train_steps=20, sample_steps=8, weights="elbo", regulariser="unweighted").build(3, (2,))
    params, x, cost, key = plain.init(jax.random.key(0)), jnp.ones(2), jnp.array([1.0, 2.0, -1.0]), jax.random.key(2)
    drawn = plain.draw_times(key, 0)
    expected = jax.grad(lambda p: plain.weighted_loss(p, x, cost, drawn, np.ones(20)))(params)
    got = plain.regulariser_gradient(params, x, cost, key)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5), got, expected)
    weighted = DiffusionModel(3, (2,), 20, 8, "elbo").regulariser_gradient(params, x, cost, key)
    assert float(networks.tree_norm(weighted)) > 10 * float(networks.tree_norm(got)), "the bound's weights are large"


@pytest.mark.parametrize("weights", ["root", "elbo"])
@pytest.mark.usefixtures("float64")
def test_loss_is_the_weighted_squared_error_of_the_noise(weights):
    for shape in ((2,), (3, 2)):
        model = DiffusionModel(3, shape, 20, 8, weights)
        params = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), model.init(jax.random.key(0)))
        context, cost = jax.random.normal(jax.random.key(1), shape), np.array([1.0, 2.0, -1.0])
        times, noise = map(np.asarray, model.draw_loss(jax.random.key(2)))
        assert len(times) == 16
        rows = np.asarray(context).reshape(-1, 2)
        weight, kept = getattr(schedule(20), weights), schedule(20).kept
        terms = []
        for t, eps in zip(times, noise, strict=True):
            noisy = (kept[t] ** 0.5 * cost + (1 - kept[t]) ** 0.5 * eps).reshape(len(rows), -1)
            clock = np.broadcast_to(schedule(20).embedding[t], (len(rows), 8))
            h = np.concatenate([noisy, clock, rows], axis=1) @ np.concatenate(
                [params.noisy, params.time, params.context]
            )
            h = h + params.bias
            guess = (h / (1 + np.exp(-h))) @ params.out.weight + params.out.bias
            square = np.square(guess.reshape(-1) - eps)
            terms.append(weight[t] * (square.sum() if len(shape) == 1 else square.mean()))
        assert float(model.loss(params, context, cost, (times, noise))) == pytest.approx(np.mean(terms), rel=1e-9)


@pytest.mark.parametrize("shape", [(1,), (2, 1)], ids=["vector", "rows"])
def test_learns_a_known_conditional_distribution(shape):
    """``c_i | x ~ N(a_i + x, 0.5²)``: with noise levels that reach pure noise, samples have these means and this
    spread.
    """
    model = DiffusionModel(2, shape, 1000, 50)
    shift = jnp.array([0.6, -0.6]) if len(shape) == 1 else jnp.zeros(2)

    def mean(context):
        return shift + context.reshape(-1)

    def batch_loss(params, key):
        context_key, cost_key, loss_key = jax.random.split(key, 3)
        contexts = jax.random.uniform(context_key, (24, *shape), minval=-1.0, maxval=1.0)
        costs = jax.vmap(mean)(contexts) + 0.5 * jax.random.normal(cost_key, (24, 2))
        drawn = jax.vmap(model.draw_loss)(jax.random.split(loss_key, 24))
        return jnp.mean(jax.vmap(functools.partial(model.loss, params))(contexts, costs, drawn))

    @functools.partial(
        jax.jit, compiler_options={"xla_backend_optimization_level": 2}
    )  # it runs longer than it compiles
    def train(params):
        def step(carry, t):
            params, adam = carry
            gradient = jax.grad(batch_loss)(params, jax.random.fold_in(jax.random.key(1), t))
            return networks.adam_step(params, adam, gradient, 4e-3 * (1.0 - t / 1500.0)), None

        return jax.lax.scan(step, (params, networks.adam_init(params)), jnp.arange(1500))[0][0]

    params = train(model.init(jax.random.key(0)))
    for value in (-0.7, 0.5):
        context = jnp.full(shape, value)
        samples = model.scenarios(params, context, jax.random.normal(jax.random.key(2), (4000, 2)))[0]
        np.testing.assert_allclose(samples.mean(axis=0), mean(context), atol=0.12)
        np.testing.assert_allclose(samples.std(axis=0), 0.5, atol=0.1)


@pytest.mark.usefixtures("float64")
def test_sums_on_accelerators_give_what_products_give_on_cpus(monkeypatch):
    model = Diffusion(train_steps=6, sample_steps=4, width=5).build(3, (3, 2))
    params = jax.tree.map(lambda leaf: leaf.astype(float), model.init(jax.random.key(0)))
    context, noise = jax.random.normal(jax.random.key(1), (3, 2)), jax.random.normal(jax.random.key(2), (7, 3))
    costs, pullback = model.scenarios(params, context, noise)
    products = pullback(jnp.cos(noise))
    monkeypatch.setattr(jax.lax, "platform_dependent", lambda *operands, cpu, default: default(*operands))
    other_costs, other_pullback = model.scenarios(params, context, noise)
    sums = other_pullback(jnp.cos(noise))
    np.testing.assert_allclose(costs, other_costs, rtol=1e-10)
    assert jax.tree.structure(products) == jax.tree.structure(sums)
    for one, other in zip(jax.tree.leaves(products), jax.tree.leaves(sums), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
