"""A learner as a checkpoint and back: the policy's state, waiting and learnt decisions, health, configuration."""

import hashlib
import importlib.metadata
import json
import math
import os
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless import checkpoint, policies
from regretless.columns import Columns
from regretless.errors import CheckpointError, SettingsError
from regretless.live.assembly import Options, config_entry
from regretless.live.books import LearnerState
from regretless.live.framing import Position
from regretless.live.health import HealthRecord
from regretless.live.inputs import LAST_ID, said
from regretless.live.kernel import Kernel
from regretless.live.pending import Learnt
from regretless.live.snapshot import describe, rebuilt, stacked, unstacked
from regretless.oracles.base import Oracle
from regretless.trees import named, restored

LARGEST_CONTEXT = 10**6
"""Numbers in a context that a file may ask memory for."""

PACKAGES = ("regretless", "jax", "numpy")

OPEN = "open"
"""The form of instances before the first decision."""

MAY_BE_NAN = ("pieces", "waiting.log_density", "learnt.decision.log_density", "learnt.residual", "health/steps")


def save(
    path: str | os.PathLike[str], kernel: Kernel, config: dict[str, Any], form_fixed: bool, saved: LearnerState
) -> None:
    """Writes a learner's state and configuration, and its place in its log."""
    place = None if saved.position is None else list(saved.position)
    checkpoint.write(path, arrays_of(kernel, saved), {**described(kernel, config, form_fixed), "log": place})


def described(kernel: Kernel, config: dict[str, Any], form_fixed: bool) -> dict[str, Any]:
    """How a learner was made, the form of its instances, and by which programs."""
    with jax.enable_x64(True):
        form = describe(kernel.problem.example_instance()) if form_fixed else OPEN
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {**config, "instances": form, "versions": versions}


