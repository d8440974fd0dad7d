"""Statements about a single round, tested away from every optimum: means, variances and one-step descent."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy.special import chdtrc, ndtri

from regretless.draws import DECIDE, LEARN, STREAM, purpose_key
from regretless.policies.dfhpg.algorithm import DFHPGPolicy
from regretless.simulation.programs import Progress, Replicas
from regretless.simulation.stream import SimulationSpec
from regretless_dfhpg.theory import surrogate, world
from regretless_dfhpg.theory.runs import Variant, policy, smoothness
from regretless_dfhpg.theory.statements import CONFIDENCE, Interval, Statement, mean_interval

REPLICAS = 64
CHUNK = 1024
CONSTANT = 1e-9  # share of the largest variance below which a direction does not vary
EXACT = 1e-3  # of the largest standard error: how far a mean may be off where nothing varies
EVERY = 8  # of the steps that descent is looked at: V takes a quadrature


class Estimator(NamedTuple):
    """An estimator: its variant, its α, and the nuisance step η taken before it (0 leaves φ where it is)."""

    variant: Variant
    alpha: float
    eta: float = 0.0


class Moments(NamedTuple):
    """Mean of ``size`` independent steps, ``[steps, dp]``, and the covariance of that mean, ``[steps, dp, dp]``."""

    mean: np.ndarray
    covariance: np.ndarray
    size: int
    variances: np.ndarray  # [steps, batches]: E‖g − E g‖² as each batch of CHUNK steps estimates it


class StepSums(eqx.Module):
    """Sums over steps of ``g`` and ``g gᵀ``."""

    first: Float[Array, "steps dp"]
    second: Float[Array, "steps dp dp"]

    @staticmethod
    def of(g: Float[Array, "steps n dp"]) -> "StepSums":
        """Sum the rows."""
        return StepSums(jnp.sum(g, axis=1), jnp.einsum("snp,snq->spq", g, g))


def _steps(
    one: DFHPGPolicy, spec: SimulationSpec, seed_key: Any, theta: Array, phi: Array, start: Array
) -> tuple[Array, Array]:
    """Return ``θ_t − θ_{t+1}`` and ``φ_t − φ_{t+1}`` of ``CHUNK`` rounds from the same point, ``[chunk, dp]`` each."""
    fresh = one.init(seed_key)
    state = eqx.tree_at(lambda s: (s.theta, s.phi.phi), fresh, (theta, phi))

    def step(t: Array) -> tuple[Array, Array]:
        played = spec.benchmark.round(purpose_key(seed_key, STREAM, t), None, t)
        context = spec.benchmark.context(None, played.observation)
        decision = one.decide(purpose_key(seed_key, DECIDE, t), state, context, None)
        feedback = one.problem.observe(decision, played.cost)
        new, _ = one.learn(purpose_key(seed_key, LEARN, t), state, decision, feedback)
        return (theta - new.theta).reshape(-1), (phi - new.phi.phi).reshape(-1)

    return jax.vmap(step)(start + jnp.arange(CHUNK, dtype=jnp.int32))


def _sample(shared: tuple[DFHPGPolicy, SimulationSpec, Array, Array, Any], seed_key: Any) -> tuple[StepSums, StepSums]:
    """Return sums of the policy's and of the nuisance's steps, for each policy of the stack on the same rounds."""
    stack, spec, theta, phi, start = shared
    of_policy, of_nuisance = jax.vmap(lambda one: _steps(one, spec, seed_key, theta, phi, start))(stack)
    return StepSums.of(of_policy), StepSums.of(of_nuisance)


def _descend(
    shared: tuple[DFHPGPolicy, SimulationSpec, Array, Array, Array, Array, Any], seed_key: Any
) -> Float[Array, " steps"]:
    """Return the mean over every eighth step of ``V(θ − βg) − V(θ) − ½ L β² ‖g‖²`` (or of ``V^α``)."""
    stack, spec, theta, phi, rates, curvatures, start = shared

    def change(one: DFHPGPolicy, rate: Array, curvature: Array) -> Array:
        weight = jnp.ones(()) if one.surrogate is None else one.mixing.init().alpha
        height = world.value if one.surrogate is None else functools.partial(surrogate.mixed_value, weight)
        g = _steps(one, spec, seed_key, theta, phi, start)[0][::EVERY]
        after = jax.lax.map(lambda step: height(theta - rate * step.reshape(theta.shape)), g, batch_size=16)
        return jnp.mean(after - height(theta) - 0.5 * curvature * rate**2 * jnp.sum(jnp.square(g), axis=1))

    return jax.vmap(change)(stack, rates, curvatures)


def _stacked(kinds: Sequence[Estimator]) -> DFHPGPolicy:
    """Return the policies of one variant as one tree; with a policy rate of 1 a step is the estimator."""
    built = [jax.tree.map(jnp.asarray, policy("constant", one.alpha, 1.0, one.eta, one.variant)) for one in kinds]
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *built)


def _calls(
    function: Callable[..., Any], shared: tuple[Any, ...], samples: int, seed: int, what: str, progress: Progress
) -> list[Any]:
    """Evaluate ``function`` for as many batches as ``samples`` need, each with an axis of replicas."""
    replicas = Replicas(REPLICAS, world.World().oracle)
    keys = replicas.place(jax.vmap(jax.random.key)(np.arange(REPLICAS, dtype=np.uint32) + np.uint32(REPLICAS * seed)))
    answers = []
    for size in range(0, samples, REPLICAS * CHUNK):
        call = (function, (*shared, jnp.int32(size // REPLICAS)), keys)
        replicas.prepare([call], progress)
        answers.append(jax.tree.map(np.asarray, replicas.run(*call)))  # on the host: no device waits for another
        progress(what, min(size + REPLICAS * CHUNK, samples), samples)
    return answers


def sample_steps(
    theta: np.ndarray,
    phi: np.ndarray,
    kinds: Sequence[Estimator],
    samples: int,
    seed: int,
    progress: Progress,
    of_nuisance: bool = False,
) -> Moments:
    """Return moments of the step that ``learn`` takes from ``(θ, φ)``: the policy's, or the nuisance's divided by η.

    ``g = θ_t − θ_{t+1}``; all ``kinds`` are of one variant.
    """
    shared = (_stacked(kinds), SimulationSpec(world.World()), jnp.asarray(theta), jnp.asarray(phi))
    answers = _calls(_sample, shared, samples, seed, "gradient estimators", progress)
    sums = [nuisance_sums if of_nuisance else policy_sums for policy_sums, nuisance_sums in answers]
    scale = np.array([1.0 / one.eta if of_nuisance and one.eta else 1.0 for one in kinds])
    firsts = np.concatenate([one.first for one in sums]) * scale[:, None]  # [batches, steps, dp]
    seconds = np.concatenate([one.second for one in sums]) * scale[:, None, None] ** 2
    size = CHUNK * len(firsts)
    mean = np.sum(firsts, axis=0) / size
    spread = np.sum(seconds, axis=0) / size - np.einsum("sp,sq->spq", mean, mean)
    within = np.trace(seconds, axis1=2, axis2=3) - np.sum(np.square(firsts), axis=2) / CHUNK
    return Moments(mean, spread / (size - 1), size, within.T / (CHUNK - 1))


def compare(
    moments: Moments, index: int, offset: np.ndarray, direction: np.ndarray, expected: float, family: int
) -> tuple[Interval, float]:
    """Return the share of ``direction`` in ``mean − offset`` and the p-value of ``offset + expected · direction``.

    The interval is one of ``family`` intervals that hold together with 95 % (Bonferroni).
    """
    mean, covariance = moments.mean[index], moments.covariance[index]
    length = float(direction @ direction)
    share = float((mean - offset) @ direction) / length
    error = math.sqrt(float(direction @ covariance @ direction)) / length
    margin = float(ndtri(1.0 - 0.5 * (1.0 - CONFIDENCE) / family)) * error
    miss = mean - offset - expected * direction
    return Interval(share, share - margin, share + margin), _joint(miss, covariance)


def _joint(miss: np.ndarray, covariance: np.ndarray) -> float:
    """Return the p-value of a normal vector with mean zero.

    A direction in which an estimator does not vary has to be exact: the gradient of a ranking loss sums to zero in
    every sample.
    """
    variances, axes = np.linalg.eigh(covariance)
    along = axes.T @ miss
    varies = variances > CONSTANT * variances[-1]
    if np.any(np.abs(along[~varies]) > EXACT * np.sqrt(variances[-1])):
        return 0.0
    return float(chdtrc(int(varies.sum()), float(np.sum(np.square(along[varies]) / variances[varies]))))


def sample_descents(
    theta: np.ndarray,
    phi: np.ndarray,
    kinds: Sequence[Estimator],
    horizon: int,
    samples: int,
    seed: int,
    progress: Progress,
) -> list[np.ndarray]:
    """Return ``V(θ_{t+1}) − V(θ_t) − ½ L β² ‖g‖²`` of one step of size ``β = 1/(L√T)``, as means of batches."""
    curvatures = np.array([smoothness(one.variant, one.alpha) for one in kinds])
    rates = 1.0 / (curvatures * horizon**0.5)
    shared = (_stacked(kinds), SimulationSpec(world.World()), *map(jnp.asarray, (theta, phi, rates, curvatures)))
    return list(np.concatenate(_calls(_descend, shared, samples, seed, "one-step descent", progress)).T)


ESTIMATORS = [Estimator("plug_in", *pair) for pair in ((1.0,), (0.0,), (0.25,), (0.5,), (0.75,), (0.5, 0.05))]
"""The score, four mixtures with φ held, one with φ stepped first, whose nuisance step is checked too."""

SURROGATE_ESTIMATORS = [Estimator("listwise_ltr", alpha) for alpha in (1.0, 0.0, 0.5)]
SPO_ESTIMATORS = [Estimator("spo_plus", 0.0)]
POLICIES = 3  # at which the nuisance loss is looked at: θ = 0, the point, and one further away
VARIANCE_POINTS = 4  # in addition to the point itself
FAMILY = len(ESTIMATORS) + 2 + 2 + POLICIES  # equalities that are tested together


def point(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ``(θ, φ)`` away from every optimum."""
    draw = np.random.default_rng(seed)
    shape = (world.ITEMS, world.FEATURES)
    theta, phi = draw.uniform(-1.0, 1.0, shape), draw.normal(size=shape)
    return theta, phi * 0.75 * world.RADIUS / np.linalg.norm(phi)


