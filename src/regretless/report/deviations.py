"""Where the defaults differ from the paper's text: one list, which this report, the documentation and the tests share.

``data/deviations.toml`` holds it; ``docs/deviations.md`` is ``page()``.
"""

import functools
import tomllib
from importlib import resources
from typing import Any, NamedTuple

from regretless.report.html import Markup, row, table, tag, text

HEAD = ("what", "the paper's text", "here", "why", "option that follows the text")
WORDS = (
    "The defaults follow what produced the published tables. Where the paper's text says otherwise, this list says so, with "
    "the settings that follow the text, or why there are none."
)


class Deviation(NamedTuple):
    """One difference; ``option`` are the settings that follow the text, ``none`` says why there are none.

    The option has an effect with ``policy`` and ``model`` on ``benchmark`` with ``feedback``, together with the settings
    ``beside``.
    """

    what: str
    place: str  # in the paper, by printed number
    paper: str
    here: str
    why: str
    option: dict[str, Any]
    none: str
    beside: dict[str, Any]
    policy: str
    model: str
    benchmark: str
    feedback: str

    @property
    def words(self) -> str:
        """The option as one types it."""
        return " ".join(f"--set {name}={_word(value)}" for name, value in self.option.items())

    @property
    def command(self) -> str:
        """A run that follows the text."""
        words = ["regretless run", self.benchmark, f"--policy {self.policy}"]
        words += [f"--model {self.model}"] if self.model != "gaussian_linear" else []
        words += [f"--feedback {self.feedback}"] if self.feedback != "bandit" else []
        settings = {**self.beside, **self.option}
        return " ".join([*words, *(f"--set {name}={_word(value)}" for name, value in settings.items())])


@functools.cache
def deviations() -> tuple[Deviation, ...]:
    """The list.

    >>> deviations()[0].words
    '--set benchmark.sign=-1'
    """
    read = (resources.files("regretless_dfhpg") / "data" / "deviations.toml").read_text(encoding="utf-8")
    usual = {"policy": "dfhpg", "model": "gaussian_linear", "benchmark": "topk", "feedback": "bandit"}
    found = []
    for entry in tomllib.loads(read)["deviation"]:
        blank: dict[str, Any] = {"option": {}, "none": "", "beside": {}}
        found.append(Deviation(**{**blank, **usual, **entry.pop("on", {}), **entry}))
    return tuple(found)


def section() -> Markup:
    """The list on the report's page."""
    body = []
    for each in deviations():
        option = tag("code", text(each.words)) if each.option else text(f"none: {each.none}")
        body.append(row(text(each.what), text(f"{each.paper} ({each.place})"), text(each.here), text(each.why), option))
    card = tag("div", table(HEAD, body, "deviations"), class_="card prose")
    return tag("section", tag("h2", text("Deviations")), tag("p", text(WORDS)), card, id="deviations")


def page() -> str:
    """The page of the documentation."""
    whole = deviations()
    without = sum(not each.option for each in whole)
    lines = ["# Deviations from the paper's text", "", WORDS, ""]
    lines += [
        f"{len(whole)} differences, {len(whole) - without} of them with an option. `tests/report/test_deviations.py` plays",
        "each option and demands that it changes something; `tests/policies/dfhpg/test_golden.py` holds the defaults against",
        "recorded rounds of the authors' program. What is ours on purpose is told in",
        "[The algorithm](algorithm.md#ours-on-purpose).",
        "",
        f"| {' | '.join(HEAD)} |",
        f"|{' --- |' * len(HEAD)}",
    ]
    for each in whole:
        option = f"`{each.words}`" if each.option else f"none: {each.none}"
        cells = (each.what, f"{each.paper} ({each.place})", each.here, each.why, option)
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    lines += ["", "Commands that follow the text, one for each option:", "", "```sh"]
    lines += [each.command for each in whole if each.option]
    return "\n".join([*lines, "```", ""])


def markdown() -> list[str]:
    """What the page of the reproduced numbers says about them."""
    many = sum(1 for each in deviations() if each.option)
    return [
        "## Deviations",
        "",
        f"{WORDS} [The list](deviations.md) has {len(deviations())} lines, {many} of them with an option.",
        "",
    ]


def _word(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, float):
        return f"{value:g}"
    return str(value).lower() if isinstance(value, bool) else str(value)
