"""A plan: the studies asked for, as cells with their addresses, written into the store so that others can follow and report."""

import hashlib
import json
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from regretless import files
from regretless.array_files import canonical
from regretless.studies import definitions
from regretless.studies.cells import AnyCell, describe, has_objects
from regretless.studies.cells import key as key_of
from regretless.studies.experiment import Experiment
from regretless.studies.identity import code_version
from regretless.studies.store import Store
from regretless.studies.study import Panel, Scale, Study
from regretless.studies.verdicts import SECOND_RANGE, needs_second_range


class Planned(NamedTuple):
    """A cell with the address of its result."""

    key: str
    cell: AnyCell


class Plan:
    """The cells of some studies, each once, in the order in which they are shown."""

    def __init__(
        self, studies: Sequence[Study], scale: Scale, command: str = "regretless reproduce", imports: Sequence[str] = ()
    ):
        self.scale, self.command, self.imports = scale, command, tuple(imports)
        self.studies = list(studies)
        self.keys: dict[str, str] = {}
        self.cells: dict[str, AnyCell] = {}
        for study in self.studies:
            for cell in study.cells():
                self.cells.setdefault(self._key(cell), cell)
        self.second: dict[str, Planned] = {}  # by the key of the first range
        for study in self.studies:
            if study.paper and study.kind == "table" and scale.first_seed == 0:
                for cell in study.cells():
                    assert isinstance(cell, Experiment)
                    again = cell.changed(seeds=range(SECOND_RANGE, SECOND_RANGE + len(cell.seeds)))
                    self.second[self._key(cell)] = Planned(self._key(again), again)

    def _key(self, cell: AnyCell) -> str:
        if has_objects(cell):
            return key_of(cell)
        words = json.dumps(describe(cell), default=str)
        if words not in self.keys:
            self.keys[words] = key_of(cell)
        return self.keys[words]

    def planned(self) -> list[Planned]:
        """Every cell with its address."""
        return [Planned(key, cell) for key, cell in self.cells.items()]

    def follow_ups(self, store: Store) -> list[Planned]:
        """The second range of seeds of every table cell that is too far from its published value."""
        chosen = []
        for first, again in self.second.items():
            record = store.record(first)
            if record is not None and needs_second_range(record):
                chosen.append(again)
        return chosen

    @property
    def id(self) -> str:
        """A name that the same studies at the same scale always have."""
        return hashlib.sha256(canonical([[study.name for study in self.studies], list(self.scale)])).hexdigest()[:12]

    def to_dict(self) -> dict[str, Any]:
        """The plan as data: all that a report needs to know about what belongs where."""
        scale = {"seeds": self.scale.seeds, "first_seed": self.scale.first_seed, "horizon": self.scale.horizon}
        return {
            "id": self.id,
            "command": self.command,
            "code": code_version(),
            "written": time.time(),
            "scale": scale,
            "imports": list(self.imports),
            "paper": any(study.paper for study in self.studies),
            "studies": [self._study(place, study) for place, study in enumerate(self.studies)],
            "cells": {key: cell.name for key, cell in self.cells.items()},
            "second": {key: again.key for key, again in self.second.items()},
        }

    def _study(self, place: int, study: Study) -> dict[str, Any]:
        known = list(definitions.REGISTRY)
        return {
            "name": study.name,
            "order": known.index(study.name) if study.paper else len(known) + place,
            "kind": study.kind,
            "title": study.title,
            "about": study.about,
            "axis": study.axis,
            "paper": study.paper,
            "panels": [self._panel(panel) for panel in study.panels],
        }

    def _panel(self, panel: Panel) -> dict[str, Any]:
        return {
            "title": panel.title,
            "kind": panel.kind,
            "zoom": panel.zoom,
            "cells": [[label, self._key(cell)] for label, cell in panel.cells],
            "beside": [self._key(cell) for cell in panel.beside],
            "borrowed": [
                {
                    "into": each.into,
                    "place": each.place,
                    "label": each.label,
                    "key": self._key(each.cell),
                    "arm": each.arm,
                }
                for each in panel.borrowed
            ],
        }

    def write(self, store: Store) -> None:
        """Leaves the plan in the store."""
        files.write_text(store.plans / f"{self.id}.json", json.dumps(self.to_dict(), indent=1))
