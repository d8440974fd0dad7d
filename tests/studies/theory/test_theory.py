"""The theory study: verdicts that can go either way, estimators against exact gradients, mistakes that are noticed."""

import json

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless.keys import DECIDE, STREAM, purpose_key
from regretless.policies.dfhpg import point
from regretless.report.theory import theory_figure
from regretless.simulate import programs
from regretless.studies.theory import claims as theory
from regretless.studies.theory import runs as theory_runs
from regretless.studies.theory import world as world
from regretless.studies.theory.claims import EQUALITIES, KINDS, Claim, estimator_claims
from regretless.studies.theory.points import compare, sample_steps
from regretless.studies.theory.slopes import Interval

SAMPLES = 2**18
quiet = lambda what, done, total: None  # noqa: E731


@pytest.fixture(scope="module")
def small():
    """The whole study in miniature."""
    return theory.run(seed=0, replications=4, samples=SAMPLES, horizons=(512, 1024))


def test_the_result_has_the_promised_form(small, tmp_path):
    result = json.loads(json.dumps(small.to_dict(), allow_nan=False))
    names = [claim["name"] for claim in result["claims"]]
    assert names[:6] == ["score_unbiased", *["hybrid_bias"] * 4, "hybrid_bias_new_phi"]
    assert names[6:] == [*["nuisance_adaptive"] * 2, *["nuisance_constant"] * 2, *["stationarity"] * 5]
    for claim in result["claims"]:
        assert claim["low"] < claim["measured"] < claim["high"]
        assert (claim["p_value"] is None) == (claim["relation"] == "≤")
        assert isinstance(claim["holds"], bool)
    assert len(result["curves"]) == 9
    assert result["horizons"] == [512, 1024]
    assert result["clipped"] == 0
    assert result["visited_convexity"] >= result["constants"]["convexity"] > 0
    theory_figure(result).savefig(tmp_path / "theory.png")
    assert (tmp_path / "theory.png").read_bytes().startswith(b"\x89PNG")


def test_estimators_agree_with_exact_gradients(small):
    # Intervals hold together with 95 %; this seed is no exception, and 262,144 steps leave 3 % of room at most.
    for claim in small.claims[: len(KINDS)]:
        assert claim.holds, claim
        assert claim.measured.high - claim.measured.low < 0.06


def test_averages_stay_below_the_explicit_bounds(small):
    for claim in small.claims[len(KINDS) :]:
        assert claim.bound_share < 1


def test_a_flipped_sign_is_noticed(monkeypatch, float64):
    honest = point.score_gradient
    monkeypatch.setattr(point, "score_gradient", lambda *words: jax.tree.map(jnp.negative, honest(*words)))
    programs.forget()
    try:
        claims = estimator_claims(2**16, 0, quiet)
    finally:
        programs.forget()
    assert not any(claim.holds for claim in claims)
    assert claims[0].measured.value == pytest.approx(-1.0, abs=0.1)


def test_a_wrong_alpha_is_noticed(float64):
    theta, phi = np.zeros((3, 3)), np.eye(3) * 0.1
    moments = sample_steps(theta, phi, [*KINDS[:3], (0.6, 0.0), *KINDS[4:]], SAMPLES, 0, quiet)
    gradient = np.asarray(world.gradient(jnp.asarray(theta))).reshape(-1)
    bias = np.asarray(world.bias_gradient(jnp.asarray(phi), jnp.asarray(theta))).reshape(-1)
    verdicts = []
    for index, (name, setting, quantity, expected) in enumerate(EQUALITIES):
        offset, direction = (0 * bias, gradient) if index == 0 else (gradient, bias)
        measured, p_value = compare(moments, index, offset, direction, expected, len(EQUALITIES))
        verdicts.append(Claim(name, setting, quantity, measured, "=", expected, p_value).holds)
    assert verdicts == [True, True, True, False, True, True]


@pytest.mark.parametrize(
    ("relation", "expected", "high", "extra", "verdict"),
    [
        ("≤", -0.5, -0.51, {"bound_share": 0.1}, True),
        ("≤", -0.5, -0.49, {"bound_share": 0.1}, False),  # slower than the theorem says
        ("≤", -0.5, -0.51, {"bound_share": 1.1}, False),  # above the theorem's bound
        ("=", 0.5, 0.51, {"p_value": 0.3}, True),
        ("=", 0.5, 0.49, {"p_value": 0.3}, False),  # the interval misses the value
        ("=", 0.5, 0.51, {"p_value": 0.001}, False),  # another coordinate is wrong
    ],
)
def test_the_verdict_goes_both_ways(relation, expected, high, extra, verdict):
    claim = Claim("name", "setting", "quantity", Interval(high - 0.05, high - 0.1, high), relation, expected, **extra)
    assert claim.holds is verdict


def test_what_is_summed_has_the_theorems_quantities_as_means(float64):
    """At a fixed state: the excess nuisance loss and ‖∇V‖², both exact by quadrature."""
    inner = theory_runs.policy("constant", 0.25, 1.0, 0.0)
    one = jax.tree.map(jnp.asarray, theory_runs.Watched(inner.problem, inner))
    theta = jax.random.normal(jax.random.key(5), (3, 3))
    phi = 0.1 * jax.random.normal(jax.random.key(6), (3, 3))
    state = eqx.tree_at(lambda s: (s.inner.theta, s.inner.phi.phi), one.init(jax.random.key(0)), (theta, phi))

    def step(t):
        key = jax.random.key(7)
        played = world.World().round(purpose_key(key, STREAM, t), None, t)
        decision = one.decide(purpose_key(key, DECIDE, t), state, played.observation, None)
        new, _ = one.learn(key, state, decision, one.problem.observe(decision, played.cost))
        return jnp.stack([new.excess, new.stationarity])

    sums = np.asarray(jax.jit(jax.vmap(step))(jnp.arange(200_000)))
    error = (phi - world.COEFFICIENTS) @ world.CONTEXTS.T
    exact = [
        float(jnp.mean(jnp.sum(world.choices(theta) * jnp.square(error.T), axis=1))),
        float(jnp.sum(jnp.square(world.gradient(theta)))),
    ]
    z = (sums.mean(axis=0) - exact) / (sums.std(axis=0) / len(sums) ** 0.5)
    assert np.all(np.abs(z) < 4)
    assert np.all(sums.std(axis=0) / len(sums) ** 0.5 < 0.05 * np.asarray(exact)), "too few samples to tell"


def test_bad_requests_are_refused():
    with pytest.raises(ValueError, match="multiple of 512"):
        theory_runs.play_runs("adaptive", (0.0,), 100, range(2), None, quiet)
    with pytest.raises(ValueError, match="at least 2 replications"):
        theory.run(replications=1)
