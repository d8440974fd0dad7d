"""The convergence theorems, measured with the library's own DFHPG in a small world where every expectation is exact."""
