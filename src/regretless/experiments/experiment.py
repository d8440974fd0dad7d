"""An experiment as data: policies that meet the same seeds on a benchmark, and arms that differ from the others."""

import dataclasses
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, SupportsIndex, TypeAlias

from regretless.benchmarks.base import Benchmark, BenchmarkSpec
from regretless.errors import SettingsError
from regretless.policies.base import REGISTRY, Policy, PolicySpec
from regretless.registry import require_known
from regretless.simulation.simulator import MAX_ROUNDS, MAX_SEEDS, seeds_of

DEFAULT_MODEL = "gaussian_linear"
POLICIES_EXPECTED = "expected names of policies, PolicySpec or Policy objects, or Arms, perhaps by label"
BENCHMARK_EXPECTED = "expected the name of a benchmark, a BenchmarkSpec or a Benchmark"
BY_NAME = "to be a mapping of settings by dotted name"


@dataclasses.dataclass(frozen=True)
class Arm:
    """One curve of an experiment: a policy and what is different for it alone.

    Parameters
    ----------
    label : str
        Its name in tables and charts.
    policy : str, PolicySpec or Policy
        A name takes the tuned preset of the benchmark, if there is one; a specification or a policy is used as it is.
    settings : mapping, optional
        Changes by dotted name, after those of the experiment. ``benchmark.…`` changes the benchmark of this arm.
    preset : mapping, optional
        Settings instead of the tuned preset; an empty mapping stands for the defaults of the policy.
    benchmark : str, BenchmarkSpec or Benchmark, optional
        Another benchmark than the experiment's.
    feedback : str, optional
        Another feedback than the experiment's.

    Examples
    --------
    >>> arm = Arm("strong mixing", "dfhpg", settings={"alpha.max": 0.5})
    >>> [each.label for each in Experiment("topk", ["greedy", arm]).arms]
    ['greedy', 'strong mixing']
    """

    label: str
    policy: str | PolicySpec | Policy
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    preset: Mapping[str, Any] | None = None
    benchmark: str | BenchmarkSpec | Benchmark | None = None
    feedback: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label:
            raise SettingsError(f"expected a label for an arm, got {self.label!r}")
        where = f"arm {self.label!r}: "
        _check_type(
            self.policy, str | PolicySpec | Policy, f"{where}expected the name of a policy, PolicySpec or Policy"
        )
        _check_type(self.benchmark, str | BenchmarkSpec | Benchmark | None, where + BENCHMARK_EXPECTED)
        _check_type(self.feedback, str | None, f"{where}expected feedback to be text")
        _check_type(self.settings, Mapping, f"{where}expected settings {BY_NAME}")
        _check_type(self.preset, Mapping | None, f"{where}expected preset {BY_NAME}")


PolicyChoice: TypeAlias = str | PolicySpec | Policy | Arm


