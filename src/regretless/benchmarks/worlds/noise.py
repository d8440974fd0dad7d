"""What lies between a mean cost and the one that is seen: noise of a kind and size, and wrong entries."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless import draws
from regretless.types import Cost, Key

DEGREES_OF_FREEDOM = 3


def _student(key: Key, shape: tuple[int, ...]) -> Array:
    """Student's t with three degrees of freedom: a normal number over the root of a mean of three squares."""
    top, bottom = jax.random.split(key)
    squares = jnp.square(draws.normal(bottom, (DEGREES_OF_FREEDOM, *shape)))
    return draws.normal(top, shape) / jnp.sqrt(jnp.mean(squares, axis=0))


def _laplace(key: Key, shape: tuple[int, ...]) -> Array:
    """The difference of two exponential numbers, of unit variance."""
    one, other = -jnp.log1p(-draws.uniform(key, (2, *shape)))
    return (one - other) / 2**0.5


def _skewed(key: Key, shape: tuple[int, ...]) -> Array:
    """A log-normal number less its mean, of unit variance: rarely far above, never far below."""
    return (jnp.exp(draws.normal(key, shape)) - math.e**0.5) / (math.e**2 - math.e) ** 0.5


NOISES: dict[str, Callable[[Key, tuple[int, ...]], Array]] = {
    "normal": draws.normal,
    "student": _student,
    "laplace": _laplace,
    "skewed": _skewed,
    "uniform": lambda key, shape: 3**0.5 * draws.uniform(key, shape, -1.0, 1.0),
}
"""Numbers of mean zero and about unit size, by the name of their distribution."""


def noisy(key: Key, kind: str, size: float, mean: Cost) -> Cost:
    """``mean · (1 + size · ε)``, each coordinate with an ``ε`` of its own."""
    return mean * (1.0 + size * NOISES[kind](key, mean.shape))


def with_wrong_entries(key: Key, share: float, factor: float, cost: Float[Array, " d"]) -> Float[Array, " d"]:
    """The cost, or in a ``share`` of the rounds ``factor`` times as much of all of it."""
    return jnp.where(draws.uniform(key) < share, factor, 1.0) * cost
