"""Conditional diffusion: a denoiser learns to remove noise (DDPM, Ho et al., 2020), which sampling removes stepwise.

Noising: ``c_t = √ᾱ_t c + √(1 − ᾱ_t) ε`` with ``ᾱ_t = Π (1 − β_s)``, β linear from 1e-4 to 0.02, ``t = 0 … T − 1``. A
context vector conditions one denoiser of all ``d`` coordinates; feature rows share a denoiser of scalars, row by row.
Inside, a cost vector has the shape ``[rows, width]``: ``[1, d]`` for a context vector, ``[d, 1]`` for feature rows.
"""

import functools
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws
from regretless.models import networks
from regretless.models.base import BatchedModel, GenerativeModelSpec, Params, cast, single
from regretless.spec import number
from regretless.types import Context, Cost, Key

FREQUENCIES = 4
LOSS_DRAWS = 16
BETA_FIRST, BETA_LAST = 1e-4, 0.02

Sampler = Literal["ddim", "ddpm"]


class Denoiser(NamedTuple):
    """``ε̂ = silu(c_t W_c + e_t W_e + x W_x + b) W_out + b_out`` with the time embedding ``e_t``."""

    noisy: Float[Array, "width 128"]
    time: Float[Array, "8 128"]
    context: Float[Array, "p 128"]
    bias: Float[Array, " 128"]
    out: networks.Dense

    def given(self, context: Float[Array, "rows p"]) -> Float[Array, "rows 128"]:
        """Return the context's part of the hidden layer, which is the same at all times and for all scenarios."""
        return networks.product(context, self.context) + self.bias


class Schedule(NamedTuple):
    """What the times ``0 … T − 1`` stand for."""

    kept: np.ndarray  # ᾱ_t
    root: np.ndarray  # √(1 − ᾱ_t)
    elbo: np.ndarray  # (1 − ᾱ_t) / (2 β_t (1 − ᾱ_{t−1}) ᾱ_t), 0 at t = 0
    embedding: np.ndarray  # [T, 8]


class Path(NamedTuple):
    """The times that sampling visits, and ``c ← keep · c + add · ε̂`` at each of them."""

    times: np.ndarray
    keep: np.ndarray
    add: np.ndarray
    spread: np.ndarray  # of the fresh noise; zeros for DDIM


@functools.cache
def schedule(steps: int) -> Schedule:
    """Return noise levels, loss weights and time embeddings (``sin``, ``cos`` of ``t · 10000^(−i/3)``) of all times."""
    beta = np.linspace(BETA_FIRST, BETA_LAST, steps)
    kept = np.cumprod(1.0 - beta)
    before = np.concatenate([[1.0], kept[:-1]])
    elbo = np.zeros(steps)
    elbo[1:] = ((1.0 - kept) / (2.0 * beta * np.maximum(1.0 - before, 1e-12) * kept))[1:]
    angle = np.arange(steps)[:, None] * 10000.0 ** (-np.arange(FREQUENCIES) / (FREQUENCIES - 1))
    return Schedule(kept, np.sqrt(1.0 - kept), elbo, np.concatenate([np.sin(angle), np.cos(angle)], axis=1))


@functools.cache
def path(train_steps: int, sample_steps: int, sampler: Sampler = "ddim") -> Path:
    """DDIM's steps: times ``round(linspace(T − 1, 0, S))`` without repeats; the last step returns ``ĉ_0``.

    With ``ĉ_0 = (c − √(1 − ᾱ_t) ε̂) / √ᾱ_t`` the next value is ``√ᾱ_next ĉ_0 + √(1 − ᾱ_next − ς²) ε̂ + ς z``, and
    ``ᾱ_next = 1`` at the end. DDIM has ``ς = 0``. DDPM has ``ς² = (1 − ᾱ_next)/(1 − ᾱ_t) · (1 − ᾱ_t/ᾱ_next)``, which
    over all times is Ho et al.'s ancestral sampling with the posterior's variance.
    """
    times = np.unique(np.round(np.linspace(train_steps - 1, 0, sample_steps)).astype(int))[::-1]
    kept = schedule(train_steps).kept[times]
    following = np.append(kept[1:], 1.0)
    keep = np.sqrt(following / kept)
    variance = (sampler == "ddpm") * (1.0 - following) / (1.0 - kept) * (1.0 - kept / following)
    add = np.sqrt(1.0 - following - variance) - keep * np.sqrt(1.0 - kept)
    return Path(times, keep, add, np.sqrt(variance))