@dataclasses.dataclass(frozen=True)
class Experiment:
    """Policies on a benchmark over seeds.

    Parameters
    ----------
    benchmark : str, BenchmarkSpec or Benchmark
        Where to play.
    policies : str, PolicySpec, Policy, Arm, an iterable of these, or a mapping from labels to policies
        What to play; by default every policy that exists for the model.
    feedback : str, default "bandit"
        What a decision reveals.
    seeds : int or sequence of int, default 30
        The number of replications, or their seeds.
    horizon : int, optional
        The number of rounds; by default the benchmark's own.
    settings : mapping, optional
        Single settings by dotted name, on top of the preset, for every arm that has them; ``benchmark.…`` changes the
        benchmark, ``model`` chooses the model of the cost, ``scaling`` says whether contexts and costs are scaled.
    preset : mapping, optional
        Settings instead of the tuned preset. Without any preset contexts and costs are scaled.
    delay : int, default 0
        The number of rounds that feedback takes to arrive.
    missing : float, default 0.0
        The probability that a piece of feedback never arrives.
    title : str, optional
        A name that describes the experiment better than its arguments.

    Raises
    ------
    SettingsError
        If an argument cannot be used.

    Examples
    --------
    >>> experiment = Experiment("topk", ["greedy"], seeds=2, horizon=20, settings={"benchmark.k": 3})
    >>> experiment.policies, experiment.seeds
    (['greedy'], 2)
    >>> experiment.name
    'topk, bandit, benchmark.k 3: greedy'
    """

    benchmark: str | BenchmarkSpec | Benchmark
    policies: PolicyChoice | Iterable[PolicyChoice] | Mapping[str, str | PolicySpec | Policy] = ()
    _: dataclasses.KW_ONLY
    feedback: str = "bandit"
    seeds: int | Sequence[int] = 30
    horizon: int | None = None
    settings: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    preset: Mapping[str, Any] | None = None
    delay: int = 0
    missing: float = 0.0
    title: str = ""

    def __post_init__(self) -> None:
        _check_type(self.benchmark, str | BenchmarkSpec | Benchmark, BENCHMARK_EXPECTED)
        for name in ("policies", "seeds"):
            value = getattr(self, name)
            if isinstance(value, Iterable) and not isinstance(value, Sequence | Mapping | PolicySpec):
                object.__setattr__(self, name, tuple(value))  # an iterator can be read only once
        _check_type(self.feedback, str, "expected feedback to be text")
        _check_type(self.settings, Mapping, f"expected settings {BY_NAME}")
        _check_type(self.preset, Mapping | None, f"expected preset {BY_NAME}")
        _check_type(self.title, str, "expected title to be text")
        _check_number("horizon", 1 if self.horizon is None else self.horizon, 1, MAX_ROUNDS)
        _check_number("delay", self.delay, 0, MAX_ROUNDS)
        if isinstance(self.missing, bool) or not isinstance(self.missing, int | float) or not 0 <= self.missing < 1:
            raise SettingsError(f"expected missing to be a probability below 1, got {self.missing!r}")
        labels = [arm.label for arm in self.arms]
        for label in labels:
            if labels.count(label) > 1:
                raise SettingsError(f"two arms are called {label!r}: give each a label")
        _ = self.seed_list

    @property
    def arms(self) -> tuple[Arm, ...]:
        """The arms that ``policies`` stands for."""
        given: Any = self.policies
        if isinstance(given, str | PolicySpec | Policy | Arm):
            given = (given,)
        if isinstance(given, Mapping):
            return tuple(_arm(policy, label) for label, policy in given.items())
        _check_type(given, Iterable, POLICIES_EXPECTED)
        return _distinct([_arm(policy) for policy in (*given,) or default_policies(self.model)])

    @property
    def seed_list(self) -> tuple[int, ...]:
        """The seeds of the replications."""
        try:
            return seeds_of(self.seeds)
        except OverflowError:
            raise SettingsError(f"expected at most {MAX_SEEDS:,} replications, got {self.seeds!r}") from None

    @property
    def model(self) -> str:
        """The model of the cost that ``settings`` choose."""
        return str(self.settings.get("model", DEFAULT_MODEL))

    @property
    def benchmark_name(self) -> str:
        """The name of the benchmark."""
        if isinstance(self.benchmark, BenchmarkSpec):
            return self.benchmark.registered_name
        return self.benchmark if isinstance(self.benchmark, str) else self.benchmark.name

    @property
    def where(self) -> str:
        """The benchmark and everything that was changed, in one line."""
        parts = [self.benchmark_name, self.feedback]
        first = self.seed_list[0]
        parts += [f"seeds from {first}"] if first else []
        return ", ".join([*parts, *(f"{name} {value}" for name, value in self.settings.items())])

    @property
    def name(self) -> str:
        """What is played where, in one line."""
        labels = [arm.label for arm in self.arms]
        shown = labels if len(labels) <= 3 else [*labels[:2], f"{len(labels) - 2} more"]
        return f"{self.title or self.where}: {', '.join(shown)}"

    def sweep(self, grid: Mapping[str, Iterable[Any]]) -> "Experiment":
        """Return the experiment with every arm at every point of a grid of settings.

        Parameters
        ----------
        grid : mapping of str to iterable
            The values of each setting, by dotted name. Points that differ in numbers only share a compiled program.

        Returns
        -------
        Experiment
            The same experiment with an arm per old arm and point.

        Examples
        --------
        >>> experiment = Experiment("topk", "dfhpg").sweep({"policy_lr": (0.01, 0.1), "alpha.max": (0.5,)})
        >>> [arm.label for arm in experiment.arms]
        ['dfhpg, policy_lr 0.01, alpha.max 0.5', 'dfhpg, policy_lr 0.1, alpha.max 0.5']
        """
        listed = [name for name in grid if isinstance(grid[name], Iterable) and not isinstance(grid[name], str)]
        values = {name: tuple(grid[name]) for name in listed}
        if not grid or not all(values.get(name) for name in grid):
            raise SettingsError(
                f"sweep: expected settings with their values, such as {{'policy_lr': (0.01, 0.1)}}, got {grid!r}"
            )
        arms = []
        for arm in self.arms:
            if not isinstance(arm.policy, str):
                raise SettingsError(
                    f"sweep: expected policies by name, got the object {arm.label!r}, whose settings are fixed: "
                    "name the policy"
                )
            for combination in itertools.product(*values.values()):
                point = dict(zip(values, combination, strict=True))
                label = ", ".join([arm.label, *(f"{name} {value}" for name, value in point.items())])
                arms.append(dataclasses.replace(arm, label=label, settings={**arm.settings, **point}))
        return self.replace(policies=tuple(arms))

    def replace(self, **changes: Any) -> "Experiment":
        """Return the experiment with some of its arguments replaced.

        Parameters
        ----------
        **changes : object
            Arguments by name.
        """
        return dataclasses.replace(self, **changes)


