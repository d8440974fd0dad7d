"""What to run: experiments as data, and how their results are told."""

from regretless.studies.experiment import Experiment, Outcome, run

__all__ = ["Experiment", "Outcome", "run"]
