"""What a live learner returns: choices, receipts and explanations, with forms to read in a terminal or a notebook."""

import dataclasses
from typing import Any, Literal

import numpy as np

from regretless.live import cards

By = Literal["learner", "incumbent", "person"]


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Choice:
    """A decision, with the id that its feedback is reported with.

    Parameters
    ----------
    id : int
        The learner's number of the decision.
    w : array of shape (d,)
        What to do.
    by : {"learner", "incumbent", "person"}
        Who decided.
    explored : bool
        Whether ``cost_sample`` was drawn; False for the greedy decision.
    cost_sample : array of shape (d,)
        The costs that were solved, in the user's units; zeros for a decision of the incumbent or a person.
    log_density : float or None
        The logarithm of the density of ``cost_sample``, in the policy's units, if its model has one; for a decision of
        the incumbent that of the probability with which the incumbent decided.
    context : array or mapping
        The context: numbers, or by name if the problem has columns.
    instance : pytree or None
        What changed in the feasible set.
    aux : pytree or None
        What the oracle returns next to ``w``.
    fallback : bool
        Whether the solver failed and this is the last feasible decision again.
    proposed : array of shape (d,) or None
        What the learner would have done if the incumbent decided, if that was solved.
    key : str or None
        The caller's identifier.
    """

    id: int
    w: np.ndarray
    by: By
    explored: bool
    cost_sample: np.ndarray
    log_density: float | None
    context: Any
    instance: Any
    aux: Any
    fallback: bool = False
    proposed: np.ndarray | None = None
    key: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        return cards.text_card(*cards.describe_choice(self))


@dataclasses.dataclass(frozen=True)
class Receipt:
    """What became of a piece of feedback.

    Parameters
    ----------
    id : int
        The decision.
    new : bool
        False if this very feedback was reported before, so that nothing changed.
    complete : bool
        Whether the total is known.
    residual : float or None
        Total minus its prediction before learning from it, in the user's units; None if the total is not known.
    message : str
        The same as a sentence.
    """

    id: int
    new: bool
    complete: bool
    residual: float | None
    message: str


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a decision is what it is, by what the learner knows now; costs are in the user's units.

    Parameters
    ----------
    mean : array of shape (d,)
        The predicted costs.
    cost_sample : array of shape (d,)
        The costs that were solved.
    greedy : array of shape (d,)
        The decision that the predicted costs lead to.
    differs : int
        In how many coordinates the decision differs from it.
    gap : float
        How much more the decision costs than the greedy one if the prediction is right.
    details : dict of str to float
        Numbers that the policy shows of its state.
    residual : float or None
        Total minus prediction, once the decision's feedback was learned.
    context : array or mapping
        The context of the decision; by name if the problem has columns.
    """

    mean: np.ndarray
    cost_sample: np.ndarray
    greedy: np.ndarray
    differs: int
    gap: float
    details: dict[str, float]
    residual: float | None
    context: Any

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write."""
        return {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        return cards.text_card(*cards.describe_explanation(self))


def _plain(value: Any) -> Any:
    """Return arrays as lists and numbers of NumPy as Python's; what is not finite as None."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value
