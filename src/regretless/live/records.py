"""What a live learner returns: choices, receipts and explanations, with forms to read in a terminal or a notebook."""

import dataclasses
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from regretless.formatting import format_amount, format_vector, shorten

MAX_CARD_TEXT = 300
"""Characters of one line of a card; longer ones are cut."""

By = Literal["learner", "incumbent", "person"]


@dataclasses.dataclass(eq=False, repr=False)  # not frozen: that takes three times as long
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
    log_probability : float or None
        The logarithm of the probability with which this decision was made, if the policy knows it; 0 if nothing was
        random.
    context : array or mapping
        The context: numbers, or by name if the problem has columns.
    instance : pytree or None
        What changed in the feasible set.
    aux : pytree or None
        What the oracle returns next to ``w``.
    fallback : bool
        Whether the solver failed, and this is the last feasible decision again or the incumbent's.
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
    log_probability: float | None
    context: Any
    instance: Any
    aux: Any
    fallback: bool = False
    proposed: np.ndarray | None = None
    key: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write."""
        return {field.name: plain_data(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        chosen = np.flatnonzero(np.asarray(self.w))
        notes = ", exploring" * self.explored
        if self.fallback:
            notes += ", because the solver failed" if self.by == "incumbent" else ", repeated because the solver failed"
        lines = [
            f"decision: {format_vector(self.w)}",
            f"not zero: {len(chosen)} of {np.size(self.w)} coordinates ({format_vector(chosen)})",
            f"decided by the {self.by}{notes}, for context {format_context(self.context)}",
            *([f"costs that were solved: {format_vector(self.cost_sample)}"] if self.by == "learner" else []),
            f"report its cost with learn({self.id}, …)",
        ]
        return text_card(f"Choice {self.id}", lines)


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
    guard : str or None
        What the guard does now, why, and what would open it; None without an incumbent.
    """

    mean: np.ndarray
    cost_sample: np.ndarray
    greedy: np.ndarray
    differs: int
    gap: float
    details: dict[str, float]
    residual: float | None
    context: Any
    guard: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return everything as plain data that JSON can write."""
        return {field.name: plain_data(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __repr__(self) -> str:
        solved = format_vector(self.cost_sample) if np.any(self.cost_sample) else "none, the policy did not decide"
        reason = "is the best one for the predicted costs"
        if self.differs:
            less = f"which has {format_amount(self.gap)} less of them"
            reason = f"differs in {self.differs} coordinates from the best one for the predicted costs, {less}"
        lines = [
            f"The decision {reason}",
            f"context: {format_context(self.context)}",
            f"predicted costs: {format_vector(self.mean)}",
            f"costs that were solved: {solved}",
        ]
        if self.residual is not None:
            lines.append(f"prediction error of its total: {self.residual:+.3g}")
        if self.guard is not None:
            lines.append(self.guard)
        if self.details:
            figures = ", ".join(f"{name} {format_amount(value)}" for name, value in self.details.items())
            lines.append(f"figures of the policy: {figures}")
        return text_card("Explanation", lines)


def plain_data(value: Any) -> Any:
    """Return arrays as lists, NamedTuples as dictionaries, numbers of NumPy as Python's; what is not finite as None."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {str(name): plain_data(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain_data(part) for part in value]
    if hasattr(value, "tolist"):
        return plain_data(value.tolist())
    return None if isinstance(value, float) and not np.isfinite(value) else value


def text_card(title: str, lines: Iterable[str]) -> str:
    """Return a title and indented lines.

    >>> print(text_card("Health after 3 decisions", ["too early to tell"]))
    Health after 3 decisions
      too early to tell
    """
    return "\n".join([shorten(title, MAX_CARD_TEXT), *(f"  {shorten(line, MAX_CARD_TEXT)}" for line in lines)])


def percent(share: float) -> str:
    """Return a share in per cent, with a decimal if it is small.

    >>> percent(0.42), percent(0.023)
    ('42%', '2.3%')
    """
    return f"{share:.0%}" if share >= 0.095 or share == 0.0 else f"{share:.1%}"


def format_context(context: Any) -> str:
    """Return a context, by name or as numbers, on one line."""
    if isinstance(context, dict):
        return ", ".join(f"{name}={value!r}" for name, value in context.items())
    return str(context) if isinstance(context, list) else format_vector(context)
