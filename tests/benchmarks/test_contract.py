"""What every benchmark must do."""

from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import benchmarks, draws, feedback
from regretless.errors import SettingsError
from regretless.feedback import check_linkage
from regretless.settings import Settings


@pytest.fixture(params=benchmarks.REGISTRY)
def benchmark(request):
    return benchmarks.build(request.param)


def stream(benchmark, seed, count):
    environment = benchmark.environment(jax.random.key(seed))
    keys = jax.random.split(jax.random.key(seed + 100), count)
    rounds = jax.jit(jax.vmap(lambda key, t: benchmark.round(key, environment, t)))(keys, jnp.arange(1, count + 1))
    return environment, rounds


def test_rounds_have_the_promised_shapes_and_are_finite(benchmark):
    environment, rounds = stream(benchmark, 0, 20)
    contexts = jax.vmap(lambda observation: benchmark.context(environment, observation))(rounds.observation)
    assert contexts.shape == (20, *benchmark.context_shape)
    assert rounds.cost.shape == (20, benchmark.oracle.dim)
    assert jax.tree.all(jax.tree.map(lambda leaf: np.all(np.isfinite(leaf)), (contexts, rounds)))


def test_mean_is_the_conditional_mean_of_the_cost(benchmark):
    """One context, many costs: every coordinate's mean within 5 standard errors (80 coordinates: chance of a miss 5e-5)."""
    environment, rounds = stream(benchmark, 1, 1)
    if rounds.mean is None:
        pytest.skip("no conditional mean is known")
    costs = redrawn(benchmark, environment, rounds.observation[0], 20_000)
    error = costs.std(axis=0, ddof=1) / len(costs) ** 0.5
    assert np.all(np.abs(costs.mean(axis=0) - np.asarray(rounds.mean[0])) <= 5 * error + 1e-6)


def redrawn(benchmark, environment, observation, count):
    """Costs of one context: the draw of the context is replaced, everything else is drawn anew."""
    real = draws.normal

    def context_stays(key, shape=()):
        return jnp.asarray(observation) if shape == observation.shape else real(key, shape)

    with mock.patch.object(draws, "normal", context_stays):
        keys = jax.random.split(jax.random.key(3), count)
        return np.asarray(jax.jit(jax.vmap(lambda key: benchmark.round(key, environment, jnp.int32(1)).cost))(keys))


def test_every_feedback_recovers_the_total(benchmark):
    _, rounds = stream(benchmark, 2, 5)
    for mode in feedback.REGISTRY:
        check_linkage(benchmark.measurement(mode), benchmark.oracle.solve(rounds.cost, rounds.instance))


@pytest.mark.parametrize("model", ["gaussian_linear", "gaussian_nn"])
@pytest.mark.parametrize("mode", feedback.REGISTRY)
def test_has_presets(benchmark, model, mode):
    for degree in (2, 4, 6, 8, 10):
        tuned = benchmarks.preset(benchmark.name, model, degree, mode)
        assert isinstance(tuned.settings, Settings)
        assert tuned.degree in (degree, None)


def test_refuses_what_it_does_not_know(benchmark):
    with pytest.raises(SettingsError, match="unknown feedback 'bandits'; did you mean 'bandit'"):
        benchmark.measurement("bandits")
    first = next(iter(benchmarks.options_of(benchmark.name)))
    with pytest.raises(
        SettingsError, match=f"unknown option of {benchmark.name} '{first[:-1]}'; did you mean '{first}'"
    ):
        benchmarks.build(benchmark.name, **{first[:-1]: 2})
    if "degree" in benchmarks.options_of(benchmark.name):
        with pytest.raises(SettingsError, match="expected a degree of at least 1, got 0"):
            benchmarks.build(benchmark.name, degree=0)
