"""What the checks share: a sentence for what is wrong, forms of trees, and numbers that must be array leaves."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from regretless.errors import SettingsError
from regretless.spec import Spec


def require(holds: Any, sentence: str) -> None:
    """Raises AssertionError with the sentence unless ``holds`` is true, of an array in every entry."""
    if not (np.all(holds) if hasattr(holds, "shape") else holds):
        raise AssertionError(sentence)


def name_of(part: Any) -> str:
    """What a part is called in a sentence."""
    return getattr(part, "__name__", None) or type(part).__name__


def form_difference(got: Any, expected: Any) -> str:
    """In what the structure, shapes or types of two trees differ, in words; empty if in nothing.

    >>> form_difference({"a": np.zeros(2)}, {"a": np.zeros(3)})
    "['a'] has shape (2,) instead of (3,)"
    """
    ours: Any
    theirs: Any
    ours, theirs = (jax.tree_util.tree_flatten_with_path(tree) for tree in (got, expected))
    if ours[1] != theirs[1]:
        mine, other = ({jax.tree_util.keystr(path) for path, _ in leaves} for leaves, _ in (ours, theirs))
        extra, lacking = sorted(mine - other), sorted(other - mine)
        if not extra and not lacking:
            return f"its structure is {ours[1]} instead of {theirs[1]}"
        said = [f"it has {', '.join(extra)} beside what is expected"] if extra else []
        return " and ".join([*said, *([f"it lacks {', '.join(lacking)}"] if lacking else [])])
    for (path, leaf), (_, other) in zip(ours[0], theirs[0], strict=True):
        place = jax.tree_util.keystr(path) or "it"
        if np.shape(leaf) != np.shape(other):
            return f"{place} has shape {np.shape(leaf)} instead of {np.shape(other)}"
        if _kind(leaf) != _kind(other):
            return f"{place} has type {_kind(leaf)} instead of {_kind(other)}"
    return ""


def _kind(leaf: Any) -> str:
    return str(leaf.dtype) if hasattr(leaf, "dtype") else type(leaf).__name__


def finite(tree: Any) -> bool:
    """Whether every floating-point number of a tree is finite."""
    arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if not _is_key(leaf)]
    return all(bool(np.all(np.isfinite(array))) for array in arrays if np.issubdtype(array.dtype, np.floating))


def equal(one: Any, other: Any) -> bool:
    """Whether two trees of one structure hold the same numbers, NaN included."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=_is_float(a)) for a, b in pairs if not _is_key(a))


def close(one: Any, other: Any, rtol: float = 1e-6, atol: float = 1e-8) -> bool:
    """Whether two trees of one structure hold nearly the same numbers, NaN included."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.allclose(a, b, rtol, atol, equal_nan=True) for a, b in pairs if not _is_key(a))


def nearly(one: Any, other: Any) -> bool:
    """``close`` but for one number in fifty: a step of Adam can turn with the rounding of a gradient that is almost zero."""
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.mean(np.isclose(a, b, 1e-4, 1e-6, equal_nan=True)) >= 0.98 for a, b in pairs if not _is_key(a))


def _is_key(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _is_float(leaf: Any) -> bool:
    return np.issubdtype(np.asarray(leaf).dtype, np.floating)


def copied(tree: Any) -> Any:
    """A tree of copies on the host, to see later whether something was changed in place."""
    return jax.tree.map(lambda leaf: leaf if _is_key(leaf) else np.array(leaf), tree)


def check_numbers(who: str, settings: Spec, build: Callable[[Any], Any], idle: dict[str, str] | None = None) -> None:
    """Every setting that is a float must be an array leaf of what is built, so that a sweep over it is one program.

    ``idle`` names settings that have no effect here (a name that ends in ``.``: a whole part).
    """
    unused = tuple(idle or {})
    before = build(settings)
    form: Any
    structure: Any
    leaves, structure = jax.tree.flatten(before)
    for name, value in settings.names().items():
        if not isinstance(value, float):
            continue
        other = _another(settings, name, value)
        changed, form = jax.tree.flatten(build(other))
        require(
            form == structure,
            f"{who}: changing the setting {name!r} from {value} to {other.names()[name]} changes what would be compiled; keep "
            "it as an array leaf (regretless.spec.number, or Spec.hyperparameters), not as a static field or a Python float",
        )
        if not any(name == each or (each.endswith(".") and name.startswith(each)) for each in unused):
            require(
                not all(np.array_equal(a, b) for a, b in zip(leaves, changed, strict=True)),
                f"{who}: changing the setting {name!r} from {value} to {other.names()[name]} changes nothing; use it, or name "
                "it in unused",
            )


def _another(settings: Spec, name: str, value: float) -> Spec:
    """The settings with another value in this place, one that is allowed."""
    for candidate in (0.9 * value, 1.1 * value, value + 0.01, value - 0.01, 0.5):
        try:
            if candidate != value:
                return settings.replace(**{name: candidate})
        except SettingsError:
            continue
    raise AssertionError(f"setting {name!r}: no other value near {value} is allowed; is it a setting at all?")
