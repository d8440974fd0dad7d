"""The nuisance of ``dfhpg_auto``: a few small networks, each trained on minibatches of past rounds; their mean is ``f_φ``."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from regretless import nets, replay
from regretless.policies.dfhpg import bypass
from regretless.types import Context, Cost, Key


class EnsembleState(eqx.Module):
    """Weights and Adam's moments; every leaf has a leading axis of members."""

    members: bypass.Bypassed
    adam: nets.AdamState


class Ensemble(eqx.Module):
    """``count`` networks of ``width`` units, trained by Adam on batches of ``batch`` rounds each.

    Loss of a measured row: ``((H f − v) / (|v| + |H f| + floor ‖h‖))²``, an error relative to the size of what was seen, so that a
    few large costs do not drown the rest. ``decay`` pulls weights (not biases) to zero at each step, ``linear_speed`` is how
    much faster than the rest the linear bypass may move.
    """

    rate: Float[Array, ""]
    decay: Float[Array, ""]
    linear_speed: Float[Array, ""]
    floor: Float[Array, ""]
    count: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    batch: int = eqx.field(static=True)
    dim: int = eqx.field(static=True)
    context_shape: tuple[int, ...] = eqx.field(static=True)

    def init(self, key: Key) -> EnsembleState:
        """Members that differ in their hidden layers and say nothing yet."""
        outputs = bypass.outputs(self.dim, self.context_shape)
        fresh = lambda key: bypass.init(key, self.context_shape[-1], self.width, outputs)  # noqa: E731
        members = jax.vmap(fresh)(jax.random.split(key, self.count))
        return EnsembleState(members, jax.vmap(nets.adam_init)(members))

    def predict(self, state: EnsembleState, context: Context) -> Cost:
        """``f_φ(x)``: the members' mean."""
        each = jax.vmap(bypass.costs, in_axes=(0, None))(state.members, jnp.asarray(context, jnp.float32))
        return jnp.mean(each, axis=0).astype(jnp.result_type(float))

    def train(self, key: Key, state: EnsembleState, memory: replay.Replay, steps: Int[Array, ""]) -> EnsembleState:
        """``steps`` steps of each member on rounds drawn from the memory."""

        def one(i: Array, state: EnsembleState) -> EnsembleState:
            drawn = memory.draw(jax.random.fold_in(key, i), (self.count, self.batch))
            return jax.vmap(self._step)(state, drawn)

        return repeat(steps, one, state)

    def _step(self, state: EnsembleState, drawn: replay.Seen) -> EnsembleState:
        grads = jax.grad(self._loss)(state.members, drawn)
        return EnsembleState(*adam_with_bypass(state.members, state.adam, grads, self.rate, self.decay, self.linear_speed))

    def _loss(self, net: bypass.Bypassed, drawn: replay.Seen) -> Float[Array, ""]:
        predictions = bypass.apply(net, drawn.context)  # [batch, d] or [batch, s, 1]
        if drawn.context.ndim == 3:
            predictions = predictions[..., 0]
        told = jax.vmap(lambda seen, f: seen.measured(f))(drawn, predictions)
        norms = jax.vmap(lambda seen: seen.row_norms())(drawn)
        size = jnp.abs(drawn.values) + jnp.abs(told) + jnp.asarray(self.floor, jnp.float32) * norms
        error = jnp.where(drawn.used, (told - drawn.values) / jnp.where(drawn.used, size, 1.0), 0.0)
        return jnp.sum(jnp.square(error)) / jnp.maximum(jnp.sum(drawn.used), 1)


def adam_with_bypass(
    net: bypass.Bypassed, adam: nets.AdamState, grads: bypass.Bypassed, rate: Array, decay: Array, speed: Array
) -> tuple[bypass.Bypassed, nets.AdamState]:
    """A step of Adam with decoupled weight decay; the linear part takes ``speed`` times the step."""
    rate, decay, speed = (jnp.asarray(each, jnp.float32) for each in (rate, decay, speed))
    stepped, adam = nets.adam_step(net, adam, grads, rate)
    linear = jax.tree.map(lambda new, old: old + speed * (new - old), stepped.linear, net.linear)
    moved = bypass.Bypassed(stepped.hidden, stepped.output, linear)
    shrunk = lambda new, old: new - rate * decay * old if old.ndim > 1 else new  # noqa: E731
    return jax.tree.map(shrunk, moved, net), adam


def repeat(steps: Int[Array, ""], one: Callable[[Array, Any], Any], start: Any) -> Any:
    """``one`` applied ``steps`` times; replications in step with each other skip what none of them needs."""
    more = lambda carry: carry[0] < steps  # noqa: E731
    return jax.lax.while_loop(more, lambda carry: (carry[0] + 1, one(*carry)), (jnp.zeros_like(steps), start))[1]