class DiffusionModel(BatchedModel):
    """The denoiser of ``Diffusion`` with its sampler and its losses.

    With ``sampler="ddpm"`` fresh noise is drawn from a key made of the bits of ``ε``, so that ``ĉ`` stays a function of
    ``(θ, x, ε)``.
    """

    train_steps: int = eqx.field(static=True, default=50)
    sample_steps: int = eqx.field(static=True, default=50)
    weights: Literal["root", "elbo"] = eqx.field(static=True, default="root")
    sampler: Sampler = eqx.field(static=True, default="ddim")
    width: int = eqx.field(static=True, default=128)
    weighted: Float[Array, ""] = eqx.field(default_factory=lambda: number(1.0))  # 0: the regulariser without weights

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and width of a cost vector."""
        return (1, self.dim) if len(self.context_shape) == 1 else (self.dim, 1)

    def init(self, key: Key) -> Denoiser:
        width, features, times = self.shape[1], self.context_shape[-1], 2 * FREQUENCIES
        fan_in = width + times + features
        first_key, out_key = jax.random.split(key)
        first = networks.uniform_layer(first_key, fan_in, self.width, fan_in)
        noisy, time, context = jnp.split(first.weight, (width, width + times))
        return single(
            Denoiser(noisy, time, context, first.bias, networks.uniform_layer(out_key, self.width, width, self.width))
        )

    def draw_loss(self, key: Key) -> tuple[Int[Array, " 16"], Float[Array, "16 d"]]:
        return self.draw_times(key, 0 if self.weights == "root" else 1)

    def loss(self, params: Denoiser, context: Context, cost: Cost, drawn: Any) -> Float[Array, ""]:
        return self.weighted_loss(params, context, cost, drawn, getattr(schedule(self.train_steps), self.weights))

    def regulariser_gradient(self, params: Denoiser, context: Context, cost: Cost, key: Key) -> Params:
        first = 0 if self.weights == "root" else jnp.asarray(self.weighted, jnp.int32)
        table = cast(params, jnp.asarray(getattr(schedule(self.train_steps), self.weights)))
        weights = jnp.where(jnp.asarray(self.weighted) > 0, table, jnp.ones_like(table))
        return jax.grad(self.weighted_loss)(params, context, cost, self.draw_times(key, first), weights)

    def draw_times(self, key: Key, first: int | Array) -> tuple[Int[Array, " 16"], Float[Array, "16 d"]]:
        """Draw times from ``first`` on, and the noise at each."""
        time_key, noise_key = jax.random.split(key)
        times = jax.random.randint(time_key, (LOSS_DRAWS,), first, self.train_steps, jnp.int32)
        return times, draws.normal(noise_key, (LOSS_DRAWS, self.dim))

    def weighted_loss(
        self, params: Denoiser, context: Context, cost: Cost, drawn: Any, weights: np.ndarray | Array
    ) -> Float[Array, ""]:
        """Mean over the draws of ``weight_t ‖ε − ε̂‖²``, with one weight per time."""
        times, noise = drawn
        table = schedule(self.train_steps)
        x, noise = jnp.atleast_2d(cast(params, context)), cast(params, noise).reshape(-1, *self.shape)
        kept, root, weight = (
            cast(params, jnp.asarray(values))[times][:, None, None]
            for values in (np.sqrt(table.kept), table.root, weights)
        )
        noisy = kept * cast(params, cost).reshape(self.shape) + root * noise
        clock = networks.product(cast(params, jnp.asarray(table.embedding))[times], params.time)
        hidden = jax.nn.silu(networks.product(noisy, params.noisy) + clock[:, None, :] + params.given(x))
        error = networks.product(hidden, params.out.weight) + params.out.bias - noise
        return jnp.sum(weight * jnp.square(error)) / (LOSS_DRAWS * self.shape[0])

    def _steps(self, params: Denoiser) -> tuple[Array, Array, Array]:
        """Return ``keep``, ``add`` and the time's part of the hidden layer for each step of sampling."""
        steps = path(self.train_steps, self.sample_steps, self.sampler)
        embedding = schedule(self.train_steps).embedding[steps.times]
        keep, add, embedding = (cast(params, jnp.asarray(part)) for part in (steps.keep, steps.add, embedding))
        return keep, add, networks.product(embedding, params.time)

    def generate(self, params: Denoiser, context: Context, noise: Float[Array, "k d"]) -> Float[Array, "k d"]:
        """Return scenarios from noise."""
        given = params.given(jnp.atleast_2d(context))
        start = noise.reshape(-1, *self.shape)

        @functools.partial(jax.checkpoint, prevent_cse=False)  # hidden layers are computed again instead of being kept
        def step(c: Array, now: tuple[Any, Array | None]) -> tuple[Array, None]:
            (keep, add, clock), fresh = now
            hidden = jax.nn.silu(networks.product(c, params.noisy) + (given + clock))
            moved = keep * c + add * (networks.product(hidden, params.out.weight) + params.out.bias)
            return (moved if fresh is None else moved + fresh), None

        fresh = None if self.sampler == "ddim" else self.fresh_noise(start)
        return jax.lax.scan(step, start, (self._steps(params), fresh))[0].reshape(-1, self.dim)

    def fresh_noise(self, start: Float[Array, "k rows width"]) -> Float[Array, "steps k rows width"]:
        """Return ``ς z`` of every step, with ``z`` drawn from a key made of the bits of each scenario's first noise."""
        spread = jnp.asarray(path(self.train_steps, self.sample_steps, self.sampler).spread, start.dtype)

        def one(noise: Array) -> Array:
            bits = jax.lax.bitcast_convert_type(noise.astype(jnp.float32).reshape(-1), jnp.uint32)
            key = jax.random.key(0)
            for part in (bits, bits * jnp.arange(1, 2 * self.dim, 2, jnp.uint32)):
                key = jax.random.fold_in(key, jnp.sum(part, dtype=jnp.uint32))
            return draws.normal(key, (len(spread), *self.shape)).astype(start.dtype)

        return spread[:, None, None, None] * jnp.swapaxes(jax.vmap(one)(start), 0, 1)


