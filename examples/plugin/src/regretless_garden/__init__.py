"""Parts for regretless, which pyproject.toml lists as entry points."""
