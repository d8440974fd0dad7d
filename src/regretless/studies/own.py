"""Studies of your own, from a TOML or a Python file: own axes, labels, titles and panels.

A TOML file names the study and lists panels of cells; ``[defaults]`` holds what all cells share, and a cell may say anything
that an Experiment can. ``sweep`` makes a cell for each value of a setting. A Python file defines ``study``: a Study.
"""

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from regretless import plugins
from regretless.errors import RegretlessError, SettingsError
from regretless.registry import require_known
from regretless.spec import Spec
from regretless.studies import definitions
from regretless.studies.cells import TheoryCell
from regretless.studies.experiment import Experiment
from regretless.studies.study import KINDS, Kind, Panel, Scale, Study


class Sweep(Spec):
    """A cell for each value of one setting, labelled with the value."""

    setting: str
    values: list[Any] = Field(min_length=1)


class OwnPanel(Spec):
    """One table or chart."""

    title: str = ""
    kind: Kind | None = None
    zoom: int | None = Field(None, ge=1)
    cells: list[dict[str, Any]] = Field(default_factory=list)
    sweep: Sweep | None = None
    defaults: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _something(self) -> "OwnPanel":
        if bool(self.cells) == (self.sweep is not None):
            raise SettingsError(f"panel {self.title!r}: expected cells, or a sweep of one setting")
        return self

    def experiments(self, defaults: dict[str, Any]) -> list[tuple[str, Experiment]]:
        """The cells by label."""
        common = {**defaults, **self.defaults}
        if self.sweep is None:
            cells = [dict(cell) for cell in self.cells]
            return [(str(cell.pop("label", "")), _experiment(common, cell)) for cell in cells]
        setting = self.sweep.setting
        return [(str(value), _experiment(common, {"settings": {setting: value}})) for value in self.sweep.values]


class OwnStudy(Spec):
    """A study as its file describes it."""

    name: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_]*$")
    title: str = ""
    about: str = ""
    kind: Kind = "table"
    axis: str | None = None
    imports: list[str] = Field(default_factory=list)
    defaults: dict[str, Any] = Field(default_factory=dict)
    panels: list[OwnPanel] = Field(min_length=1)


def is_file(word: str) -> bool:
    """Whether a word of the command line names a study's file rather than a study of the paper."""
    return word.endswith((".toml", ".py"))


def read(path: Path, scale: Scale) -> tuple[Study, tuple[str, ...]]:
    """The study in a file, at this scale, and the modules that it wants imported."""
    if not path.is_file():
        raise SettingsError(f"no study at {path}: expected a TOML or Python file")
    try:
        found, imports = _from_python(path) if path.suffix == ".py" else _from_toml(path)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from None
    if found.name in definitions.REGISTRY:
        raise SettingsError(f"{path}: {found.name!r} is a study of the paper: choose another name")
    panels = tuple(
        panel._replace(
            cells=tuple((label, _scaled(cell, scale)) for label, cell in panel.cells),
            beside=tuple(_scaled(cell, scale) for cell in panel.beside),
            borrowed=tuple(each._replace(cell=_scaled(each.cell, scale)) for each in panel.borrowed),
        )
        for panel in found.panels
    )
    return found._replace(panels=panels, paper=False), imports


def _from_toml(path: Path) -> tuple[Study, tuple[str, ...]]:
    try:
        words = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"expected a study in TOML, but {error}") from None
    own = OwnStudy(**words)
    for name in own.imports:
        plugins.load(name, "imports")
    panels = tuple(
        Panel(panel.title, tuple(panel.experiments(own.defaults)), zoom=panel.zoom, kind=panel.kind)
        for panel in own.panels
    )
    axis = own.axis or next((panel.sweep.setting for panel in own.panels if panel.sweep is not None), None)
    title = own.title or own.name.replace("_", " ")
    return Study(own.name, own.kind, title, own.about, panels, axis), tuple(own.imports)


def _from_python(path: Path) -> tuple[Study, tuple[str, ...]]:
    if path.resolve().parent != Path.cwd():
        raise SettingsError("expected a Python file in the working directory")
    found = getattr(plugins.load(path.stem, "study"), "study", None)
    try:
        study = found() if callable(found) and not isinstance(found, Study) else found
    except RegretlessError as error:
        raise SettingsError(f"study(): {error}") from None
    except (Exception, SystemExit) as error:
        raise SettingsError(f"study() failed with {type(error).__name__}: {error}") from None
    if not isinstance(study, Study):
        raise SettingsError("expected it to define 'study', a regretless.studies.Study or a function that makes one")
    for kind in (study.kind, *(panel.kind or study.kind for panel in study.panels)):
        require_known("kind", kind, KINDS)
    for cell in study.cells():
        if not isinstance(cell, Experiment | TheoryCell):
            raise SettingsError(f"expected cells that are Experiments, got {type(cell).__name__}")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", study.name):
        raise SettingsError(f"expected a name of letters, digits and underscores, got {study.name!r}")
    if not any(panel.cells for panel in study.panels):
        raise SettingsError("expected at least one panel with a cell, got none")
    return study, (path.stem,)


def _experiment(common: dict[str, Any], cell: dict[str, Any]) -> Experiment:
    """A cell: its own words before the common ones, settings one by one."""
    words = {**common, **cell, "settings": {**_flat(common.get("settings", {})), **_flat(cell.get("settings", {}))}}
    words |= {"preset": _flat(words["preset"])} if "preset" in words else {}
    if isinstance(words.get("arms"), list):
        tables = ("settings", "preset")
        words["arms"] = [
            {name: _flat(each) if name in tables else each for name, each in arm.items()}
            if isinstance(arm, dict) else arm
            for arm in words["arms"]
        ]  # fmt: skip
    return Experiment(**words)


def _flat(values: Any, prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names: ``[settings.alpha] max = 0.3`` and ``"alpha.max" = 0.3`` are the same."""
    if not isinstance(values, dict):
        raise SettingsError(f"expected a table of settings, got {values!r}")
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return found


def _scaled(cell: Any, scale: Scale) -> Any:
    return scale.applied(cell) if isinstance(cell, Experiment) else cell
