"""Calls of Python from functions that JAX traces: programs are compiled up to each call, and Python runs in between.

``host_call`` asks for the result of a Python function inside ``sample``, ``learn`` or any other traced function, under
``vmap``, ``cond``, ``scan`` and ``while_loop`` too. A program that waits for Python can hang, because Python may wait
for the program's threads; therefore ``HostProgram`` cuts the traced function at its calls. What lies between two calls
is one compiled program, all replications of a call are one call, and a loop with calls runs on the host: the program
that ends one iteration is the one that begins the next.
"""

import functools
from collections import Counter, OrderedDict
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core import ClosedJaxpr, DebugInfo, DropVar, Jaxpr, JaxprEqn, Literal, Primitive, Var, jaxpr_as_fun
from jax.interpreters import ad, batching, mlir
from jaxtyping import PyTree

from regretless.errors import OracleError
from regretless.startup import compiler_options

INLINED = {"jit", "pjit", "closed_call", "core_call", "remat", "remat2", "checkpoint"}
DERIVED = {"custom_jvp_call", "custom_vjp_call", "custom_vjp_call_jaxpr"}
"""Primitives that call a function of their own: with a call of Python inside, it takes their place."""


MAX_PROGRAMS = 256
"""Forms of arguments that a function is kept compiled for."""


class BoundedDict(OrderedDict[Any, Any]):
    """A dictionary that drops its oldest entries beyond a number of them."""

    def __init__(self, limit: int = MAX_PROGRAMS):
        super().__init__()
        self.limit = limit

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        if len(self) > self.limit:
            self.popitem(last=False)


class HostFunction(Hashable, Protocol):
    """A Python function of rows: NumPy arrays with the same leading axis in, arrays with that axis out."""

    def __call__(self, *rows: Any) -> Any:
        """Return the results row by row."""

    def bound(self, host: Any) -> "HostFunction":
        """Return the function that calls ``host``, if it stands for something that the caller knows."""


_NAMES = DebugInfo("host_call", "host_call", None, None)

call_p = Primitive("host_call")
call_p.multiple_results = True


def host_call(function: HostFunction, result: PyTree, *rows: PyTree) -> Any:
    """Return ``function(*rows)``, at once or, in a traced function, when its ``HostProgram`` runs.

    Parameters
    ----------
    function : HostFunction
        Called with NumPy arrays; equal functions that are called at the same time are called once, with all rows.
    result : pytree of shapes and types
        What the function returns for one row.
    *rows : pytrees of arrays
        Arguments, with the same leading axis in every leaf.
    """
    leaves, structure = jax.tree.flatten(rows)
    forms, returned = jax.tree.flatten(result)
    kinds = tuple((tuple(form.shape), np.dtype(form.dtype)) for form in forms)
    call = Call(function, structure, returned, kinds)
    return jax.tree.unflatten(returned, call_p.bind(*(jnp.asarray(leaf) for leaf in leaves), call=call))


class RowFunction:
    """Base class of host functions that are written for one row and call what they were made with."""

    def bound(self, host: Any) -> "HostFunction":
        """Return the function itself."""
        return self

    def __call__(self, *arguments: Any) -> Any:
        leaves, structure = jax.tree.flatten(arguments)
        rows = zip(*map(np.array, leaves), strict=True)  # copies: a function may keep what it is given
        return np.stack([self.row(*jax.tree.unflatten(structure, row)) for row in rows])

    def row(self, *arguments: Any) -> Any:
        """Return the array of one row."""
        raise NotImplementedError

    def one(self, result: PyTree, *arguments: PyTree) -> Any:
        """Return ``host_call`` for one row."""
        rows = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], arguments)
        return jax.tree.map(lambda leaf: leaf[0], host_call(self, result, *rows))