def exact(function: object, *arguments: object) -> np.ndarray:
    """Return a gradient as a flat array."""
    assert callable(function)
    return np.asarray(function(*[jnp.asarray(one) for one in arguments])).reshape(-1)


def check_estimators(samples: int, seed: int, progress: Progress) -> list[Statement]:
    """Compare the plug-in variant's estimators with exact gradients, and their variances with the bound."""
    theta, phi = point(seed)
    moments = sample_steps(theta, phi, ESTIMATORS, samples, seed, progress)
    gradient, bias = exact(world.gradient, theta), exact(world.bias_gradient, phi, theta)
    claims = []
    for index, kind in enumerate(ESTIMATORS):
        name, setting, quantity, expected = _words(kind)
        offset, direction = (np.zeros_like(bias), gradient) if index == 0 else (gradient, bias)
        measured, p_value = compare(moments, index, offset, direction, expected, FAMILY)
        claims.append(Statement(name, setting, quantity, measured, "=", expected, p_value, None, "Lemma D.3", FAMILY))
    bounds = world.constants()
    others = sample_other_points(ESTIMATORS, samples, seed, progress)
    for index in (2, 3, 4):
        alpha = ESTIMATORS[index].alpha
        limit = (alpha * bounds.score_deviation + (1.0 - alpha) * bounds.plug_in_deviation) ** 2
        measured, share = variance_share([moments, *others], index, alpha, limit)
        claims.append(
            Statement("variance", f"α = {alpha:g}", "Var[g^α] / (α σ_score + (1 − α) σ_plug-in)², each σ as measured",
                  measured, "≤", 1.0, None, share, "Lemma D.4")
        )  # fmt: skip
    return claims


