"""What an incumbent will pay in a context, from what it paid before: a regression on the context, or its level alone."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from regretless.types import Context

FIRST = 10
"""Outcomes before which no error is cut off."""

MEMORY = 100.0
"""Outcomes over which costs and errors are averaged."""

CLIPPING = 5.0
"""Usual errors beyond which an error is cut off."""

FARTHEST = 10.0
"""Usual costs from the level beyond which no forecast goes."""

RIDGE = 3.0
"""Outcomes that the belief in slopes of zero is worth."""

MANY = 64
"""Features above which the forecast is the level alone."""


class Forecast(eqx.Module):
    """Fading sums of the incumbent's outcomes; whichever of regression and level has erred less is believed."""

    moments: Float[Array, "k k"]  # of (1, x)
    products: Float[Array, " k"]  # of (1, x) and the cost
    weights: Float[Array, " k"]  # coefficients of (1, x)
    errors: Float[Array, " 2"]  # mean squares of the regression's and the level's errors
    size: Float[Array, ""]  # usual size of a cost
    seen: Float[Array, ""]  # outcomes so far whose errors count
    taught: Float[Array, ""]  # all outcomes that it was fitted to

    def each(self, context: Context) -> Float[Array, " 2"]:
        """The regression's and the level's forecast."""
        level = self.products[0] / jnp.maximum(self.moments[0, 0], 1e-30)
        far = FARTHEST * self.size
        return jnp.stack([jnp.clip(self._features(context) @ self.weights, level - far, level + far), level])

    def of(self, context: Context) -> Float[Array, ""]:
        """What the incumbent is expected to pay."""
        regression, level = self.each(context)
        return jnp.where(self.errors[0] < self.errors[1], regression, level)

    def spread(self) -> Float[Array, ""]:
        """Usual size of an error, larger while few were seen."""
        return jnp.sqrt(jnp.min(self.errors)) * (1.0 + 2.0 / jnp.maximum(self.seen, 1.0))

    def limit(self) -> Float[Array, ""]:
        """Size of errors beyond which they are cut off."""
        return jnp.where(self.seen < FIRST, jnp.inf, CLIPPING * self.spread())

    def after(self, context: Context, cost: Float[Array, ""]) -> "Forecast":
        """The forecast after the incumbent paid ``cost``; errors are those of before."""
        seen, limit = self.seen + 1.0, self.limit()
        wrong = jnp.clip(cost - self.each(context), -limit, limit)
        newer = jnp.clip(2.0 / seen, 2.0 / MEMORY, 1.0)  # early errors are large, and soon forgotten
        errors = self.errors + newer * (jnp.square(wrong) - self.errors)
        return eqx.tree_at(lambda own: (own.errors, own.seen), self.fitted(context, cost), (errors, seen))

    def fitted(self, context: Context, cost: Float[Array, ""]) -> "Forecast":
        """The forecast after a cost that somebody paid who may have been the incumbent: no error is counted."""
        taught, limit, expected = self.taught + 1.0, self.limit(), self.of(context)
        believed = expected + jnp.clip(cost - expected, -limit, limit)
        rate = jnp.maximum(1.0 / taught, 1.0 / MEMORY)
        features = self._features(context)
        moments = self.moments + rate * (jnp.outer(features, features) - self.moments)
        products = self.products + rate * (features * believed - self.products)
        size = self.size + rate * (jnp.abs(believed) - self.size)
        weights = _fitted(moments, products, jnp.minimum(taught, MEMORY))
        return Forecast(moments, products, weights, self.errors, size, self.seen, taught)

    def _features(self, context: Context) -> Float[Array, " k"]:
        """``(1, x)``, with the mean of feature rows."""
        x = context if context.ndim == 1 else jnp.mean(context, axis=0)
        return jnp.concatenate([jnp.ones(1, x.dtype), x[: len(self.products) - 1]])


def no_forecast(context_shape: tuple[int, ...]) -> Forecast:
    """Nothing seen yet."""
    k = 1 + (context_shape[-1] if context_shape[-1] <= MANY else 0)
    zero = jnp.zeros(())
    return Forecast(jnp.zeros((k, k)), jnp.zeros(k), jnp.zeros(k), jnp.zeros(2), zero, zero, zero)


def _fitted(moments: Float[Array, "k k"], products: Float[Array, " k"], count: Float[Array, ""]) -> Float[Array, " k"]:
    """Coefficients by ridge regression, each slope's in units of its feature's own variance; the level is free."""
    variances = jnp.diag(moments) - jnp.square(moments[0])  # of the level: zero
    unit = jnp.sqrt(jnp.maximum(jnp.diag(moments), 1e-30))
    ridge = RIDGE / count * variances + 1e-9 * jnp.square(unit)
    scaled = (moments + jnp.diag(ridge)) / jnp.outer(unit, unit)
    weights = jnp.linalg.solve(scaled, products / unit) / unit
    return jnp.where(jnp.all(jnp.isfinite(weights)), weights, jnp.zeros_like(weights).at[0].set(products[0]))
