"""A loss that is learned: a small network that predicts the regret of a prediction, and is descended in its place."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
from pydantic import Field

from regretless.replay import Replay, empty
from regretless.surrogates.base import FieldSpec, Memory, Rows, SolvedCall, Surrogate
from regretless.types import Cost

DECAY = 0.99
"""Of the running means of squared gradients, per step."""


class RegretWeights(NamedTuple):
    """Weights of the network; those that multiply are squared, so that the loss rises with every error."""

    first: Float[Array, "width d"]
    shift: Float[Array, " width"]
    last: Float[Array, " width"]


class LearnedLoss(NamedTuple):
    """The network, running means of its squared gradients, and the calls that it is fitted to."""

    weights: RegretWeights
    squares: RegretWeights
    calls: Replay


class LANCERSurrogate(Surrogate):
    """``∇ M(ĉ, c)``, ``M`` fitted to ``c·w*(ĉ) − c·w*(c)`` of the calls so far."""

    lr: Float[Array, ""]
    width: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    memory: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def init(self) -> LearnedLoss:
        d, key = self.oracle.dim, jax.random.key(0)
        spread = 1.0 + 0.1 * jax.random.normal(key, (self.width, d))
        weights = RegretWeights(spread / d**0.5, jnp.zeros(self.width), jnp.full(self.width, self.width**-0.5))
        record = jnp.zeros(d), jnp.zeros(())
        return LearnedLoss(weights, jax.tree.map(jnp.zeros_like, weights), empty(record, self.memory))

    def loss(self, weights: RegretWeights, squares: Float[Array, " d"]) -> Float[Array, ""]:
        """Return ``M`` from the squared errors of a prediction.

        Parameters
        ----------
        weights : RegretWeights
            Of the network.
        squares : array of shape (d,)
            ``(ĉ − c)²``.
        """
        hidden = jax.nn.softplus(jnp.square(weights.first) @ squares + weights.shift)
        return jnp.square(weights.last) @ (hidden - jax.nn.softplus(weights.shift))

    def queries(self, memory: Memory, prediction: Cost, target: Cost, noise: Any) -> Rows:
        return jnp.stack([target, prediction])

    def gradient(self, memory: Memory, prediction: Cost, target: Cost, noise: Any, solutions: Rows) -> Cost:
        slope = jax.grad(lambda c: self.loss(memory.weights, jnp.square(c - target)))(prediction)
        return slope.astype(prediction.dtype)

    def adapt(self, memory: Memory, gradient: Cost, call: SolvedCall) -> Memory:
        regret = call.target @ (call.solutions[1] - call.solutions[0])
        calls = memory.calls.add((jnp.square(call.prediction - call.target), regret))

        def step(k: Any, carried: tuple[RegretWeights, RegretWeights]) -> tuple[RegretWeights, RegretWeights]:
            weights, means = carried
            key = jax.random.fold_in(jax.random.key(1), calls.added * self.steps + k)
            squares, regrets = calls.at(jax.random.randint(key, (self.batch,), 0, calls.size))
            size = jnp.maximum(jnp.mean(jnp.square(regrets)), 1e-12)
            fit = lambda w: jnp.mean(jnp.square(jax.vmap(lambda s: self.loss(w, s))(squares) - regrets)) / size  # noqa: E731
            slopes = jax.grad(fit)(weights)
            means = jax.tree.map(lambda m, g: DECAY * m + (1.0 - DECAY) * jnp.square(g), means, slopes)
            move = lambda w, m, g: w - (self.lr * g / (jnp.sqrt(m) + 1e-8)).astype(w.dtype)  # noqa: E731
            return jax.tree.map(move, weights, means, slopes), means

        weights, means = jax.lax.fori_loop(0, self.steps, step, (memory.weights, memory.squares))
        return LearnedLoss(weights, means, calls)

    def after_all(self, memory: Memory, gradients: Rows, calls: SolvedCall) -> Memory:
        one = lambda memory, call: (self.adapt(memory, call[0], SolvedCall(call[1], calls.target, call[2])), None)  # noqa: E731
        return jax.lax.scan(one, memory, (gradients, calls.prediction, calls.solutions))[0]


class LANCER(FieldSpec, of=LANCERSurrogate):
    """A learned loss (after LANCER, Zharmagambetov et al., 2023); gradient of a network that predicts the regret.

    ``M(ĉ, c) = Σ_j v_j² (softplus(Σ_i u_ji² (ĉ_i − c_i)² + b_j) − softplus(b_j))`` is fitted by RMSprop to the regret
    ``c·w*(ĉ) − c·w*(c)`` of the calls so far. Unlike the paper's network it rises with every squared error, so that
    its gradient descends from the first call on.

    Parameters
    ----------
    lr : float, default 0.01
        Learning rate of the network.
    width : int, default 16
        Hidden units.
    steps : int, default 2
        Steps of RMSprop in each call.
    memory : int, default 256
        Calls that are remembered.
    batch : int, default 32
        Remembered calls in a step.
    """

    lr: float = Field(default=0.01, gt=0)
    width: int = Field(default=16, ge=1, le=4096)
    steps: int = Field(default=2, ge=1, le=10**4)
    memory: int = Field(default=256, ge=1, le=10**6)
    batch: int = Field(default=32, ge=1, le=10**5)
