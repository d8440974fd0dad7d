"""The library's test settings hold here too: two CPU devices, fast compilation, a float64 mode."""

from conftest import float64, room

__all__ = ["float64", "room"]
