"""Traces turned into pictures and tables. Nothing is imported here: words and tables need no drawing library."""
