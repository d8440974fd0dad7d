"""Experiments: what to run, how each arm is resolved and stored, studies, tuning and the arena."""

from typing import TYPE_CHECKING

from regretless.registry import lazy_exports

if TYPE_CHECKING:
    from regretless.experiments.campaign import Plan as Plan
    from regretless.experiments.campaign import carry_out as carry_out
    from regretless.experiments.campaign import choose_engine as choose_engine
    from regretless.experiments.experiment import Arm as Arm
    from regretless.experiments.experiment import Experiment as Experiment
    from regretless.experiments.extension import Preset as Preset
    from regretless.experiments.extension import PresetSource as PresetSource
    from regretless.experiments.extension import Published as Published
    from regretless.experiments.extension import Task as Task
    from regretless.experiments.extension import TuningProtocol as TuningProtocol
    from regretless.experiments.runner import Run as Run
    from regretless.experiments.runner import address_of as address_of
    from regretless.experiments.runner import run as run
    from regretless.experiments.store import Campaign as Campaign
    from regretless.experiments.store import ResultStore as ResultStore
    from regretless.experiments.study import QUICK as QUICK
    from regretless.experiments.study import Cell as Cell
    from regretless.experiments.study import Panel as Panel
    from regretless.experiments.study import Scale as Scale
    from regretless.experiments.study import Study as Study
    from regretless.experiments.tuning import TuningResult as TuningResult
    from regretless.experiments.tuning import tune as tune
    from regretless.experiments.tuning import validation_experiment as validation_experiment

__all__, __getattr__, __dir__ = lazy_exports(__name__)
