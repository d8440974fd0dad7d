"""Traces turned into pictures and tables."""

from regretless.report.curves import regret_curves
from regretless.report.models import model_figures

__all__ = ["model_figures", "regret_curves"]
