"""Helpers of the contract checks: sentences for what is wrong, forms of trees, hyper-parameters as array leaves."""

import contextlib
import json
from collections.abc import Callable, Collection, Iterator
from functools import partial
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import SettingsError
from regretless.host_calls import host_jit
from regretless.spec import Spec


class Checker:
    """Raise AssertionError with the name of a part and a sentence unless something holds."""

    def __init__(self, part: str):
        self.part = part

    def __call__(self, holds: Any, sentence: str) -> None:
        """Raise unless ``holds`` is true, of an array in every entry."""
        if not (np.all(holds) if hasattr(holds, "shape") else holds):
            self.fail(sentence)

    def finite(self, tree: Any, sentence: str) -> None:
        """Raise with the sentence unless every floating-point number of a tree is finite."""
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if not _is_key(leaf)]
        self(all(np.all(np.isfinite(array)) for array in arrays if np.issubdtype(array.dtype, np.floating)), sentence)

    def equal(self, one: Any, other: Any, sentence: str) -> None:
        """Raise with the sentence unless two trees of one structure hold the same numbers, NaN included."""
        self.close(one, other, sentence, 0.0, 0.0)

    def close(
        self, one: Any, other: Any, sentence: str, rtol: float = 1e-6, atol: float = 1e-8, share: float = 1.0
    ) -> None:
        """Raise with the sentence unless a share of the numbers in each leaf of two trees agrees, NaN included."""
        pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
        agree = [np.isclose(a, b, rtol, atol, equal_nan=True) for a, b in pairs if not _is_key(a)]
        self(all(np.mean(same) >= share for same in agree if same.size), sentence)

    def cost(self, name: str, array: Any, dim: int) -> None:
        """Raise unless an array is a finite cost vector."""
        shape = np.shape(array)
        self(shape == (dim,), f"{name} must be a finite cost of shape ({dim},), got {shape}")
        self.finite(array, f"{name} must be a finite cost, got {array}")

    def shape(self, name: str, array: Any, expected: tuple[int, ...], hint: str = "") -> None:
        """Raise unless an array has the expected shape; the hint says what to do then."""
        self(np.shape(array) == expected, f"expected {name} of shape {expected}, got {np.shape(array)}{hint}")

    def rows(self, sentence: str, array: Any, dim: int) -> None:
        """Raise with the sentence unless an array has the shape ``[n, dim]``, where ``n`` may be 0."""
        shape = np.shape(array)
        self(len(shape) == 2 and shape[1] == dim, f"{sentence} [n, {dim}], got shape {shape}; n may be 0")

    def is_json(self, data: Any, sentence: str) -> None:
        """Raise with the sentence unless ``data`` can be written as JSON."""
        try:
            json.dumps(data, allow_nan=False)
        except (TypeError, ValueError) as error:
            self.fail(f"{sentence} ({error})")

    @contextlib.contextmanager
    def raises(self, error: type[Exception], sentence: str) -> Iterator[None]:
        """Raise with the sentence unless the block raises ``error``."""
        with contextlib.suppress(error):
            yield
            self.fail(sentence)

    def same_form(self, got: Any, expected: Any, sentence: str) -> None:
        """Raise with the sentence and the difference unless two trees have the same form."""
        difference = form_difference(got, expected)
        self(not difference, f"{sentence}, but {difference}")

    def fail(self, sentence: str) -> NoReturn:
        """Raise with the sentence."""
        raise AssertionError(f"{self.part}: {sentence}") from None


def compiled(part: Any, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a part as a program, or as several if the part calls Python."""
    return partial(
        host_jit(function, statics=0), part if getattr(part, "on_host", getattr(part, "calls_python", False)) else None
    )


def name_of(part: Any) -> str:
    """Return what a part is called in a sentence."""
    return getattr(part, "__name__", None) or type(part).__name__


def instantiate(part: Any, family: type[Spec]) -> tuple[Any, Callable[..., Any]]:
    """Return a specification (or what was given instead of one) and the function that builds the part."""
    spec = part() if isinstance(part, type) and issubclass(part, family) else part
    return spec, getattr(spec, "build") if isinstance(spec, family) else part  # noqa: B009 -- families build differently


def form_difference(got: Any, expected: Any) -> str:
    """Return how the structure, shapes or types of two trees differ, or an empty string.

    >>> form_difference({"a": np.zeros(2)}, {"a": np.zeros(3)})
    "['a'] has shape (2,) instead of (3,)"
    """
    flatten: Any = jax.tree_util.tree_flatten_with_path
    (leaves, structure), (others, expected_structure) = flatten(got), flatten(expected)
    forms, expected_forms = (
        {jax.tree_util.keystr(path) or "it": (np.shape(leaf), _type_name(leaf)) for path, leaf in part}
        for part in (leaves, others)
    )
    if structure != expected_structure:
        extra, missing = sorted(forms.keys() - expected_forms.keys()), sorted(expected_forms.keys() - forms.keys())
        sentences = [f"it has {', '.join(extra)}, which is not expected"] if extra else []
        sentences += [f"it lacks {', '.join(missing)}"] if missing else []
        return " and ".join(sentences) or f"its structure is {structure} instead of {expected_structure}"
    for place, form in forms.items():
        for name, found, wanted in zip(("shape", "type"), form, expected_forms[place], strict=True):
            if found != wanted:
                return f"{place} has {name} {found} instead of {wanted}"
    return ""


def copy_tree(tree: Any) -> Any:
    """Return copies on the host, to see later whether something was changed in place."""
    return jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.array(leaf), tree)


def check_hyperparameters(
    check: Checker, spec: Spec, build: Callable[[Any], Any], unused: Collection[str] = ()
) -> None:
    """Check that every float of a specification is an array leaf of what it builds, so that a sweep is one program.

    ``unused`` names settings that have no effect here.
    """
    flatten: Any = jax.tree.flatten
    leaves, structure = flatten(build(spec))
    for name, value in spec.names().items():
        if not isinstance(value, float):
            continue
        other = _with_another_value(spec, name, value)
        other_leaves, other_structure = flatten(build(other))
        change = f"changing the setting {name!r} from {value} to {other.names()[name]} changes"
        advice = "keep it as an array leaf (Spec.hyperparameters), not as a static field or a Python float"
        check(structure == other_structure, f"{change} what would be compiled; {advice}")
        if name not in unused:
            same = all(np.array_equal(a, b) for a, b in zip(leaves, other_leaves, strict=True))
            check(not same, f"{change} nothing; use it, or name it in unused")


def _with_another_value(spec: Spec, name: str, value: float) -> Spec:
    for candidate in (0.9 * value, 1.1 * value, value + 0.01, value - 0.01, 0.5):
        try:
            if candidate != value:
                return spec.replace(**{name: candidate})
        except SettingsError:
            continue
    raise AssertionError(f"setting {name!r}: no other value near {value} is allowed; is it a setting at all?")


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _type_name(leaf: Any) -> str:
    return str(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf).__name__
