"""Experiments: what to run, how each arm is resolved and stored, studies, tuning and the arena."""

from regretless.experiments.extension import Preset, PresetSource, Published, Task
from regretless.experiments.study import QUICK, Cell, Panel, Scale, Study

__all__ = ["QUICK", "Cell", "Panel", "Preset", "PresetSource", "Published", "Scale", "Study", "Task"]
