"""The parts of a live learner that its calls share: programs, books, turns, log and clock."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from regretless.errors import SettingsError
from regretless.live.arrivals import Arrival, RawFeedback
from regretless.live.assembly import Plan
from regretless.live.books import Books
from regretless.live.framing import Position
from regretless.live.inputs import said
from regretless.live.kernel import Kernel
from regretless.live.log import Writer
from regretless.live.parser import FeedbackParser
from regretless.live.snapshot import describe
from regretless.problem import form_of, form_words
from regretless.startup import keep_programs
from regretless.types import Decision, Instance


class Core:
    """Everything that ``decide``, ``learn`` and the other calls work on; ``config`` is how the learner was made."""

    def __init__(
        self, plan: Plan, example: Instance, form_fixed: bool, config: dict[str, Any], clock: Callable[[], float]
    ):
        keep_programs()
        self.plan, self.clock = plan, clock
        options = plan.options
        kernel = plan.kernel(example)
        self.config = {**config, "settings": plan.setting_names()}
        sign = -1.0 if options.sense == "maximise" else 1.0
        self.books = Books(kernel, form_fixed, options.max_pending, options.max_age, options.max_age_seconds, sign)
        self.turns = self.books.turns
        self.sign = self.books.sign  # what the user's numbers are multiplied by to be costs
        self.log: Writer | None = None
        self.parser = FeedbackParser(kernel.problem, options.may_miss, kernel)
        self.piece_parser = FeedbackParser(kernel.problem, True, kernel)  # a piece is never complete

    def now(self) -> float:
        """Seconds by the learner's clock."""
        now = self.clock()
        if not isinstance(now, float | int) or not math.isfinite(now):
            raise SettingsError(f"learner: expected the clock to return seconds, got {said(now)}")
        return float(now)

    def write(self, kind: str, data: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Position | None:
        """Writes a record before anything is changed; None where there is no log."""
        if self.log is None:
            return None
        self.log.require_at(self.books.position)
        return self.log.append(kind, data, arrays)

    def arrival(self, told: RawFeedback, decision: Decision, in_pieces: bool = False) -> Arrival:
        """What was told about a decision, as costs; a piece may be incomplete where complete feedback is asked for."""
        parser = self.piece_parser if in_pieces else self.parser
        found = parser.parse(told, decision.w, decision.aux)  # type: ignore[arg-type]
        return found if self.sign > 0 else found._replace(values=-found.values)

    def ready_for(self, instances: Sequence[Instance]) -> tuple[Kernel, Any]:
        """The kernel and the state for instances of this form; the first ones of all fix it."""
        books, form = self.books, form_of(instances[0])
        kernel = books.kernel
        if not books.form_fixed and form is not None:
            describe(instances[0])  # refuses what a checkpoint could not keep
            kernel = self.plan.kernel(instances[0])
        for own in instances:
            if form_of(own) != kernel.problem.instance_form:
                expected, got = form_words(kernel.problem.instance_form), form_words(form_of(own))
                raise SettingsError(
                    f"instance: expected the form of earlier ones, {expected}, got {got}; give all of them, or none, an "
                    "instance"
                )
        return kernel, kernel.init() if books.state is None else books.state
