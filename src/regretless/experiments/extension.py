"""What other packages add to experiments: studies, presets with published values, report sections and other tasks.

A distribution registers them as entry points of the groups ``regretless.studies``, ``regretless.presets`` and
``regretless.report``. They are imported when they are used; a broken one affects only those who use it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from regretless.registry import Registry

if TYPE_CHECKING:
    from regretless.experiments.study import Scale, Study
    from regretless.results import Result

Progress = Callable[[str, int, int], None]
"""Called with what is being done, how much of it is finished and how much there is."""


@runtime_checkable
class Task(Protocol):
    """Something to compute once and store: one arm of an experiment, or a computation of another package.

    A task must survive ``pickle``: worker processes and machines receive it that way. Its result is stored under its
    address, so everything that changes the result has to be part of that; ``regretless.experiments.runner.address_of(
    configuration, modules)`` makes such an address from JSON data and the code of the modules that compute the result.

    Examples
    --------
    >>> import dataclasses
    >>> @dataclasses.dataclass(frozen=True)
    ... class Theory:
    ...     name: str = "convergence theorems"
    ...     seed: int = 0
    ...     @property
    ...     def configuration(self):
    ...         return {"kind": "theory", "seed": self.seed}
    ...     @property
    ...     def address(self):
    ...         return "0" * 64
    ...     def compute(self, progress):
    ...         raise NotImplementedError
    >>> isinstance(Theory(), Task)
    True
    """

    @property
    def name(self) -> str:
        """What it is, for progress and error messages."""

    @property
    def configuration(self) -> dict[str, Any]:
        """Everything that the result depends on apart from the code, as JSON data."""

    @property
    def address(self) -> str:
        """64 hexadecimal digits under which the result is stored."""

    def compute(self, progress: Progress) -> "Result":
        """Compute the result.

        Parameters
        ----------
        progress : callable
            Called with what is being done, how much of it is finished and how much there is.
        """


class Listener:
    """Receives the progress of a campaign; this one does nothing with it."""

    def begin(self, tasks: Sequence[Task], finished: int) -> None:
        """Take note of the tasks to compute, and of how many others are finished already."""

    def progress(self, task: Task, what: str, done: int, total: int) -> None:
        """Take note of how far a task is."""

    def finished(self, task: Task, computed: bool) -> None:
        """Take note of a stored result, and of whether this campaign computed it."""

    def failed(self, task: Task, error: str) -> None:
        """Take note of a task that could not be computed."""


class Preset(NamedTuple):
    """Tuned settings by dotted name.

    Parameters
    ----------
    values : mapping of str to object
        Settings by dotted name.
    degree : int or None
        The degree they were tuned at; None if the benchmark has no degrees.
    """

    values: Mapping[str, Any]
    degree: int | None


class Published(NamedTuple):
    """A published mean final regret.

    Parameters
    ----------
    mean : float
        The published mean.
    standard_error : float
        Its published standard error.
    """

    mean: float
    standard_error: float

    def z(self, mean: float, standard_error: float) -> float:
        """Return how many standard errors of the difference ``mean`` is above the published one.

        Parameters
        ----------
        mean, standard_error : float
            A mean that was computed here, with its standard error.
        """
        return float((mean - self.mean) / (standard_error**2 + self.standard_error**2) ** 0.5)


class TuningProtocol(NamedTuple):
    """How ``regretless tune`` ranks candidates, and what it searches.

    Parameters
    ----------
    horizon : int, optional
        Rounds; by default the benchmark's own.
    seeds : int, default 10
        Number of validation seeds.
    settings : mapping of str to object, optional
        Settings of the experiment.
    fixed : mapping of str to object, optional
        Settings of the policy that are not searched.
    space : mapping of str to tuple, optional
        Ranges by dotted name; by default what the policy declares.
    finalists : int, default 0
        How many of the best on few seeds are played on all; 0 for one stage.
    """

    horizon: int | None = None
    seeds: int = 10
    settings: Mapping[str, Any] = {}
    fixed: Mapping[str, Any] = {}
    space: Mapping[str, tuple[Any, ...]] | None = None
    finalists: int = 0


class PresetSource(Protocol):
    """Tuned settings and published values of one publication; an entry point of ``regretless.presets``.

    A source may have ``tuning(benchmark, policy, model)``, too, which returns a ``TuningProtocol`` or None.
    """

    def preset(self, benchmark: str, degree: int | None, model: str, feedback: str) -> Preset | None:
        """Return the tuned settings for this benchmark, those of the nearest degree; None without any.

        Parameters
        ----------
        benchmark : str
            A registered benchmark.
        degree : int or None
            Its degree, if it has one.
        model : str
            A registered model.
        feedback : str
            A registered regime.
        """

    def published(self, benchmark: str, feedback: str, policy: str) -> Published | None:
        """Return the published value of a policy with its preset on the unchanged benchmark; None without one.

        Parameters
        ----------
        benchmark, feedback, policy : str
            Registered names.
        """


STUDIES: Registry[Callable[["Scale"], "Study"]] = Registry(
    "study", "studies", {}, (), "a function that takes a regretless.experiments.Scale and returns a Study"
)
"""Studies by name, functions of a ``Scale`` that return a ``Study``; entry points ``regretless.studies``."""

PRESETS: Registry[PresetSource] = Registry(
    "source of presets", "presets", {}, ("preset", "published"), "an object with preset() and published()"
)
"""Sources of presets and published values; entry points ``regretless.presets``. The first with an answer is used."""

REPORT: Registry[Any] = Registry("part of the report", "report", {}, (), "see regretless.experiments.report")
"""Parts that other packages add to the report by name. Entry points ``regretless.report``."""

STUDIES_HINT = (
    "the studies of the paper are in a separate package: pip install regretless-dfhpg (in this repository: "
    "pip install ./papers/dfhpg)"
)


def find_preset(benchmark: str, degree: int | None, model: str, feedback: str) -> Preset | None:
    """Return the tuned settings that some source has for this benchmark; None if none has any."""
    return _first_answer("preset", benchmark, degree, model, feedback)


def find_published_of(result: "Result") -> Published | None:
    """Return the published value for exactly the configuration of a result; None if there is none."""
    if not result.extra.get("standard"):
        return None
    config = result.config
    return _first_answer("published", config["benchmark"]["name"], config["feedback"], config["policy"]["name"])


def find_tuning(benchmark: str, policy: str, model: str) -> TuningProtocol:
    """Return the protocol that some source has for tuning a policy; a plain one if none has any."""
    return _first_answer("tuning", benchmark, policy, model) or TuningProtocol()


def _first_answer(method: str, *arguments: Any) -> Any:
    """Return what the first source of presets that has an answer says; None if none has one."""
    sources = (source for source in PRESETS.usable().values() if hasattr(source, method))
    answers = (getattr(source, method)(*arguments) for source in sources)
    return next((answer for answer in answers if answer is not None), None)
