"""The look of curves, bars and reference lines: one palette for the page, the figures and the picture of a run."""

from collections.abc import Iterable
from typing import NamedTuple

MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "star", "pentagon")
QUIET = "#667085"
"""Reference lines in print; on the page they take the colour of quiet text."""


class Style(NamedTuple):
    """A colour as ``#rrggbb``, a marker and dashes, so that curves can be told apart in grey as well."""

    colour: str
    marker: str
    dash: str = "solid"


KNOWN = {
    "greedy": Style("#8a8f98", "square", "dashdotdot"),
    "epsilon_greedy": Style("#b9875a", "diamond", "dashdot"),
    "thompson": Style("#a678b4", "triangle-up", "longdash"),
    "dfhpg_1": Style("#4a86c5", "triangle-down", "dot"),
    "dfhpg": Style("#d9455f", "circle"),
    "dfhpg_0": Style("#1f9e8f", "star", "dash"),
    "linear_thompson": Style("#e0982d", "pentagon", "longdashdot"),
    "gaussian_linear": Style("#d9455f", "circle"),
    "gaussian_nn": Style("#4a86c5", "triangle-down", "dashdot"),
    "flow": Style("#1f9e8f", "star", "dash"),
    "diffusion": Style("#a678b4", "triangle-up", "dot"),
    "schedule": Style("#d9455f", "circle"),
    "α = 0": Style("#1f9e8f", "star", "dash"),
    "α = 0.25": Style("#6cae5c", "square", "dot"),
    "α = 0.5": Style("#a9a23c", "diamond", "dashdot"),
    "α = 0.75": Style("#6d8fc7", "triangle-up", "longdash"),
    "α = 1": Style("#4a5fb5", "triangle-down", "dashdotdot"),
}

CYCLE = (
    "#7f4fc9", "#2f7d4f", "#8c5a1e", "#3d6f8e", "#c2558f", "#6b7a12", "#b03a2e", "#5c4b8a", "#188aa8", "#d07c5c", "#9c2f6b",
    "#54606f",
)  # fmt: skip
"""Colours of labels that are not known: none of them is a known label's."""

_DASHES = ("dash", "dot", "dashdot", "longdash", "dashdotdot", "solid")
_TAKEN = {(style.marker, style.dash) for style in KNOWN.values()}
PAIRS = [pair for i in range(42) if (pair := (MARKERS[i % 7], _DASHES[i % 6])) not in _TAKEN]
"""Markers and dashes of labels that are not known: none of these pairs is a known label's."""

DASHES = {"random": "dot", "best_fixed": "dash", "clairvoyant": "dashdot", "market_forecast": "longdash"}
OTHER_DASH = "longdashdot"
SPARE_DASHES = (OTHER_DASH, "dashdotdot", "dot", "dash", "dashdot", "longdash", "solid")
"""For reference lines whose own dashes are taken in a chart, in this order."""


class Palette:
    """The styles of one page: a label looks the same in all its charts, and two labels look different.

    Labels that are not known take the colours of ``CYCLE`` in the order in which they are first asked for; when it has gone
    round, markers and dashes still tell them apart.

    >>> palette = Palette()
    >>> palette["dfhpg"] == KNOWN["dfhpg"], palette["mine"].colour == CYCLE[0], palette["other"].colour == CYCLE[1]
    (True, True, True)
    >>> palette["mine"].colour == CYCLE[0]
    True
    """

    def __init__(self) -> None:
        self._given: dict[str, Style] = {}

    def __getitem__(self, label: str) -> Style:
        if label in KNOWN:
            return KNOWN[label]
        if label not in self._given:
            index = len(self._given)
            self._given[label] = Style(CYCLE[index % len(CYCLE)], *PAIRS[index % len(PAIRS)])
        return self._given[label]


def dash(reference: str) -> str:
    """The dashes of a reference line, by its name."""
    return DASHES.get(reference.replace(" ", "_"), OTHER_DASH)


def dashes(references: Iterable[str]) -> dict[str, str]:
    """The dashes of all reference lines of a chart, each its own as far as they go round.

    >>> dashes(["random", "random (b)", "quota"])
    {'random': 'dot', 'random (b)': 'longdashdot', 'quota': 'dashdotdot'}
    """
    found: dict[str, str] = {}
    for name in references:
        wanted = (dash(name.split(" (")[0]), *SPARE_DASHES)
        found[name] = next((each for each in wanted if each not in found.values()), wanted[0])
    return found


def translucent(colour: str, opacity: float = 0.13) -> str:
    """A colour for the band around a curve.

    >>> translucent("#ff0000", 0.5)
    'rgba(255,0,0,0.5)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{opacity:g})"
