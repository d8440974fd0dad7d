"""Traces, simulations and outcomes as cards: what was played, the table of regrets with paired differences, the seconds."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from regretless.show.cards import card, facts, table
from regretless.show.curves import compare_table
from regretless.show.words import number, policy, spread

if TYPE_CHECKING:
    from regretless.trace import Trace


def trace_card(trace: "Trace") -> str:
    """One trace."""
    replications, rounds = trace.regret.shape
    config = trace.config
    world = config.get("benchmark")
    named = world.get("name", "") if isinstance(world, dict) else world
    known = [
        ("benchmark", named),
        ("feedback", config.get("feedback")),
        ("replications", f"{replications:,} of {rounds:,} rounds" + _diverged(trace.diverged)),
        ("final regret", f"{spread(trace.mean(), trace.standard_error())} (mean ± standard error)"),
        ("median", number(trace.median())),
    ]
    kept = f"every {trace.diagnostics_every} rounds: {', '.join(trace.diagnostics)}" if trace.diagnostics else "none"
    known.append(("diagnostics", kept))
    title = f"Trace of {policy(str(config.get('policy', 'a policy')))}"
    return card(title, facts((name, value) for name, value in known if value), note=".plot() draws it")


def results_card(
    title: str,
    traces: "Mapping[str, Trace]",
    references: Sequence[tuple[str, float | None, float | None]],
    seconds: Mapping[str, float] | None = None,
    worlds: Mapping[str, str] | None = None,
) -> str:
    """Several traces, best first, and the reference lines (name, mean, standard error) of the same stream."""
    if not traces:
        return card(title, note="no traces")
    found = compare_table(traces, None, worlds)
    against = policy(str(found.attrs["against"]))
    rows = []
    for label, row in found.sort_values("mean", kind="stable").iterrows():
        rows.append((
            policy(str(label)) + _diverged(int(row["diverged"])),
            spread(row["mean"], row["standard_error"]),
            number(row["difference"]),
            _interval(row["low"], row["high"]),
        ))  # fmt: skip
    rows += [(name.replace("_", " "), spread(mean, error), "", "") for name, mean, error in references]
    first = next(iter(traces.values()))
    replications, rounds = first.regret.shape
    note = f"{replications} replications of {rounds:,} rounds; differences are paired by seed"
    if seconds:
        note += "; " + ", ".join(f"{name} {value:.1f} s" for name, value in seconds.items())
    head = ("policy", "final regret ± s.e.", f"minus {against}", "95 % interval")
    return card(title, table(head, rows), note=note)


def _interval(low: Any, high: Any) -> str:
    return f"{number(low)} to {number(high)}" if math.isfinite(low) and math.isfinite(high) else ""


def _diverged(count: int) -> str:
    return f" ({count} diverged)" if count else ""
