"""A few small networks that predict the cost, trained on replay: past rounds drawn again and again from a bounded memory.

Replay adds no bias: what a cost is does not depend on who decided. Each network has two hidden layers and a linear bypass; the
loss of a measured row is ``((prediction − value) / (|value| + |prediction| + floor · usual size))²``, so that rare large costs
do not rule the fit. The mean of the networks is solved, without exploring of its own.
"""

import math
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int
from pydantic import Field

from regretless import draws, nets, settings
from regretless.parts import number
from regretless.policies.adaptive.measured import Measured, measured, one_by_one
from regretless.policies.base import Policy
from regretless.problem import Problem
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
WINDOW = 200
"""Rounds over which the usual size of what is measured is averaged."""

BYTES = 2**26
"""Most memory for remembered rounds."""


class Memory(NamedTuple):
    """Remembered rounds, the newest in place of the oldest: what describes the coordinates that were measured, and the rows."""

    context: Float[Array, "rounds ..."]
    weights: Float[Array, "rounds ..."]
    values: Float[Array, "rounds m"]
    used: Array


class Weights(NamedTuple):
    """Of one network: two hidden layers, the output and the bypass."""

    first: nets.Dense
    second: nets.Dense
    output: nets.Dense
    bypass: Float[Array, "p out"]


class EnsembleState(eqx.Module):
    """Networks, Adam's moments and the memory."""

    weights: Weights
    adam: nets.AdamState
    memory: Memory
    size: Float[Array, ""]
    rounds: Int[Array, ""]
    version: Int[Array, ""]


class EnsembleSettings(settings.Settings):
    """How many networks, and how they are trained."""

    members: int = Field(5, ge=1, le=64, description="networks")
    width: int = Field(64, ge=1, le=4096, description="of each of the two hidden layers")
    steps: int = Field(4, ge=1, le=1000, description="of Adam after each round")
    batch: int = Field(64, ge=1, le=10**5, description="remembered rounds in each step")
    memory: int = Field(2048, ge=1, le=10**6, description="rounds remembered, less where they are large")
    lr: float = Field(1e-3, gt=0, description="Adam's rate")
    decay: float = Field(0.1, ge=0, description="share of the weights, times the rate, that each step takes away")
    floor: float = Field(0.3, gt=0, description="share of the usual size in the loss's denominator")


