"""The arena: policies played untuned on many worlds, and how good they are on all of them together."""
