"""Policies in plain Python: objects with ``decide`` and ``update``, called between compiled programs (``host_calls``).

The library's policies are pure functions of a state, and so is a policy made of objects: its state is a row of bytes
that holds everything an object remembers, as JSON and without pickle. An object is restored from the bytes when they
are not those that it was left with. Replications, exact continuation of a saved run, stores of live learners, replay
from a log and updates that fail or are discarded follow from that, without copies of objects or handles to them. What
an object remembers is what its ``get_state()`` returns, or all of its attributes: arrays, numbers, text, and lists,
tuples and dicts of these, of any size up to ``state_bytes``.
"""

import base64
import dataclasses
import inspect
import json
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, UInt8
from pydantic import Field

from regretless.errors import SettingsError
from regretless.host_calls import BoundedDict, RowFunction
from regretless.oracles.base import Oracle
from regretless.policies.base import Policy, PolicySpec
from regretless.problem import Problem
from regretless.spec import FactorySpec
from regretless.types import Context, Cost, Decision, Feedback, Info, Instance, Key, Sample

MAX_OBJECTS = 4096
"""Objects that are kept for their next call; others are restored from their bytes."""


class HostState(eqx.Module):
    """What an object remembers, as bytes, and the number of learning steps."""

    memory: UInt8[Array, " n"]
    version: Int[Array, ""]


class HostPolicy(Policy):
    """Play the solutions of the costs that an object returns.

    Parameters
    ----------
    problem : Problem
        What the objects decide.
    settings : dict of str to array
        Numbers that objects are made with.
    call : ObjectCall
        How objects are made and called.
    """

    settings: dict[str, Any]
    call: "ObjectCall" = eqx.field(static=True)
    calls_python = True

    def init(self, key: Key) -> HostState:
        memory = self._run("make", jax.random.bits(key, (), jnp.uint32), key)
        return HostState(memory, jnp.zeros((), jnp.int32))

    def sample(self, key: Key, state: HostState, context: Context, instance: Instance) -> Sample:
        return Sample(self._run("decide", state.memory, key, context, instance=instance), state.version)

    def learn(self, key: Key, state: HostState, decision: Decision, feedback: Feedback) -> tuple[HostState, Info]:
        memory, total = self._run("update", state.memory, key, decision, feedback), feedback.total()
        info = Info(total - decision.cost_sample @ decision.w, total, feedback.complete(), jnp.asarray(True))
        return HostState(memory, state.version + 1), info

    def mean(self, state: HostState, context: Context) -> Cost:
        if not self.call.predicts:
            return super().mean(state, context)
        return self._run("predict", state.memory, jax.random.key(0), context)

    def _run(self, method: str, memory: Any, key: Key, *arguments: Any, instance: Instance = None) -> Any:
        given = self.settings, memory, jax.random.key_data(key), instance, arguments
        is_cost = method in ("decide", "predict")
        size, kind = (self.problem.dim, jnp.result_type(float)) if is_cost else (self.call.capacity, jnp.uint8)
        form = jax.ShapeDtypeStruct((size,), kind)
        return dataclasses.replace(self.call, method=method).one(form, *given)


@dataclasses.dataclass(frozen=True)
class ObjectCall(RowFunction):
    """A method of objects, as a function of rows; ``objects`` holds those of earlier calls by what they remember."""

    spec: "Python"
    problem: Problem
    capacity: int
    predicts: bool = False
    method: str = ""
    objects: BoundedDict = dataclasses.field(default_factory=lambda: BoundedDict(MAX_OBJECTS), compare=False)

    def create(self, settings: dict[str, Any], seed: int) -> Any:
        """Return a new object."""
        return self.spec.create(self.problem, seed, **{name: float(value) for name, value in settings.items()})

    def row(self, settings: dict[str, Any], memory: Any, key: Any, instance: Any, arguments: Any) -> np.ndarray:
        """Return the costs of a decision or prediction, or the bytes of a new or updated object."""
        if self.method == "make":
            return self._pack(self.create(settings, int(memory)), int(memory))
        numbers = tuple(map(float, settings.values()))
        thing, seed = self.objects.pop((memory.tobytes(), *numbers), None) or self._restore(settings, memory)
        method, place = getattr(thing, self.method), f"{type(thing).__name__}.{self.method}"
        options = {"rng": lambda: np.random.default_rng(key.tolist()), "instance": lambda: instance}
        named = options.keys() & inspect.signature(method).parameters.keys()
        result = method(*arguments, **{name: options[name]() for name in named})
        after = self._pack(thing, seed)
        if self.method == "update":
            result = after
        elif not np.array_equal(after, memory):
            hint = "only update may; take random numbers from the argument rng, as in decide(self, context, rng)"
            raise SettingsError(f"{place} changed the object: {hint}")
        elif np.shape(result) != (self.problem.dim,):
            raise SettingsError(f"{place}: expected {self.problem.dim} costs, got shape {np.shape(result)}")
        self.objects[after.tobytes(), *numbers] = thing, seed
        return np.asarray(result)

    def _restore(self, settings: dict[str, Any], memory: np.ndarray) -> tuple[Any, int]:
        """Return the object that these bytes describe, and its seed."""
        seed, state = json.loads(memory.tobytes())
        thing = self.create(settings, seed)
        (thing.set_state if hasattr(thing, "set_state") else vars(thing).update)(_restored(state))
        return thing, seed

    def _pack(self, thing: Any, seed: int) -> np.ndarray:
        """Return what an object remembers as bytes, filled up with spaces."""
        content = pack(thing, seed)
        if len(content) > self.capacity:
            got = f"expected a state of at most {self.capacity:,} bytes, got {len(content):,}"
            raise SettingsError(f"{type(thing).__name__}: {got}; set state_bytes")
        return np.frombuffer(content.ljust(self.capacity), np.uint8)


