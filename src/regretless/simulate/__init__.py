"""Whole runs: one replication (``rounds``), how replications become one program (``programs``), the simulation itself."""
