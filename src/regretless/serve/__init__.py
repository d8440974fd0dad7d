"""Serve many learners over HTTP, with a page to watch them."""
