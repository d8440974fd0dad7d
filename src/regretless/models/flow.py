"""Conditional normalising flow: ``ĉ = T_θ(z; x)`` with ``z ~ N(0, I)`` and an invertible ``T_θ``; its density is exact.

A context vector conditions two affine couplings of all coordinates (RealNVP, Dinh et al., 2017); feature rows
condition two affine maps of each row's own coordinate, which makes every row Gaussian.
"""

import math
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from pydantic import Field

from regretless.errors import SettingsError
from regretless.models import networks
from regretless.models.base import BatchedModel, GenerativeModelSpec, Params, cast, single
from regretless.types import Context, Cost, Key

LAYERS = 2
CLAMP = 5.0
"""Log-scales are cut off at ±5."""


class Transform(eqx.Module):
    """Base class of the invertible maps of the cost vector, which depend on the context.

    ``init`` draws weights and biases uniformly on ``±1/√fan_in``, ``forward`` returns ``T_θ(z; x)`` of each row, and
    ``inverse`` returns ``z = T_θ⁻¹(c; x)`` and ``log |det ∂T_θ/∂z|`` there.
    """

    dim: int = eqx.field(static=True)
    features: int = eqx.field(static=True)
    width: int = eqx.field(static=True)  # hidden units of each net


class Coupling(NamedTuple):
    """Scale and shift net of one coupling, side by side in one hidden layer: its first half belongs to the scale."""

    passed: Float[Array, "passed both"]
    context: Float[Array, "p both"]
    bias: Float[Array, " both"]
    scale: networks.Dense
    shift: networks.Dense

    def condition(self, x: Context, passed: Float[Array, "k passed"]) -> tuple[Array, Array]:
        """Return log-scale and shift of the changed coordinates; the context's part is the same for all rows."""
        hidden = jax.nn.relu(networks.product(passed, self.passed) + (networks.product(x, self.context) + self.bias))
        width = len(self.scale.weight)
        log_scale = networks.product(hidden[..., :width], self.scale.weight) + self.scale.bias
        shift = networks.product(hidden[..., width:], self.shift.weight) + self.shift.bias
        return jnp.clip(log_scale, -CLAMP, CLAMP), shift


