"""What can go wrong, by kind: every error of this package is a RegretlessError."""


class RegretlessError(Exception):
    """Anything that this package refuses or fails at; the message says what was expected, what came and what to do."""


class SettingsError(RegretlessError, ValueError):
    """Input that cannot be used; says what was expected, what came and the nearest valid choice."""


class FeedbackError(RegretlessError, ValueError):
    """Feedback that cannot be used: about an unknown decision, contradictory, or of the wrong form. Nothing was learnt."""


class OracleError(RegretlessError, RuntimeError):
    """A solve that failed: infeasible instance, out of time, or an error inside the user's solver."""


class CheckpointError(RegretlessError, ValueError):
    """A file that is no checkpoint of this program, is damaged, or belongs to another learner."""


class LogError(RegretlessError):
    """A learner's log that cannot be written, so that nothing was changed, or that is damaged or another learner's."""


class WriteError(RegretlessError):
    """A file that cannot be written, such as on a full disk; the old one, if there was one, is as it was."""


class DamagedError(RegretlessError, ValueError):
    """A stored result that cannot be read, or whose numbers are not those that were written."""
