"""DFHPG, Algorithm 1 of the paper, with its organs: gradients, baselines, scenarios, and its settings."""