class Ensemble(Policy):
    """Plays the decision that is best for the mean prediction of its networks."""

    Settings = EnsembleSettings
    by_default = False

    lr: Float[Array, ""]
    decay: Float[Array, ""]
    floor: Float[Array, ""]
    members: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)

    @classmethod
    def build(cls, problem: Problem, settings: settings.Settings) -> "Ensemble":
        assert isinstance(settings, EnsembleSettings)
        numbers = {name: number(getattr(settings, name)).astype(jnp.float32) for name in ("lr", "decay", "floor")}
        sizes = {name: getattr(settings, name) for name in ("members", "width", "steps", "batch")}
        whole = cls(problem, **numbers, **sizes, capacity=1)
        one = jax.eval_shape(lambda: whole.init(jax.random.key(0)).memory)
        each = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(one))
        return cls(problem, **numbers, **sizes, capacity=max(1, min(settings.memory, BYTES // each)))

    @property
    def by_row(self) -> bool:
        """Whether one network describes each coordinate from its feature row."""
        return len(self.problem.context_shape) == 2

    @property
    def kept(self) -> int:
        """Coordinates of a round that are remembered: the chosen ones where no other is measured."""
        sparse = self.by_row and self.problem.feedback.sparse
        return min(self.problem.oracle.support, self.problem.dim) if sparse else self.problem.dim

    def init(self, key: Key) -> EnsembleState:
        def one(key: Key) -> Weights:
            p, width, out = self.problem.context_shape[-1], self.width, 1 if self.by_row else self.problem.dim
            layers = nets.init_uniform(key, (p, width, width, out))
            first, second, output = (nets.Dense(layer.weight, jnp.zeros_like(layer.bias)) for layer in layers)
            own = Weights(first, second, output, jnp.zeros((p, out)))
            return jax.tree.map(lambda leaf: leaf.astype(jnp.float32), own)

        weights = jax.vmap(one)(jax.random.split(key, self.members))
        problem = self.problem
        empty = self._remembered(problem.example_decision(), problem.example_feedback())
        memory = jax.tree.map(lambda leaf: jnp.zeros((self.capacity, *leaf.shape), leaf.dtype), empty)
        zero = jnp.zeros((), jnp.int32)
        return EnsembleState(weights, nets.adam_init(weights), memory, jnp.zeros((), jnp.float32), zero, zero)

    def mean(self, state: EnsembleState, context: Context) -> Cost:
        x = context.astype(jnp.float32)
        each = jax.vmap(lambda weights: self._costs(weights, x))(state.weights)
        return jnp.mean(each, axis=0).astype(float)

    def sample(self, key: Key, state: EnsembleState, context: Context, instance: Instance) -> Sample:
        random = draws.normal(key, (self.problem.dim,))
        return Sample(jnp.where(state.version < RANDOM_ROUNDS, random, self.mean(state, context)), state.version)

    def learn(
        self, key: Key, state: EnsembleState, decision: Decision, feedback: Feedback
    ) -> tuple[EnsembleState, Info]:
        residual = feedback.total() - self.mean(state, decision.context) @ decision.w
        now = self._remembered(decision, feedback)
        slot = state.rounds % self.capacity
        memory = jax.tree.map(lambda ring, leaf: ring.at[slot].set(leaf), state.memory, now)
        rounds = state.rounds + 1
        seen = jnp.sum(jnp.where(now.used, jnp.abs(now.values), 0.0)) / jnp.maximum(jnp.sum(now.used), 1)
        size = state.size + (seen - state.size) / jnp.minimum(rounds, WINDOW).astype(jnp.float32)

        def step(carry: tuple[Weights, nets.AdamState], key: Key) -> tuple[Any, None]:
            weights, adam = carry
            drawn = jax.random.randint(key, (self.members, self.batch), 0, jnp.minimum(rounds, self.capacity))
            grads = jax.vmap(lambda w, i: jax.grad(self._loss)(w, jax.tree.map(lambda m: m[i], memory), size))(
                weights, drawn
            )
            smaller = jax.tree.map(lambda leaf: (1.0 - self.lr * self.decay) * leaf, weights)
            return nets.adam_step(smaller, adam, grads, self.lr), None

        (weights, adam), _ = jax.lax.scan(step, (state.weights, state.adam), jax.random.split(key, self.steps))
        finite = jnp.isfinite(sum(jnp.sum(leaf) for leaf in jax.tree.leaves(weights)))
        info = Info(residual, feedback.total(), feedback.complete(), finite)
        return EnsembleState(weights, adam, memory, size, rounds, state.version + 1), info

    def _remembered(self, decision: Decision, feedback: Feedback) -> Memory:
        """What is worth remembering of a round."""
        rows, context = measured(self.problem, decision, feedback), decision.context.astype(jnp.float32)
        if self.kept == self.problem.dim:
            return Memory(context, *rows)
        chosen = jnp.nonzero(decision.w, size=self.kept, fill_value=self.problem.dim)[0]
        weights = rows.weights.at[:, chosen].get(mode="fill", fill_value=0.0)
        return Memory(context.at[chosen].get(mode="fill", fill_value=0.0), weights, rows.values, rows.used)

    def _costs(self, weights: Weights, x: Array) -> Array:
        """One network's prediction of all coordinates that ``x`` describes."""
        h = jax.nn.silu(x @ weights.first.weight + weights.first.bias)
        h = jax.nn.silu(h @ weights.second.weight + weights.second.bias)
        out = h @ weights.output.weight + weights.output.bias + x @ weights.bypass
        return out[..., 0] if self.by_row else out

    def _loss(self, weights: Weights, batch: Memory, size: Float[Array, ""]) -> Float[Array, ""]:
        """Mean relative squared error of the measured rows."""
        rows = Measured(batch.weights, batch.values, batch.used)
        costs = self._costs(weights, batch.context)
        single = one_by_one(self.problem)
        predicted = rows.weights * costs if single else jnp.einsum("rmd,rd->rm", rows.weights, costs)
        scale = jnp.abs(rows.values) + jnp.abs(predicted) + self.floor * size
        scale = jnp.where(scale > 0, scale, 1.0)  # nothing but zeros so far: the gradient is zero, too
        errors = jnp.where(rows.used, jnp.square((predicted - rows.values) / scale), 0.0)
        return jnp.sum(errors) / jnp.maximum(jnp.sum(rows.used), 1)
