"""Experiments: what to run, how each arm is resolved and stored, studies, tuning and the arena."""

from typing import TYPE_CHECKING

from regretless.experiments.extension import Preset, PresetSource, Published, Task, TuningProtocol
from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.experiments.campaign import Plan, carry_out, choose_engine
    from regretless.experiments.experiment import Arm, Experiment
    from regretless.experiments.runner import Run, address_of, run
    from regretless.experiments.store import Campaign, ResultStore
    from regretless.experiments.study import QUICK, Cell, Panel, Scale, Study
    from regretless.experiments.tuning import TuningResult, tune, validation_experiment

__all__ = [
    "QUICK",
    "Arm",
    "Campaign",
    "Cell",
    "Experiment",
    "Panel",
    "Plan",
    "Preset",
    "PresetSource",
    "Published",
    "ResultStore",
    "Run",
    "Scale",
    "Study",
    "Task",
    "TuningProtocol",
    "TuningResult",
    "address_of",
    "carry_out",
    "choose_engine",
    "run",
    "tune",
    "validation_experiment",
]

_MODULES = {
    "campaign": ("Plan", "carry_out", "choose_engine"),
    "experiment": ("Arm", "Experiment"),
    "runner": ("Run", "address_of", "run"),
    "store": ("Campaign", "ResultStore"),
    "study": ("QUICK", "Cell", "Panel", "Scale", "Study"),
    "tuning": ("TuningResult", "tune", "validation_experiment"),
}
_LOCATIONS = {name: f"regretless.experiments.{module}:{name}" for module, names in _MODULES.items() for name in names}
__getattr__, __dir__ = lazy_exports(__name__, __all__, _LOCATIONS)
