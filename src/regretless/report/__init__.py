"""Traces turned into pictures and tables."""

from regretless.report.curves import regret_curves
from regretless.report.theory import theory_figure

__all__ = ["regret_curves", "theory_figure"]
