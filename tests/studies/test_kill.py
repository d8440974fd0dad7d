"""A campaign that is killed again and again ends with the results of one that was not."""

import os
import random
import subprocess
import sys
import time

import pytest

from regretless.studies.store import Store

PROGRAM = """
import sys
from pathlib import Path
import jax
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_compilation_cache_dir", sys.argv[2])
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
from regretless.studies import Experiment, Panel, Study
from regretless.studies.campaign import InProcess, Silent, carry_out
from regretless.studies.plan import Plan
from regretless.studies.store import Store
from regretless.studies.study import Scale

both = ("greedy", "thompson")
cells = [(str(d), Experiment(benchmark="topk", policies=both, degree=d, seeds=3, horizon=400)) for d in (1, 2, 3)]
study = Study("small", "lines", "small", "small", (Panel("topk", tuple(cells)),), "degree")
print("ready", flush=True)
summary = carry_out(Plan([study], Scale()), Store(Path(sys.argv[1])), InProcess(), Silent())
print(summary.failed)
"""


@pytest.fixture(scope="module")
def start(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")

    def begin(store):
        words = [sys.executable, "-c", PROGRAM, str(store), str(cache)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "JAX_PLATFORMS": "cpu"})

    return begin


def digests(folder):
    store = Store(folder)
    return {entry.key: store.load(entry.key).digest() for entry in store.entries()}


def test_killed_at_random_moments(start, tmp_path):
    with start(tmp_path / "calm") as process:
        assert process.stdout.readline() == "ready\n"
        began = time.monotonic()
        assert process.wait(timeout=120) == 0
        took = time.monotonic() - began
    expected = digests(tmp_path / "calm")
    assert len(expected) == 3
    rng = random.Random(7)
    for _ in range(2):
        with start(tmp_path / "disturbed") as process:
            process.stdout.readline()
            time.sleep(rng.uniform(0.05, 0.8) * took)
            process.kill()
    with start(tmp_path / "disturbed") as process:
        assert process.wait(timeout=120) == 0
    assert digests(tmp_path / "disturbed") == expected
    store = Store(tmp_path / "disturbed")
    assert not any(store.running(path.name) for path in store.claims.iterdir())
