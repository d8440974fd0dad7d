"""The flow is invertible, and its density is one: it integrates to 1 and follows the change of variables."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.models.flow import CLAMP, FlowModel

pytestmark = pytest.mark.usefixtures("float64")


def setting(dim, shape, size=2.0, **options):
    model = FlowModel(dim, shape, **options)
    params = jax.tree.map(lambda leaf: size * leaf.astype(jnp.float64), model.init(jax.random.key(0)))
    return model, params, jax.random.normal(jax.random.key(1), shape)


@pytest.mark.parametrize(("dim", "shape"), [(2, (3,)), (5, (3,)), (15, (5,)), (6, (6, 4))])
def test_inverse_undoes_forward(dim, shape):
    model, params, context = setting(dim, shape)
    z = jax.random.normal(jax.random.key(2), (7, dim))
    costs = model.transform.forward(params, context, z)
    back, _ = jax.vmap(lambda cost: model.transform.inverse(params, context, cost))(costs)
    np.testing.assert_allclose(back, z, rtol=1e-9, atol=1e-9)
    assert not np.allclose(costs, z, atol=0.1)


@pytest.mark.parametrize(("dim", "shape"), [(2, (3,)), (5, (3,)), (4, (4, 3))])
def test_density_follows_the_change_of_variables(dim, shape):
    model, params, context = setting(dim, shape)
    z = jax.random.normal(jax.random.key(2), (dim,))
    cost = model.sample(params, context, z)
    jacobian = jax.jacfwd(lambda z: model.sample(params, context, z))(z)
    base = -0.5 * jnp.sum(z**2) - 0.5 * dim * np.log(2 * np.pi)
    expected = base - jnp.linalg.slogdet(jacobian)[1]
    assert float(model.log_density(params, context, cost)) == pytest.approx(float(expected), rel=1e-9)


def test_rows_are_separate_by_default_and_coupled_if_asked():
    z = jax.random.normal(jax.random.key(2), (4,))
    jacobians = {}
    for rows in ("separate", "coupled"):
        model, params, context = setting(4, (4, 3), rows=rows)
        jacobians[rows] = np.asarray(jax.jacfwd(lambda z, m=model, p=params, c=context: m.sample(p, c, z))(z))
        back, log_volume = model.transform.inverse(params, context, model.sample(params, context, z))
        np.testing.assert_allclose(back, z, rtol=1e-9, atol=1e-9)
        assert float(log_volume) == pytest.approx(np.linalg.slogdet(jacobians[rows])[1], rel=1e-9)
    largest = {name: np.max(np.abs(matrix - np.diag(np.diag(matrix)))) for name, matrix in jacobians.items()}
    assert largest["separate"] == 0.0
    assert largest["coupled"] > 0.01


@pytest.mark.parametrize("shape", [(3,), (2, 3)], ids=["vector", "rows"])
def test_density_integrates_to_one(shape):
    model, params, context = setting(2, shape)
    samples = model.scenarios(params, context, jax.random.normal(jax.random.key(3), (4000, 2)))[0]
    low, high = jnp.min(samples, axis=0), jnp.max(samples, axis=0)
    low, high = low - 0.6 * (high - low), high + 0.6 * (high - low)
    grid = [jnp.linspace(low[i], high[i], 601) for i in range(2)]
    points = jnp.stack(jnp.meshgrid(*grid, indexing="ij"), axis=-1).reshape(-1, 2)
    density = jnp.exp(jax.jit(jax.vmap(lambda c: model.log_density(params, context, c)))(points))
    area = float((grid[0][1] - grid[0][0]) * (grid[1][1] - grid[1][0]))
    assert float(jnp.sum(density)) * area == pytest.approx(1.0, abs=2e-3)


def test_layers_pass_the_stated_coordinates_through():
    model, params, context = setting(5, (3,))
    z = jax.random.normal(jax.random.key(2), (5,))
    jacobian = np.asarray(jax.jacfwd(lambda z: model.sample(params, context, z))(z))
    even, odd = np.arange(0, 5, 2), np.arange(1, 5, 2)
    # Layer 0 changes the even coordinates one by one, given the odd ones; layer 1 the odd ones, given the new even
    # ones.
    among_even = jacobian[np.ix_(even, even)]
    assert np.array_equal(among_even != 0, np.eye(3, dtype=bool))
    assert np.all(np.abs(jacobian[np.ix_(even, odd)]) > 0)
    assert np.all(np.abs(jacobian[np.ix_(odd, even)]) > 0)


def test_rows_are_independent_gaussians_of_their_own_features():
    model, params, context = setting(3, (3, 4))
    noise = jax.random.normal(jax.random.key(2), (9, 3))
    costs, _ = model.scenarios(params, context, noise)
    slope = (costs[1:] - costs[0]) / (noise[1:] - noise[0])
    np.testing.assert_allclose(slope, jnp.broadcast_to(slope[0], slope.shape), rtol=1e-9)
    other = model.scenarios(params, context.at[1].add(1.0), noise)[0]
    assert np.array_equal(np.any(np.asarray(other != costs), axis=0), [False, True, False])


@pytest.mark.parametrize("shape", [(3,), (4, 3)], ids=["vector", "rows"])
def test_log_scales_are_cut_off(shape):
    model, params, context = setting(4, shape, size=100.0)
    _, log_volume = model.transform.inverse(params, context, jnp.ones(4))
    per_coordinate = CLAMP if len(shape) == 1 else 2 * CLAMP
    assert abs(float(log_volume)) <= 4 * per_coordinate + 1e-9
    calm = setting(4, shape, size=1.0)
    _, log_volume = calm[0].transform.inverse(*calm[1:], jnp.ones(4))
    assert 0.01 < abs(float(log_volume)) < 4.0


def test_loss_sums_over_coordinates_or_averages_over_rows():
    for shape, share in (((3,), 1.0), ((4, 3), 0.25)):
        model, params, context = setting(4, shape)
        cost = jnp.array([1.0, 2.0, 3.0, 4.0])
        expected = -share * float(model.log_density(params, context, cost))
        assert float(model.loss(params, context, cost, None)) == pytest.approx(expected, rel=1e-12)


def test_one_coordinate_cannot_be_coupled():
    with pytest.raises(ValueError, match="at least two cost coordinates"):
        FlowModel(1, (3,))
