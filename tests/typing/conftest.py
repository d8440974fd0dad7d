"""The cases are checked by mypy and not imported."""

collect_ignore_glob = ["case_*.py"]
