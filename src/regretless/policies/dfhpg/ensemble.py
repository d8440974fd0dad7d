"""The nuisance of ``dfhpg_auto``: a few small networks, each trained on minibatches of past rounds; their mean is ``f_φ``."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from regretless import nets, replay
from regretless.bypass import Bypassed, Weights
from regretless.types import Context, Cost, Key

LEAST_RATE = 0.3
"""Share of its first value below which the rate does not fall: what changes can be followed for ever."""


class NetworkEnsembleState(eqx.Module):
    """Weights and Adam's moments; every leaf has a leading axis of members."""

    members: Float[Array, "count n"]
    adam: nets.AdamState


class NetworkEnsemble(eqx.Module):
    """``count`` networks of ``width`` units, trained by Adam on batches of ``batch`` rounds each.

    Loss of a measured row ``h``: ``((h·f − v) / (|v| + |h·f| + floor ‖h‖))²``, an error relative to the size of what was seen,
    so that a few large costs do not drown the rest. After ``n`` steps the rate is ``rate √(S/(S + n))`` with ``rate_steps`` S,
    and at least 0.3 of ``rate``. ``decay`` pulls weights (not biases) to zero at each step; the linear
    bypass moves ``linear_speed`` times as fast as the rest.
    """

    rate: Float[Array, ""]
    rate_steps: Float[Array, ""]
    decay: Float[Array, ""]
    linear_speed: Float[Array, ""]
    floor: Float[Array, ""]
    net: Bypassed
    count: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)

    def init(self, key: Key) -> NetworkEnsembleState:
        """Members that differ in their hidden layers and say nothing yet."""
        members = jax.vmap(self.net.init)(jax.random.split(key, self.count))
        return NetworkEnsembleState(members, jax.vmap(nets.adam_init)(members))

    def predict(self, state: NetworkEnsembleState, contexts: Float[Array, "k ..."]) -> Float[Array, "k d"]:
        """``f_φ`` of several contexts: the members' mean."""
        each = jax.vmap(self.net.apply, in_axes=(0, None))(state.members, contexts)
        return jnp.mean(each, axis=0).astype(jnp.result_type(float))

    def predict_one(self, state: NetworkEnsembleState, context: Context) -> Cost:
        """``f_φ(x)``."""
        return self.predict(state, context[None])[0]

    def train(
        self, key: Key, state: NetworkEnsembleState, memory: replay.Replay, steps: Int[Array, ""]
    ) -> NetworkEnsembleState:
        """``steps`` steps of each member on rounds drawn from the memory."""

        def one(i: Array, state: NetworkEnsembleState) -> NetworkEnsembleState:
            drawn = memory.draw(jax.random.fold_in(key, i), (self.count, self.batch))
            return jax.vmap(self._step)(state, drawn)

        return repeat(steps, one, state)

    def _step(self, state: NetworkEnsembleState, drawn: replay.Seen) -> NetworkEnsembleState:
        grads = jax.grad(self._loss)(state.members, drawn)
        return NetworkEnsembleState(*self.step(state.members, state.adam, grads))

    def step(self, weights: Weights, adam: nets.AdamState, gradient: Weights) -> tuple[Weights, nets.AdamState]:
        """One optimiser step of one network."""
        fall = jnp.sqrt(self.rate_steps / (self.rate_steps + adam.count))
        rate = self.rate * jnp.maximum(fall, LEAST_RATE)
        return self.net.adam_step(weights, adam, gradient, rate, self.decay, self.linear_speed)

    def _loss(self, weights: Weights, drawn: replay.Seen) -> Float[Array, ""]:
        predictions = self.net.apply(weights, drawn.context)
        told = jax.vmap(lambda seen, f: seen.measured(f))(drawn, predictions)
        norms = jax.vmap(lambda seen: seen.row_norms())(drawn)
        size = jnp.abs(drawn.values) + jnp.abs(told) + jnp.asarray(self.floor, jnp.float32) * norms
        error = jnp.where(drawn.used, (told - drawn.values) / jnp.where(drawn.used, size, 1.0), 0.0)
        return jnp.sum(jnp.square(error)) / jnp.maximum(jnp.sum(drawn.used), 1)


def repeat(steps: Int[Array, ""], one: Callable[[Array, Any], Any], start: Any) -> Any:
    """``one`` applied ``steps`` times; replications in step with each other skip what none of them needs."""
    more = lambda carry: carry[0] < steps  # noqa: E731
    return jax.lax.while_loop(more, lambda carry: (carry[0] + 1, one(*carry)), (jnp.zeros_like(steps), start))[1]
