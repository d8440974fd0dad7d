"""What a live learner hands out."""

from typing import Any, Literal, NamedTuple, Self

import numpy as np

from regretless.columns import Columns
from regretless.errors import SettingsError
from regretless.live import cards


class Choice(NamedTuple):
    """What to do, with the id that its feedback is reported against."""

    id: int
    w: np.ndarray
    cost_sample: np.ndarray  # ĉ, the cost vector that was solved, in your units; zeros for a person's decision
    log_density: float | None  # log p_θ(ĉ|x) in the policy's units, if its model has one
    aux: Any
    context: Any  # numbers; by name, if the learner has columns
    instance: Any
    explored: bool  # whether ĉ was drawn; False for the greedy decision
    fallback: bool = False  # whether the solver failed and this is the last decision that was feasible
    by: Literal["learner", "incumbent", "person"] = "learner"  # who decided
    proposed: np.ndarray | None = None  # what the learner would have done where it is the incumbent's, if it was solved

    def __str__(self) -> str:
        return cards.text_card(*cards.describe_choice(self))

    def _repr_html_(self) -> str:
        return cards.html_lines(*cards.describe_choice(self))

    def named(self, columns: Columns | None) -> Self:
        """The same with its context by name, where there are names."""
        return self if columns is None else self._replace(context=columns.decode(self.context))

    def unnamed(self, columns: Columns | None, shape: tuple[int, ...]) -> Self:
        """The same with its context as numbers."""
        if columns is None:
            return self
        try:
            return self._replace(context=columns.contexts(self.context, shape)[0][0])
        except SettingsError as error:
            raise SettingsError(f"learner: expected a Choice of this learner, got one of another ({error})") from None

    @classmethod
    def of(
        cls, decision: Any, explored: bool, fallback: bool, sign: float,
        by: Literal["learner", "incumbent", "person"] = "learner", proposed: np.ndarray | None = None,
    ) -> "Choice":  # fmt: skip
        """A decision as it is handed out; costs times ``sign`` are in the user's units."""
        made = vars(decision)  # reading the fields of a module one by one takes a while
        cost = made["cost_sample"] if sign > 0 else -made["cost_sample"]
        return cls(
            int(made["id"]), made["w"], cost, known_number(made["log_density"]), made["aux"], made["context"],
            made["instance"], explored, fallback, by, proposed,
        )  # fmt: skip


class Receipt(NamedTuple):
    """What became of a piece of feedback."""

    id: int
    new: bool  # False: this very feedback was told before, and nothing changed
    complete: bool  # whether the total is known
    residual: float | None  # total minus prediction, before learning from it, in your units
    message: str


class Explanation(NamedTuple):
    """Why a decision is what it is, by what the learner knows now; costs in your units."""

    mean: np.ndarray  # predicted cost
    cost_sample: np.ndarray  # the drawn one that was solved
    greedy: np.ndarray  # the decision that the mean leads to
    differs: int  # in how many coordinates this decision is another
    gap: float  # how much worse it is than the greedy one, if the mean is right
    details: dict[str, float]  # what the policy tells of itself, such as α
    residual: float | None  # of this decision's feedback, once it was learnt
    context: Any  # in which it was made; by name, if the learner has columns

    def __str__(self) -> str:
        return cards.text_card(*cards.describe_explanation(self))

    def _repr_html_(self) -> str:
        return cards.html_lines(*cards.describe_explanation(self))


def known_number(value: Any) -> float | None:
    """A number, None for NaN."""
    return float(value) if np.isfinite(value) else None
