"""The experiments of the DFHPG paper: presets, published values, studies, claims and figures."""

__version__ = "0.3.0.dev0"
