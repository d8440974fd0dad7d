"""A study as data: panels of cells, each cell an experiment or another computation, and how they are shown."""

import dataclasses
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import Field, GetPydanticSchema, StringConstraints
from pydantic_core import core_schema

from regretless import plugins
from regretless.errors import SettingsError
from regretless.experiments.experiment import Experiment, flatten_settings, parse_experiment
from regretless.experiments.extension import REPORT, STUDIES, Task
from regretless.registry import require_known

Address = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""Where a result is stored."""

Work = Annotated[
    Experiment | Task | None, Field(exclude=True), GetPydanticSchema(lambda source, handler: core_schema.none_schema())
]
"""What a cell computes; never written to a file or read from one."""

KINDS = ("table", "curves", "bars", "lines", "heatmap", "models", "arena")
"""How the report shows panels; packages may add kinds."""


class Scale(NamedTuple):
    """How much to compute: replications, the seed of the first one, and rounds; None leaves it to the study.

    Parameters
    ----------
    seeds : int, optional
        Number of replications.
    first_seed : int, default 0
        Seed of the first replication.
    horizon : int, optional
        Largest number of rounds.

    Examples
    --------
    >>> Scale(first_seed=5).seeds_or(3)
    range(5, 8)
    """

    seeds: int | None = None
    first_seed: int = 0
    horizon: int | None = None

    def seeds_or(self, count: int) -> range:
        """Return the seeds to use, ``count`` of them unless the scale sets the number.

        Parameters
        ----------
        count : int
            Number of seeds of the study.
        """
        return range(self.first_seed, self.first_seed + (self.seeds or count))

    def apply(self, experiment: Experiment) -> Experiment:
        """Return the experiment with the seeds and at most the rounds of this scale.

        Parameters
        ----------
        experiment : Experiment
            An experiment at its own scale.
        """
        changes: dict[str, object] = {}
        if self.seeds is not None or self.first_seed:
            changes["seeds"] = self.seeds_or(len(experiment.seed_list))
        if self.horizon is not None:
            changes["horizon"] = min(self.horizon, experiment.horizon or self.horizon)
        return experiment.replace(**changes) if changes else experiment


QUICK = Scale(seeds=3, horizon=200)
"""Few replications of few rounds: ``reproduce --quick``."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One experiment, or another task, of a panel.

    Parameters
    ----------
    label : str
        Its name in the panel, such as a value on the axis of the study; may be empty if the panel has one cell.
    work : Experiment or Task, optional
        What is computed. None in a study that was read from a store.
    arms : sequence of (label, address), optional
        Where the results of its arms are stored; filled in when a campaign is planned.
    second : sequence of (label, address), optional
        The arms that are played again on a second range of seeds, see ``Study.second_seeds``.
    """

    label: str
    work: Work = None
    arms: tuple[tuple[str, Address], ...] = ()
    second: tuple[tuple[str, Address], ...] = ()


@dataclasses.dataclass(frozen=True)
class Panel:
    """One table or chart.

    Parameters
    ----------
    title : str
        Its title; the name of a benchmark is shown as the benchmark is called in print.
    cells : tuple of Cell
        What it shows.
    companions : tuple of Cell, optional
        Cells whose simple baseline is drawn as well.
    zoom : int, optional
        How many rounds a curve shows.
    kind : str, optional
        How it is shown if not as its study.
    """

    title: str
    cells: tuple[Cell, ...]
    companions: tuple[Cell, ...] = ()
    zoom: int | None = None
    kind: str | None = None


@dataclasses.dataclass(frozen=True)
class Study:
    """A table or figure: panels of cells.

    Parameters
    ----------
    name : str
        Letters, digits and underscores.
    panels : tuple of Panel
        Its tables or charts.
    title, about : str
        Heading and one or two sentences below it.
    kind : str, default "table"
        How panels are shown: table, curves, lines, bars, arena, or a kind that a package adds to the report.
    axis : str, optional
        What the labels of the cells are values of.
    collection : str, optional
        The publication that it belongs to; empty for a study of your own.
    order : int, optional
        Its place among the studies of its collection.
    second_seeds : int, optional
        First seed of a second range. An arm that differs from its published value by more than three standard errors is
        played again with these seeds.

    Examples
    --------
    >>> experiment = Experiment("topk", ["greedy", "dfhpg"], seeds=2, horizon=20)
    >>> study = Study("mine", (Panel("topk", (Cell("", experiment),)),), title="Two policies")
    >>> [cell.work.horizon for cell in study.cells()]
    [20]
    """

    name: str
    panels: tuple[Panel, ...]
    title: str = ""
    about: str = ""
    kind: str = "table"
    axis: str | None = None
    collection: str = ""
    order: int = 0
    second_seeds: int | None = None

    def cells(self) -> Iterator[Cell]:
        """Iterate over the cells of all panels, companions included."""
        for panel in self.panels:
            yield from panel.cells
            yield from panel.companions

    def replace_cells(self, change: Callable[[Cell], Cell]) -> "Study":
        """Return the study with every cell, companions included, replaced by what a function makes of it.

        Parameters
        ----------
        change : callable
            Receives a Cell and returns a Cell.
        """
        panels = (
            dataclasses.replace(panel, cells=(*map(change, panel.cells),), companions=(*map(change, panel.companions),))
            for panel in self.panels
        )
        return dataclasses.replace(self, panels=tuple(panels))


NAME_PATTERN = r"[A-Za-z][A-Za-z0-9_]*"
STUDY_FIELDS = ("name", "title", "about", "kind", "axis", "imports", "defaults", "panels")
PANEL_FIELDS = ("title", "kind", "zoom", "cells", "sweep", "defaults")


def is_study_file(word: str) -> bool:
    """Return whether a word of the command line names a file rather than a registered study."""
    return word.endswith((".toml", ".py"))


def read_study(path: Path, scale: Scale) -> tuple[Study, tuple[str, ...]]:
    """Read a study from a TOML or a Python file.

    Parameters
    ----------
    path : Path
        A TOML file with ``name``, ``[defaults]`` and ``[[panels]]``, or a Python file in the working directory that
        defines ``study``, a Study or a function that returns one.
    scale : Scale
        Replaces seeds and rounds of its experiments.

    Returns
    -------
    tuple
        The study, and the modules that it needs.
    """
    try:
        if not path.is_file():
            raise SettingsError("no such file: expected a study in TOML or Python")
        study, imports = _read_python(path) if path.suffix == ".py" else _read_toml(path)
        _check_study(study)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path}: its tables are nested too deeply") from None

    def scaled(cell: Cell) -> Cell:
        return dataclasses.replace(cell, work=scale.apply(cell.work)) if isinstance(cell.work, Experiment) else cell

    return dataclasses.replace(study.replace_cells(scaled), collection=""), imports


def _check_study(study: Study) -> None:
    if not isinstance(study.name, str) or not re.fullmatch(NAME_PATTERN, study.name):
        raise SettingsError(f"expected a name of letters, digits and underscores, got {study.name!r}")
    if study.name in STUDIES:
        raise SettingsError(f"{study.name!r} is a study that {STUDIES.origin(study.name)} defines: choose another name")
    if not any(panel.cells for panel in study.panels):
        raise SettingsError("expected at least one panel with a cell, got none")
    for kind in {study.kind, *(panel.kind or study.kind for panel in study.panels)} - set(KINDS):
        added = [known for part in REPORT.usable().values() for known in getattr(part, "panels", ())]
        require_known("kind", kind, [*KINDS, *added])
    for cell in study.cells():
        if not isinstance(cell, Cell) or not isinstance(cell.work, Experiment | Task):
            raise SettingsError(f"expected cells with an Experiment, got {cell!r}")


def _read_python(path: Path) -> tuple[Study, tuple[str, ...]]:
    if path.resolve().parent != Path.cwd():
        raise SettingsError("expected a Python file in the working directory")
    defined = getattr(plugins.load(path.stem, "study"), "study", None)
    study = plugins.call(defined, "study()") if callable(defined) else defined
    if not isinstance(study, Study):
        raise SettingsError(
            "expected it to define 'study', a regretless.experiments.Study or a function that makes one"
        )
    return study, (path.stem,)


def _read_toml(path: Path) -> tuple[Study, tuple[str, ...]]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise SettingsError(f"expected a study in TOML, but {error or 'it is nested too deeply'}") from None
    for name in table:
        require_known("setting", name, STUDY_FIELDS, " of a study")
    imports = tuple(map(str, _expect(table, "imports", list, [])))
    for module in imports:
        plugins.load(module, "imports")
    defaults, panels = _expect(table, "defaults", dict, {}), _expect(table, "panels", list, [])
    texts = {name: _expect(table, name, str, "") for name in ("name", "title", "about")}
    axis = _expect(table, "axis", str, "") or next(
        (panel["sweep"].get("setting") for panel in panels if isinstance(panel, dict) and "sweep" in panel), None
    )
    texts["title"] = texts["title"] or texts["name"].replace("_", " ")
    parsed, kind = tuple(_parse_panel(panel, defaults) for panel in panels), _expect(table, "kind", str, "table")
    return Study(panels=parsed, kind=kind, axis=axis, **texts), imports


def _parse_panel(table: Any, defaults: Mapping[str, Any]) -> Panel:
    """Return the panel that a table of a TOML file describes."""
    if not isinstance(table, dict):
        raise SettingsError(f"expected panels to be tables, got {table!r}")
    for name in table:
        require_known("setting", name, PANEL_FIELDS, " of a panel")
    title, zoom = _expect(table, "title", str, ""), table.get("zoom")
    if zoom is not None and (isinstance(zoom, bool) or not isinstance(zoom, int) or zoom < 1):
        raise SettingsError(f"panel {title!r}: expected zoom to be a number of rounds, got {zoom!r}")
    cells, sweep = _expect(table, "cells", list, []), table.get("sweep")
    if bool(cells) == (sweep is not None):
        raise SettingsError(f"panel {title!r}: expected cells, or a sweep of one setting")
    common = {**defaults, **_expect(table, "defaults", dict, {})}
    if sweep is not None:
        cells = _parse_sweep(sweep, title)
    if not all(isinstance(cell, dict) for cell in cells):
        raise SettingsError(f"panel {title!r}: expected cells to be tables")
    made = tuple(Cell(str(cell.get("label", "")), _parse_cell(common, cell)) for cell in cells)
    return Panel(title, made, zoom=zoom, kind=_expect(table, "kind", str, "") or None)


def _parse_sweep(sweep: Any, title: str) -> list[dict[str, Any]]:
    """Return a cell for each value of the setting that is swept."""
    match sweep:
        case {"setting": str(setting), "values": [_, *_] as values} if len(sweep) == 2:
            return [{"label": str(value), "settings": {setting: value}} for value in values]
    raise SettingsError(
        f"panel {title!r}: expected a sweep with setting and values, a setting over a list of values, got {sweep!r}"
    )


def _parse_cell(common: Mapping[str, Any], cell: Mapping[str, Any]) -> Experiment:
    """Return the experiment of a cell: its own values before the common ones, settings one by one."""
    settings = {**flatten_settings(common.get("settings", {})), **flatten_settings(cell.get("settings", {}))}
    values = {name: value for name, value in {**common, **cell}.items() if name != "label"}
    return parse_experiment({**values, "settings": settings})


def _expect(table: Mapping[str, Any], name: str, kind: type[Any], default: Any) -> Any:
    """Return a value of a table, of the type that is expected."""
    value = table.get(name, default)
    if not isinstance(value, kind):
        kinds = {"str": "text", "list": "a list", "dict": "a table"}
        raise SettingsError(f"expected {name} to be {kinds[kind.__name__]}, got {value!r}")
    return value
