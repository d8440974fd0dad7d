"""Trials in a database: drawn by number, so that any worker draws the same, and taken over from workers that died."""

import contextlib
import datetime
import fcntl
import hashlib
import os
import platform
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.exceptions import StorageInternalError
from optuna.trial import FrozenTrial, Trial, TrialState
from sqlalchemy.exc import OperationalError

from regretless.errors import SettingsError, WriteError

ABANDONED = datetime.timedelta(hours=1)
"""After this long a running trial of another machine counts as lost."""

_AT_WORK: set[str] = set()
"""Searches of this process that have not ended: one that failed leaves its trials to the next."""


class ByNumber(optuna.samplers.BaseSampler):
    """Random search whose draws depend on the seed, the trial's number and the parameter's name, and on nothing else."""

    def __init__(self, seed: int):
        self.seed = seed

    def infer_relative_search_space(self, study: optuna.Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        return {}

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        return {}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        return drawn(self.seed, trial.number, param_name, param_distribution)


def drawn(seed: int, number: int, name: str, distribution: BaseDistribution) -> Any:
    """What trial ``number`` tries for one parameter."""
    rng = np.random.default_rng(np.frombuffer(hashlib.sha256(f"{seed}/{number}/{name}".encode()).digest(), np.uint32))
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(rng.integers(len(distribution.choices)))]
    if isinstance(distribution, IntDistribution):
        return int(rng.integers(distribution.low, distribution.high + 1))
    assert isinstance(distribution, FloatDistribution)
    low, high = distribution.low, distribution.high
    if distribution.log:
        return float(np.clip(np.exp(rng.uniform(np.log(low), np.log(high))), low, high))
    return float(rng.uniform(low, high))


class Trials:
    """The trials of one tuning in a database that several workers may use."""

    def __init__(self, database: Path, name: str, space: Mapping[str, BaseDistribution], seed: int):
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self.space, self.database, self.search = dict(space), database, uuid.uuid4().hex
        _AT_WORK.add(self.search)
        with self._in_database():
            database.parent.mkdir(parents=True, exist_ok=True)
            with self._alone():
                storage = optuna.storages.RDBStorage(
                    f"sqlite:///{database}", engine_kwargs={"connect_args": {"timeout": 60}}
                )
                self.study = optuna.create_study(
                    storage=storage, study_name=name, sampler=ByNumber(seed), load_if_exists=True, direction="minimize"
                )

    @contextlib.contextmanager
    def _in_database(self) -> Iterator[None]:
        """Work with the database; whatever fails in there, on a full disk for one, is told in a sentence."""
        try:
            yield
        except Exception as error:
            cause = error.__cause__ if isinstance(error, StorageInternalError) and error.__cause__ else error
            told = f"cannot use the database {self.database}: {str(cause).splitlines()[0]}"
            if isinstance(cause, OperationalError):  # sqlite's word for what is not the file's fault
                raise WriteError(f"{told}; finished trials are kept") from None
            raise SettingsError(told) from None

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """No other worker makes the database, or takes trials, at the same time."""
        with self.database.with_suffix(".lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def leave(self) -> None:
        """Whatever this search still holds is anybody's."""
        _AT_WORK.discard(self.search)

    def claim(self, wanted: int, most: int) -> dict[int, dict[str, Any]]:
        """Up to ``most`` trials for this worker: what dead workers left, then new ones until there are ``wanted`` in all."""
        mine: dict[int, dict[str, Any]] = {}
        with self._in_database(), self._alone():
            for frozen in self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
                if len(mine) < most and _lost(frozen):
                    mine[frozen.number] = self._draw(Trial(self.study, frozen._trial_id))
            while len(mine) < most and len(self.study.get_trials(deepcopy=False)) < wanted:
                trial = self.study.ask()
                mine[trial.number] = self._draw(trial)
        return mine

    def _draw(self, trial: Trial) -> dict[str, Any]:
        trial.set_user_attr("worker", f"{platform.node()}:{os.getpid()}:{self.search}")
        values = {}
        for name, distribution in self.space.items():
            if isinstance(distribution, CategoricalDistribution):
                values[name] = trial.suggest_categorical(name, distribution.choices)
            elif isinstance(distribution, IntDistribution):
                values[name] = trial.suggest_int(name, distribution.low, distribution.high)
            else:
                assert isinstance(distribution, FloatDistribution)
                values[name] = trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
        return values

    def tell(self, number: int, value: float, diverged: int) -> None:
        """Writes a trial's outcome down; one with replications that diverged has failed."""
        with self._in_database():
            if diverged or not np.isfinite(value):
                self.study.tell(number, state=TrialState.FAIL, skip_if_finished=True)
            else:
                self.study.tell(number, float(value), skip_if_finished=True)

    def others(self) -> int:
        """How many trials other workers are at; those of workers that died are not among them."""
        with self._in_database():
            running = self.study.get_trials(deepcopy=False, states=(TrialState.RUNNING,))
        return sum(1 for trial in running if not _lost(trial))

    def finished(self) -> list[FrozenTrial]:
        """Every trial with an outcome."""
        with self._in_database():
            return self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE, TrialState.FAIL))

    def importances(self) -> dict[str, float]:
        """Share of the variation that each parameter explains (PED-ANOVA); nothing with too few trials."""
        if len(self.study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))) < 10:
            return {}
        evaluator = optuna.importance.PedAnovaImportanceEvaluator()
        return dict(optuna.importance.get_param_importances(self.study, evaluator=evaluator))


def _lost(trial: FrozenTrial) -> bool:
    """Whether the worker of a running trial is gone."""
    host, process, search = (*str(trial.user_attrs.get("worker", "")).split(":"), "", "")[:3]
    if host == platform.node() and process.isdigit():
        if int(process) == os.getpid():
            return search not in _AT_WORK
        try:
            os.kill(int(process), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            return False
        return False
    started = trial.datetime_start or datetime.datetime.min
    return datetime.datetime.now() - started > ABANDONED
