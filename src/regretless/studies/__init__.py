"""What to run: experiments and studies as data, and how their results are told."""

from regretless.studies.experiment import Arm, Experiment
from regretless.studies.outcome import Outcome, run
from regretless.studies.study import Panel, Study

__all__ = ["Arm", "Experiment", "Outcome", "Panel", "Study", "run"]
