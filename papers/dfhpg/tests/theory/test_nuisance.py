"""The linear nuisance against its formula."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import Feedback, Problem, feedback, oracles
from regretless.models import networks
from regretless_dfhpg.theory.nuisance import LinearNuisance

DIM = 6
SHAPES = {"vector": (3,), "rows": (DIM, 3)}


def built(shape, **settings):
    return LinearNuisance(**settings).build(Problem(oracles.top_k(DIM, 2), shape))


def seen(rule, shape, seed):
    keys = jax.random.split(jax.random.key(seed), 2)
    w = oracles.top_k(DIM, 2).solve_one(jax.random.normal(keys[0], (DIM,))).w
    operator, linkage = rule.measure(w, None)
    return Feedback(operator, linkage, operator.matvec(20 * jax.random.normal(keys[1], (DIM,))))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("rule", ["adaptive", "constant"])
@pytest.mark.usefixtures("float64")
def test_linear_class_takes_projected_gradient_steps(shape, rule):
    model = built(shape, lr=0.01, radius=1e9, rule=rule)
    state = model.init(jax.random.key(0))
    phi = state.phi
    for t in range(1, 4):
        context, got = jax.random.normal(jax.random.key(t), shape), seen(feedback.SemiBandit(), shape, t)

        def loss(phi, context=context, got=got):
            prediction = phi @ context if len(shape) == 1 else context @ phi
            return jnp.sum(jnp.square(got.values - got.operator.matvec(prediction)))

        phi = phi - (0.01 / t if rule == "adaptive" else 0.01) * jax.grad(loss)(phi)
        state, _ = model.step(state, context, got)
    np.testing.assert_allclose(state.phi, phi, rtol=1e-9)
    bounded = built(shape, lr=0.01, radius=0.5, rule=rule)
    state, _ = bounded.step(bounded.init(jax.random.key(0)), jnp.ones(shape), seen(feedback.Full(), shape, 0))
    assert float(networks.tree_norm(state.phi)) == pytest.approx(0.5)
