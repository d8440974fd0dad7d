"""A learner as a checkpoint and back: state, waiting decisions, what was learnt, scales, health, configuration."""

import importlib.metadata
import math
import os
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import CheckpointError, SettingsError
from regretless.live import assembly, checkpoint
from regretless.live.inputs import OPEN
from regretless.live.pending import Learnt
from regretless.live.snapshot import named, rebuilt, restored, stacked, unstacked

LARGEST_CONTEXT = 10**6
"""Numbers in a context that a file may ask memory for."""

PACKAGES = ("regretless", "jax", "numpy")


def save(learner: Any, path: str | os.PathLike[str]) -> None:
    """Writes ``learner``."""
    pending = learner._pending
    arrays = {
        **named("state", learner._state),
        **named("numbers", learner._kernel.numbers),
        **named("scales", _scales(learner)),
        **named("health", vars(learner._recorder)),
        **stacked("waiting", list(pending.waiting.values())),
        **stacked("learnt", list(pending.learnt.values())),
        **({} if learner._last is None else named("last", learner._last)),
        "ids/waiting": np.fromiter(pending.waiting, np.int64),
        "ids/learnt": np.fromiter(pending.learnt, np.int64),
        "counts": np.array([pending.made, pending.expired], np.int64),
    }
    config = {
        **learner.config,
        "instances": learner._form,
        "versions": {name: importlib.metadata.version(name) for name in PACKAGES},
    }
    checkpoint.write(path, arrays, config)


def load(cls: Any, path: str | os.PathLike[str], oracle: Any, given: dict[str, Any]) -> Any:
    """The learner that ``save`` wrote, with the objects that it was built from."""
    arrays, config = checkpoint.read(path)
    try:
        learner = _rebuilt(cls, oracle, config, given)
        _fill(learner, arrays, config)
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise CheckpointError(f"{path}: the checkpoint cannot be understood: {error!r}") from None
    return learner


def _rebuilt(cls: Any, oracle: Any, config: dict[str, Any], given: dict[str, Any]) -> Any:
    """A fresh learner of the same configuration."""
    found = assembly.fingerprint(oracle)
    if found != config["oracle"]:
        raise CheckpointError(f"expected the oracle that it was saved with, {config['oracle']}, got {found}")
    parts = {}
    for name, thing in given.items():
        saved = config[name]
        if isinstance(saved, dict) and thing is None:
            raise CheckpointError(f"it was saved with a {name} of your own ({saved['object']}): give it as {name}=")
        if not isinstance(saved, dict) and thing is not None:
            raise CheckpointError(f"it was saved with {name} {saved!r}: give no {name}=")
        if isinstance(saved, dict) and assembly.spoken(thing) != saved:
            raise CheckpointError(
                f"expected a {name} of type {saved['object']}, got {assembly.spoken(thing)['object']}"
            )
        parts[name] = saved if thing is None else thing
    options = dict(config["options"])
    shape = tuple(options.pop("context_shape"))
    if math.prod(shape) > LARGEST_CONTEXT:
        raise CheckpointError(f"its contexts have the shape {shape}, expected at most {LARGEST_CONTEXT} numbers")
    settings = None if isinstance(config["policy"], dict) else config["settings"]
    try:
        return cls(oracle, context_shape=shape, settings=settings, offset=config["offset"], **parts, **options)
    except SettingsError as error:
        raise CheckpointError(f"its configuration cannot be used: {error}") from None


def _fill(learner: Any, arrays: dict[str, np.ndarray], config: dict[str, Any]) -> None:
    numbers = restored("numbers", learner._kernel.numbers, arrays)
    if not jax.tree.all(jax.tree.map(np.array_equal, numbers, learner._kernel.numbers)):
        raise CheckpointError("it was saved with a policy of other numbers (settings)")
    with jax.enable_x64(True):
        state = jax.tree.map(jnp.asarray, restored("state", learner._state, arrays))
    for leaf in jax.tree.leaves(state):
        if jnp.issubdtype(leaf.dtype, jnp.floating) and not np.all(np.isfinite(np.asarray(leaf))):
            raise CheckpointError("its state holds numbers that are not finite")
    learner._state = state
    for scale, values in zip(
        *(tree.values() for tree in (_objects(learner), _restored_scales(learner, arrays))), strict=True
    ):
        vars(scale).update(values)
    vars(learner._recorder).update(restored("health", vars(learner._recorder), arrays))

    learner._form = config["instances"]
    instance = None if learner._form == OPEN else rebuilt(learner._form)
    template = learner._kernel.shape_of(state, np.zeros(learner.options.context_shape), learner._shown(instance))
    pending = learner._pending
    pending.made, pending.expired = map(int, arrays["counts"])
    ids, old = arrays["ids/waiting"], arrays["ids/learnt"]
    waiting = unstacked("waiting", template, len(ids), arrays)
    signature = next((a for name, a in arrays.items() if name == "learnt.signature"), np.zeros((0, 0)))
    learnt_form = Learnt(
        template.w,
        template.aux,
        jax.ShapeDtypeStruct(signature.shape[1:], np.float64),
        jax.ShapeDtypeStruct((), np.float64),
    )
    learnt = unstacked("learnt", learnt_form, len(old), arrays)
    known = [*map(int, ids), *map(int, old)]
    if len(set(known)) != len(known) or any(not 1 <= id <= pending.made for id in known) or len(ids) > pending.limit:
        raise CheckpointError("its waiting decisions contradict each other")
    pending.waiting.update(zip(map(int, ids), waiting, strict=True))
    pending.learnt.update(zip(map(int, old), learnt, strict=True))
    if "last[0]" in arrays:
        learner._last = restored("last", (template.w, template.aux), arrays)


def _objects(learner: Any) -> dict[str, Any]:
    scales = {"contexts": learner._contexts, "costs": learner._costs}
    return {name: scale for name, scale in scales.items() if scale is not None}


def _scales(learner: Any) -> dict[str, Any]:
    return {name: vars(scale) for name, scale in _objects(learner).items()}


def _restored_scales(learner: Any, arrays: dict[str, np.ndarray]) -> dict[str, Any]:
    return restored("scales", _scales(learner), arrays)
