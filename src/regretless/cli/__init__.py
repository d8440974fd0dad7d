"""The command ``regretless``: one small file per verb that parses, calls and prints."""