class Call(NamedTuple):
    """What is called: a function, the form of its arguments and of its result."""

    function: HostFunction
    arguments: Any
    result: Any
    kinds: tuple[tuple[tuple[int, ...], np.dtype], ...]

    def run(self, leaves: Sequence[Any], host: Any = None) -> list[np.ndarray]:
        """Call the function and return the leaves of its result, in the promised types."""
        rows = jax.tree.unflatten(self.arguments, [np.asarray(leaf) for leaf in leaves])
        results = self.result.flatten_up_to(self.function.bound(host)(*rows))
        count = len(leaves[0])
        return [
            np.asarray(leaf, dtype).reshape(count, *shape)
            for leaf, (shape, dtype) in zip(results, self.kinds, strict=True)
        ]


def _abstract(*leaves: Any, call: Call) -> list[Any]:
    return [jax.core.ShapedArray((leaves[0].shape[0], *shape), dtype) for shape, dtype in call.kinds]


def _batched(leaves: Sequence[Any], axes: Sequence[Any], *, call: Call) -> tuple[list[Any], list[int]]:
    """Return the call with the rows of all replications."""
    size = next(leaf.shape[axis] for leaf, axis in zip(leaves, axes, strict=True) if axis is not None)
    moved = [
        jnp.broadcast_to(leaf, (size, *leaf.shape)) if axis is None else jnp.moveaxis(leaf, axis, 0)
        for leaf, axis in zip(leaves, axes, strict=True)
    ]
    results = call_p.bind(*(leaf.reshape(-1, *leaf.shape[2:]) for leaf in moved), call=call)
    return [leaf.reshape(size, -1, *leaf.shape[1:]) for leaf in results], [0] * len(results)


def _derived(leaves: Sequence[Any], tangents: Sequence[Any], *, call: Call) -> tuple[list[Any], list[Any]]:
    """Return the call and derivatives of zero: its results are constants."""
    results = call_p.bind(*leaves, call=call)
    return results, [ad.Zero(leaf.aval.to_tangent_aval()) for leaf in results]


def _refused(*_: Any, **__: Any) -> Any:
    raise OracleError(
        "a solver or another Python function on the host cannot run inside a program that JAX compiles as one; play "
        "the policy with simulate, run or a Learner, which compile what lies between the calls, or call it from Python"
    )


Request = tuple[Call, list[Any]]
"""A call with the leaves of its arguments."""

Running = Generator[list[Request], list[list[np.ndarray]], list[Any]]
"""A program that is running: it yields calls, receives their results, and returns results."""

call_p.def_impl(lambda *leaves, call: [jnp.asarray(leaf) for leaf in call.run(leaves)])
call_p.def_abstract_eval(_abstract)
batching.primitive_batchers[call_p] = _batched
ad.primitive_jvps[call_p] = _derived
mlir.register_lowering(call_p, _refused)


