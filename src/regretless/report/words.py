"""Names, colours and numbers as people read them."""

import math

SHORT_THEORY = (
    "A short run: rates have not settled and intervals are wide, so verdicts are left to 'regretless reproduce theory'."
)

BENCHMARKS = {"topk": "Top-k", "shortest_path": "Shortest path", "pricing": "Pricing", "energy": "Energy"}

COLOURS = {
    "greedy": "#8a8f98",
    "epsilon_greedy": "#b9875a",
    "thompson": "#a678b4",
    "dfhpg_1": "#4a86c5",
    "dfhpg": "#d9455f",
    "dfhpg_0": "#1f9e8f",
    "linear_thompson": "#e0982d",
    "gaussian_linear": "#d9455f",
    "gaussian_nn": "#4a86c5",
    "flow": "#1f9e8f",
    "diffusion": "#a678b4",
    "schedule": "#d9455f",
    "α = 0": "#1f9e8f",
    "α = 0.25": "#6cae5c",
    "α = 0.5": "#a9a23c",
    "α = 0.75": "#6d8fc7",
    "α = 1": "#4a5fb5",
}
SPARE = ("#7f6bd1", "#c76b98", "#5b9aa0", "#94794a", "#5f6b7a")

REFERENCES = {"random": "dot", "best_fixed": "dash", "clairvoyant": "dashdot", "market_forecast": "longdash"}
"""Reference lines and their dashes; others are drawn with long dashes and dots."""


def benchmark(name: str) -> str:
    """A benchmark's name in a heading."""
    return BENCHMARKS.get(name, name)


def colour(label: str, index: int = 0) -> str:
    """The colour of a curve: always the same for the same label."""
    return COLOURS.get(label, SPARE[index % len(SPARE)])


def number(value: float | None, digits: int = 3) -> str:
    """A regret such as 7.55e5; a dash for none.

    >>> number(755123.0), number(0.0), number(None), number(812.3)
    ('7.55e5', '0', '–', '812')
    """
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0 or 0.01 <= abs(value) < 100:
        return f"{value:.{digits}g}"
    if 100 <= abs(value) < 1000:
        return f"{value:.0f}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def spread(mean: float | None, error: float | None) -> str:
    """A mean with its standard error, such as 7.55e5 ± 4.8e4."""
    return f"{number(mean)} ± {number(error, 2)}"


def latex(mean: float | None, error: float | None) -> str:
    """The same in mathematics, in the form of the paper's tables."""
    return f"${_power(mean)} \\pm {_power(error)}$"


def _power(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "\\text{--}"
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{mantissa}{{\\times}}10^{{{int(exponent)}}}"
