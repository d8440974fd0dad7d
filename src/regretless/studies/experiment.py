"""One experiment as data: arms that meet the same seeds, each with its policy, its world and its settings.

It is what ``run`` plays, what a cell of a study is, and what ``tune`` searches around.
"""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Literal, SupportsIndex

from pydantic import ConfigDict, Field, field_validator, model_validator

from regretless import models, policies
from regretless.benchmarks.base import Benchmark
from regretless.errors import SettingsError
from regretless.policies import Policy
from regretless.simulation.simulator import MAX_SEEDS, seeds_of
from regretless.spec import Spec

PUBLISHED_DEGREE = 8
PUBLISHED_MODEL = "gaussian_linear"


class Arm(Spec):
    """One curve: a policy by name or as an object; what is not said here is as the experiment says.

    ``settings`` are changes of this arm alone; ``benchmark.…`` among them, or another benchmark, feedback or degree, make it
    an arm with a world of its own.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    label: str = Field(min_length=1, description="its name in tables and charts")
    policy: str | Policy = Field(description="name of a policy, or one that was built")
    settings: dict[str, Any] = Field(default_factory=dict)
    preset: dict[str, Any] | None = None
    benchmark: str | Benchmark | None = None
    feedback: str | None = None
    degree: int | None = None
    model: str | None = None


class Experiment(Spec):
    """What to run: policies on a benchmark over seeds.

    ``policies`` are names, objects, or a mapping from labels to either; none: all that exist for the model. ``arms`` say more
    about each. ``seeds`` is a number of replications or the seeds themselves. ``settings`` change single settings of the preset
    or, as ``benchmark.…``, of the benchmark; ``preset`` replaces the tuned one. Without a tuned preset contexts and costs are
    scaled, unless the setting ``scaling`` says otherwise.

    >>> import regretless as rg
    >>> experiment = rg.Experiment(benchmark="topk", policies=("greedy",), seeds=2, horizon=20, settings={"benchmark.k": 3})
    >>> outcome = rg.run(experiment)
    >>> outcome.to_dict()["results"][0]["policy"]
    'greedy'
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    kind: Literal["simulation"] = "simulation"
    benchmark: str | Benchmark
    policies: Any = ()
    arms: tuple[Arm, ...] = ()
    feedback: str = "bandit"
    degree: int | None = None
    model: str = PUBLISHED_MODEL
    seeds: tuple[int, ...] = tuple(range(30))
    horizon: int | None = Field(None, ge=1, le=10**8)
    settings: dict[str, Any] = Field(default_factory=dict)
    preset: dict[str, Any] | None = None
    delay: int = Field(0, ge=0)
    missing: float = Field(0.0, ge=0, lt=1)
    data_dir: str | None = None
    title: str = Field("", description="its name, where that tells people more than its words")

    @field_validator("benchmark", mode="before")
    @classmethod
    def _a_benchmark(cls, benchmark: Any) -> Any:
        if not isinstance(benchmark, str | Benchmark):
            raise SettingsError(f"expected the name of a benchmark, or a Benchmark, got {benchmark!r}")
        return benchmark

    @field_validator("policies", mode="before")
    @classmethod
    def _some_policies(cls, given: Any) -> Any:
        found = (given,) if isinstance(given, str | Policy) else given
        if isinstance(found, Iterable):
            found = found if isinstance(found, Mapping) else tuple(found)
            each = tuple(found.values()) if isinstance(found, Mapping) else found
            if all(isinstance(policy, str | Policy) for policy in each):
                return found
        raise SettingsError(f"expected names of policies or Policy objects, perhaps by label, got {given!r}")

    @field_validator("seeds", mode="before")
    @classmethod
    def _some_seeds(cls, seeds: int | Iterable[int]) -> tuple[int, ...]:
        if isinstance(seeds, str | bool) or not isinstance(seeds, SupportsIndex | Iterable):
            raise SettingsError(f"expected a number of replications or seeds, got {seeds!r}")
        try:
            return seeds_of(seeds)
        except OverflowError:
            raise SettingsError(f"expected at most {MAX_SEEDS:,} replications, got {seeds!r}") from None

    @model_validator(mode="after")
    def _arms(self) -> "Experiment":
        given = self.policies or (() if self.arms else available(self.model))
        pairs = given.items() if isinstance(given, Mapping) else [(_label(each), each) for each in given]
        arms = tuple(Arm(label=label, policy=policy) for label, policy in pairs)
        both = (*arms, *self.arms)
        labels = [arm.label for arm in both]
        for label in labels:
            if labels.count(label) > 1:
                raise SettingsError(f"two arms are called {label!r}: give each a label of its own")
        object.__setattr__(self, "policies", ())
        object.__setattr__(self, "arms", both)
        return self

    @property
    def benchmark_name(self) -> str:
        """What the benchmark is called."""
        return self.benchmark if isinstance(self.benchmark, str) else self.benchmark.name

    @property
    def where(self) -> str:
        """The world and what was changed, for people."""
        words = [self.benchmark_name, self.feedback]
        if self.degree is not None:
            words.append(f"degree {self.degree}")
        if self.model != PUBLISHED_MODEL:
            words.append(self.model)
        if self.seeds[0]:
            words.append(f"seeds from {self.seeds[0]}")
        return ", ".join([*words, *(f"{name} {value}" for name, value in self.settings.items())])

    @property
    def name(self) -> str:
        """What it is, for people."""
        arms = [arm.label for arm in self.arms]
        shown = arms if len(arms) <= 3 else [*arms[:2], f"{len(arms) - 2} more"]
        return f"{self.title or self.where}: {', '.join(shown)}"

    def sweep(self, grid: Mapping[str, Iterable[Any]]) -> "Experiment":
        """Every arm at every point of a grid of settings, as one experiment; points that differ in numbers share a program.

        >>> experiment = Experiment(benchmark="topk", policies="dfhpg").sweep({"policy_lr": (0.01, 0.1), "alpha.max": (0.5,)})
        >>> [arm.label for arm in experiment.arms]
        ['dfhpg, policy_lr 0.01, alpha.max 0.5', 'dfhpg, policy_lr 0.1, alpha.max 0.5']
        """
        return self.changed(arms=_sweep(self.arms, grid))

    def changed(self, **values: Any) -> "Experiment":
        """The same experiment with some of its fields replaced."""
        own = {name: getattr(self, name) for name in type(self).model_fields if name not in ("policies", "kind")}
        return Experiment(**{**own, **values})


