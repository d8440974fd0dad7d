"""Figures for Prometheus: the health of every learner, requests, calls of solvers, and compilations."""

import bisect
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import jax

if TYPE_CHECKING:
    from regretless.serve.hosting import Service

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds up to which requests are counted."""

COMPILATION = "/jax/core/compile/backend_compile_duration"


class Compilations:
    """Count what JAX compiles in this process."""

    def __init__(self) -> None:
        self.count, self.seconds = 0, 0.0
        jax.monitoring.register_event_duration_secs_listener(self._note)

    def _note(self, event: str, duration_secs: float, **_: Any) -> None:
        if event == COMPILATION:
            self.count += 1
            self.seconds += duration_secs


compilations = Compilations()


class Traffic:
    """Count requests and their times, by route."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()
        self.times: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BUCKETS) + 1))
        self.seconds: Counter[str] = Counter()
        self._lock = threading.Lock()

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        with self._lock:
            self.requests[route, status] += 1
            self.times[route][bisect.bisect_left(BUCKETS, seconds)] += 1
            self.seconds[route] += seconds  # type: ignore[assignment]


def render_metrics(service: "Service") -> str:
    """Return all figures in the text format of Prometheus."""
    families: dict[str, tuple[str, list[str]]] = {}

    def add(family: str, kind: str, labels: str, value: float, suffix: str = "") -> None:
        families.setdefault(family, (kind, []))[1].append(f"{family}{suffix}{labels} {value:.17g}\n")

    for name, host in sorted(service.learners.items()):
        label = f'{{learner="{name}"}}'
        for line in host.health().prometheus({"learner": name}).splitlines():
            if not line.startswith("#"):
                families.setdefault(line.partition("{")[0], ("gauge", []))[1].append(f"{line}\n")
        add("regretless_paused", "gauge", label, float(host.paused))
        add("regretless_solver_hanging", "gauge", label, float(host.watch.hanging))
        add("regretless_solver_calls_total", "counter", label, host.watch.solves)
        add("regretless_solver_failures_total", "counter", label, host.watch.failures)
    for (route, status), count in sorted(service.traffic.requests.items()):
        add("regretless_requests_total", "counter", f'{{route="{route}",status="{status}"}}', count)
    for route, counts in sorted(service.traffic.times.items()):
        family, total = "regretless_request_seconds", 0
        for bound, count in zip([*BUCKETS, "+Inf"], counts, strict=True):
            total += count
            add(family, "histogram", f'{{route="{route}",le="{bound}"}}', total, "_bucket")
        add(family, "histogram", f'{{route="{route}"}}', service.traffic.seconds[route], "_sum")
        add(family, "histogram", f'{{route="{route}"}}', total, "_count")
    add("regretless_compilations_total", "counter", "", compilations.count)
    add("regretless_compilation_seconds_total", "counter", "", compilations.seconds)
    return "".join(_render(families))


def _render(families: dict[str, tuple[str, list[str]]]) -> Iterator[str]:
    for family, (kind, samples) in families.items():
        yield f"# TYPE {family} {kind}\n"
        yield from samples
