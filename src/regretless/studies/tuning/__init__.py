"""Tuning: random search over a policy's settings on validation seeds."""