def _words(kind: Estimator) -> tuple[str, str, str, float]:
    """Return name, setting, quantity and the paper's value for an estimator of the plug-in variant."""
    if kind.alpha == 1.0:
        return "score_unbiased", "α = 1", "mean of score estimator / exact ∇V", 1.0
    if kind.eta == 0.0:
        return "hybrid_bias", f"α = {kind.alpha:g}", "bias of hybrid / exact plug-in bias", 1.0 - kind.alpha
    size = float(np.sum(world.CONTEXTS[0] ** 2))  # ‖x‖², the same in every context
    shrunk = (1.0 - kind.alpha) * (1.0 - 2.0 * kind.eta * size)
    setting = f"α = {kind.alpha:g}, η = {kind.eta:g}"
    return "hybrid_bias_new_phi", setting, "the same with φ stepped first", shrunk


def check_surrogate_estimators(samples: int, seed: int, progress: Progress) -> list[Statement]:
    """Compare the surrogate variant's estimators with ``∇J^sur`` and ``∇V^α``, and their variance with the bound."""
    theta, phi = point(seed)
    smooth = sample_steps(theta, phi, SURROGATE_ESTIMATORS, samples, seed, progress)
    jumping = sample_steps(theta, phi, SPO_ESTIMATORS, samples, seed, progress)
    claims = []
    for setting, moments, index, target in (
        ("listwise_ltr", smooth, 1, surrogate.surrogate_gradient),
        ("spo_plus", jumping, 0, surrogate.spo_plus_gradient),
    ):
        direction = exact(target, phi, theta)
        measured, p_value = compare(moments, index, np.zeros_like(direction), direction, 1.0, FAMILY)
        quantity = "mean of surrogate estimator / exact ∇J^sur"
        claims.append(
            Statement(
                "surrogate_unbiased", setting, quantity, measured, "=", 1.0, p_value, None, "Proposition E.1", FAMILY
            )
        )
    bias = exact(surrogate.surrogate_bias_gradient, phi, theta)
    for index in (1, 2):
        alpha = SURROGATE_ESTIMATORS[index].alpha
        offset = exact(surrogate.mixed_gradient, alpha, theta)
        measured, p_value = compare(smooth, index, offset, bias, 1.0 - alpha, FAMILY)
        quantity = "mean of surrogate hybrid − ∇V^α, in ∇B^sur"
        claims.append(
            Statement("surrogate_hybrid_bias", f"α = {alpha:g}", quantity, measured, "=", 1.0 - alpha, p_value, None,
                  "Lemma E.2", FAMILY)
        )  # fmt: skip
    bounds, surrogate_bounds = world.constants(), surrogate.constants()
    limit = (0.5 * bounds.score_deviation + 0.5 * surrogate_bounds.deviation) ** 2
    others = sample_other_points(SURROGATE_ESTIMATORS, samples, seed, progress)
    measured, share = variance_share([smooth, *others], 2, 0.5, limit)
    quantity = "Var[g^α,sur] / (α σ_score + (1 − α) σ_sur)², each σ as measured"
    claims.append(Statement("surrogate_variance", "α = 0.5", quantity, measured, "≤", 1.0, None, share, "Lemma E.5"))
    return claims


