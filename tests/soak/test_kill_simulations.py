"""A simulation that is killed at random moments and continued ends with the bits of an undisturbed one."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from soak.sizes import size

CHILD = """
import sys
import jax
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
import numpy as np
import regretless as rg
bench = rg.benchmarks.parse("shortest_path").build()
policies = {name: rg.policies.parse(name).build(bench.problem()) for name in ("greedy", "thompson", "linear_thompson")}
report = lambda metrics: print(metrics.round, metrics.seeds[0], flush=True)
monitor, execution = rg.simulation.Monitor(report, 50), rg.simulation.Execution(chunk=2, save=sys.argv[1])
run = rg.simulate(policies, bench, seeds=6, horizon=3000, monitor=monitor, execution=execution)
arrays = {f"{name}/regret": trace.regret for name, trace in run.items()}
arrays |= {f"{name}/{key}": values for name, trace in run.items() for key, values in trace.diagnostics.items()}
np.savez(sys.argv[1] + ".npz", references=[line.mean for line in run.references], **arrays)
"""


def started(path: Path, cache: Path) -> subprocess.Popen[str]:
    """Start a process that plays or continues the run at ``path``."""
    return subprocess.Popen([sys.executable, "-c", CHILD, str(path), str(cache)], stdout=subprocess.PIPE, text=True)


def played(path: Path, cache: Path) -> float:
    """Play to the end; return the seconds since the first progress report."""
    with started(path, cache) as process:
        assert process.stdout is not None
        process.stdout.readline()
        began = time.monotonic()
        process.stdout.read()
    if process.returncode:
        raise SystemExit(f"the run ended with {process.returncode}")
    return time.monotonic() - began


@pytest.mark.soak
def test_killed_simulations_end_with_the_same_bits(tmp_path):
    kills, rng = size("simulation_kills", 3), random.Random(0)
    whole, disturbed, cache = tmp_path / "whole", tmp_path / "killed", tmp_path / "programs"
    seconds, done = played(whole, cache), 0
    while done < kills and not disturbed.with_name("killed.npz").exists():
        with started(disturbed, cache) as process:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(rng.uniform(0.0, 2.0 * seconds / kills))
            process.send_signal(signal.SIGKILL)
        done += process.returncode == -signal.SIGKILL
    played(disturbed, cache)
    with np.load(f"{whole}.npz") as one, np.load(f"{disturbed}.npz") as other:
        assert [name for name in one if one[name].tobytes() != other[name].tobytes()] == []
