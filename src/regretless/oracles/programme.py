"""A mixed-integer programme as arrays: checked, and with a fingerprint."""

import hashlib
from typing import Any, NamedTuple

import numpy as np

from regretless.errors import SettingsError
from regretless.oracles import inputs


class Programme(NamedTuple):
    """``A_ub w ≤ b_ub``, ``A_eq w = b_eq``, ``lower ≤ w ≤ upper``, and ``w_i`` an integer where ``integer_i``."""

    a_ub: np.ndarray  # [m, d]
    b_ub: np.ndarray
    a_eq: np.ndarray  # [e, d]
    b_eq: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    integer: np.ndarray  # bool

    @property
    def dim(self) -> int:
        """How many variables."""
        return len(self.lower)

    def digest(self) -> str:
        """SHA-256 of the numbers, whatever types they were given in."""
        whole = hashlib.sha256()
        for name, part in zip(self._fields, self, strict=True):
            numbers = np.ascontiguousarray(part, "<f8") + 0.0  # −0 and 0 are the same number
            whole.update(f"{name}{numbers.shape}".encode() + numbers.tobytes())
        return whole.hexdigest()


def programme(A_ub: Any, b_ub: Any, A_eq: Any, b_eq: Any, bounds: Any, integrality: Any) -> Programme:
    """The programme in full arrays of its own; refuses shapes that do not fit together and what is not a number."""
    given = {"A_ub": A_ub, "b_ub": b_ub, "A_eq": A_eq, "b_eq": b_eq, "integrality": integrality}
    arrays = {name: None if part is None else _numbers(name, part) for name, part in given.items()}
    if not isinstance(bounds, tuple) or len(bounds) != 2:
        raise SettingsError(f"milp: expected bounds to be a pair (low, high) of numbers or arrays, got {bounds!r}")
    arrays["low"], arrays["high"] = _numbers("low", bounds[0]), _numbers("high", bounds[1])
    sizes = {part.shape[-1] for name, part in arrays.items() if part is not None and part.ndim and name[0] != "b"}
    if len(sizes) != 1:
        shapes = {name: part.shape for name, part in arrays.items() if part is not None}
        raise SettingsError(f"milp: expected one number of columns throughout, got shapes {shapes}")
    dim = sizes.pop()
    a_ub, right_ub = _rows("ub", arrays["A_ub"], arrays["b_ub"], dim)
    a_eq, right_eq = _rows("eq", arrays["A_eq"], arrays["b_eq"], dim)
    lower, upper, integer = (_vector(name, arrays[name], dim) for name in ("low", "high", "integrality"))
    if not set(np.unique(integer)) <= {0.0, 1.0}:
        raise SettingsError(f"milp: expected integrality 0 or 1, got {np.unique(integer).tolist()}")
    if np.any(lower > upper):
        i = int(np.argmax(lower > upper))
        raise SettingsError(f"milp: expected low ≤ high, but component {i} has {lower[i]} and {upper[i]}")
    if np.any(np.isinf(a_ub)) or np.any(np.isinf(a_eq)) or np.any(np.isinf(right_eq)):
        raise SettingsError("milp: expected finite numbers in A_ub, A_eq and b_eq, got infinite ones")
    return Programme(a_ub, right_ub, a_eq, right_eq, lower, upper, integer.astype(bool))


def _numbers(name: str, part: Any) -> np.ndarray:
    dense = part.toarray() if hasattr(part, "toarray") else part
    array = inputs.numbers(f"milp: {name}", dense).astype(np.float64)
    if np.any(np.isnan(array)):
        raise SettingsError(f"milp: expected numbers in {name}, got NaN")
    return array


def _rows(kind: str, matrix: np.ndarray | None, right: np.ndarray | None, dim: int) -> tuple[np.ndarray, np.ndarray]:
    if matrix is None and right is None:
        return np.zeros((0, dim)), np.zeros(0)
    if matrix is None or right is None or matrix.ndim != 2 or right.shape != (len(matrix),):
        got = [None if part is None else part.shape for part in (matrix, right)]
        raise SettingsError(f"milp: expected A_{kind} of shape (rows, {dim}) and b_{kind} of shape (rows,), got {got}")
    return matrix, right


def _vector(name: str, part: np.ndarray | None, dim: int) -> np.ndarray:
    assert part is not None
    if part.shape not in ((), (dim,)):
        raise SettingsError(f"milp: expected {name} to be a number or of shape ({dim},), got {part.shape}")
    return np.broadcast_to(part, (dim,)).copy()