class HostProgram:
    """A traced function, compiled in the parts between its calls of Python.

    Parameters
    ----------
    function : callable
        What is traced; it returns a pytree of arrays.
    arguments : tuple of pytrees
        Arrays, or their shapes and types.
    options : dict, optional
        Options of the compiler.
    """

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], options: Any = None):
        closed, form = jax.make_jaxpr(function, return_shape=True)(*arguments)
        self.structure = jax.tree.structure(form)
        self.stages = Stages(_flat(closed), options)

    @property
    def calls_host(self) -> bool:
        """Whether there is any call of Python."""
        return bool(self.stages.calls)

    def compile(self) -> "HostProgram":
        """Compile all parts."""
        for segment in self.stages.all_segments():
            segment.compile()
        return self

    def __call__(self, host: Any, *arguments: Any) -> Any:
        """Return the function of arguments of the same form; ``host`` is what its calls may stand for."""
        return self.run_together(host, [arguments])[0]

    def run_together(self, host: Any, several: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Return the function of several arguments; calls that these make at the same time are one call."""
        runs = [self.stages.run(jax.tree.leaves(arguments)) for arguments in several]
        results: dict[int, Any] = {}
        answers: dict[int, Any] = dict.fromkeys(range(len(runs)))
        while answers:
            requests: dict[int, list[Request]] = {}
            for place, answer in answers.items():
                try:
                    requests[place] = runs[place].send(answer)
                except StopIteration as end:
                    results[place] = jax.tree.unflatten(self.structure, end.value)
            made = iter(_answer([request for several in requests.values() for request in several], host))
            answers = {place: [next(made) for _ in several] for place, several in requests.items()}
        return [results[place] for place in range(len(runs))]


def calls_host(function: Callable[..., Any], *arguments: Any) -> bool:
    """Return whether a function of these arguments, or of their shapes, calls Python."""
    return any(_asks(eqn) for eqn in jax.make_jaxpr(function)(*arguments).jaxpr.eqns)


class HostJit:
    """``jax.jit`` of a function that may call Python; see ``host_jit``.

    Another traced function calls ``function`` itself: options of the compiler are those of the outermost program.
    """

    def __init__(self, function: Callable[..., Any], statics: int):
        self.function, self.statics = function, statics
        self._programs = BoundedDict()
        functools.update_wrapper(self, function)

    @functools.cached_property
    def _jitted(self) -> Any:
        statics = tuple(range(self.statics))
        return jax.jit(self.function, static_argnums=statics, compiler_options=compiler_options())

    @property
    def compiled(self) -> int:
        """The number of programs that it has made."""
        return int(self._jitted._cache_size()) + sum(program is not None for program in self._programs.values())

    def __call__(self, host: Any, *arguments: Any) -> Any:
        if host is None:
            return self._jitted(*arguments)
        fixed, given = arguments[: self.statics], arguments[self.statics :]
        leaves, structure = jax.tree.flatten(given)
        forms = tuple((np.shape(leaf), getattr(leaf, "dtype", type(leaf))) for leaf in leaves)
        key = fixed, structure, forms, jax.config.read("jax_enable_x64")
        if key not in self._programs:
            traced = functools.partial(self.function, *fixed)
            self._programs[key] = HostProgram(traced, given, compiler_options()) if calls_host(traced, *given) else None
        program = self._programs[key]
        return self._jitted(*arguments) if program is None else program(host, *given)


def host_jit(function: Callable[..., Any], *, statics: int) -> HostJit:
    """Return ``jax.jit`` of a function that may call Python, with what its calls stand for as a new first argument.

    Parameters
    ----------
    function : callable
        What is compiled for every form of its arguments.
    statics : int
        How many of its first arguments are hashable choices.
    """
    return HostJit(function, statics)


class Segment:
    """Equations that are compiled as one program, as a function of the values of variables."""

    def __init__(self, function: Callable[..., Sequence[Any]], inputs: Sequence[Any], options: Any = None):
        self.function, self.inputs, self.options = function, inputs, options
        self.donated: tuple[int, ...] = ()
        self.program: Any = None

    def donate(self, places: Sequence[int]) -> "Segment":
        """Let these arguments give their memory to results of the same form."""
        results = jax.eval_shape(self.function, *self._forms())
        room = Counter((leaf.shape, leaf.dtype) for leaf in results)
        kept = []
        for place in places:
            form = self.inputs[place].aval.shape, self.inputs[place].aval.dtype
            if room[form] > 0:
                room[form] -= 1
                kept.append(place)
        self.donated = tuple(kept)
        return self

    def _forms(self) -> list[jax.ShapeDtypeStruct]:
        return [
            jax.ShapeDtypeStruct(var.aval.shape, var.aval.dtype, weak_type=getattr(var.aval, "weak_type", False))
            for var in self.inputs
        ]

    def compile(self) -> None:
        """Compile the program, once."""
        if self.program is None:
            traced = jax.jit(self.function, donate_argnums=self.donated, keep_unused=True)
            self.program = traced.lower(*self._forms()).compile(compiler_options=self.options)

    def __call__(self, values: Sequence[Any]) -> Sequence[Any]:
        self.compile()
        return self.program(*values)


class Stages:
    """A flat jaxpr, cut at its calls: segment, calls, segment, …, calls, segment."""

    def __init__(self, closed: ClosedJaxpr, options: Any = None):
        self.jaxpr, self.constants, self.options = closed.jaxpr, closed.consts, options
        self.equations, self.calls = _schedule(closed.jaxpr)
        self.hosts = [[_host_step(eqn, options) for eqn in level] for level in self.calls]

    @functools.cached_property
    def segments(self) -> list[tuple[Segment, list[Var]]]:
        """Each segment with the variables that it defines for others; made when the stages run by themselves."""
        made = []
        for place, equations in enumerate(self.equations):
            inputs, outputs = _used(equations), self.defined(place)
            made.append((Segment(self.part(place, inputs, outputs), inputs, self.options), outputs))
        return made

    def all_segments(self, alone: bool = True) -> Iterator[Segment]:
        """Yield the segments of this and of everything inside; a loop's first and last are part of its own."""
        for segment, _ in self.segments if alone else self.segments[1:-1]:
            yield segment
        for steps in self.hosts:
            for step in steps:
                yield from step.segments()

    def defined(self, place: int) -> list[Var]:
        """Return the variables that a segment defines for calls, later segments or the result."""
        later = [eqn for eqns in self.equations[place + 1 :] for eqn in eqns]
        later += [eqn for eqns in self.calls[place:] for eqn in eqns]
        wanted = {var for eqn in later for var in eqn.invars if isinstance(var, Var)}
        wanted |= {var for var in self.jaxpr.outvars if isinstance(var, Var)}
        return [var for eqn in self.equations[place] for var in eqn.outvars if var in wanted]

    def part(self, place: int, inputs: Sequence[Var], outputs: Sequence[Any]) -> Callable[..., Sequence[Any]]:
        """Return a segment as a function from ``inputs`` to ``outputs``."""
        equations = self.equations[place]

        def function(*values: Any) -> list[Any]:
            known = dict(zip(inputs, values, strict=True))
            _evaluate(equations, known)
            return [_read(known, atom) for atom in outputs]

        return function

    def run(self, values: Sequence[Any]) -> Running:
        """Run with these arguments: yield calls, receive their results; return the results."""
        known = dict(zip(self.jaxpr.constvars, self.constants, strict=True))
        known |= dict(zip(self.jaxpr.invars, values, strict=True))
        for place, (segment, outputs) in enumerate(self.segments):
            if outputs:
                results = segment([known[var] for var in segment.inputs])
                known |= zip(outputs, results, strict=True)
            if place < len(self.hosts):
                yield from self.run_host(place, known)
        return [
            np.asarray(atom.val, atom.aval.dtype) if isinstance(atom, Literal) else known[atom]  # type: ignore[attr-defined]
            for atom in self.jaxpr.outvars
        ]

    def run_host(self, place: int, known: dict[Any, Any]) -> Running:
        """Run the calls and loops after a segment."""
        steps = [step for step in self.hosts[place] if isinstance(step, CallStep)]
        if steps:
            results = yield [(step.call, [_read(known, atom) for atom in step.inputs]) for step in steps]
            for step, leaves in zip(steps, results, strict=True):
                known |= zip(step.outputs, leaves, strict=True)
        for other in self.hosts[place]:
            if not isinstance(other, CallStep):
                yield from other.run(known)
        return []


class CallStep:
    """One call of a Python function."""

    def __init__(self, equation: JaxprEqn):
        self.call: Call = equation.params["call"]
        self.inputs, self.outputs = equation.invars, equation.outvars

    def segments(self) -> Iterator[Segment]:
        """Nothing of it is compiled."""
        return iter(())


def _answer(requests: Sequence[Request], host: Any) -> list[list[np.ndarray]]:
    """Return the results of calls; equal functions are called once, with all rows."""
    rows = [[np.asarray(leaf) for leaf in leaves] for _, leaves in requests]
    results: list[list[np.ndarray]] = [[] for _ in requests]
    alike: dict[Any, list[int]] = {}
    for place, (call, _) in enumerate(requests):
        key = call, tuple((leaf.shape[1:], leaf.dtype) for leaf in rows[place])
        alike.setdefault(key, []).append(place)
    for (call, _), places in alike.items():
        joined = rows[places[0]]
        if len(places) > 1:
            joined = [np.concatenate(parts) for parts in zip(*(rows[place] for place in places), strict=True)]
        leaves = call.run(joined, host)
        ends = np.cumsum([len(rows[place][0]) for place in places])
        for place, end in zip(places, ends, strict=True):
            results[place] = [leaf[end - len(rows[place][0]) : end] for leaf in leaves]
    return results


class CondStep:
    """A ``cond`` whose branches call Python: the host chooses the branch."""

    def __init__(self, equation: JaxprEqn, options: Any):
        self.inputs, self.outputs = equation.invars, equation.outvars
        self.branches = [Stages(_flat(branch), options) for branch in equation.params["branches"]]

    def segments(self) -> Iterator[Segment]:
        """Yield the segments of all branches."""
        for branch in self.branches:
            yield from branch.all_segments()

    def run(self, known: dict[Any, Any]) -> Running:
        """Run one branch."""
        index, *values = [_read(known, atom) for atom in self.inputs]
        chosen = int(np.clip(np.asarray(index), 0, len(self.branches) - 1))
        known |= zip(self.outputs, (yield from self.branches[chosen].run(values)), strict=True)
        return []


class LoopStep:
    """A ``while_loop`` that calls Python: one program ends an iteration and begins the next, in the same memory."""

    def __init__(self, equation: JaxprEqn, options: Any):
        params = equation.params
        self.inputs, self.outputs = equation.invars, equation.outvars
        self.sizes = params["cond_nconsts"], params["body_nconsts"]
        self.body = Stages(_flat(params["body_jaxpr"]), options)
        self.options = options
        if any(_asks(eqn) for eqn in params["cond_jaxpr"].jaxpr.eqns):
            raise OracleError("the condition of a while_loop cannot call a solver or another Python function")
        self.condition = jaxpr_as_fun(params["cond_jaxpr"])
        body = self.body.jaxpr
        self.constants = body.invars[: self.sizes[1]]
        self.carried = body.invars[self.sizes[1] :]
        self.first = self.body.defined(0)
        last = len(self.body.hosts)
        self.condition_vars = params["cond_jaxpr"].jaxpr.invars[: self.sizes[0]]
        self.fixed = [*body.constvars, *self.constants]
        ending = [var for var in _used(self.body.equations[last]) if var not in set(self.fixed)]
        passed = [atom for atom in body.outvars if isinstance(atom, Var)]
        own = {var for eqn in self.body.equations[last] for var in eqn.outvars}
        self.ending = list(dict.fromkeys([*ending, *(v for v in passed if v not in own and v not in set(self.fixed))]))
        self.start = Segment(self._begin, [*self.condition_vars, *self.fixed, *self.carried], options)
        inputs = [*self.condition_vars, *self.fixed, *self.ending]
        rest = len(inputs) - len(self.ending)
        self.turn = Segment(self._turn, inputs, options).donate(range(rest, len(inputs)))

    def _begin(self, *values: Any) -> list[Any]:
        """Return whether to continue, the carried values, and what the first segment defines."""
        conditions, fixed, carried = self._split(values)
        known = dict(zip([*self.fixed, *self.carried], [*fixed, *carried], strict=True))
        _evaluate(self.body.equations[0], known)
        return [*self.condition(*conditions, *carried), *carried, *(known[var] for var in self.first)]

    def _turn(self, *values: Any) -> list[Any]:
        """End an iteration and begin the next."""
        conditions, fixed, ending = self._split(values)
        known = dict(zip([*self.fixed, *self.ending], [*fixed, *ending], strict=True))
        _evaluate(self.body.equations[len(self.body.hosts)], known)
        carried = [_read(known, atom) for atom in self.body.jaxpr.outvars]
        return self._begin(*conditions, *fixed, *carried)

    def _split(self, values: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any], Sequence[Any]]:
        first, second = self.sizes[0], self.sizes[0] + len(self.fixed)
        return values[:first], values[first:second], values[second:]

    def segments(self) -> Iterator[Segment]:
        """Yield the segments of the loop."""
        yield self.start
        yield self.turn
        yield from self.body.all_segments(alone=False)

    def run(self, known: dict[Any, Any]) -> Running:
        """Run the loop."""
        values = [_read(known, atom) for atom in self.inputs]
        first, second = self.sizes[0], sum(self.sizes)
        conditions, constants, carried = values[:first], values[first:second], values[second:]
        fixed = [*conditions, *self.body.constants, *constants]
        carried = [jnp.array(leaf, copy=True) for leaf in carried]  # the loop takes the memory of what it carries
        always = dict(zip(self.fixed, fixed[self.sizes[0] :], strict=True))
        names = [*self.carried, *self.first]
        flag, *values = self.start([*fixed, *carried])
        inner = self.body.segments[1:-1]
        while bool(np.asarray(flag)):
            now = {**always, **dict(zip(names, values, strict=True))}
            for place in range(len(self.body.hosts)):
                if place:
                    segment, outputs = inner[place - 1]
                    now |= zip(outputs, segment([now[var] for var in segment.inputs]), strict=True)
                yield from self.body.run_host(place, now)
            flag, *values = self.turn([*fixed, *(now[var] for var in self.ending)])
        known |= zip(self.outputs, values[: len(self.carried)], strict=True)
        return []


