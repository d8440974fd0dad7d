"""Worlds of the arena: invented problems, told by a feasible set, a shape of the costs and what is wrong with the data."""
