import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.errors import SettingsError
from regretless.schedules import MixingWeight, RateSpec, shifted_inverse


def test_learning_rate_starts_at_its_initial_value_and_halves_after_a_hundred_rounds():
    rates = [float(shifted_inverse(jnp.array(0.5), jnp.array(t))) for t in (1, 102, 2000)]
    np.testing.assert_allclose(rates, [0.5, 0.25, 0.5 * 101 / 2100], rtol=1e-3)


def test_its_offset_can_be_set():
    rates = [float(shifted_inverse(jnp.array(0.5), jnp.array(t), jnp.array(9.0))) for t in (1, 11)]
    np.testing.assert_allclose(rates, [0.5, 0.25], rtol=1e-6)


def test_the_papers_rate_is_a_hundredth_lower():
    printed = [float(shifted_inverse(jnp.array(0.5), jnp.array(t), start=0.0)) for t in (1, 100, 2000)]
    np.testing.assert_allclose(printed, [0.5 / (1 + t / 100) for t in (1, 100, 2000)], rtol=1e-6)
    with pytest.raises(SettingsError, match="rate_offset or rate_start above 0"):
        RateSpec(rate_offset=0, rate_start=0)


def plain_alphas(residuals, totals, high, low, gate, tau, target, warmup=100, decay=0.98, rate=0.05):
    """The schedule in plain Python, from its description."""
    alpha, out, r2, y2, ref = high, [], 0.0, 0.0, 0.0
    for t, (residual, total) in enumerate(zip(residuals, totals, strict=True), start=1):
        out.append(alpha)
        if t == 1:
            r2, y2 = residual**2, total**2
        else:
            r2, y2 = decay * r2 + (1 - decay) * residual**2, decay * y2 + (1 - decay) * total**2
        r = r2 / max(y2, 1e-8)
        if gate == "warmup":
            ref = max(ref, r) if t <= warmup else ref
            weight = 1.0 if t <= warmup else 0.0
        else:
            weight = np.exp(-(t - 1) / tau)
            ref = r if t == 1 else ref + weight * max(r - ref, 0)
        goal = low + (high - low) * np.clip(r / ref, 0, 1) if target == "reliability" else low
        alpha = np.clip((1 - rate) * alpha + rate * (weight * high + (1 - weight) * goal), low, high)
    return out


@pytest.mark.parametrize("others", [{}, {"warmup": 30, "decay": 0.9, "rate": 0.2}], ids=["published", "set"])
@pytest.mark.parametrize("gate", ["warmup", "exponential"])
@pytest.mark.parametrize("target", ["reliability", "minimum"])
@pytest.mark.usefixtures("float64")
def test_alpha_follows_its_description(gate, target, others):
    rng = np.random.default_rng(0)
    residuals = rng.normal(size=300) * np.linspace(5, 0.5, 300)
    totals = 5 + rng.normal(size=300)
    mixing = MixingWeight(max=0.6, min=0.1, time_scale=40.0, gate=gate, target=target, **others).build()
    state, alphas = mixing.init(), []
    for residual, total in zip(residuals, totals, strict=True):
        alphas.append(float(state.alpha))
        state = mixing.update(state, jnp.asarray(residual), jnp.asarray(total))
    np.testing.assert_allclose(
        alphas, plain_alphas(residuals, totals, 0.6, 0.1, gate, 40.0, target, **others), rtol=1e-9
    )
    assert alphas[0] == 0.6
    assert min(alphas) < 0.3


@pytest.mark.parametrize("value", [0.0, 0.25, 1.0])
def test_equal_bounds_make_a_constant(value):
    mixing = MixingWeight(max=value, min=value).build()
    state = mixing.init()
    for t in range(150):
        assert float(state.alpha) == value
        state = mixing.update(state, jnp.asarray(1.0 + t), jnp.asarray(3.0))


def test_a_constant_shares_the_program_of_either_gate():
    gates = [
        MixingWeight(max=0.5, gate="exponential", time_scale=40.0),
        MixingWeight(max=0.0, min=0.0, warmup=30),
    ]
    first, second = (jax.tree.structure(settings.build()) for settings in gates)
    assert first == second
