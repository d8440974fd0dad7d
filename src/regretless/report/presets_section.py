"""The paper's tables of selected configurations: the tuned settings that the runs use, from the package's own data."""

from regretless.report.html import Markup, row, table, tag, text
from regretless.report.words import BENCHMARKS, benchmark, places
from regretless.show.words import number
from regretless_dfhpg.presets import read_table as read

TABLES = ("Point models", "Generative models")
GENERATIVE = ("flow", "diffusion")
DEGREE = "8"
FIRST = ("benchmark", "degree", "model")


def _presets(title: str) -> list[dict[str, str]]:
    """The presets of one table; new benchmarks come last."""
    found = [each for each in read("presets.csv") if (each["model"] in GENERATIVE) == (title == TABLES[1])]
    order = list(dict.fromkeys([*BENCHMARKS, *(each["benchmark"] for each in found)]))
    return sorted(found, key=lambda each: order.index(each["benchmark"]))


def head(title: str) -> list[str]:
    """The names of the columns: those that some row of the table has a value in."""
    presets = _presets(title)
    names = dict.fromkeys(name for each in presets for name in each)
    return [*FIRST, *(name for name in names if name not in FIRST and any(each.get(name) for each in presets))]


def rows(title: str, every_degree: bool = False) -> list[list[str]]:
    """The rows of one table, as text; of the paper's benchmarks those of the published degree, unless all are asked for."""
    names = head(title)[len(FIRST) :]
    return [
        [
            benchmark(each["benchmark"]),
            each["degree"] or "–",
            each["model"],
            *(_shown(each.get(name)) for name in names),
        ]
        for each in _presets(title)
        if every_degree or each["degree"] in ("", DEGREE) or each["benchmark"] not in BENCHMARKS
    ]


def _shown(value: str | None) -> str:
    try:
        return number(float(value or ""), 2)
    except ValueError:
        return value or "–"


def section() -> Markup:
    """Both tables; the point models' other degrees are folded away."""
    cards = []
    for title in TABLES:
        name = "_".join(("configurations", *places([title.lower()], "other")))
        parts = [tag("h3", text(title)), _table(title, rows(title), name)]
        more = rows(title, every_degree=True)
        if len(more) > len(rows(title)):
            parts.append(
                tag("details", tag("summary", text("All degrees")), _table(title, more, f"{name}_all_degrees"))
            )
        cards.append(tag("div", *parts, class_="card wide"))
    words = (
        "Tuned settings of DFHPG in the published runs, which these runs use; the other policies share what concerns them. "
        "Tune your own with 'regretless tune'."
    )
    body = tag("div", *cards, class_="grid")
    return tag("section", tag("h2", text("Configurations")), tag("p", text(words)), body, id="configurations")


def _table(title: str, lines: list[list[str]], name: str) -> Markup:
    return table(head(title), [row(*map(text, line)) for line in lines], name)
