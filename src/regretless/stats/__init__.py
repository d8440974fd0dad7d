"""Statistics that policies, live learners and evaluations share."""

from regretless.stats.bayes_linear import DualPosterior, ErrorScale, FlatLevel, LinearPosterior, fit_dual
from regretless.stats.confidence import Interval, batch_interval, mean_interval, mixture_radius, tail_index
from regretless.stats.drift import ChangeDetector, DriftState
from regretless.stats.off_policy import Overlap, doubly_robust, match_decisions, measure_overlap

__all__ = [
    "ChangeDetector",
    "DriftState",
    "DualPosterior",
    "ErrorScale",
    "FlatLevel",
    "Interval",
    "LinearPosterior",
    "Overlap",
    "batch_interval",
    "doubly_robust",
    "fit_dual",
    "match_decisions",
    "mean_interval",
    "measure_overlap",
    "mixture_radius",
    "tail_index",
]
