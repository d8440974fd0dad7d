"""The errors that this package raises; all of them are a RegretlessError."""

from typing import Any

MAX_REPR_LENGTH = 60
"""Characters of a value that an error message repeats."""


class RegretlessError(Exception):
    """Base class of all errors of this package; the message says what was expected, what was given and what to do."""


class SettingsError(RegretlessError, ValueError):
    """Input that cannot be used, such as an unknown name or a number out of range."""


class FeedbackError(RegretlessError, ValueError):
    """Feedback for an unknown decision, contradictory or of the wrong form; nothing was learned."""


class UnknownDecisionError(FeedbackError):
    """Feedback for, or a question about, a decision that was never made or is not remembered any more."""


class ConflictError(SettingsError, FeedbackError):
    """A repeated call that differs from the first, such as a key that is used for something else; nothing changed."""


class OracleError(RegretlessError, RuntimeError):
    """A solve that failed: infeasible instance, out of time, or an error inside the user's solver."""


class CheckpointError(RegretlessError, ValueError):
    """A file that is not a checkpoint of this program, is damaged, or belongs to another learner."""


class StoreError(RegretlessError):
    """A learner's store that cannot be written (nothing has changed), is damaged, or belongs to another learner."""


class WriteError(RegretlessError):
    """A file that cannot be written, such as on a full disk; an existing file is unchanged."""


class DamagedError(RegretlessError, ValueError):
    """A stored result that cannot be read, or whose numbers are not those that were written."""


class MissingExtraError(RegretlessError, ImportError):
    """An optional package that is not installed; the message names the command that installs it."""


def short_repr(value: Any) -> str:
    """Return a value as an error message repeats it: cut to a line, and safe if its own ``repr`` fails."""
    try:
        text = repr(value)
    except Exception:
        return f"a {type(value).__name__}"
    return text if len(text) <= MAX_REPR_LENGTH else f"{text[:MAX_REPR_LENGTH]} …"
