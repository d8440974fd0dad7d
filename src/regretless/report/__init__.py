"""Traces turned into pictures and tables."""

from regretless.report.curves import regret_curves

__all__ = ["regret_curves"]
