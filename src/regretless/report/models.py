"""Figures of the model comparison, from the traces that the study left."""

import json
from pathlib import Path

from regretless.report.curves import regret_curves
from regretless.trace import Trace


def model_figures(folder: str | Path) -> list[Path]:
    """Writes ``models_BENCHMARK.png`` (the models) and ``orientation_BENCHMARK.png`` (both orientations) for each benchmark.

    Curves are average regret per round with bands of ±1 standard error over replications; the reference lines are dashed.
    """
    folder = Path(folder)
    result = json.loads((folder / "models.json").read_text(encoding="utf-8"))
    written = []
    for name, part in result["benchmarks"].items():
        traces = {row["arm"]: Trace.load(folder / f"{name}_{row['arm']}.parquet") for row in part["arms"]}
        turned = {row["arm"]: row["model"] for row in part["arms"] if row["orientation"] == "published"}
        plain = {label: trace for label, trace in traces.items() if label not in turned}
        both = {label: traces[label] for arm, model in turned.items() for label in (model, arm) if label in traces}
        words = f"{name}, {result['seeds']} replications"
        for kind, chosen in (("models", plain), ("orientation", both)):
            if chosen:
                path = folder / f"{kind}_{name}.png"
                regret_curves(chosen, part["references"], f"{words}: {kind}", path)
                written.append(path)
    return written
