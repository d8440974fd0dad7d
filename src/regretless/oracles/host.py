"""Calls from a compiled program to the host: once per batch, with exact 64-bit numbers and a place for what went wrong."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array


class Failure:
    """Where the host leaves the error that a compiled program cannot carry; the latest one, until it is taken."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    def put(self, error: Exception) -> None:
        """Keeps ``error``."""
        self.error = error

    def take(self) -> Exception | None:
        """The error, which is then forgotten."""
        error, self.error = self.error, None
        return error


def call(
    fn: Callable[..., Sequence[np.ndarray]], results: Sequence[jax.ShapeDtypeStruct], *arrays: Array
) -> list[Array]:
    """``fn(*arrays)`` on the host, NumPy in and out; under ``vmap`` one call with more leading axes on every array.

    ``results`` are shapes and types of what ``fn`` returns for arrays that are not batched further.
    """
    given = [jnp.asarray(array) for array in arrays]
    kinds = tuple(array.dtype for array in given)
    answers = jax.pure_callback(
        lambda *words: [_as_words(answer) for answer in fn(*_from_words(words, kinds))],
        [_word_shape(result) for result in results],
        *map(_to_words, given),
        vmap_method="broadcast_all",
    )
    return [_to_numbers(*pair) for pair in zip(answers, results, strict=True)]


# A callback runs in a thread of its own, where JAX knows nothing of the calling program's float64 mode and would cut numbers
# down to float32. So 64-bit numbers travel as pairs of 32-bit words.


def _to_words(leaf: Array) -> Array:
    return jax.lax.bitcast_convert_type(leaf, jnp.uint32) if leaf.dtype.itemsize == 8 else leaf


def _to_numbers(leaf: Array, wanted: jax.ShapeDtypeStruct) -> Array:
    return jax.lax.bitcast_convert_type(leaf, wanted.dtype) if wanted.dtype.itemsize == 8 else leaf


def _word_shape(wanted: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((*wanted.shape, 2), np.uint32) if wanted.dtype.itemsize == 8 else wanted


def _from_words(words: tuple[Any, ...], kinds: tuple[Any, ...]) -> list[np.ndarray]:
    return [
        np.ascontiguousarray(leaf).view(kind)[..., 0] if kind.itemsize == 8 else np.asarray(leaf)
        for leaf, kind in zip(words, kinds, strict=True)
    ]


def _as_words(answer: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(answer)[..., None].view(np.uint32) if answer.dtype.itemsize == 8 else answer
