"""Tables as CSV and LaTeX."""

import csv
from pathlib import Path

from regretless.report.gather import Page, Panel, Study
from regretless.report.tables import Row, rows
from regretless.report.words import benchmark, latex

HEAD = (
    "study", "benchmark", "panel_cell", "feedback", "model", "degree", "horizon", "seeds", "first_seed", "policy", "mean",
    "standard_error", "median", "diverged", "published_mean", "published_standard_error", "z", "second_z", "verdict",
)  # fmt: skip


def write_csv(page: Page, path: Path) -> None:
    """Every arm and every reference line of every cell, one row each."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(HEAD)
        for study in page.studies:
            for panel in study.panels:
                writer.writerows(_csv_rows(study, panel))


def _csv_rows(study: Study, panel: Panel) -> list[list[object]]:
    found: list[list[object]] = []
    for cell in panel.cells:
        record = cell.record
        if "references" not in record:
            continue
        spec = record["cell"]
        about: list[object] = [
            study.name, panel.benchmark, cell.label, spec["feedback"], spec["model"], record["degree"], record["horizon"],
            spec["seeds"], spec["first_seed"],
        ]  # fmt: skip
        for arm in cell.arms.values():
            verdict = cell.verdict(arm.label)
            beside: list[object] = ["", "", "", "", ""]
            if verdict is not None:
                beside = [
                    *verdict.published,
                    verdict.z,
                    "" if verdict.second_z is None else verdict.second_z,
                    verdict.word,
                ]
            found.append([*about, arm.label, arm.mean, arm.error, arm.median, arm.diverged, *beside])
        for line in record["references"]:
            found += [[*about, *line.values(), *[""] * (len(HEAD) - len(about) - len(line))]]
    return found


def latex_table(study: Study) -> str:
    """A table in the form of the paper's: a row per policy, a column per benchmark, the best of a column in bold."""
    panels = [panel for panel in study.panels if panel.cells]
    columns = [{row.arm.label: row for row in rows(study, panel)} for panel in panels]
    labels = list(dict.fromkeys(label for column in columns for label in column))
    heads = " & ".join(benchmark(panel.benchmark) for panel in panels)
    lines = [rf"\begin{{tabular}}{{l{'c' * len(panels)}}}", r"\toprule", rf"Method & {heads} \\", r"\midrule"]
    for label in labels:
        cells = [_latex_cell(column.get(label)) for column in columns]
        lines.append(rf"{_latex_name(label)} & {' & '.join(cells)} \\")
    lines.append(r"\midrule")
    names = dict.fromkeys(line["name"] for panel in panels for line in panel.references())
    for name in names:
        found = [{line["name"]: line for line in panel.references()}.get(name) for panel in panels]
        cells = ["--" if line is None else latex(line["mean"], line["standard_error"]) for line in found]
        lines.append(rf"\textit{{{name.replace('_', ' ')}}} & {' & '.join(cells)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _latex_cell(row: Row | None) -> str:
    if row is None:
        return "--"
    value = latex(row.arm.mean, row.arm.error)
    return rf"$\boldsymbol{{{value.strip('$')}}}$" if row.best else value


def _latex_name(label: str) -> str:
    escaped = label.replace("_", r"\_")
    return rf"\texttt{{{escaped}}}"
