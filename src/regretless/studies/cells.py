"""A cell of a study as data: what is played together, in one set of compiled programs, and stored as one file."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from regretless.benchmarks.base import Benchmark
from regretless.studies.experiment import PUBLISHED_MODEL, Experiment, Settled, build_benchmark, data_notices, settle


class Arm(BaseModel):
    """One curve: a policy under the cell's conditions, with single settings changed."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    label: str
    policy: str
    overrides: dict[str, str] = {}


class Cell(BaseModel):
    """Some arms that meet the same stream of contexts and costs.

    >>> cell = Cell(benchmark="topk", arms=(Arm(label="dfhpg", policy="dfhpg"),))
    >>> cell.name
    'topk, bandit: dfhpg'
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["simulation"] = "simulation"
    benchmark: str
    arms: tuple[Arm, ...] = Field(min_length=1)
    feedback: str = "bandit"
    degree: int | None = None
    model: str = PUBLISHED_MODEL
    seeds: int = Field(30, ge=1)
    first_seed: int = Field(0, ge=0)
    horizon: int | None = Field(None, ge=1)

    @property
    def name(self) -> str:
        """What it is, for people."""
        words = [self.benchmark, self.feedback]
        if self.degree is not None:
            words.append(f"degree {self.degree}")
        if self.model != PUBLISHED_MODEL:
            words.append(self.model)
        if self.first_seed:
            words.append(f"seeds from {self.first_seed}")
        arms = [arm.label for arm in self.arms]
        shown = arms if len(arms) <= 3 else [*arms[:2], f"{len(arms) - 2} more"]
        return f"{', '.join(words)}: {', '.join(shown)}"

    def experiment(self, arm: Arm) -> Experiment:
        """One of the arms as an experiment."""
        return Experiment(
            benchmark=self.benchmark,
            policies=(arm.policy,),
            feedback=self.feedback,
            degree=self.degree,
            model=self.model,
            seeds=self.seeds,
            first_seed=self.first_seed,
            horizon=self.horizon,
            overrides=arm.overrides,
        )

    def settled(self) -> dict[str, Settled]:
        """The settings of each arm, preset and changes put together."""
        return {arm.label: settle(self.experiment(arm)) for arm in self.arms}

    def world(self) -> Benchmark:
        """The benchmark, built."""
        experiment = self.experiment(self.arms[0])
        return build_benchmark(experiment, settle(experiment).options)[0]

    def data_notices(self) -> tuple[str, ...]:
        """What must be said about the data."""
        return data_notices(self.world())

    def identity(self) -> dict[str, Any]:
        """Everything that the numbers depend on, apart from the code."""
        settled = self.settled()
        return {
            **self.model_dump(),
            "degree": next(iter(settled.values())).degree,
            "world": self.world().describe(),
            "settings": {label: each.settings.model_dump() for label, each in settled.items()},
        }


class TheoryCell(BaseModel):
    """The check of the convergence theorems; its result is a document, not traces."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: Literal["theory"] = "theory"
    seed: int = Field(0, ge=0)
    short: bool = False

    @property
    def name(self) -> str:
        """What it is, for people."""
        return "convergence theorems" + (", short" if self.short else "")

    def identity(self) -> dict[str, Any]:
        """Everything that the numbers depend on, apart from the code."""
        return self.model_dump()


AnyCell = Cell | TheoryCell
