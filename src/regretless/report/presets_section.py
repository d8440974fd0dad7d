"""The paper's tables of selected configurations: the tuned settings that the runs use, from the package's own data."""

from regretless.benchmarks.presets import read
from regretless.report.html import Markup, row, table, tag, text
from regretless.report.words import BENCHMARKS, benchmark, latex_text, number

COMMON = ("policy_lr", "nuisance_lr", "surrogate", "alpha_max", "alpha_min", "alpha_time_scale", "baseline")
TABLES = {
    "Point models": (*COMMON, "exploration_scale", "normalize_gradients"),
    "Generative models": (*COMMON, "scenarios", "kappa_dfl", "lambda_reg"),
}
GENERATIVE = ("flow", "diffusion")
DEGREE = "8"


def rows(title: str, every_degree: bool = False) -> list[list[str]]:
    """The rows of one table, as text: benchmark, degree, model, settings; new benchmarks come last."""
    order = list(BENCHMARKS)
    place = {name: index for index, name in enumerate(dict.fromkeys([*order, *_column("benchmark")]))}
    return [
        [
            benchmark(each["benchmark"]),
            each["degree"] or "–",
            each["model"],
            *(_shown(each.get(name)) for name in TABLES[title]),
        ]
        for each in sorted(read("presets.csv"), key=lambda each: place[each["benchmark"]])
        if (each["model"] in GENERATIVE) == title.startswith("Generative")
        and (every_degree or each["degree"] in ("", DEGREE) or each["benchmark"] not in order)
    ]


def _column(name: str) -> list[str]:
    return [each[name] for each in read("presets.csv")]


def head(title: str) -> list[str]:
    """The names of the columns."""
    return ["benchmark", "degree", "model", *TABLES[title]]


def _shown(value: str | None) -> str:
    try:
        return number(float(value or ""), 2)
    except ValueError:
        return value or "–"


def section() -> Markup:
    """Both tables; the point models' other degrees are folded away."""
    cards = []
    for title in TABLES:
        parts = [tag("h3", text(title)), _table(title, rows(title))]
        more = rows(title, every_degree=True)
        if len(more) > len(rows(title)):
            parts.append(tag("details", tag("summary", text("All degrees")), _table(title, more)))
        cards.append(tag("div", *parts, class_="card wide"))
    words = (
        "Tuned settings of DFHPG in the published runs, which these runs use; the other policies share what concerns them. "
        "Tune your own with 'regretless tune'."
    )
    body = tag("div", *cards, class_="grid")
    return tag("section", tag("h2", text("Configurations")), tag("p", text(words)), body, id="configurations")


def _table(title: str, lines: list[list[str]]) -> Markup:
    return table(head(title), [row(*map(text, line)) for line in lines])


def latex(title: str) -> str:
    """One of the tables for print."""
    names = " & ".join(map(latex_text, head(title)))
    lines = [" & ".join(map(latex_text, line)) + r" \\" for line in rows(title)]
    top = [rf"\begin{{tabular}}{{lll{'c' * len(TABLES[title])}}}", r"\toprule", rf"{names} \\", r"\midrule"]
    return "\n".join([*top, *lines, r"\bottomrule", r"\end{tabular}", ""])