class Couplings(Transform):
    """Layer 0 passes the odd coordinates through and changes the even ones, layer 1 the other way round.

    ``v ↦ v · exp(s(u, x)) + t(u, x)`` for the changed ``v`` given the passed ``u``. The weights that a mask would
    multiply by zero (inputs that are changed, outputs that are passed) do not exist here; ``fan_in`` counts them.
    """

    def init(self, key: Key) -> list[Coupling]:
        even, odd = (self.dim + 1) // 2, self.dim // 2
        layers = []
        for layer, (passed, changed) in enumerate([(odd, even), (even, odd)][:LAYERS]):
            wide, out = jax.random.split(jax.random.fold_in(key, layer))
            fan_in = self.dim + self.features
            first = networks.uniform_layer(wide, passed + self.features, 2 * self.width, fan_in)
            both = networks.uniform_layer(out, self.width, 2 * changed, self.width)
            scale, shift = map(networks.Dense, jnp.split(both.weight, 2, axis=1), jnp.split(both.bias, 2))
            layers.append(Coupling(first.weight[:passed], first.weight[passed:], first.bias, scale, shift))
        return single(layers)

    def forward(self, params: list[Coupling], context: Context, z: Float[Array, "k d"]) -> Float[Array, "k d"]:
        even, odd = z[..., 0::2], z[..., 1::2]
        log_scale, shift = params[0].condition(context, odd)
        even = even * jnp.exp(log_scale) + shift
        log_scale, shift = params[1].condition(context, even)
        odd = odd * jnp.exp(log_scale) + shift
        return self._woven(even, odd)

    def inverse(self, params: list[Coupling], context: Context, cost: Cost) -> tuple[Cost, Float[Array, ""]]:
        even, odd = cost[0::2], cost[1::2]
        last, shift = params[1].condition(context, even)
        odd = (odd - shift) * jnp.exp(-last)
        first, shift = params[0].condition(context, odd)
        even = (even - shift) * jnp.exp(-first)
        return self._woven(even, odd), jnp.sum(first) + jnp.sum(last)

    def _woven(self, even: Array, odd: Array) -> Array:
        """Return even and odd coordinates in their places."""
        count = even.shape[-1]
        order = [i // 2 if i % 2 == 0 else count + i // 2 for i in range(self.dim)]
        return jnp.concatenate([even, odd], axis=-1)[..., np.array(order)]


class RowMaps(Transform):
    """Two affine maps ``v ↦ v · exp(s(x_i)) + t(x_i)`` of each coordinate, given its feature row.

    Each has a net ``p → 128 → 2``. Their composition is one affine map, computed once for all scenarios.
    """

    def init(self, key: Key) -> list[networks.Layers]:
        sizes = (self.features, self.width, 2)
        return single([networks.init_uniform(jax.random.fold_in(key, layer), sizes) for layer in range(LAYERS)])

    def forward(self, params: list[networks.Layers], context: Context, z: Float[Array, "k d"]) -> Float[Array, "k d"]:
        log_scale, shift = self._composed(params, context)
        return z * jnp.exp(log_scale) + shift

    def inverse(self, params: list[networks.Layers], context: Context, cost: Cost) -> tuple[Cost, Float[Array, ""]]:
        log_scale, shift = self._composed(params, context)
        return (cost - shift) * jnp.exp(-log_scale), jnp.sum(log_scale)

    def _composed(self, params: list[networks.Layers], context: Context) -> tuple[Cost, Cost]:
        log_scale, shift = jnp.zeros((2, self.dim), context.dtype)
        for layers in params:
            raw, add = networks.apply(layers, context).T
            clamped = jnp.clip(raw, -CLAMP, CLAMP)
            log_scale, shift = log_scale + clamped, shift * jnp.exp(clamped) + add
        return log_scale, shift


class CoupledRows(Couplings):
    """The couplings of context vectors for feature rows: all rows in one vector are the context of every coupling."""

    def forward(self, params: list[Coupling], context: Context, z: Float[Array, "k d"]) -> Float[Array, "k d"]:
        return super().forward(params, context.reshape(-1), z)

    def inverse(self, params: list[Coupling], context: Context, cost: Cost) -> tuple[Cost, Float[Array, ""]]:
        return super().inverse(params, context.reshape(-1), cost)


class FlowModel(BatchedModel):
    """Conditional RealNVP with two affine couplings; for feature rows by default an affine flow on each row."""

    transform: Couplings | RowMaps

    def __init__(self, dim: int, context_shape: tuple[int, ...], width: int = 128, rows: str = "separate"):
        by_row = len(context_shape) == 2
        if dim < 2 and not (by_row and rows == "separate"):
            raise SettingsError(f"flow: expected at least two cost coordinates to couple, got {dim}")
        self.dim, self.context_shape = dim, context_shape
        if not by_row:
            self.transform = Couplings(dim, context_shape[-1], width)
        elif rows == "separate":
            self.transform = RowMaps(dim, context_shape[-1], width)
        else:
            self.transform = CoupledRows(dim, math.prod(context_shape), width)

    def init(self, key: Key) -> Params:
        return self.transform.init(key)

    def generate(self, params: Params, context: Context, noise: Float[Array, "k d"]) -> Float[Array, "k d"]:
        return self.transform.forward(params, context, noise)

    def log_density(self, params: Params, context: Context, cost: Cost) -> Float[Array, ""]:
        z, log_volume = self.transform.inverse(params, cast(params, context), cast(params, cost))
        return -0.5 * jnp.sum(jnp.square(z)) - 0.5 * self.dim * math.log(2.0 * math.pi) - log_volume

    def loss(self, params: Params, context: Context, cost: Cost, drawn: Any = None) -> Float[Array, ""]:
        share = 1.0 if len(self.context_shape) == 1 else 1.0 / self.dim
        return -share * self.log_density(params, context, cost)


class Flow(GenerativeModelSpec):
    """Conditional normalising flow: RealNVP with two affine couplings, or an affine flow of each feature row.

    Parameters
    ----------
    width : int, default 128
        Hidden units of each conditioning net.
    rows : {"separate", "coupled"}, default "separate"
        With feature rows: an affine map of each coordinate given its own row, which is a diagonal Gaussian and what the
        published runs have; or RealNVP across coordinates given all rows.
    """

    width: int = Field(default=128, ge=1)
    rows: Literal["separate", "coupled"] = "separate"

    def build(self, dim: int, context_shape: tuple[int, ...]) -> FlowModel:
        """Return the model for ``dim`` costs and contexts of this shape."""
        return FlowModel(dim, context_shape, **self.hyperparameters())
