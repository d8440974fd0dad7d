"""What the paper says about a single round, tested at a point away from every optimum: means, variances, one-step descent."""

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from regretless.simulate.programs import Progress
from regretless.studies.theory import surrogate, world
from regretless.studies.theory.lines import Claim
from regretless.studies.theory.points import Kind, Moments, compare, descents, sample_steps
from regretless.studies.theory.runs import smoothness
from regretless.studies.theory.slopes import CONFIDENCE, Interval, mean_interval

KINDS = [Kind("plug_in", *pair) for pair in ((1.0,), (0.0,), (0.25,), (0.5,), (0.75,), (0.5, 0.05))]
"""The score, four mixtures with φ held, one with φ stepped first (whose nuisance step is looked at too)."""

SURROGATE_KINDS = [Kind("listwise_ltr", alpha) for alpha in (1.0, 0.0, 0.5)]
JUMPING_KINDS = [Kind("spo_plus", 0.0)]
POLICIES = 3  # at which the nuisance loss is looked at: θ = 0, the point, and one further away
VARIANCE_POINTS = 4  # beside the point itself
FAMILY = len(KINDS) + 2 + 2 + POLICIES  # equalities that are tested together


def point(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """``(θ, φ)`` away from every optimum."""
    draw = np.random.default_rng(seed)
    shape = (world.ITEMS, world.FEATURES)
    theta, phi = draw.uniform(-1.0, 1.0, shape), draw.normal(size=shape)
    return theta, phi * 0.75 * world.RADIUS / np.linalg.norm(phi)


def exact(function: object, *arguments: object) -> np.ndarray:
    """A gradient as a flat array."""
    assert callable(function)
    return np.asarray(function(*[jnp.asarray(one) for one in arguments])).reshape(-1)


def estimator_claims(samples: int, seed: int, progress: Progress) -> list[Claim]:
    """Means of the plug-in variant's estimators against exact gradients, and their variances."""
    theta, phi = point(seed)
    moments = sample_steps(theta, phi, KINDS, samples, seed, progress)
    gradient, bias = exact(world.gradient, theta), exact(world.bias_gradient, phi, theta)
    claims = []
    for index, kind in enumerate(KINDS):
        name, setting, quantity, expected = _words(kind)
        offset, direction = (np.zeros_like(bias), gradient) if index == 0 else (gradient, bias)
        measured, p_value = compare(moments, index, offset, direction, expected, FAMILY)
        claims.append(Claim(name, setting, quantity, measured, "=", expected, p_value, None, "Lemma D.3", FAMILY))
    facts = world.constants()
    others = more_moments(KINDS, samples, seed, progress)
    for index in (2, 3, 4):
        alpha = KINDS[index].alpha
        most = (alpha * facts.score_deviation + (1.0 - alpha) * facts.plug_in_deviation) ** 2
        measured, share = variance_share([moments, *others], index, alpha, most)
        claims.append(
            Claim("variance", f"α = {alpha:g}", "Var[g^α] / (α σ_score + (1 − α) σ_plug-in)², each σ as measured",
                  measured, "≤", 1.0, None, share, "Lemma D.4")
        )  # fmt: skip
    return claims


def _words(kind: Kind) -> tuple[str, str, str, float]:
    """Name, setting, quantity and the paper's value for an estimator of the plug-in variant."""
    if kind.alpha == 1.0:
        return "score_unbiased", "α = 1", "mean of score estimator / exact ∇V", 1.0
    if kind.eta == 0.0:
        return "hybrid_bias", f"α = {kind.alpha:g}", "bias of hybrid / exact plug-in bias", 1.0 - kind.alpha
    size = float(np.sum(world.CONTEXTS[0] ** 2))  # ‖x‖², the same in every context
    shrunk = (1.0 - kind.alpha) * (1.0 - 2.0 * kind.eta * size)
    setting = f"α = {kind.alpha:g}, η = {kind.eta:g}"
    return "hybrid_bias_new_phi", setting, "the same with φ stepped first", shrunk


def surrogate_claims(samples: int, seed: int, progress: Progress) -> list[Claim]:
    """The surrogate variant's estimators: unbiased for ``J^sur``, biased for ``V^α`` by ``(1 − α) ∇B^sur``; variance."""
    theta, phi = point(seed)
    smooth = sample_steps(theta, phi, SURROGATE_KINDS, samples, seed, progress)
    jumping = sample_steps(theta, phi, JUMPING_KINDS, samples, seed, progress)
    claims = []
    for setting, moments, index, target in (
        ("listwise_ltr", smooth, 1, surrogate.surrogate_gradient),
        ("spo_plus", jumping, 0, surrogate.spo_plus_gradient),
    ):
        direction = exact(target, phi, theta)
        measured, p_value = compare(moments, index, np.zeros_like(direction), direction, 1.0, FAMILY)
        quantity = "mean of surrogate estimator / exact ∇J^sur"
        claims.append(
            Claim("surrogate_unbiased", setting, quantity, measured, "=", 1.0, p_value, None, "Proposition E.1", FAMILY)
        )
    bias = exact(surrogate.surrogate_bias_gradient, phi, theta)
    for index in (1, 2):
        alpha = SURROGATE_KINDS[index].alpha
        offset = exact(surrogate.mixed_gradient, alpha, theta)
        measured, p_value = compare(smooth, index, offset, bias, 1.0 - alpha, FAMILY)
        quantity = "mean of surrogate hybrid − ∇V^α, in ∇B^sur"
        claims.append(
            Claim("surrogate_hybrid_bias", f"α = {alpha:g}", quantity, measured, "=", 1.0 - alpha, p_value, None,
                  "Lemma E.2", FAMILY)
        )  # fmt: skip
    facts, more = world.constants(), surrogate.constants()
    most = (0.5 * facts.score_deviation + 0.5 * more.deviation) ** 2
    others = more_moments(SURROGATE_KINDS, samples, seed, progress)
    measured, share = variance_share([smooth, *others], 2, 0.5, most)
    quantity = "Var[g^α,sur] / (α σ_score + (1 − α) σ_sur)², each σ as measured"
    claims.append(Claim("surrogate_variance", "α = 0.5", quantity, measured, "≤", 1.0, None, share, "Lemma E.5"))
    return claims


def more_moments(kinds: Sequence[Kind], samples: int, seed: int, progress: Progress) -> list[Moments]:
    """Moments at further points, with an eighth of the samples each."""
    places = [point(seed + 1000 * (1 + index)) for index in range(VARIANCE_POINTS)]
    return [sample_steps(*place, kinds, max(1, samples // 8), seed, progress) for place in places]


def variance_share(
    places: Sequence[Moments], index: int, alpha: float, most: float, resamples: int = 1000
) -> tuple[Interval, float]:
    """Largest ``Var[g^α] / (α σ_0 + (1 − α) σ_1)²`` over the points, σ of estimators 0 and 1; and the share of ``most``.

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
        shares.append(float(np.quantile(mixed[1:], 1.0 - tail)) / most)
    return max(intervals, key=lambda one: one.high), max(shares)


def minimiser_claims(samples: int, seed: int, progress: Progress) -> list[Claim]:
    """The nuisance loss has no slope at ``f*``, whatever the policy: its gradient there, in units of that at ``φ``."""
    theta, phi = point(seed)
    far = np.random.default_rng([seed, 1]).uniform(-np.pi, np.pi, theta.shape)
    claims = []
    for setting, place in (("θ = 0", np.zeros_like(theta)), ("θ of the other lines", theta), ("a θ further away", far)):
        moments = sample_steps(place, world.COEFFICIENTS, KINDS, max(1, samples // 8), seed, progress, of_nuisance=True)
        direction = exact(world.nuisance_gradient, phi, place)
        measured, p_value = compare(moments, len(KINDS) - 1, np.zeros_like(direction), direction, 0.0, FAMILY)
        quantity = "mean nuisance gradient at f* / exact one at another φ"
        claims.append(
            Claim("universal_minimiser", setting, quantity, measured, "=", 0.0, p_value, None, "Remark 2.1", FAMILY)
        )
    return claims


def descent_claims(samples: int, horizon: int, seed: int, progress: Progress) -> list[Claim]:
    """One step lowers ``V`` (``V^α``) as the lemmas say, with ``E‖g‖²`` itself in place of its bound ``G² + σ_α²``."""
    theta, phi = point(seed)
    claims = []
    for kinds, name, statement in (
        ([KINDS[0], KINDS[1], KINDS[3]], "one_step_descent", "Lemma D.4"),
        (SURROGATE_KINDS[1:], "surrogate_descent", "Lemma E.5"),
    ):
        changes = descents(theta, phi, kinds, horizon, max(1, samples // 16), seed, progress)
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
            claims.append(Claim(name, f"α = {kind.alpha:g}", quantity, measured, "≤", 0.0, statement=statement))
    return claims
