"""Reads a store for a report: the newest plan of every study, and the results that are there."""

import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from regretless.errors import DamagedError, SettingsError
from regretless.report.series import ArmSummary, summarise
from regretless.report.tunings import Tuning, read_tunings
from regretless.report.words import benchmark, places
from regretless.show.style import Palette
from regretless.show.words import distinct
from regretless.studies.claims.evaluate import Outcome, evaluate
from regretless.studies.forms import PanelPlan, PlanFile, ScalePlan, StudyPlan
from regretless.studies.joining import Source, joined, sources
from regretless.studies.store import Store
from regretless.studies.verdicts import Verdict, verdict

SIMPLE = "linear_thompson"
"""The strong simple baseline that charts show besides their own arms."""

ENOUGH = 10
"""From so many replications on, the lowest mean of a table is marked."""


class Reference(NamedTuple):
    """A reference line; its name tells the world where that is not the first one."""

    name: str
    mean: float | None
    error: float | None


class Shown(NamedTuple):
    """A cell of a panel, with its result."""

    label: str
    key: str
    record: dict[str, Any]
    arms: dict[str, ArmSummary]
    verdicts: dict[str, Verdict]  # by arm, where something is published for this very configuration
    second: dict[str, Any] | None  # record of the second range of seeds

    @property
    def seeds(self) -> list[int]:
        """The seeds of its replications."""
        given = self.record["cell"].get("seeds", [])
        return list(given) if isinstance(given, list | tuple) else []

    @property
    def replications(self) -> int:
        """The largest number of replications of an arm."""
        return max((arm.replications for arm in self.arms.values()), default=0)

    @property
    def devices(self) -> list[str]:
        """What computed it; a processor whose kind is its platform's name is named once."""
        named = self.record["environment"]["devices"]
        return list(dict.fromkeys(" ".join(dict.fromkeys(device.split())) for device in named))

    @property
    def marks_best(self) -> bool:
        """Whether its lowest mean says something."""
        return self.replications >= ENOUGH

    def references(self) -> list[Reference]:
        """The reference lines of the first world, then those of the others with their world's name."""
        lines = self.record.get("references", [])
        first = lines[0].get("world", "") if lines else ""
        ordered = sorted(lines, key=lambda line: line.get("world", "") != first)
        return [
            Reference(
                line["name"] if line.get("world", "") == first else f"{line['name']} ({line['world']})",
                line["mean"],
                line["standard_error"],
            )
            for line in ordered
        ]


class Panel(NamedTuple):
    """One table or chart."""

    title: str
    kind: str
    place: str  # its name in file names and addresses
    zoom: int | None
    cells: list[Shown]
    beside: list[Shown]
    lenders: list[Shown]  # cells that some of its arms are borrowed from
    absent: list[str]  # names of cells without a result, lenders included
    palette: Palette  # the page's
    undrawn: bool = False  # whether no other panel of the page draws the curves of its cells

    @property
    def name(self) -> str:
        """The title for people."""
        return benchmark(self.title)

    def arms(self) -> dict[str, ArmSummary]:
        """All arms of all cells; where there are several cells, the labels say which cell."""
        if len(self.cells) == 1:
            return self.cells[0].arms
        shared = set.intersection(*(set(cell.arms) for cell in self.cells)) if self.cells else set()
        alone = {SIMPLE} if sum(SIMPLE in cell.arms for cell in self.cells) == 1 else set()
        found: dict[str, ArmSummary] = {}
        for cell in self.cells:
            for label, arm in cell.arms.items():
                if label in alone or not cell.label:
                    name = label
                else:
                    name = cell.label if shared == {label} else f"{cell.label}, {label}"
                found[distinct(name, found)] = arm
        return found

    def references(self) -> list[Reference]:
        """The reference lines of the first cell."""
        return self.cells[0].references() if self.cells else []

    def simple_baseline(self) -> ArmSummary | None:
        """``linear_thompson``, from the panel's own cells or from one beside them."""
        return next((cell.arms[SIMPLE] for cell in [*self.cells, *self.beside] if SIMPLE in cell.arms), None)

    def notices(self) -> list[str]:
        """What the runs themselves had to say."""
        return list(dict.fromkeys(word for cell in self.cells for word in cell.record.get("notices", [])))


class Study(NamedTuple):
    """A table or figure, as far as it has been computed; ``paper`` is False for an own study."""

    name: str
    place: str
    title: str
    about: str
    paper: bool
    axis: str
    panels: list[Panel]
    scale: ScalePlan
    command: str

    @property
    def absent(self) -> list[str]:
        """Names of cells without a result."""
        return [name for panel in self.panels for name in panel.absent]


class Page(NamedTuple):
    """Everything a report shows."""

    studies: list[Study]
    tunings: list[Tuning]
    written: float
    code: list[str]
    claims: Sequence[Outcome] = ()  # the paper's, where some study of it is on the page

    def shown(self) -> dict[str, Shown]:
        """Every cell that is shown or lends an arm, by key."""
        return {cell.key: cell for _, panel in self.panels() for cell in [*panel.cells, *panel.lenders]}

    def panels(self) -> Iterator[tuple[Study, Panel]]:
        """Every panel with its study, in order."""
        return ((study, panel) for study in self.studies for panel in study.panels)

    @property
    def paper(self) -> bool:
        """Whether some study of the paper is on the page."""
        return any(study.paper for study in self.studies)

    @property
    def titles(self) -> str:
        """The titles of all studies."""
        return " · ".join(dict.fromkeys(study.title for study in self.studies))