def pack(thing: Any, seed: int) -> bytes:
    """Return the seed of an object and what it remembers as JSON."""
    if hasattr(thing, "get_state"):
        return json.dumps([seed, _plain(thing.get_state())]).encode()
    kept = {name: value for name, value in vars(thing).items() if not isinstance(value, Problem | Oracle)}
    return json.dumps([seed, _plain(kept)]).encode()


def _plain(value: Any) -> Any:
    """Return a state as JSON data."""
    if isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "biufc":
        return {"array": [value.dtype.str, value.shape, base64.b64encode(value.tobytes()).decode()]}
    if isinstance(value, dict):
        return {"dict": [[_plain(name), _plain(part)] for name, part in value.items()]}
    if isinstance(value, list | tuple):
        return {type(value).__name__: [_plain(part) for part in value]}
    if type(value) not in (bool, int, float, str, type(None)):
        raise SettingsError(
            "a policy's object: expected to remember arrays, numbers, text and containers of these, got an object of "
            f"type {type(value).__name__}; write get_state() and set_state(state), and take random numbers from rng"
        )
    return value


def _restored(node: Any) -> Any:
    """Return the state that ``_plain`` was given."""
    if not isinstance(node, dict):
        return node
    ((kind, value),) = node.items()
    if kind == "array":
        return np.frombuffer(base64.b64decode(value[2]), value[0]).reshape(value[1]).copy()[()]
    if kind == "dict":
        return {_restored(name): _restored(part) for name, part in value}
    return {"list": list, "tuple": tuple}[kind](map(_restored, value))


class Python(FactorySpec, PolicySpec):
    """A policy in plain Python: one object with ``decide`` and ``update`` per replication or learner.

    Parameters
    ----------
    make : callable, or where it is as "module:name"
        Called with the problem and a seed, and with the settings that a subclass adds as keyword arguments; the class
        of the objects, for example. An object has ``decide(context)``, which returns the costs to solve, and
        ``update(decision, feedback)``. They may have the parameters ``rng``, a generator for this call, and ``decide``
        may have ``instance``. A method ``predict(context)`` that returns the expected costs makes greedy decisions and
        explanations possible. Only ``update`` changes the object. A decision ``w`` of zeros and ones that the object
        has found itself is returned as the costs ``1 - 2 * w``.
    state_bytes : int, default 4096
        Room for what an object remembers; twice that of a new object if that is more.

    Examples
    --------
    >>> import numpy as np, regretless as rg
    >>> class Average:
    ...     def __init__(self, problem, seed):
    ...         self.cost, self.rounds = np.zeros(problem.dim), 0
    ...     def decide(self, context, rng):
    ...         return self.cost + rng.normal(size=len(self.cost)) / (1 + self.rounds)
    ...     def update(self, decision, feedback):
    ...         self.rounds += 1
    ...         error = float(feedback.total()) - self.cost @ decision.w
    ...         self.cost = self.cost + decision.w * error / decision.w.sum() / self.rounds**0.5
    >>> result = rg.simulate(rg.policies.Python(make=Average), "topk", seeds=2, horizon=20)
    >>> result.regret.shape, result.diverged
    ((2, 20), 0)
    """

    any_context: ClassVar[bool] = True
    by_default: ClassVar[bool] = False
    presets: ClassVar[bool] = False
    needs = ("decide", "update")

    state_bytes: int = Field(default=4096, ge=64, le=2**30)

    def build(self, problem: Problem) -> HostPolicy:
        """Return the policy for a problem; refuse a factory of other objects."""
        numbers = set(type(self).model_fields) - set(Python.model_fields)
        settings = {name: v for name, v in self.hyperparameters().items() if name in numbers and hasattr(v, "dtype")}
        call = ObjectCall(self.model_copy(update=dict.fromkeys(settings)), problem, self.state_bytes)
        first = call.create(settings, 0)
        capacity = max(self.state_bytes, 1 << (2 * len(pack(first, 0))).bit_length())
        call = dataclasses.replace(call, capacity=capacity, predicts=hasattr(first, "predict"))
        policy = HostPolicy(problem, settings, call)
        x, key = problem.example_context(), jax.random.key(0)
        decide = lambda: policy.sample(key, policy.init(key), x, problem.example_instance())  # noqa: E731
        self.attempt(decide, f"an object that decides for contexts of shape {x.shape}")
        return policy