def digest(kernel: Kernel, saved: LearnerState) -> str:
    """A hash of a learner's state."""
    found = hashlib.sha256()
    for name, array in sorted(arrays_of(kernel, saved).items()):
        found.update(f"{name} {array.dtype.str} {array.shape};".encode() + np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def arrays_of(kernel: Kernel, saved: LearnerState) -> dict[str, np.ndarray]:
    """A learner's state as arrays by name."""
    arrays = {
        **named("state", kernel.init() if saved.policy is None else saved.policy),
        **named("numbers", kernel.numbers),
        **stacked("waiting", list(saved.waiting.values())),
        **stacked("learnt", list(saved.learnt.values())),
        **({} if saved.last is None else named("last", saved.last)),
        "ids/waiting": np.fromiter(saved.waiting, np.int64),
        "ids/learnt": np.fromiter(saved.learnt, np.int64),
        **{f"health/{name}": array for name, array in saved.health.arrays().items()},
        "counts": np.array([saved.made, saved.expired, saved.health.learned], np.int64),
    }
    if saved.paused:
        arrays["paused"] = np.array(True)
    if saved.times:
        arrays["times"] = np.array([saved.times[id] for id in saved.waiting])
    if saved.pieces:
        arrays |= {"pieces": np.stack(list(saved.pieces.values())), "ids/pieces": np.fromiter(saved.pieces, np.int64)}
    return arrays


def load(cls: Any, path: str | os.PathLike[str], oracle: Any, given: dict[str, Any], clock: Any) -> Any:
    """The learner that ``save`` wrote, with the objects that it was built from."""
    if not isinstance(oracle, Oracle):
        raise SettingsError(f"learner: expected an oracle (see rg.oracles), got {type(oracle).__name__}")
    arrays, config = checkpoint.read(path)
    try:
        return made(cls, oracle, config, given, clock, partial(_state, arrays, config.get("log")))
    except CheckpointError as error:
        raise CheckpointError(f"{path}: {error}") from None
    except Exception as error:  # a configuration that parses can still be of any form
        raise CheckpointError(f"{path}: the checkpoint cannot be understood: {error!r}") from error


def made(cls: Any, oracle: Oracle, config: dict[str, Any], given: dict[str, Any], clock: Any, state_of: Any) -> Any:
    """A learner from its configuration, in the state that ``state_of(kernel, options)`` finds; None: that of a new one."""
    _require_oracle(oracle, config["oracle"])
    arguments, form = _arguments(config, given), config["instances"]
    instance = None if form == OPEN else rebuilt(form)
    try:
        learner = cls(oracle, clock=clock, **arguments)
        core = learner._core
        kernel = core.books.kernel if form == OPEN else core.plan.kernel(instance)
        if state_of is None:
            core.books.kernel, core.books.form_fixed = kernel, form != OPEN
        else:
            core.books.restore(kernel, form != OPEN, state_of(kernel, core.plan.options))
        return learner
    except SettingsError as error:
        raise CheckpointError(f"its configuration cannot be used: {error}") from None


def _require_oracle(oracle: Oracle, saved: dict[str, Any]) -> None:
    found = json.loads(json.dumps(oracle.fingerprint()))
    differing = [key for key in {**saved, **found} if saved.get(key) != found.get(key)]
    if differing:
        told = "; ".join(f"{key} {said(saved.get(key))}, got {said(found.get(key))}" for key in differing)
        raise CheckpointError(f"expected the oracle that it was saved with: {told}")


def _arguments(config: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """What the learner was made with; objects are those that are ``given`` again."""
    arguments: dict[str, Any] = {}
    for name, thing in given.items():
        if name == "columns":
            continue
        saved = config[name]
        if isinstance(saved, dict) and thing is None:
            raise CheckpointError(f"it was saved with a {name} of your own ({saved['object']}): give it as {name}=")
        if not isinstance(saved, dict) and thing is not None:
            raise CheckpointError(f"it was saved with {name} {saved!r}: give no {name}=")
        if isinstance(saved, dict) and config_entry(thing) != saved:
            got = type(thing).__qualname__
            raise CheckpointError(f"expected a {name} of type {saved['object']}, got {got}")
        arguments[name] = saved if thing is None else thing
    shape = tuple(config["context_shape"])
    if not all(type(n) is int and n > 0 for n in shape) or math.prod(shape) > LARGEST_CONTEXT:
        raise CheckpointError(f"its contexts have the shape {shape}, expected at most {LARGEST_CONTEXT} numbers")
    if config["settings"] is not None:
        try:
            arguments["settings"] = policies.parse(arguments["policy"], config["settings"])
        except SettingsError as error:
            raise CheckpointError(f"its configuration cannot be used: {error}") from None
    columns = _columns(config.get("columns"), given["columns"])
    contexts = {"context_shape": shape} if columns is None else {"columns": columns}
    return {**config["options"], **arguments, **contexts, "offset": config["offset"]}


def _columns(saved: Any, given: Any) -> Columns | None:
    """The columns that contexts were saved with; others are refused."""
    found = None if saved is None else Columns(**saved)
    if given is not None and given != found:
        differs = "it has none" if found is None else found.difference(given if isinstance(given, Columns) else None)
        raise CheckpointError(f"it was saved with other columns: {differs}; give no columns=")
    return found


def require_numbers(arrays: dict[str, np.ndarray], kernel: Kernel) -> None:
    """Refuses the numbers of another policy."""
    if not jax.tree.all(jax.tree.map(np.array_equal, restored("numbers", kernel.numbers, arrays), kernel.numbers)):
        raise CheckpointError("it was saved with a policy of other numbers (settings)")


def _state(arrays: dict[str, np.ndarray], place: Any, kernel: Kernel, options: Options) -> LearnerState:
    """What the arrays hold, checked against the forms of the kernel's decisions and states, and against each other."""
    require_numbers(arrays, kernel)
    for name, array in arrays.items():
        _require_finite(name, array)
    number, form = partial(jax.ShapeDtypeStruct, dtype=np.int64), kernel.decision_form
    counted = restored("counts", number((3,)), arrays)
    ids = {name: restored(f"ids/{name}", number(arrays[f"ids/{name}"].shape), arrays) for name in ("waiting", "learnt")}
    health = _health(arrays, kernel)
    signature = arrays["learnt.signature"].shape[1:] if len(ids["learnt"]) else ()
    learnt_form = Learnt(form, *(jax.ShapeDtypeStruct(shape, np.float64) for shape in (signature, ())))
    forms = {"waiting": form, "learnt": learnt_form}
    kept = {
        name: dict(zip(ids[name].tolist(), unstacked(name, each, len(ids[name]), arrays), strict=True))
        for name, each in forms.items()
    }
    last = restored("last", (form.w, form.aux), arrays) if "last[0]" in arrays else None
    policy = restored("state", kernel.state_form, arrays)
    with jax.enable_x64(True):
        policy = jax.tree.map(jnp.asarray, policy)
    made, expired, learnt = counted.tolist()
    if health.learned != learnt:
        raise CheckpointError("its waiting and learnt decisions contradict each other")
    times = (
        restored("times", jax.ShapeDtypeStruct(ids["waiting"].shape, np.float64), arrays) if "times" in arrays else None
    )
    found = LearnerState(
        policy, kept["waiting"], kept["learnt"], last, made, expired, health,
        {} if times is None else dict(zip(kept["waiting"], times.tolist(), strict=True)), _pieces(arrays, kernel),
        None if place is None else Position(*(int(number) for number in place)), "paused" in arrays,
    )  # fmt: skip
    _require_consistent(found, options)
    return found


def _health(arrays: dict[str, np.ndarray], kernel: Kernel) -> HealthRecord:
    own = {name.removeprefix("health/"): array for name, array in arrays.items() if name.startswith("health/")}
    return HealthRecord.from_arrays(own, kernel.problem.context_shape, kernel.problem.dim)


def _pieces(arrays: dict[str, np.ndarray], kernel: Kernel) -> dict[int, np.ndarray]:
    """What has come of the feedback on waiting decisions."""
    if "ids/pieces" not in arrays:
        return {}
    with jax.enable_x64(True):
        rows = jax.eval_shape(kernel.problem.example_feedback).values.shape
    count = arrays["ids/pieces"].shape
    ids = restored("ids/pieces", jax.ShapeDtypeStruct(count, np.int64), arrays)
    values = restored("pieces", jax.ShapeDtypeStruct((*count, *rows), np.float64), arrays)
    return dict(zip(ids.tolist(), values, strict=True))


def _require_consistent(found: LearnerState, options: Options) -> None:
    """Refuses decisions and counts that contradict each other: every decision waits, was learnt or has expired."""
    limit = options.max_pending
    ids = [*found.waiting, *found.learnt]
    decisions = [*found.waiting.values(), *(learnt.decision for learnt in found.learnt.values())]
    counts = (found.made, found.expired, found.health.learned)
    fits = (
        all(0 <= count <= LAST_ID for count in counts)
        and found.made == len(found.waiting) + found.expired + found.health.learned
        and len(set(ids)) == len(ids)
        and all(1 <= id <= found.made for id in ids)
        and list(found.waiting) == sorted(found.waiting)
        and len(found.waiting) <= limit
        and len(found.learnt) == min(limit, found.health.learned)
        and all(int(decision.id) == id for id, decision in zip(ids, decisions, strict=True))
        and found.pieces.keys() <= found.waiting.keys()
        and bool(found.times) == (bool(found.waiting) and options.max_age_seconds is not None)
    )
    if not fits:
        raise CheckpointError("its waiting and learnt decisions contradict each other")


def _require_finite(name: str, array: np.ndarray) -> None:
    """Refuses numbers that no learner writes; what the aux means is the solver's affair, a right-hand side may be infinite."""
    if array.dtype.kind != "f" or ".aux" in name or name.startswith(("numbers", "last[1]")):
        return
    wrong = np.isinf(array) if name in MAY_BE_NAN else np.isnan(array) if ".instance" in name else ~np.isfinite(array)
    if np.any(wrong):
        raise CheckpointError(f"array {name!r} holds numbers that are not finite")
