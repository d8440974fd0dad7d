"""Parts for regretless; pyproject.toml lists them as entry points, so nothing needs to be imported here."""
