import jax.numpy as jnp
import numpy as np
import pytest

from regretless.schedules import Mixing, shifted_inverse


def test_learning_rate_starts_at_its_initial_value_and_halves_after_a_hundred_rounds():
    rates = [float(shifted_inverse(jnp.array(0.5), jnp.array(t))) for t in (1, 102, 2000)]
    np.testing.assert_allclose(rates, [0.5, 0.25, 0.5 * 101 / 2100], rtol=1e-3)


def plain_alphas(residuals, totals, high, low, gate, tau, target):
    """The schedule in plain Python, from its description."""
    alpha, out, r2, y2, ref = high, [], 0.0, 0.0, 0.0
    for t, (residual, total) in enumerate(zip(residuals, totals, strict=True), start=1):
        out.append(alpha)
        if t == 1:
            r2, y2 = residual**2, total**2
        else:
            r2, y2 = 0.98 * r2 + 0.02 * residual**2, 0.98 * y2 + 0.02 * total**2
        r = r2 / max(y2, 1e-8)
        if gate == "warmup":
            ref = max(ref, r) if t <= 100 else ref
            weight = 1.0 if t <= 100 else 0.0
        else:
            weight = np.exp(-(t - 1) / tau)
            ref = r if t == 1 else ref + weight * max(r - ref, 0)
        goal = low + (high - low) * np.clip(r / ref, 0, 1) if target == "reliability" else low
        alpha = np.clip(0.95 * alpha + 0.05 * (weight * high + (1 - weight) * goal), low, high)
    return out


@pytest.mark.parametrize("gate", ["warmup", "exponential"])
@pytest.mark.parametrize("target", ["reliability", "minimum"])
@pytest.mark.usefixtures("float64")
def test_alpha_follows_its_description(gate, target):
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=300) * np.linspace(5, 0.5, 300)
    totals = 5 + rng.normal(size=300)
    mixing = Mixing(np.array(0.6), np.array(0.1), np.array(40.0), gate, target)
    state, alphas = mixing.init(), []
    for residual, total in zip(residuals, totals, strict=True):
        alphas.append(float(state.alpha))
        state = mixing.update(state, jnp.asarray(residual), jnp.asarray(total))
    np.testing.assert_allclose(alphas, plain_alphas(residuals, totals, 0.6, 0.1, gate, 40.0, target), rtol=1e-9)
    assert alphas[0] == 0.6
    assert min(alphas) < 0.3


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_equal_bounds_make_a_constant(value):
    mixing = Mixing(np.array(value), np.array(value), np.array(100.0))
    state = mixing.init()
    for t in range(150):
        assert float(state.alpha) == value
        state = mixing.update(state, jnp.asarray(1.0 + t), jnp.asarray(3.0))
