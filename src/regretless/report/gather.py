"""Reads a store for a report: the newest plan of every study, and the results that are there."""

import json
import time
from typing import Any, NamedTuple

from regretless.errors import DamagedError, SettingsError
from regretless.report.series import Arm, summarise
from regretless.studies.store import Store
from regretless.studies.verdicts import Verdict, verdict


class Shown(NamedTuple):
    """A cell of a panel, with its result."""

    label: str
    key: str
    record: dict[str, Any]
    arms: dict[str, Arm]
    second: dict[str, Any] | None  # record of the second range of seeds

    def verdict(self, label: str) -> Verdict | None:
        """How an arm compares with its published value; None where nothing is published for this very configuration."""
        return verdict(self.record, label, self.second)


class Panel(NamedTuple):
    """One table or chart."""

    benchmark: str
    zoom: int | None
    cells: list[Shown]
    beside: list[Shown]
    absent: list[str]  # names of cells without a result

    def references(self) -> list[dict[str, Any]]:
        """The reference lines of the first cell."""
        return self.cells[0].record.get("references", []) if self.cells else []

    def linear_thompson(self) -> Arm | None:
        """The strong simple baseline, from the panel's own cells or from one beside them."""
        for cell in [*self.cells, *self.beside]:
            if "linear_thompson" in cell.arms:
                return cell.arms["linear_thompson"]
        return None


class Study(NamedTuple):
    """A table or figure of the paper, as far as it has been computed."""

    name: str
    kind: str
    title: str
    about: str
    missing: list[str]
    panels: list[Panel]
    scale: dict[str, Any]
    command: str

    @property
    def absent(self) -> list[str]:
        """Names of cells without a result."""
        return [name for panel in self.panels for name in panel.absent]


class Page(NamedTuple):
    """Everything a report shows."""

    studies: list[Study]
    tunings: list[dict[str, Any]]
    written: float
    code: list[str]

    def shown(self) -> dict[str, Shown]:
        """Every cell that is shown, by key."""
        return {cell.key: cell for study in self.studies for panel in study.panels for cell in panel.cells}


def gather(store: Store) -> Page:
    """All studies of a store; SettingsError if it holds none."""
    plans = store.written_plans()
    if not plans:
        raise SettingsError(f"no campaign in the store {store.folder}: run 'regretless reproduce' first")
    newest = plans[-1]
    plans.sort(key=lambda plan: (plan["code"] == newest["code"], plan["scale"]["horizon"] is None, plan["written"]))
    chosen: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for plan in plans:  # a later one in this order replaces an earlier one: full runs replace quick ones
        for study in plan["studies"]:
            chosen[study["name"]] = (study, plan)
    reader = _Reader(store)
    studies = [reader.study(*found) for found in sorted(chosen.values(), key=lambda found: found[0]["order"])]
    tunings = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(store.folder.glob("tuning/*.json"))]
    codes = sorted({cell.record["code"] for study in studies for panel in study.panels for cell in panel.cells})
    return Page(studies, tunings, time.time(), codes)


class _Reader:
    """Reads every result once, keeps its summary, and drops its numbers."""

    def __init__(self, store: Store):
        self.store = store
        self.known: dict[str, tuple[dict[str, Any], dict[str, Arm]] | None] = {}

    def study(self, study: dict[str, Any], plan: dict[str, Any]) -> Study:
        panels = [self.panel(panel, plan) for panel in study["panels"]]
        about = {key: study[key] for key in ("name", "kind", "title", "about", "missing")}
        return Study(**about, panels=panels, scale=plan["scale"], command=plan["command"])

    def panel(self, panel: dict[str, Any], plan: dict[str, Any]) -> Panel:
        cells = [self.cell(label, key, plan) for label, key in panel["cells"]]
        beside = [self.cell("", key, plan) for key in panel["beside"]]
        absent = [
            plan["cells"][key] for (_, key), cell in zip(panel["cells"], cells, strict=True) if cell is None
        ]  # fmt: skip
        return Panel(
            panel["benchmark"],
            panel["zoom"],
            [cell for cell in cells if cell is not None],
            [cell for cell in beside if cell is not None],
            absent,
        )

    def cell(self, label: str, key: str, plan: dict[str, Any]) -> Shown | None:
        found = self.load(key)
        if found is None:
            return None
        again = plan["second"].get(key)
        return Shown(label, key, *found, None if again is None else self.store.record(again))

    def load(self, key: str) -> tuple[dict[str, Any], dict[str, Arm]] | None:
        if key not in self.known:
            try:
                result = self.store.load(key)
                self.known[key] = (result.record, summarise(result.traces))
            except (FileNotFoundError, DamagedError):
                self.known[key] = None
        return self.known[key]
