"""How long a newcomer waits: from ``import regretless`` to the first curve of four policies over 500 rounds, nothing compiled.

python benchmarks/first_curve.py            the figures of one cold and one warm start, each in a fresh process
"""

import json
import os
import subprocess
import sys
import tempfile

POLICIES = ("dfhpg", "greedy", "thompson", "linear_thompson")

PROGRAM = """
import json, time
began = time.perf_counter()
import regretless as rg
experiment = rg.Experiment(benchmark="topk", policies={policies!r}, seeds=4, horizon=500)
loaded = time.perf_counter()
outcome = rg.run(experiment)
curves = {{name: trace.regret.mean(axis=0).cumsum() for name, trace in outcome.traces.items()}}
ended = time.perf_counter()
assert all(curve.shape == (500,) for curve in curves.values())
told = {{"import": loaded - began, **outcome.seconds, "whole": ended - began, "processor": time.process_time()}}
print(json.dumps({{name: round(value, 2) for name, value in told.items()}}))
"""


def first_curve(cache: str) -> dict[str, float]:
    """Seconds of one start in a fresh process with this cache of compiled programs."""
    words = [sys.executable, "-c", PROGRAM.format(policies=POLICIES)]
    done = subprocess.run(
        words, env={**os.environ, "REGRETLESS_CACHE": cache}, capture_output=True, text=True, check=True
    )
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Prints both starts in seconds; ``processor`` is the time on all cores, which other programs do not stretch."""
    with tempfile.TemporaryDirectory() as cache:
        for start in ("cold", "warm"):
            print(start, first_curve(cache))


if __name__ == "__main__":
    main()
