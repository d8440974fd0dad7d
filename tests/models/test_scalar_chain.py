"""Sums in place of products: the same numbers."""

import jax
import jax.numpy as jnp
import numpy as np

from regretless.models import diffusion, scalar_chain


def test_products_with_one_row_or_one_column():
    a, b = np.arange(6.0).reshape(2, 3, 1), np.array([[2.0, -1.0]])
    np.testing.assert_array_equal(scalar_chain._summed(a, b), a @ b)
    np.testing.assert_array_equal(scalar_chain._summed(a @ b, b.T), a @ b @ b.T)
    np.testing.assert_array_equal(scalar_chain.product(a, b), a @ b)


def test_back_propagation_by_sums_is_that_by_products():
    model = diffusion.DiffusionModel(dim=3, context_shape=(3, 2), train_steps=6, sample_steps=4, width=5)
    with jax.enable_x64(True):
        params = jax.tree.map(lambda leaf: leaf.astype(float), model.init(jax.random.key(0)))
        context, noise = jax.random.normal(jax.random.key(1), (3, 2)), jax.random.normal(jax.random.key(2), (7, 3))
        _, visited = model._denoised(params, context, noise)
        known = (params, params.given(context), model._steps(params), visited, jnp.cos(noise)[..., None])
        products, sums = diffusion._by_products(*known), scalar_chain.by_sums(*known)
        assert jax.tree.structure(products) == jax.tree.structure(sums)
        for one, other in zip(jax.tree.leaves(products), jax.tree.leaves(sums), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)
