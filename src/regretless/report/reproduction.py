"""All numbers of a report as Markdown: for the paper's studies, the reproduction page of the documentation."""

import re

from regretless.report import claims_section, deviations
from regretless.report.gather import Page, Study
from regretless.report.kinds import by_kind
from regretless.report.overview import tally
from regretless.report.words import markdown_code, markdown_text

WHERE = re.compile(r" --(store|out|jobs|device|engine|address)[= ]('[^']*'|\S+)")
"""The options of a command that tell where its results were computed and kept, not what they are."""


def reproduction(page: Page) -> str:
    """Every table with its published values, the numbers behind the figures, the deviations, and what computed this."""
    lines = ["# Reproduction" if page.paper else f"# {markdown_text(page.titles)}", ""]
    reproduced, compared = tally(page)
    if compared:
        lines += [
            f"{reproduced} of {compared} published cells are within three standard errors of the difference, "
            "`|ours − published| ≤ 3·√(se² + se_published²)`. A cell that is not is run again with seeds from 1000, and "
            "both are shown. Below: both tables, the numbers behind the figures, and the [deviations](#deviations).",
            "",
        ]  # fmt: skip
    for study in page.studies:
        written = [line for kind, panels in by_kind(study) for line in kind.markdown(study, panels)]
        if written:
            lines += [f"## {markdown_text(study.title)}", "", _about(study), "", *written]
    if page.paper:
        lines += claims_section.markdown(page.claims) if page.claims else []
        lines += deviations.markdown()
    return "\n".join([*lines, *_computed_by(page)])


def _computed_by(page: Page) -> list[str]:
    cells = page.shown()
    if not cells:
        return ["Nothing is computed yet.", ""]
    codes = ", ".join(markdown_code(code) for code in page.code)
    seconds = sum(cell.record["wall_seconds"] for cell in cells.values())
    devices = sorted({device for cell in cells.values() for device in cell.record["environment"]["devices"]})
    words = f"Code {codes}; {len(cells)} cells in {seconds:.0f} s on {markdown_text(', '.join(devices))}."
    return ["## What computed this", "", words, ""]


def _about(study: Study) -> str:
    return " ".join(
        filter(None, (markdown_text(study.about), f"Command: {markdown_code(WHERE.sub('', study.command))}."))
    )
