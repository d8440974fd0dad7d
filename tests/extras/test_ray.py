"""The Ray engine on a cluster of two nodes, one of which loses its workers in the middle of the work."""

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import extra
from regretless.errors import SettingsError, WriteError
from regretless.experiments import Cell, Experiment, Panel, Plan, ResultStore, Scale, Study, carry_out
from regretless.experiments.campaign import RayCluster
from regretless.experiments.extension import Listener
from regretless.experiments.runner import code_version
from regretless.results import Result

extra.required("ray")


@pytest.fixture
def plan():
    """Return four arms that share a program. The quick campaign: tests/soak/test_kill_campaign.py."""
    cells = tuple(
        Cell(str(d), Experiment("topk", "greedy", settings={"benchmark.degree": d}, seeds=3, horizon=400))
        for d in range(1, 5)
    )
    return Plan([Study("small", (Panel("topk", cells),), kind="lines", axis="degree")], Scale())


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    made = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    node = made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield node
    import ray

    ray.shutdown()
    made.shutdown()


class Recorder(Listener):
    """Notes what finished and what failed."""

    def __init__(self):
        self.done, self.failures = [], []

    def finished(self, task, computed):
        self.done.append(task.address)

    def failed(self, task, error):
        self.failures.append(error)


def kill_workers(raylet, stop, killed):
    """Kill the first computing worker process of a node."""
    while not killed and not stop.is_set():
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == raylet and (folder / "cmdline").read_bytes().startswith(b"ray::_compute"):
                    time.sleep(0.5)
                    os.kill(int(folder.name), signal.SIGKILL)
                    killed.append(int(folder.name))
                    return
        time.sleep(0.05)


def test_workers_that_die_lose_nothing(plan, cluster, tmp_path):
    raylet = cluster.all_processes["raylet"][0].process.pid
    stop, killed = threading.Event(), []
    killer = threading.Thread(target=kill_workers, args=(raylet, stop, killed), daemon=True)
    killer.start()
    recorder, store, engine = Recorder(), ResultStore(tmp_path / "store"), RayCluster()
    summary = carry_out(plan, store, engine, recorder)
    stop.set()
    killer.join()
    assert killed, "one node lost a worker"
    assert recorder.failures == []
    assert summary.failed == {}
    assert sorted(recorder.done) == sorted(plan.tasks)
    assert list(store.claims.iterdir()) == []
    address, task = next(iter(plan.tasks.items()))
    alone = task.compute(lambda what, done, total: None)
    np.testing.assert_allclose(store.load(address).regret, alone.regret, rtol=1e-5, atol=1e-5)
    began = time.monotonic()
    assert carry_out(plan, store, engine).computed == 0
    assert time.monotonic() - began < 10


def test_no_cluster_at_the_address():
    with pytest.raises(SettingsError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        RayCluster("127.0.0.1:1")


@pytest.mark.parametrize("whose", ["ours", "a worker's"])
def test_a_full_disk_ends_the_campaign_if_it_is_ours(whose, plan, tmp_path, monkeypatch):
    import ray

    full = WriteError("cannot write result: No space left on device; nothing was written")

    def get(reference):
        if whose == "ours":
            return code_version(), [Result("greedy", np.ones((2, 20)), seeds=(0, 1))]
        raise ray.exceptions.RayTaskError("compute", "", full).as_instanceof_cause()

    def put(*arguments):
        raise full

    store, recorder, engine = ResultStore(tmp_path), Recorder(), object.__new__(RayCluster)
    store.create()
    monkeypatch.setattr(store, "put", put)
    remote = SimpleNamespace(remote=lambda *arguments: "a reference")
    engine.device, engine.imports, engine.ray = (
        "cpu",
        (),
        SimpleNamespace(
            get=get,
            exceptions=ray.exceptions,
            remote=lambda **needs: lambda function: remote,
            cancel=lambda *a, **b: None,
        ),
    )
    task = next(iter(plan.tasks.values()))
    with pytest.raises(WriteError) if whose == "ours" else contextlib.nullcontext():
        engine([[task]], store, recorder)
    expected = (True, 0) if whose == "ours" else (False, 1)
    assert (store.failure(task.address) is None, len(recorder.failures)) == expected