HostStep = CallStep | CondStep | LoopStep


def _host_step(equation: JaxprEqn, options: Any) -> HostStep:
    if equation.primitive is call_p:
        return CallStep(equation)
    return (CondStep if equation.primitive.name == "cond" else LoopStep)(equation, options)


def _schedule(jaxpr: Jaxpr) -> tuple[list[list[JaxprEqn]], list[list[JaxprEqn]]]:
    """Return the equations of each segment and the calls after it: each call as early, all else as late as possible."""
    needed = {var for var in jaxpr.outvars if isinstance(var, Var)}
    kept: list[JaxprEqn] = []
    for eqn in reversed(jaxpr.eqns):
        if eqn.effects or any(var in needed for var in eqn.outvars):
            kept.append(eqn)
            needed |= {var for var in eqn.invars if isinstance(var, Var)}
    early: dict[Var, int] = {}
    level: dict[int, int] = {}
    for eqn in reversed(kept):
        level[id(eqn)] = max((early.get(var, 0) for var in eqn.invars if isinstance(var, Var)), default=0)
        early |= dict.fromkeys(eqn.outvars, level[id(eqn)] + _asks(eqn))
    count = max((level[id(eqn)] + 1 for eqn in kept if _asks(eqn)), default=0)
    late: dict[Var, int] = {}
    segments: list[list[JaxprEqn]] = [[] for _ in range(count + 1)]
    calls: list[list[JaxprEqn]] = [[] for _ in range(count)]
    for eqn in kept:  # from the last to the first
        place = level[id(eqn)]
        if not _asks(eqn):
            place = max(place, min((late.get(var, count) for var in eqn.outvars), default=count))
            if eqn.effects:
                place = level[id(eqn)]
        (calls if _asks(eqn) else segments)[place].append(eqn)
        for var in eqn.invars:
            if isinstance(var, Var):
                late[var] = min(late.get(var, count), place)
    return [eqns[::-1] for eqns in segments], [eqns[::-1] for eqns in calls]


