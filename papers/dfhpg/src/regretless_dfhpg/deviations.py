"""Differences between the defaults and the text of the paper: one list for report, documentation and tests."""

import functools
import textwrap
import tomllib
from importlib import resources
from typing import Any, NamedTuple

from regretless.experiments.report import Card, Section, Table, TableRow, Value

HEAD = ("difference", "the paper's text", "here", "reason", "option that follows the text")
ABOUT = (
    "The defaults follow what produced the published tables. Where the paper's text differs, this list says so, with "
    "the settings that follow the text, or the reason why there are none."
)


class Deviation(NamedTuple):
    """One difference from the text.

    ``option`` holds the settings that follow the text; ``none`` says why there are none. The option has an effect with
    ``policy`` and ``model`` on ``benchmark`` with ``feedback``, together with the settings ``requires``.
    """

    what: str
    place: str  # in the paper, by printed number
    paper: str
    here: str
    why: str
    option: dict[str, Any]
    none: str
    requires: dict[str, Any]
    policy: str
    model: str
    benchmark: str
    feedback: str

    @property
    def arguments(self) -> str:
        """The option as arguments of the command line."""
        return " ".join(f"--set {name}={_format(value)}" for name, value in self.option.items())

    @property
    def command(self) -> str:
        """A run that follows the text."""
        words = ["regretless run", self.benchmark, f"--policy {self.policy}"]
        words += [f"--model {self.model}"] if self.model != "gaussian_linear" else []
        words += [f"--feedback {self.feedback}"] if self.feedback != "bandit" else []
        settings = {**self.requires, **self.option}
        return " ".join([*words, *(f"--set {name}={_format(value)}" for name, value in settings.items())])


@functools.cache
def deviations() -> tuple[Deviation, ...]:
    """Return the list.

    >>> deviations()[0].arguments
    '--set benchmark.sign=-1'
    """
    text = (resources.files("regretless_dfhpg") / "data" / "deviations.toml").read_text(encoding="utf-8")
    defaults = {"policy": "dfhpg", "model": "gaussian_linear", "benchmark": "topk", "feedback": "bandit"}
    empty: dict[str, Any] = {"option": {}, "none": "", "requires": {}}
    return tuple(
        Deviation(**{**empty, **defaults, **entry.pop("on", {}), **entry}) for entry in tomllib.loads(text)["deviation"]
    )


def deviations_section() -> Section:
    """Return the list as a section of the report."""
    rows = []
    for each in deviations():
        option = Value(each.arguments, code=True) if each.option else Value(f"none: {each.none}")
        texts = (each.what, f"{each.paper} ({each.place})", each.here, each.why)
        rows.append(TableRow((*map(Value, texts), option)))
    table = Table("deviations", HEAD, tuple(rows), prose=True)
    return Section("deviations", "Deviations", ABOUT, (Card("", (table,), wide=True),))


def deviations_page() -> str:
    """Return the page of the documentation."""
    entries = deviations()
    with_option = [each for each in entries if each.option]
    lines = ["# Deviations from the paper's text", "", ABOUT, ""]
    lines += [
        f"{len(entries)} differences, {len(with_option)} of them with an option.",
        "`papers/dfhpg/tests/test_deviations.py` runs each option and checks that it changes something;",
        "`tests/policies/dfhpg/test_golden.py` compares the defaults with recorded rounds of the authors' program.",
        "Intended improvements are listed in [The algorithm](algorithm.md#intended-differences).",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{' --- |' * len(HEAD)}",
    ]
    for each in entries:
        option = f"`{each.arguments}`" if each.option else f"none: {each.none}"
        cells = (each.what, f"{each.paper} ({each.place})", each.here, each.why, option)
        lines.append("| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |")
    lines += ["", "Commands that follow the text, one for each option:", "", "```sh"]
    lines += [" \\\n".join(_wrap_command(each.command)) for each in with_option]
    return "\n".join([*lines, "```", ""])


def _wrap_command(command: str) -> list[str]:
    """Return the lines of a command, broken before options."""
    glued = command.replace(" --", "\n--").replace(" ", "\0").replace("\n", " ")  # breaks before options only
    return [
        line.replace("\0", " ") for line in textwrap.wrap(glued, 88, subsequent_indent="    ", break_on_hyphens=False)
    ]


def _format(value: Any) -> str:
    """Return a value as the command line takes it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
