"""A learner's health for a monitoring system: as plain data, and in the text format that Prometheus reads."""

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from regretless.errors import SettingsError

Sample = tuple[dict[str, str], float | None]

PREFIX = "regretless_"
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")

COUNTERS = {
    "decisions": "Decisions made, recorded or taken from a history.",
    "learnt": "Decisions that were learnt from.",
    "expired": "Decisions whose feedback never came.",
}
GAUGES = {
    "waiting": "Decisions that wait for feedback.",
    "feedback_share": "Share of the settled decisions that were learnt from.",
    "relative_residual": "Root mean square error of predicted totals over root mean square total, recently.",
    "residual_trend": "The same, recent half of the rounds over the earlier half.",
    "score_norm": "Norm of the score gradient, recently.",
    "plug_in_norm": "Norm of the plug-in gradient, recently.",
}
PAID = {"paid": "recent", "paid_since_start": "start"}
OTHERS = ("incumbent", "best_fixed", "random")
BOUNDS = ("mean", "low", "high")


def plain(value: Any) -> Any:
    """NamedTuples as dictionaries, what is not finite as None: data that JSON can write."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(part) for name, part in value._asdict().items()}
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def prometheus(health: Any, labels: Mapping[str, str]) -> str:
    """The text exposition format: HELP and TYPE of every metric, a line for each of its values that is known."""
    for name in labels:
        if not _LABEL.fullmatch(name) or name.startswith("__") or name in ("bound", "who", "over", "name"):
            raise SettingsError(
                f"prometheus: expected labels with names of letters, digits and _, other than bound, who, over and name, "
                f"got {name!r}"
            )
    lines = []
    for name, kind, about, samples in _metrics(health):
        known = [(own, value) for own, value in samples if value is not None and math.isfinite(value)]
        if known:
            lines += [f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} {kind}"]
            lines += [f"{PREFIX}{name}{_braced({**labels, **own})} {value:.17g}" for own, value in known]
    return "\n".join([*lines, ""])


def _metrics(health: Any) -> Iterator[tuple[str, str, str, list[Sample]]]:
    """Name, type and meaning of every metric, and its values by label."""
    for name, about in COUNTERS.items():
        yield f"{name}_total", "counter", about, [({}, getattr(health, name))]
    for name, about in GAUGES.items():
        yield name, "gauge", about, [({}, getattr(health, name))]
    paid = [
        ({"over": over, "bound": bound}, getattr(estimate, bound))
        for name, over in PAID.items()
        if (estimate := getattr(health, name)) is not None
        for bound in BOUNDS
    ]
    yield "paid", "gauge", "Mean of what the learner's decisions cost or earned, with its 95 % interval.", paid
    others = [(who, told) for who in OTHERS if (told := getattr(health, who)) is not None]
    cost = [({"who": who}, told.cost) for who, told in others]
    yield "reference", "gauge", "Mean of what others would have cost or earned in the same rounds, estimated.", cost
    more = [
        ({"who": who, "bound": bound}, value)
        for who, told in others
        for bound, value in zip(BOUNDS, (told.difference, told.low, told.high), strict=True)
    ]
    yield "difference", "gauge", "Mean of the learner's less that of others, with its 95 % interval.", more
    drift = health.drift
    yield "drift", "gauge", "1 while there is an alarm that the world has changed.", [({}, float(drift is not None))]
    since: list[Sample] = [] if drift is None else [({}, float(drift.since))]
    yield "drift_since", "gauge", "The first decision of the changed world, about.", since
    details = [({"name": name}, value) for name, value in health.details.items()]
    yield "detail", "gauge", "What the policy tells of itself.", details


def _braced(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{_escaped(str(value))}"' for name, value in labels.items())
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