def _evaluate(equations: Sequence[JaxprEqn], known: dict[Any, Any]) -> None:
    """Add the results of equations to the known values."""
    inputs = _used(equations)
    defined = [var for eqn in equations for var in eqn.outvars if not isinstance(var, DropVar)]
    function = jaxpr_as_fun(ClosedJaxpr(Jaxpr([], inputs, defined, list(equations), debug_info=_NAMES), []))
    known |= zip(defined, function(*(known[var] for var in inputs)), strict=True)


def _used(equations: Sequence[JaxprEqn]) -> list[Var]:
    """Return the variables that equations need from outside."""
    own = {var for eqn in equations for var in eqn.outvars}
    used = [var for eqn in equations for var in eqn.invars if isinstance(var, Var)]
    return [var for var in dict.fromkeys(used) if var not in own]


def _read(known: dict[Any, Any], atom: Any) -> Any:
    return atom.val if isinstance(atom, Literal) else known[atom]


def _asks(eqn: JaxprEqn) -> bool:
    """Return whether an equation calls Python, by itself or somewhere inside."""
    if eqn.primitive is call_p:
        return True
    return any(_asks(inner) for sub in _inside(eqn) for inner in sub.jaxpr.eqns)


def _inside(eqn: JaxprEqn) -> Iterator[ClosedJaxpr]:
    """Yield the functions that an equation calls, with their constants."""
    for value in eqn.params.values():
        for part in value if isinstance(value, tuple | list) else [value]:
            if isinstance(part, ClosedJaxpr | Jaxpr):
                yield part if isinstance(part, ClosedJaxpr) else ClosedJaxpr(part, [])


