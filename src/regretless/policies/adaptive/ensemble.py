"""Small networks that predict the cost, trained on replay: past rounds drawn again and again from a bounded memory.

Replay adds no bias: what a cost is does not depend on who decided. Each network has two hidden layers and a linear
bypass; the loss of a measured row is ``((prediction − value) / (|value| + |prediction| + floor · usual size))²``, so
that rare large costs do not rule the fit. The mean of the networks is solved, without exploration.
"""

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int
from pydantic import Field

import regretless.models.networks as networks
from regretless import draws, replay
from regretless.models.networks import BypassNetwork, Weights
from regretless.policies.base import Policy, PolicySpec, choose
from regretless.problem import Problem
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

RANDOM_ROUNDS = 2
"""Learning steps before which decisions are random."""

SIZE_WINDOW = 200
"""Rounds over which the usual size of what is measured is averaged."""

EARLY_ROUNDS = 100
"""Rounds with the full number of early steps; after them it falls in proportion to 1 / rounds."""

MAX_MEMORY_BYTES = 2**26
"""Memory for remembered rounds, at most: 64 MiB."""


class EnsembleState(eqx.Module):
    """Networks, Adam's moments and the memory."""

    weights: Float[Array, "members n"]
    adam: networks.AdamState
    memory: replay.Replay
    size: Float[Array, ""]  # usual size of what is measured
    version: Int[Array, ""]


class EnsemblePolicy(Policy):
    """Play the decision that is best for the mean prediction of a few networks."""

    lr: Float[Array, ""]
    decay: Float[Array, ""]
    floor: Float[Array, ""]
    net: BypassNetwork
    members: int = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    early_steps: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    capacity: int = eqx.field(static=True)

    def init(self, key: Key) -> EnsembleState:
        weights = jax.vmap(self.net.init_output)(jax.random.split(key, self.members))
        example = replay.measured_round(self.problem, self.problem.example_decision(), self.problem.example_feedback())
        memory = replay.empty(example, self.capacity)
        size, version = jnp.zeros((), jnp.float32), jnp.zeros((), jnp.int32)
        return EnsembleState(weights, networks.adam_init(weights), memory, size, version)

    def reset_if(self, key: Key, state: EnsembleState, flag: Bool[Array, ""]) -> EnsembleState:
        """Return the state, or if ``flag`` one with new networks and an empty memory."""
        weights = jax.vmap(self.net.init_output)(jax.random.split(key, self.members))
        new = weights, networks.adam_init(weights), jnp.zeros_like(state.memory.added)
        old = state.weights, state.adam, state.memory.added
        weights, adam, added = choose(flag, new, old)
        return EnsembleState(weights, adam, replay.Replay(state.memory.records, added), state.size, state.version)

    def mean(self, state: EnsembleState, context: Context) -> Cost:
        predictions = jax.vmap(lambda weights: self.net.apply(weights, context))(state.weights)
        return jnp.mean(predictions, axis=0).astype(float)

    def sample(self, key: Key, state: EnsembleState, context: Context, instance: Instance) -> Sample:
        random = draws.normal(key, (self.problem.dim,))
        return Sample(jnp.where(state.version < RANDOM_ROUNDS, random, self.mean(state, context)), state.version)

    def learn(
        self, key: Key, state: EnsembleState, decision: Decision, feedback: Feedback
    ) -> tuple[EnsembleState, Info]:
        residual = feedback.total() - self.mean(state, decision.context) @ decision.w
        record = replay.measured_round(self.problem, decision, feedback)
        arrived = jnp.any(record.used)
        memory = state.memory.add(record, arrived)
        value = jnp.sum(jnp.where(record.used, jnp.abs(record.values), 0.0)) / jnp.maximum(jnp.sum(record.used), 1)
        size = state.size + jnp.where(arrived, value - state.size, 0.0) / jnp.clip(memory.added, 1, SIZE_WINDOW)
        size = size.astype(state.size.dtype)

        def step(i: Array, carry: tuple[Array, networks.AdamState]) -> tuple[Array, networks.AdamState]:
            weights, adam = carry
            places = jax.random.randint(jax.random.fold_in(key, i), (self.members, self.batch), 0, memory.size)
            grads = jax.vmap(lambda w, batch: jax.grad(self.loss)(w, batch, size))(weights, memory.at(places))
            return networks.adam_step((1.0 - self.lr * self.decay) * weights, adam, grads, self.lr)

        weights, adam = jax.lax.fori_loop(0, self._steps_after(memory.added), step, (state.weights, state.adam))
        finite = jnp.isfinite(jnp.sum(weights))
        info = Info(residual, feedback.total(), feedback.complete(), finite)
        return EnsembleState(weights, adam, memory, size, state.version + 1), info

    def loss(self, weights: Weights, batch: replay.MeasuredRound, size: Float[Array, ""]) -> Float[Array, ""]:
        """Return the mean relative squared error of the measured rows of a batch."""
        predicted = jax.vmap(lambda record, costs: record.measure(costs))(batch, self.net.apply(weights, batch.context))
        scale = jnp.abs(batch.values) + jnp.abs(predicted) + self.floor * size
        scale = jnp.where(scale > 0, scale, 1.0)  # nothing but zeros so far: the gradient is zero, too
        errors = jnp.where(batch.used, jnp.square((predicted - batch.values) / scale), 0.0)
        return jnp.sum(errors) / jnp.maximum(jnp.sum(batch.used), 1)

    def _steps_after(self, rounds: Int[Array, ""]) -> Int[Array, ""] | int:
        """Return the number of training steps after a round: more while there is little to train on."""
        if self.early_steps <= self.steps:
            return self.steps
        steps = 2 * EARLY_ROUNDS * self.early_steps // (rounds + EARLY_ROUNDS)
        return jnp.clip(steps, self.steps, self.early_steps)


