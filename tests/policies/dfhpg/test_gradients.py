"""The estimators: their means against exact values, and how they are mixed."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ndtr

from regretless import models, oracles
from regretless.policies.dfhpg import gradients
from regretless.problem import Problem
from regretless.types import Sample

ORACLE = oracles.top_k(2, 1)
MODEL = models.GaussianLinear().build(2, (1,), 0.7)
THETA = np.array([[0.3], [0.1]])
CONTEXT = jnp.ones(1)


def decided(noise, theta=THETA, version=0):
    cost = MODEL.sample(theta, CONTEXT, noise)
    sample = Sample(cost, jnp.int32(version), noise, MODEL.log_density(theta, CONTEXT, cost))
    return Problem(ORACLE, (1,)).record(sample, ORACLE.solve_one(cost), CONTEXT, None)


@pytest.mark.usefixtures("float64")
def test_score_estimator_is_unbiased_for_the_gradient_of_the_expected_cost():
    """Two items with Gaussian costs: ``V(θ) = c₁ + (c₀ − c₁) Φ((μ₁ − μ₀)/(σ√2))`` is known; |z| < 4 in every
    coordinate.
    """
    cost = jnp.array([2.0, 5.0])
    spread = 0.7 * 2**0.5
    gap = (THETA[1, 0] - THETA[0, 0]) / spread
    slope = (2.0 - 5.0) * np.exp(-0.5 * gap**2) / (2 * np.pi) ** 0.5 / spread
    exact = np.array([[-slope], [slope]])
    value = lambda m: 5.0 + (2.0 - 5.0) * ndtr((m - THETA[0, 0]) / spread)  # noqa: E731
    assert (value(THETA[1, 0] + 1e-5) - value(THETA[1, 0] - 1e-5)) / 2e-5 == pytest.approx(slope, rel=1e-6)

    def estimate(key):
        decision = decided(MODEL.draw(key))
        return gradients.score_gradient(MODEL, THETA, decision, cost @ decision.w - 1.0, jnp.asarray(True))

    samples = np.asarray(jax.jit(jax.vmap(estimate))(jax.random.split(jax.random.key(0), 200_000)))
    z = (samples.mean(axis=0) - exact) / (samples.std(axis=0, ddof=1) / len(samples) ** 0.5)
    assert np.all(np.abs(z) < 4), z


def test_mixing_weights_and_norms():
    score, plug_in = {"a": jnp.array([3.0, 4.0])}, {"a": jnp.array([0.0, 2.0])}
    alpha, one = jnp.array(0.25), jnp.array(1.0)
    plain, norms = gradients.hybrid(alpha, score, plug_in, normalise=False, trust=one)
    np.testing.assert_allclose(plain["a"], [0.75, 2.5])
    assert [float(norms[key]) for key in ("score_norm", "plug_in_norm")] == [5.0, 2.0]
    unit, norms = gradients.hybrid(alpha, score, plug_in, normalise=True, trust=one)
    np.testing.assert_allclose(unit["a"], [0.15, 0.95], rtol=1e-6)
    half, _ = gradients.hybrid(alpha, score, plug_in, normalise=True, trust=jnp.array(0.5))
    np.testing.assert_allclose(half["a"], [0.075, 0.85], rtol=1e-6)
    still, _ = gradients.hybrid(alpha, score, {"a": jnp.full(2, 1e-14)}, normalise=True, trust=one)
    np.testing.assert_allclose(still["a"], [0.15, 0.2], rtol=1e-6)


@pytest.mark.usefixtures("float64")
def test_trust_is_one_when_fresh_the_clipped_ratio_when_late_and_nothing_when_too_old_or_unknown():
    old = THETA + np.array([[0.4], [-0.2]])
    decision = decided(jnp.array([0.3, -0.8]), theta=old)
    ratio = np.exp(MODEL.log_density(THETA, CONTEXT, decision.cost_sample) - decision.log_density)

    def trust(age, known=True, clip=10.0, decision=decision):
        values = jnp.asarray(age), jnp.asarray(known), jnp.asarray(clip), jnp.asarray(100.0)
        return float(gradients.trust_in_score(MODEL, THETA, decision, *values))

    assert 0.05 < ratio < 10
    assert trust(0) == 1.0
    assert trust(3) == pytest.approx(float(ratio), rel=1e-9)
    assert trust(3, clip=0.5 * float(ratio)) == pytest.approx(0.5 * float(ratio), rel=1e-9)
    assert trust(101) == 0.0
    assert trust(0, known=False) == 0.0
    without = eqx.tree_at(lambda d: d.log_density, decision, jnp.asarray(jnp.nan))
    assert trust(0, decision=without) == 1.0
    assert trust(1, decision=without) == 0.0
