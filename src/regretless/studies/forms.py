"""The small JSON files of a store, read with care: a file that has another form counts as one that cannot be read."""

import json
from pathlib import Path
from typing import Annotated, Self, TypeVar

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

Key = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Form(BaseModel):
    """What must be in a file; there may be more."""

    model_config = ConfigDict(strict=True)


FormType = TypeVar("FormType", bound=Form)


class FailureForm(Form):
    """Why a cell could not be computed."""

    name: str
    error: str
    id: str


class BorrowedPlan(Form):
    """An arm that one of a panel's cells shows and another cell has played."""

    model_config = ConfigDict(frozen=True)

    into: str
    place: int
    label: str
    key: Key
    arm: str


class PanelPlan(Form):
    """One table or chart of a study."""

    title: str
    kind: str | None  # another one than the study's
    zoom: int | None
    cells: list[tuple[str, Key]]
    beside: list[Key]
    borrowed: list[BorrowedPlan] = []


class StudyPlan(Form):
    """One study of a plan."""

    name: str
    order: int
    kind: str
    title: str
    about: str
    axis: str | None
    paper: bool
    panels: list[PanelPlan]


class ScalePlan(Form):
    """How much of everything was asked for."""

    seeds: int | None
    first_seed: int
    horizon: int | None


class PlanFile(Form):
    """What was asked for."""

    id: str
    command: str
    code: str
    written: float
    scale: ScalePlan
    studies: list[StudyPlan]
    cells: dict[Key, str]
    second: dict[Key, Key]

    @model_validator(mode="after")
    def _names_every_cell(self) -> Self:
        panels = [panel for study in self.studies for panel in study.panels]
        shown = {key for panel in panels for _, key in panel.cells} | {key for panel in panels for key in panel.beside}
        shown |= {each.key for panel in panels for each in panel.borrowed}
        if not shown | self.second.keys() <= self.cells.keys():
            raise ValueError("expected the name of every cell that is shown")
        return self


def read(path: Path, form: type[FormType]) -> FormType | None:
    """What a file of this form holds; None if it is not there, cannot be read, or has another form.

    Half a character, as in a path that is no UTF-8, is read as a question mark.
    """
    try:
        words = json.dumps(json.loads(path.read_text(encoding="utf-8")), ensure_ascii=False)
        return form.model_validate_json(words.encode("utf-8", "replace"))
    except (OSError, ValueError, RecursionError):  # pydantic's own error is a ValueError
        return None