class Ensemble(PolicySpec):
    """A few small networks trained on replay; the decision that is best for their mean prediction is played.

    Parameters
    ----------
    members : int, default 5
        Number of networks.
    width : int, default 64
        Units of each of the two hidden layers.
    steps : int, default 4
        Steps of Adam after each round.
    early_steps : int, default 1
        The same in the first 100 rounds, falling to ``steps`` later; no effect unless above ``steps``.
    batch : int, default 64
        Remembered rounds in each step.
    memory : int, default 2048
        Rounds remembered, fewer if they take more than 64 MiB.
    lr : float, default 0.001
        Learning rate of Adam.
    decay : float, default 0.1
        Weight decay: each step subtracts ``lr * decay`` of the weights.
    floor : float, default 0.3
        Share of the usual size in the denominator of the loss.
    """

    by_default: ClassVar[bool] = False

    members: int = Field(default=5, ge=1, le=64)
    width: int = Field(default=64, ge=1, le=4096)
    steps: int = Field(default=4, ge=1, le=1000)
    early_steps: int = Field(default=1, ge=1, le=1000)
    batch: int = Field(default=64, ge=1, le=10**5)
    memory: int = Field(default=2048, ge=1, le=10**6)
    lr: float = Field(default=1e-3, gt=0)
    decay: float = Field(default=0.1, ge=0)
    floor: float = Field(default=0.3, gt=0)

    def build(self, problem: Problem) -> EnsemblePolicy:
        """Return the policy for a problem."""
        values = self.hyperparameters()
        values |= {name: values[name].astype(jnp.float32) for name in ("lr", "decay", "floor")}
        net = BypassNetwork(problem.dim, problem.context_shape, values.pop("width"))
        record = jax.eval_shape(
            lambda: replay.measured_round(problem, problem.example_decision(), problem.example_feedback())
        )
        record_bytes = sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(record))
        capacity = max(1, min(values.pop("memory"), MAX_MEMORY_BYTES // record_bytes))
        return EnsemblePolicy(problem, net=net, capacity=capacity, **values)
