"""DFHPG, Algorithm 1 of the paper: specifications, algorithm, gradients, and the version without presets."""