def _sweep(arms: tuple[Arm, ...], grid: Mapping[str, Iterable[Any]]) -> tuple[Arm, ...]:
    """Every arm at every point of a grid of settings."""
    values = {name: tuple(each) for name, each in grid.items() if not isinstance(each, str)}
    empty = [name for name in grid if not values.get(name)]
    if not grid or empty:
        raise SettingsError(
            f"sweep: expected settings with their values, such as {{'policy_lr': (0.01, 0.1)}}, got {grid!r}"
        )
    objects = [arm.label for arm in arms if not isinstance(arm.policy, str)]
    if objects:
        raise SettingsError(
            f"sweep: expected policies by name, got the object {objects[0]!r}, whose settings are fixed: name the policy"
        )
    found = []
    for arm in arms:
        for point in itertools.product(*values.values()):
            chosen = dict(zip(values, point, strict=True))
            words = ", ".join(f"{name} {value}" for name, value in chosen.items())
            found.append(
                arm.model_copy(update={"label": f"{arm.label}, {words}", "settings": {**arm.settings, **chosen}})
            )
    return tuple(found)


def _label(policy: str | Policy) -> str:
    return policy if isinstance(policy, str) else type(policy).__name__


def available(model: str) -> tuple[str, ...]:
    """The policies that are played by default with a model: with a generative one those that exist for it.

    >>> available("flow")
    ('dfhpg_1', 'dfhpg', 'dfhpg_0')
    """
    generative = models.is_generative(model)
    usable = policies.REGISTRY.usable().items()
    return tuple(name for name, entry in usable if entry.by_default and (entry.supports_generative or not generative))
