"""Traces, simulations and outcomes as cards: what was played, the table of regrets with paired differences, the seconds."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regretless.errors import SettingsError
from regretless.formatting import display_name, format_mean, format_number, html_card, html_table
from regretless.show.series import anchor_of

if TYPE_CHECKING:
    import pandas as pd

    from regretless.results import Result


def results_card(
    title: str,
    traces: "Mapping[str, Result]",
    references: Sequence[tuple[str, float | None, float | None]],
    seconds: Mapping[str, float] | None = None,
    worlds: Mapping[str, str] | None = None,
) -> str:
    """Several traces, best first, and the reference lines (name, mean, standard error) of the same stream."""
    if not traces:
        return html_card(title, note="no traces")
    found = compare_table(traces, None, worlds)
    against = display_name(str(found.attrs["against"]))
    rows = []
    for label, row in found.sort_values("mean", kind="stable").iterrows():
        rows.append((
            display_name(str(label)) + _diverged(int(row["diverged"])),
            format_mean(row["mean"], row["standard_error"]),
            format_number(row["difference"]),
            _interval(row["low"], row["high"]),
        ))  # fmt: skip
    rows += [(name.replace("_", " "), format_mean(mean, error), "", "") for name, mean, error in references]
    first = next(iter(traces.values()))
    replications, rounds = first.regret.shape
    note = f"{replications} replications of {rounds:,} rounds; differences are paired by seed"
    if seconds:
        note += "; " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    head = ("policy", "final regret ± s.e.", f"minus {against}", "95 % interval")
    return html_card(title, html_table(head, rows), note=note)


def _interval(low: Any, high: Any) -> str:
    return f"{format_number(low)} to {format_number(high)}" if math.isfinite(low) and math.isfinite(high) else ""


def _diverged(count: int) -> str:
    return f" ({count} diverged)" if count else ""


def compare_table(
    traces: "Mapping[str, Result]", against: str | None, worlds: Mapping[str, str] | None = None
) -> "pd.DataFrame":
    """A row per policy: final regret, and the difference from ``against``, paired by seed, with its 95 % interval.

    ``worlds`` names the world of each policy: differences are taken within one world only.
    """
    import pandas as pd

    if against is None:
        against = anchor_of(traces)
    elif against not in traces:
        raise SettingsError(f"compare_table: expected against to be one of {', '.join(traces)}, got {against!r}")
    same, rows = worlds or {}, {}
    for label, trace in traces.items():
        row: dict[str, Any] = {
            "mean": trace.mean(), "standard_error": trace.standard_error(), "median": trace.median(),
            "diverged": trace.diverged,
        }  # fmt: skip
        if against in traces and label != against and same.get(label) == same.get(against):
            found = trace.compare(traces[against])
            row |= {"difference": found.mean, "low": found.low, "high": found.high, "pairs": found.pairs}
        rows[label] = row
    columns = ["mean", "standard_error", "median", "diverged", "difference", "low", "high", "pairs"]
    table = pd.DataFrame.from_dict(rows, orient="index").reindex(columns=columns)
    table["pairs"] = table["pairs"].fillna(0).astype(int)
    table.index.name = "policy"
    table.attrs["against"] = against
    return table
