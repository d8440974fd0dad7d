"""Surrogates that have a loss: the gradient equals finite differences of that loss where it is differentiable."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import oracles, surrogates
from regretless.surrogates import pool as pools

ORACLE = oracles.top_k(8, 3)


def value(cost):
    """``min over w in S of c·w``."""
    return cost @ solution(cost)


def solution(cost):
    return np.asarray(ORACLE.solve_one(jnp.asarray(cost)).w)


def spo_plus(p, c, pool, noise):
    best = solution(c)
    return -value(2 * p - c) + 2 * p @ best - c @ best


def pairs(c, pool):
    """The pool's best under the target, and the rest."""
    best = pool[np.argmin(pool @ c)]
    return best, pool[np.any(pool != best, axis=1)]


def pairwise_diff(p, c, pool, noise):
    best, rest = pairs(c, pool)
    return np.mean(((best - rest) @ (p - c)) ** 2)


def pairwise_ltr(p, c, pool, noise, margin=0.0):
    best, rest = pairs(c, pool)
    return np.mean(np.maximum(0, margin + (best - rest) @ p))


def listwise_ltr(p, c, pool, noise, temperature=1.0):
    wanted, given = -pool @ c / temperature, -pool @ p / temperature
    return -np.sum(np.asarray(jax.nn.softmax(wanted) * jax.nn.log_softmax(given)))


def pfyl(p, c, pool, noise, spread=1.0):
    return p @ solution(c) - np.mean([value(p + spread * row) for row in noise])


def pg(p, c, pool, noise, step=0.1, difference="backward"):
    ahead, width = (p + step * c, 2.0) if difference == "central" else (p, 1.0)
    return (value(ahead) - value(p - step * c)) / (width * step)


def mse_spo_plus(p, c, pool, noise, share=0.5):
    return share * np.sum((p - c) ** 2) + (1.0 - share) * spo_plus(p, c, pool, noise)


LOSSES = {
    "mse": lambda p, c, pool, noise: np.sum((p - c) ** 2),
    "spo_plus": spo_plus,
    "mse_spo_plus": mse_spo_plus,
    "pg": pg,
    "pfyl": pfyl,
    "nce": lambda p, c, pool, noise: np.mean((solution(c) - pool) @ p),
    "nce_c": lambda p, c, pool, noise: np.mean((solution(c) - pool) @ (p - c)),
    "contrastive_map": lambda p, c, pool, noise: np.max((solution(c) - pool) @ p),
    "map_c": lambda p, c, pool, noise: np.max((solution(c) - pool) @ (p - c)),
    "pointwise_ltr": lambda p, c, pool, noise: np.mean((pool @ (p - c)) ** 2),
    "pairwise_diff": pairwise_diff,
    "pairwise_ltr": pairwise_ltr,
    "listwise_ltr": listwise_ltr,
    "spo_caching": lambda p, c, pool, noise: 0.5 * np.max((solution(c) - pool) @ (2 * p - c)),
}


# The constants of the losses at values other than their defaults.
SET = {
    "mse_spo_plus": {"share": 0.2},
    "pg": {"step": 0.7, "difference": "central"},
    "pfyl": {"spread": 0.3, "draws": 4},
    "pairwise_ltr": {"margin": 0.8},
    "listwise_ltr": {"temperature": 2.5},
}


@pytest.mark.parametrize(("name", "given"), [*((name, {}) for name in LOSSES), *SET.items()], ids=str)
@pytest.mark.usefixtures("float64")
def test_gradient_is_the_slope_of_the_loss(name, given):
    surrogate = surrogates.parse(name, given).build(ORACLE)
    constants = {key: value for key, value in given.items() if key != "draws"}
    loss = functools.partial(LOSSES[name], **constants)
    for seed in range(5):
        prediction, target, *others = np.random.default_rng(seed).normal(size=(8, 8))
        memory = surrogate.init()
        for cost in others if memory is not None else ():
            memory = pools.add(memory, ORACLE.solve_one(jnp.asarray(cost)).w)
        noise = surrogate.draw(jax.random.key(seed))
        gradient, memory = surrogate(memory, jnp.asarray(prediction), jnp.asarray(target), noise)
        pool = None if memory is None else np.unique(np.asarray(memory.decisions)[np.asarray(memory.present())], axis=0)
        direction = np.random.default_rng(100 + seed).normal(size=8)
        h = 1e-5
        ahead, behind = (loss(prediction + s * h * direction, target, pool, noise) for s in (1, -1))
        # The divisor of pg carries a guard of 1e-7 against zero steps: a relative difference of 1e-6.
        assert float(gradient @ direction) == pytest.approx((ahead - behind) / (2 * h), rel=1e-5, abs=1e-7)


def test_the_others_have_no_loss_and_say_so():
    elsewhere = {"regularized_frank_wolfe", "cave", "lancer"}  # test_projection
    assert set(surrogates.REGISTRY) - set(LOSSES) == {"dbb", "imle", "aimle", "nid", "dpo"} | elsewhere


def test_pairwise_diff_counts_equal_target_costs_once():
    """With target cost only in the first coordinate, decisions that agree there are equals: the oldest stands for
    all.
    """
    surrogate = surrogates.parse("pairwise_diff").build(oracles.top_k(4, 1))
    target, prediction = jnp.array([-1.0, 0.0, 0.0, 0.0]), jnp.array([0.5, 1.0, 2.0, 3.0])
    memory = surrogate.init()
    for w in (jnp.eye(4)[2], jnp.eye(4)[1]):
        memory = pools.add(memory, w)
    gradient, _ = surrogate(memory, prediction, target, None)
    # Pool, oldest first: w₂, w₁, w*(c) = w₀ (also w*(ĉ)). w₁ has the target cost of w₂, which is older.
    difference = jnp.eye(4)[0] - jnp.eye(4)[2]
    np.testing.assert_allclose(gradient, 2 * ((prediction - target) @ difference) * difference, rtol=1e-6)
