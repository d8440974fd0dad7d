import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from regretless import oracles, surrogates
from regretless.surrogates.perturbation import sum_of_gamma


def test_noise_has_the_distribution_of_the_sum_of_gammas():
    """Kolmogorov-Smirnov against drawn sums (p > 0.001 for the right distribution in all but one of a thousand
    worlds).
    """
    count, rng = 200_000, np.random.default_rng(0)
    drawn = (sum(rng.gamma(1 / 5, 5 / i, count) for i in range(1, 11)) - np.log(10)) / 5
    ours = np.asarray(sum_of_gamma(jax.random.key(0), (count,)), float)
    assert stats.ks_2samp(drawn, ours).pvalue > 1e-3
    # Moments of a sum of gammas are known: mean (H₁₀ − ln 10)/κ, variance Σ 1/(κ i²).
    ranks = np.arange(1, 11)
    assert ours.mean() == pytest.approx((np.sum(1 / ranks) - np.log(10)) / 5, abs=5 * 0.556 / count**0.5)
    assert ours.var() == pytest.approx(np.sum(1 / ranks**2) / 5, rel=0.03)


@pytest.mark.usefixtures("float64")
def test_dpo_is_unbiased_for_the_smoothed_task_cost():
    """Two items: ``E c·w*(ĉ + σξ)`` is known in closed form; |z| < 4 in both coordinates over 20,000 calls."""
    surrogate = surrogates.parse("dpo").build(oracles.top_k(2, 1))
    prediction, target = jnp.array([0.3, 0.1]), jnp.array([2.0, 5.0])
    spread = 2**0.5
    gap = float(prediction[1] - prediction[0]) / spread
    slope = (2.0 - 5.0) * np.exp(-0.5 * gap**2) / (2 * np.pi) ** 0.5 / spread
    call = jax.jit(jax.vmap(lambda key: surrogate(None, prediction, target, surrogate.draw(key))[0]))
    samples = np.asarray(call(jax.random.split(jax.random.key(0), 20_000)))
    z = (samples.mean(axis=0) - [-slope, slope]) / (samples.std(axis=0, ddof=1) / len(samples) ** 0.5)
    assert np.all(np.abs(z) < 4), z


def test_aimle_scale_follows_its_rule(golden):
    recorded = golden("surrogate_gradients")
    with jax.enable_x64(True):
        for problem, oracle in (("topk", oracles.top_k(15, 2)), ("shortest_path", None)):
            oracle = oracle or oracles.shortest_path(oracles.grid_edges(5, 5))
            surrogate = surrogates.parse("aimle").build(oracle)
            memory = surrogate.init()
            for call in range(12):
                arguments = (recorded[f"{problem}_{kind}"][call] for kind in ("prediction", "target"))
                _, memory = surrogate(memory, *map(jnp.asarray, arguments), recorded[f"{problem}_noise_aimle"][call])
            assert float(memory.scale) == pytest.approx(float(recorded[f"{problem}_aimle_scale_after"][0]), rel=1e-9)