def sample_other_points(kinds: Sequence[Estimator], samples: int, seed: int, progress: Progress) -> list[Moments]:
    """Return moments at further points, with an eighth of the samples each."""
    places = [point(seed + 1000 * (1 + index)) for index in range(VARIANCE_POINTS)]
    return [sample_steps(*place, kinds, max(1, samples // 8), seed, progress) for place in places]


def variance_share(
    places: Sequence[Moments], index: int, alpha: float, limit: float, resamples: int = 1000
) -> tuple[Interval, float]:
    """Return the largest ``Var[g^α] / (α σ_0 + (1 − α) σ_1)²`` over the points and its share of ``limit``.

    The intervals (bootstrap of batches) hold together for all points.
    """
    tail = 0.5 * (1.0 - CONFIDENCE) / len(places)
    draw = np.random.default_rng(0)
    intervals, shares = [], []
    for moments in places:
        size = moments.variances.shape[1]
        counts = np.vstack([np.ones(size), draw.multinomial(size, np.full(size, 1.0 / size), size=resamples)])
        mixed, score, other = (moments.variances[which] @ counts.T / size for which in (index, 0, 1))
        ratio = mixed / (alpha * np.sqrt(score) + (1.0 - alpha) * np.sqrt(other)) ** 2
        low, high = np.quantile(ratio[1:], [tail, 1.0 - tail])
        intervals.append(Interval(float(ratio[0]), float(low), float(high)))
        shares.append(float(np.quantile(mixed[1:], 1.0 - tail)) / limit)
    return max(intervals, key=lambda one: one.high), max(shares)


def check_minimiser(samples: int, seed: int, progress: Progress) -> list[Statement]:
    """Check that the nuisance loss has no slope at ``f*`` for any policy, in units of its slope at ``φ``."""
    theta, phi = point(seed)
    far = np.random.default_rng([seed, 1]).uniform(-np.pi, np.pi, theta.shape)
    claims = []
    for setting, place in (("θ = 0", np.zeros_like(theta)), ("θ of the other lines", theta), ("a θ further away", far)):
        moments = sample_steps(
            place, world.COEFFICIENTS, ESTIMATORS, max(1, samples // 8), seed, progress, of_nuisance=True
        )
        direction = exact(world.nuisance_gradient, phi, place)
        measured, p_value = compare(moments, len(ESTIMATORS) - 1, np.zeros_like(direction), direction, 0.0, FAMILY)
        quantity = "mean nuisance gradient at f* / exact one at another φ"
        claims.append(
            Statement("universal_minimiser", setting, quantity, measured, "=", 0.0, p_value, None, "Remark 2.1", FAMILY)
        )
    return claims


def check_descent(samples: int, horizon: int, seed: int, progress: Progress) -> list[Statement]:
    """Check that one step lowers ``V`` (``V^α``) as the lemmas say, with ``E‖g‖²`` in place of ``G² + σ_α²``."""
    theta, phi = point(seed)
    claims = []
    for kinds, name, statement in (
        ([ESTIMATORS[0], ESTIMATORS[1], ESTIMATORS[3]], "one_step_descent", "Lemma D.4"),
        (SURROGATE_ESTIMATORS[1:], "surrogate_descent", "Lemma E.5"),
    ):
        changes = sample_descents(theta, phi, kinds, horizon, max(1, samples // 16), seed, progress)
        for kind, change in zip(kinds, changes, strict=True):
            if kind.variant == "plug_in":
                slope, bias = exact(world.gradient, theta), exact(world.bias_gradient, phi, theta)
            else:
                slope = exact(surrogate.mixed_gradient, kind.alpha, theta)
                bias = exact(surrogate.surrogate_bias_gradient, phi, theta)
            rate = 1.0 / (smoothness(kind.variant, kind.alpha) * horizon**0.5)
            unit = 0.5 * rate * float(slope @ slope)
            allowed = 0.5 * rate * (1.0 - kind.alpha) ** 2 * float(bias @ bias)
            measured = mean_interval((change + unit - allowed) / unit)
            symbol = "V" if kind.variant == "plug_in" else "V^α"
            quantity = f"change of {symbol} in a step − what the lemma allows, in β‖∇{symbol}‖²/2"
            claims.append(Statement(name, f"α = {kind.alpha:g}", quantity, measured, "≤", 0.0, statement=statement))
    return claims