def _flat(closed: ClosedJaxpr) -> ClosedJaxpr:
    """Return a function in which every call of Python is an equation of its own, or inside a ``while`` or ``cond``."""
    if not any(_asks(eqn) and eqn.primitive is not call_p for eqn in closed.jaxpr.eqns):
        return closed
    forms = [jax.ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type) for aval in closed.in_avals]
    return jax.make_jaxpr(lambda *values: _inlined(closed.jaxpr, closed.consts, values))(*forms)


def _inlined(jaxpr: Jaxpr, constants: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Evaluate a function; what calls Python inside another function is evaluated in its place."""
    known = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *values], strict=True))
    for eqn in jaxpr.eqns:
        name = eqn.primitive.name
        if eqn.primitive is call_p or name in ("while", "cond") or not _asks(eqn):
            _evaluate([eqn], known)
            continue
        arguments = [_read(known, atom) for atom in eqn.invars]
        if name in INLINED or name in DERIVED:
            inner = next(_inside(eqn))
            results = _inlined(inner.jaxpr, inner.consts, arguments)
        elif name == "scan":
            results = _looped(eqn, arguments)
        else:
            raise OracleError(f"a solver or another Python function on the host cannot be called inside {name}")
        known |= zip(eqn.outvars, results, strict=True)
    return [_read(known, atom) for atom in jaxpr.outvars]


def _looped(eqn: JaxprEqn, arguments: Sequence[Any]) -> list[Any]:
    """Return a ``scan`` as a ``while_loop``."""
    params, step = eqn.params, jaxpr_as_fun(eqn.params["jaxpr"])
    consts, carry = params["num_consts"], params["num_carry"]
    fixed, first, xs = arguments[:consts], arguments[consts : consts + carry], arguments[consts + carry :]
    ys = [jnp.zeros(var.aval.shape, var.aval.dtype) for var in eqn.outvars[carry:]]  # type: ignore[attr-defined]

    def body(state: Any) -> Any:
        i, values, kept = state
        place = params["length"] - 1 - i if params["reverse"] else i
        results = step(*fixed, *values, *(x[place] for x in xs))
        return i + 1, results[:carry], [y.at[place].set(r) for y, r in zip(kept, results[carry:], strict=True)]

    count = params["length"]
    _, last, kept = jax.lax.while_loop(lambda state: state[0] < count, body, (jnp.int32(0), list(first), ys))
    return [*last, *kept]
