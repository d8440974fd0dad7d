"""How much of a learner's difference from the first one would have mended the first one's predictions best.

What the first was wrong by, ``e = v − v̂₀``, is regressed on the difference ``v̂ − v̂₀`` of the two predictions, in which noise
averages out. Only what a learner says of one coordinate beside another decides anything. So the difference falls into the part
``L`` by which all coordinates are dearer, ``(Σ h) (mean of ĉ − mean of ĉ₀)``, and the rest, ``D``; the share is the coefficient
of ``D`` in a regression of ``e`` on both. A learner that merely knows better how dear the round is deserves none.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

TRIFLE = 1e-3
"""Levels that differ by less than the root of this share of the contrasts explain nothing."""


class Moments(eqx.Module):
    """Running means for each learner: what the first was wrong by (e), differences in contrast (D) and level (L)."""

    wrong_contrast: Float[Array, " learners"]  # e D
    wrong_level: Float[Array, " learners"]  # e L
    contrasts: Float[Array, " learners"]  # D²
    both: Float[Array, " learners"]  # D L
    levels: Float[Array, " learners"]  # L²

    def after(
        self,
        wrong: Float[Array, " m"],
        contrast: Float[Array, "learners m"],
        level: Float[Array, "learners m"],
        rows: Float[Array, ""],
        rate: Float[Array, ""],
    ) -> "Moments":
        """With one more round of so many measured ``rows``."""
        products = wrong * contrast, wrong * level, contrast * contrast, contrast * level, level * level
        now = Moments(*(jnp.sum(each, axis=1) / rows for each in products))
        return jax.tree.map(lambda mean, new: mean + rate * (new - mean), self, now)

    def share(self) -> Float[Array, " learners"]:
        """Between 0 and 1; 0 where nothing differs."""
        levels = self.levels + TRIFLE * self.contrasts + 1e-30
        mended = self.wrong_contrast - self.wrong_level * self.both / levels
        apart = self.contrasts - self.both * self.both / levels
        return jnp.where(apart > 0, jnp.clip(mended / jnp.where(apart > 0, apart, 1.0), 0.0, 1.0), 0.0)


def nothing(learners: int) -> Moments:
    """Before anything was measured."""
    return Moments(*(jnp.zeros(learners) for _ in range(5)))
