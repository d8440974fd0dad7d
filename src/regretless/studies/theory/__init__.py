"""The convergence theorems, measured: a small world where everything is known, runs in it, claims with verdicts."""