def parse_experiment(values: Mapping[str, Any]) -> Experiment:
    """Return the experiment that a table of a TOML file describes.

    ``arms`` is a list of tables and adds to ``policies``; nested tables of settings are read as dotted names.
    """
    given = _read_fields(Experiment, values, "arms")
    if "benchmark" not in values:
        raise SettingsError("expected a benchmark for every cell, or in [defaults]")
    arms = given.pop("arms", ())
    if not isinstance(arms, Sequence) or not all(isinstance(arm, Mapping) for arm in arms):
        raise SettingsError(f"expected arms to be tables, got {arms!r}")
    if arms:
        named = given.get("policies", ())
        _check_type(named, Sequence, "expected policies next to arms to be a list of names")
        given["policies"] = (*((named,) if isinstance(named, str) else named), *map(_parse_arm, arms))
    return Experiment(**given)


def _parse_arm(values: Mapping[str, Any]) -> Arm:
    """Return the arm that a table describes."""
    given = _read_fields(Arm, values)
    for name in ("label", "policy"):
        if name not in values:
            raise SettingsError(f"expected a {name} for every arm, got {dict(values)!r}")
    return Arm(**given)


def _read_fields(kind: type[Experiment | Arm], values: Mapping[str, Any], *more: str) -> dict[str, Any]:
    """Return the arguments that a table holds; refuse names that are none."""
    known = [*(field.name for field in dataclasses.fields(kind)), *more]
    for name in values:
        require_known("setting", name, known, f" of {kind.__name__}")
    return {name: flatten_settings(v) if name in ("settings", "preset") else v for name, v in values.items()}


def flatten_settings(values: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested tables as dotted names.

    >>> flatten_settings({"alpha": {"max": 0.3}, "policy_lr": 0.1})
    {'alpha.max': 0.3, 'policy_lr': 0.1}
    """
    if not isinstance(values, Mapping):
        raise SettingsError(f"expected a table of settings, got {values!r}")
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flatten_settings(value, f"{prefix}{name}.") if isinstance(value, Mapping) else {prefix + name: value}
    return flat


def default_policies(model: str) -> tuple[str, ...]:
    """Return the policies that are played if none is named: with a generative model those that exist for it.

    >>> default_policies("flow")
    ('dfhpg_1', 'dfhpg', 'dfhpg_0')
    """
    from regretless.models import is_generative

    generative = is_generative(model)
    usable = REGISTRY.usable().items()
    return tuple(name for name, entry in usable if entry.by_default and (entry.supports_generative or not generative))


def _arm(policy: Any, label: str = "") -> Arm:
    """Return the arm that one element of ``policies`` stands for."""
    if isinstance(policy, Arm):
        return dataclasses.replace(policy, label=label) if label else policy
    _check_type(policy, str | PolicySpec | Policy, POLICIES_EXPECTED)
    if not label and isinstance(policy, PolicySpec):
        label = policy.registered_name.rpartition(":")[2]
    return Arm(label or (policy if isinstance(policy, str) else type(policy).__name__), policy)


def _distinct(arms: Sequence[Arm]) -> tuple[Arm, ...]:
    """Return arms; specifications with equal labels are named by what differs from their defaults."""
    labels = [arm.label for arm in arms]
    return tuple(
        dataclasses.replace(arm, label=str(arm.policy).removeprefix(arm.policy.namespace))
        if isinstance(arm.policy, PolicySpec) and labels.count(arm.label) > 1
        else arm
        for arm in arms
    )


def _check_type(value: Any, kind: Any, expected: str) -> None:
    if not isinstance(value, kind):
        raise SettingsError(f"{expected}, got {value!r}")


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    if isinstance(value, bool) or not isinstance(value, SupportsIndex) or not least <= value.__index__() <= most:
        raise SettingsError(f"expected {name} to be a whole number from {least} to {most:,}, got {value!r}")
