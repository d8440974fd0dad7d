"""Every number of a report as CSV."""

import csv
import io

from regretless.report.gather import Page, Panel, Reference, Shown, Study
from regretless.show.words import sound

HEAD = (
    "study", "panel", "cell", "feedback", "model", "degree", "horizon", "seeds", "first_seed", "policy", "mean",
    "standard_error", "median", "diverged", "published_mean", "published_standard_error", "z", "second_z", "verdict",
)  # fmt: skip


def csv_text(page: Page) -> str:
    """Every arm and every reference line of every cell, one row each."""
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(HEAD)
    for study, panel in page.panels():
        for cell in panel.cells:
            if cell.arms:
                writer.writerows(_rows(study, panel, cell))
    return sound(text.getvalue())


def _rows(study: Study, panel: Panel, cell: Shown) -> list[list[object]]:
    record, spec = cell.record, cell.record["cell"]
    about: list[object] = [
        study.name, panel.title, cell.label, spec.get("feedback", ""), spec.get("model", ""), record.get("degree", ""),
        record["horizon"], cell.replications, min(cell.seeds, default=""),
    ]  # fmt: skip
    found: list[list[object]] = []
    for arm in cell.arms.values():
        verdict = cell.verdicts.get(arm.label)
        beside: list[object] = [""] * 5
        if verdict is not None:
            beside = [*verdict.published, verdict.z, "" if verdict.second_z is None else verdict.second_z, verdict.word]
        found.append([*about, arm.label, arm.mean, arm.error, arm.median, arm.diverged, *beside])
    rest = [""] * (len(HEAD) - len(about) - len(Reference._fields))
    return found + [[*about, *line, *rest] for line in cell.references()]
