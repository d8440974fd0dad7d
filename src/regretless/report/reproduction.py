"""The reproduction page of the documentation as Markdown, written from stored results only."""

from collections.abc import Iterable, Mapping, Sequence

from regretless.report import deviations
from regretless.report.charts import by_model
from regretless.report.gather import Page, Panel, Study
from regretless.report.series import Arm
from regretless.report.tables import rows, tally
from regretless.report.words import benchmark, number, spread


def reproduction(page: Page) -> str:
    """Every published cell with ours beside it, the numbers behind the figures, the deviations, and what computed this."""
    reproduced, compared = tally(page)
    lines = ["# Reproduction", ""]
    if compared:
        lines += [
            f"{reproduced} of {compared} published cells are within three standard errors of the difference, "
            "`|ours − published| ≤ 3·√(se² + se_published²)`. A cell that is not is run again with seeds from 1000, and "
            "both are shown. Below: both tables, the numbers behind the figures, and the [deviations](#deviations).",
            "",
        ]  # fmt: skip
    for study in page.studies:
        panels = [panel for panel in study.panels if panel.cells]
        written = _study(study, panels) if panels else []
        if written:
            lines += [f"## {study.title}", "", f"{study.about} Command: `{study.command}`.", "", *written]
    lines += deviations.markdown()
    codes = ", ".join(f"`{code}`" for code in page.code)
    seconds = sum(cell.record["wall_seconds"] for cell in page.shown().values())
    devices = sorted({device for cell in page.shown().values() for device in cell.record["environment"]["devices"]})
    told = f"Code {codes}; {len(page.shown())} cells in {seconds:.0f} s on {', '.join(devices)}."
    return "\n".join([*lines, "## What computed this", "", told, ""])


def _study(study: Study, panels: Sequence[Panel]) -> list[str]:
    if study.kind == "table":
        return [line for panel in panels for line in _published_table(study, panel)]
    if study.kind in ("degree", "feedback"):
        return [line for panel in panels for line in _across(study, panel)]
    if study.kind == "heatmap":
        both = {(panel.benchmark, policy): _surrogates(panel, policy) for panel in panels for policy in POLICIES}
        return _grid("surrogate", {f"{benchmark(name)}, {policy}": found for (name, policy), found in both.items()})
    if study.kind == "models":
        return _grid("model", {benchmark(panel.benchmark): by_model(panel) for panel in panels})
    if study.kind == "alpha":
        return _grid("mixing weight", {benchmark(panel.benchmark): panel.cells[0].arms for panel in panels})
    if study.kind == "theory":
        return _claims(panels[0])
    return []  # the convergence curves are the main table's runs, round by round


POLICIES = ("dfhpg", "dfhpg_0")


def _surrogates(panel: Panel, policy: str) -> dict[str, Arm]:
    arms = {label: arm for cell in panel.cells for label, arm in cell.arms.items()}
    return {label.split("/")[0]: arm for label, arm in arms.items() if label.split("/")[1] == policy}


def _across(study: Study, panel: Panel) -> list[str]:
    """Policies by degree or by feedback, for one benchmark."""
    columns = {cell.label: cell.arms for cell in panel.cells}
    if study.kind == "feedback":
        shown = (*POLICIES, "linear_thompson")
        columns = {name: {each: arms[each] for each in shown if each in arms} for name, arms in columns.items()}
    return [f"### {benchmark(panel.benchmark)}, by {study.kind}", "", *_grid("policy", columns)]


def _grid(corner: str, columns: Mapping[str, Mapping[str, Arm]]) -> list[str]:
    """A mean with its standard error for every row that some column has."""
    labels = dict.fromkeys(label for arms in columns.values() for label in arms)
    body = [[label, *(_cell(arms.get(label)) for arms in columns.values())] for label in labels]
    return _markdown([corner, *columns], body)


def _cell(arm: Arm | None) -> str:
    if arm is None:
        return "–"
    return spread(arm.mean, arm.error) + (f" ({arm.diverged} diverged)" if arm.diverged else "")


def _published_table(study: Study, panel: Panel) -> list[str]:
    record = panel.cells[0].record
    body = []
    for row in rows(study, panel):
        ours, z, published, word = _cell(row.arm), "–", "–", "–"
        if row.verdict is not None:
            published, z, word = spread(*row.verdict.published), f"{row.verdict.z:+.2f}", row.verdict.word
            if row.second is not None and row.verdict.second_z is not None:
                ours += f"; seeds from 1000: {spread(row.second['mean'], row.second['standard_error'])}"
                z += f", then {row.verdict.second_z:+.2f}"
        body.append([row.arm.label, ours, number(row.arm.median), published, z, word])
    lines = panel.references()
    body += [[f"*{line['name']}*", spread(line["mean"], line["standard_error"]), "", "", "", ""] for line in lines]
    about = f"{record['cell']['seeds']} replications, {record['horizon']} rounds"
    title = f"### {benchmark(panel.benchmark)} ({about})"
    return [title, "", *_markdown(["policy", "ours", "median", "published", "z", "verdict"], body)]


def _claims(panel: Panel) -> list[str]:
    document = panel.cells[0].record["document"]
    body = [
        [
            claim["quantity"],
            claim["setting"],
            f"{claim['measured']:.4f} ({claim['low']:.4f} to {claim['high']:.4f})",
            f"{claim['relation']} {claim['expected']:g}",
            "–" if document.get("short") else "holds" if claim["holds"] else "does not hold",
        ]
        for claim in document["claims"]
    ]
    return _markdown(["claim", "setting", "measured, 95 %", "theorem", "verdict"], body)


def _markdown(head: Sequence[str], body: Iterable[Sequence[str]]) -> list[str]:
    lines = [f"| {' | '.join(head)} |", f"| {' | '.join('---' for _ in head)} |"]
    return [*lines, *(f"| {' | '.join(line)} |" for line in body), ""]
