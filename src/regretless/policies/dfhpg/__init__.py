"""DFHPG, Algorithm 1 of the paper. The parts of its gradient are public, so that variants of it can be written."""

from regretless.policies.dfhpg.gradients import hybrid, moving_average, nuisance_induced, score_gradient, trust_in_score

__all__ = ["hybrid", "moving_average", "nuisance_induced", "score_gradient", "trust_in_score"]
