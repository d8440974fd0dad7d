"""The form of the plans and tunings in a store, checked when they are read."""

import json
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from regretless.studies.store import Store

Model = TypeVar("Model", bound=BaseModel)


class PanelPlan(BaseModel):
    """One table or chart; a ``kind`` of its own replaces the study's."""

    title: str
    kind: str | None = None
    zoom: int | None = Field(None, ge=1)
    cells: list[tuple[str, str]]  # label and key
    beside: list[str] = []  # keys of cells whose linear_thompson is drawn beside them


class StudyPlan(BaseModel):
    """What belongs to a study and how it is shown; ``paper`` is False for an own study."""

    name: str
    order: int
    kind: str
    title: str
    about: str
    paper: bool
    axis: str | None = None
    panels: list[PanelPlan]


class Scale(BaseModel):
    """How much was asked for; no horizon means the studies' own."""

    seeds: int
    first_seed: int
    horizon: int | None


class PlanFile(BaseModel):
    """A campaign: the command, the code, its studies, and the names of its cells by key."""

    command: str
    code: str
    written: float
    scale: Scale
    studies: list[StudyPlan]
    cells: dict[str, str]
    second: dict[str, str]  # key of a cell: key of the same cell with the second range of seeds


class Trial(BaseModel):
    """One configuration that was tried; no value if it failed."""

    number: int
    value: float | None


class Tuning(BaseModel):
    """A finished search for settings."""

    benchmark: str
    model: str
    feedback: str
    seeds: int
    first_seed: int
    trials: list[Trial]
    best: Trial
    importances: dict[str, float]


def read_plans(store: Store) -> list[PlanFile]:
    """The plans of a store, oldest first; one of another form is left out, its command writes it anew."""
    checked = (_checked(PlanFile, document) for document in store.written_plans())
    return [plan for plan in checked if plan is not None]


def read_tunings(store: Store) -> list[Tuning]:
    """The tunings of a store; one that cannot be read is left out."""
    found = []
    for path in sorted(store.folder.glob("tuning/*.json")):
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            continue
        tuning = _checked(Tuning, document)
        if tuning is not None:
            found.append(tuning)
    return found


def _checked(form: type[Model], document: Any) -> Model | None:
    try:
        return form.model_validate(document)
    except ValidationError:
        return None