class Diffusion(GenerativeModelSpec):
    """Conditional DDPM: a denoiser with one hidden layer of SiLU, ``train_steps`` noise levels, ``sample_steps`` steps.

    The loss, whose negative replaces the log-density, is a mean over 16 draws of (time, noise) of the weighted
    squared error of ``ε̂``.

    Parameters
    ----------
    train_steps : int, default 50
        Noise levels of the diffusion.
    sample_steps : int, default 50
        Steps of sampling.
    weights : {"root", "elbo"}, default "root"
        Weights of the loss: ``√(1 − ᾱ_t)``, or ``(1 − ᾱ_t) / (2 β_t (1 − ᾱ_{t−1}) ᾱ_t)``. The latter are not defined
        at ``t = 0``, which is then never drawn.
    regulariser : {"weighted", "unweighted"}, default "weighted"
        ``g^reg`` with these weights, or without weights as the paper writes.
    sampler : {"ddim", "ddpm"}, default "ddim"
        DDIM adds no noise, DDPM adds fresh noise at every step but the last.
    width : int, default 128
        Hidden units of the denoiser.
    """

    train_steps: int = Field(default=50, ge=2)
    sample_steps: int = Field(default=50, ge=1)
    weights: Literal["root", "elbo"] = "root"
    regulariser: Literal["weighted", "unweighted"] = "weighted"
    sampler: Sampler = "ddim"
    width: int = Field(default=128, ge=1)

    def build(self, dim: int, context_shape: tuple[int, ...]) -> DiffusionModel:
        """Return the model for ``dim`` costs and contexts of this shape."""
        values = self.hyperparameters()
        weighted = number(values.pop("regulariser") == "weighted")
        return DiffusionModel(dim, context_shape, weighted=weighted, **values)