def require_campaign(store: Store) -> list[tuple[StudyPlan, PlanFile]]:
    """The newest plan of every study in a store; SettingsError if it holds none."""
    chosen = [found for found in _newest(store.written_plans()).values() if found[0].panels]
    if not chosen:
        raise SettingsError(
            f"no results to report in {store.folder}: run 'regretless reproduce' first, or 'regretless run --out DIR' and "
            "give DIR as --store; plans of other versions are not read, the same command writes them anew"
        )
    return chosen


def gather(store: Store) -> Page:
    """All studies of a store; SettingsError if it holds none."""
    chosen = require_campaign(store)
    chosen.sort(key=lambda found: (not found[0].paper, found[0].order, found[1].written))
    reader = _Reader(store)
    names = places((study.name for study, _ in chosen), "study")
    studies = [reader.study(*found, place) for found, place in zip(chosen, names, strict=True)]
    page = Page(with_curves(studies), read_tunings(store), time.time(), [])
    claims = judged_claims(store, [study for study, _ in chosen if study.paper])
    return page._replace(code=sorted({cell.record["code"] for cell in page.shown().values()}), claims=claims)


def with_curves(studies: Sequence[Study]) -> list[Study]:
    """The same studies, whose tables know whether their runs are drawn round by round elsewhere on the page."""
    panels = [panel for study in studies for panel in study.panels]
    drawn = {cell.key for panel in panels if panel.kind in ("curves", "models") for cell in panel.cells}
    return [
        study._replace(
            panels=[
                panel._replace(undrawn=not drawn.issuperset(cell.key for cell in panel.cells)) for panel in study.panels
            ]
        )
        for study in studies
    ]


def judged_claims(store: Store, studies: Sequence[StudyPlan]) -> list[Outcome]:
    """The claims of the paper's text by the results of its studies; none without any."""
    cells = {
        (study.name, panel.title, label): source
        for study in studies
        for panel in study.panels
        for label, source in sources(panel)
    }
    return evaluate(cells, store.load) if cells else []


def _newest(plans: list[PlanFile]) -> dict[str, tuple[StudyPlan, PlanFile]]:
    """The plan to show of every study: the newest code, then full runs rather than short ones, then the latest."""
    latest = {study.name: plan.code for plan in plans for study in plan.studies}
    chosen: dict[str, tuple[StudyPlan, PlanFile]] = {}

    def rank(name: str, plan: PlanFile) -> tuple[bool, bool, float]:
        return plan.code == latest[name], plan.scale.horizon is None, plan.written

    for plan in plans:
        for study in plan.studies:
            if study.name not in chosen or rank(study.name, plan) >= rank(study.name, chosen[study.name][1]):
                chosen[study.name] = (study, plan)
    return chosen


class _Reader:
    """Reads the arms of every cell once, keeps their summary, and drops their numbers."""

    def __init__(self, store: Store):
        self.store = store
        self.palette = Palette()
        self.known: dict[Source, tuple[dict[str, Any], dict[str, ArmSummary]] | None] = {}

    def study(self, study: StudyPlan, plan: PlanFile, place: str) -> Study:
        names = places((panel.title for panel in study.panels), place)
        panels = [self.panel(panel, study, plan, name) for panel, name in zip(study.panels, names, strict=True)]
        about = (study.name, place, study.title, study.about, study.paper, study.axis or "")
        return Study(*about, panels, plan.scale, plan.command)

    def panel(self, panel: PanelPlan, study: StudyPlan, plan: PlanFile, place: str) -> Panel:
        cells = [(source.key, self.cell(label, source, study.paper, plan)) for label, source in sources(panel)]
        beside = [(key, self.cell("", Source(key), False, plan)) for key in panel.beside]
        lending = dict.fromkeys(each.key for each in panel.borrowed)
        lenders = [(key, self.cell("", Source(key), study.paper, plan)) for key in lending]
        absent = [plan.cells.get(key, key[:12]) for key, cell in [*cells, *lenders] if cell is None]
        shown, near, lent = ([cell for _, cell in each if cell is not None] for each in (cells, beside, lenders))
        about = (panel.title, panel.kind or study.kind, place, panel.zoom)
        return Panel(*about, shown, near, lent, absent, self.palette)

    def cell(self, label: str, source: Source, paper: bool, plan: PlanFile) -> Shown | None:
        found = self.load(source)
        if found is None:
            return None
        record, arms = found
        again = plan.second.get(source.key)
        second = None if again is None else self.store.record(again)
        own = [name for name in arms if name in record["arms"]]
        judged = {name: verdict(record, name, second) for name in own} if paper else {}
        known = {name: each for name, each in judged.items() if each is not None}
        return Shown(label, source.key, record, arms, known, second)

    def load(self, source: Source) -> tuple[dict[str, Any], dict[str, ArmSummary]] | None:
        if source not in self.known:
            try:
                result = joined(source, self.store.load)
            except (FileNotFoundError, DamagedError):
                self.known[source] = None
            else:
                worlds = {line.get("world", "") for line in result.record.get("references", [])}
                self.known[source] = (result.record, summarise(result.traces, len(worlds) <= 1))
        return self.known[source]
