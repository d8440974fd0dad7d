"""Every surrogate inside DFHPG on top-k: decisions stay feasible, the state stays finite, θ moves, and regret falls."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from regretless import surrogates
from regretless.simulation import stream
from toys import DIM, Toy, make

TOY = Toy()
GAME = stream.SimulationSpec(TOY, keep_decisions=True)
# Every surrogate with the linear model; with the other, whose gradients differ in the model's part alone, one of each
# family.
CASES = [(name, "gaussian_linear") for name in surrogates.REGISTRY]
CASES += [(name, "gaussian_nn") for name in ("spo_plus", "imle", "map_c", "pairwise_diff")]
REPLICATIONS, HORIZON = 16, 150
ALPHAS = (0.3, 0.0)  # the hybrid, and the surrogate by itself: numbers of one program


# Each surrogate is a program that runs for milliseconds: compiled without optimisation it is ready in half the time.
@functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
@functools.partial(jax.vmap, in_axes=(0, None, None))
@functools.partial(jax.vmap, in_axes=(None, 0, 0))
def played(policy, key, segment):
    start = stream.begin(policy, GAME, key)
    end, record = stream.play_segment(policy, GAME, start, key, segment, jnp.int32(0), jnp.int32(HORIZON))
    return start.state.theta, end, record


@functools.cache
def world():
    """Keys, rounds, and the regret per round of random decisions, the same for all."""
    keys = jax.vmap(jax.random.key)(np.arange(REPLICATIONS, dtype=np.uint32))
    segment = jax.jit(jax.vmap(lambda key: stream.draw(GAME, key, jnp.int32(0), jnp.int32(HORIZON), HORIZON)))(keys)
    return keys, segment, np.asarray(segment.tally.spent[:, 1] - segment.tally.spent[:, 0]) / HORIZON


@pytest.mark.parametrize(("name", "model"), CASES)
@pytest.mark.usefixtures("float64")
def test_learns(name, model):
    """With full feedback, the last third's regret is below that of random decisions: z < −3.1, one-sided 99.9 %.

    No surrogate is left out. What holds for α = 0 is the surrogate's doing alone, and the wrong sign would not pass.
    """
    policies = [
        make(
            "dfhpg",
            TOY,
            "full",
            model,
            surrogate=name,
            policy_lr=0.1,
            exploration_scale=0.1,
            **{"alpha.max": a, "alpha.min": a},
        )
        for a in ALPHAS
    ]
    keys, segment, random = world()
    before, end, record = played(jax.tree.map(lambda *leaves: jnp.stack(leaves), *policies), keys, segment)
    w = np.asarray(record.w)
    assert w.shape == (len(ALPHAS), REPLICATIONS, HORIZON, DIM)
    assert np.all(((w == 0) | (w == 1)) & (w.sum(axis=-1, keepdims=True) == 2))
    assert not np.any(end.diverged_at)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(end.state))
    for old, new in zip(jax.tree.leaves(before), jax.tree.leaves(end.state.theta), strict=True):
        assert np.all(np.any(np.abs(new - old) > 1e-3, axis=tuple(range(2, old.ndim))))
    last = np.asarray(record.regret)[:, :, -HORIZON // 3 :].mean(axis=2) - random
    z = last.mean(axis=1) / (last.std(axis=1, ddof=1) / REPLICATIONS**0.5)
    assert np.all(z < -3.1), dict(zip(ALPHAS, z, strict=True))
