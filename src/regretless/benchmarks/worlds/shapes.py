"""How mean costs depend on a context: formulas over coefficients that each replication draws once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless import draws
from regretless.types import Cost, Key

LOWEST = 0.3
"""No mean cost is below this."""

LOW, HIGH = 2.0, 6.0
"""Base costs are uniform between these."""


class Coefficients(NamedTuple):
    """``base``, directions ``a`` and ``b`` of each coordinate (one row: of all of them), and one ``s`` for all."""

    base: Float[Array, " n"]
    a: Float[Array, "m p"]
    b: Float[Array, "m p"]
    s: Float[Array, " p"]


class Terms(NamedTuple):
    """What the formulas are written in: the base costs, ``u = a·x/√p``, ``v = b·x/√p`` and ``s·x/√p``."""

    base: Float[Array, " d"]
    u: Float[Array, " d"]
    v: Float[Array, " d"]
    shared: Float[Array, "..."]


SHAPES: dict[str, Callable[[Terms], Array]] = {
    "const": lambda t: t.base,
    "lin": lambda t: t.base + t.u,
    "relu": lambda t: t.base + 0.6 * t.u + jnp.maximum(t.v, 0.0) ** 1.5,
    "shared": lambda t: t.base * jnp.exp(0.5 * t.shared) + 0.3 * t.u,
    "exp": lambda t: t.base * jnp.exp(0.7 * t.u),
    "inter": lambda t: t.base + 1.5 * t.u * jnp.sign(t.v),
    "step": lambda t: t.base + 2.0 * (t.u > 0.3),
    "wave": lambda t: t.base + 1.5 * jnp.sin(3.0 * t.u),
    "bowl": lambda t: t.base + jnp.square(t.u) - 0.5 * t.v,
}
"""Mean costs by the name of their shape, before they are kept above LOWEST."""


def draw_coefficients(key: Key, bases: int, directions: int, features: int) -> Coefficients:
    """So many base costs, uniform, and directions, standard normal."""
    base, a, b, s = jax.random.split(key, 4)
    return Coefficients(
        draws.uniform(base, (bases,), LOW, HIGH),
        draws.normal(a, (directions, features)),
        draws.normal(b, (directions, features)),
        draws.normal(s, (features,)),
    )


def mean_costs(shape: str, own: Coefficients, x: Float[Array, "*d p"]) -> Cost:
    """The mean cost of each coordinate; ``x`` is one vector for all of them, or a row for each."""
    root = x.shape[-1] ** 0.5
    along = lambda directions: jnp.sum(directions * x, axis=-1) / root  # noqa: E731
    terms = Terms(own.base, along(own.a), along(own.b), along(own.s))
    return jnp.maximum(SHAPES[shape](terms) + jnp.zeros_like(terms.u), LOWEST)


def blended(before: Coefficients, after: Coefficients, share: Float[Array, ""]) -> Coefficients:
    """Coefficients on the way from ``before`` (share 0) to ``after`` (1); directions turn and keep their size."""
    keep, gain = jnp.cos(0.5 * jnp.pi * share), jnp.sin(0.5 * jnp.pi * share)
    turned = jax.tree.map(lambda old, new: keep * old + gain * new, before, after)
    return turned._replace(base=(1.0 - share) * before.base + share * after.base)
