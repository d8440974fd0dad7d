"""The Ray engine on a cluster of two nodes, one of which loses its workers in the middle of the work."""

import contextlib
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import extra
from regretless.errors import SettingsError, WriteError
from regretless.studies import Experiment, Panel, Study
from regretless.studies.campaign import Silent, carry_out
from regretless.studies.compute import compute
from regretless.studies.identity import code_version
from regretless.studies.plan import Plan
from regretless.studies.store import Store
from regretless.studies.study import Scale

extra.required("ray")


@pytest.fixture
def plan():
    """Four cells that share a program. The quick campaign: tests/soak/test_kill_campaign.py."""
    cells = [
        (str(d), Experiment(benchmark="topk", policies="greedy", degree=d, seeds=3, horizon=400)) for d in range(1, 5)
    ]
    return Plan([Study("small", "lines", "small", "small", (Panel("topk", tuple(cells)),), "degree")], Scale())


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    from ray.cluster_utils import Cluster

    monkeypatch.setenv("REGRETLESS_CACHE", str(tmp_path / "cache"))
    made = Cluster(initialize_head=True, connect=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    made.wait_for_nodes()
    yield made
    import ray

    ray.shutdown()
    made.shutdown()


class Watching(Silent):
    """Sees which workers are busy, and on which node."""

    def __init__(self):
        self.done = []
        self.failures = []
        self.busy = threading.Event()

    def progress(self, item, what, done, total):
        self.busy.set()

    def finished(self, item):
        self.done.append(item.key)

    def failed(self, item, error):
        self.failures.append(error)


def test_workers_that_die_lose_nothing(plan, cluster, tmp_path, monkeypatch):
    from regretless.studies.engines import cluster as engine_ray

    engine = engine_ray.RayEngine()
    workers, killed = set(), []
    original = engine_ray.RayEngine._hear

    def hear(self, board, items, listener):
        import ray

        news = ray.get(board.take.remote(), timeout=30)
        workers.update(worker for *_, worker in news.values())
        nodes = {node for node, _ in workers}
        if not killed and len(nodes) == 2:
            doomed = sorted(nodes)[0]
            for node, process in workers:
                if node == doomed:
                    os.kill(process, signal.SIGKILL)
                    killed.append(process)
        original(self, board, items, listener)

    monkeypatch.setattr(engine_ray.RayEngine, "_hear", hear)
    watching, store = Watching(), Store(tmp_path / "store")
    summary = carry_out(plan, store, engine, watching)
    assert killed, "both nodes were at work, and one lost its workers"
    assert watching.failures == []
    assert summary.failed == {}
    assert sorted(watching.done) == sorted(plan.cells)
    assert list(store.claims.iterdir()) == []
    key, cell = next(iter(plan.cells.items()))
    np.testing.assert_allclose(
        store.load(key).traces["greedy"].regret, compute(cell).traces["greedy"].regret, rtol=1e-5, atol=1e-5
    )
    began = time.monotonic()
    assert carry_out(plan, store, engine, Watching()).computed == 0
    assert time.monotonic() - began < 10


def test_no_cluster_at_the_address():
    from regretless.studies.engines.cluster import RayEngine

    with pytest.raises(SettingsError, match=r"no Ray cluster at '127\.0\.0\.1:1'"):
        RayEngine("127.0.0.1:1")


@pytest.mark.parametrize("whose", ["ours", "a worker's"])
def test_a_full_disk_ends_the_campaign_if_it_is_ours(whose, plan, tmp_path, monkeypatch):
    import ray

    from regretless.studies.engines.cluster import RayEngine

    full = WriteError("cannot write result: No space left on device; nothing was written")

    def get(task):
        if whose == "ours":
            return code_version(), b"a result"
        raise ray.exceptions.RayTaskError("compute", "", full).as_instanceof_cause()

    def put_file(key, content):
        raise full

    store, watching, engine = Store(tmp_path), Watching(), object.__new__(RayEngine)
    store.create()
    monkeypatch.setattr(store, "put_file", put_file)
    engine.ray = SimpleNamespace(get=get, exceptions=ray.exceptions)
    item = plan.planned()[0]
    with pytest.raises(WriteError) if whose == "ours" else contextlib.nullcontext():
        engine._receive(None, item, store, watching)
    assert (store.failure(item.key) is None, len(watching.failures)) == ((True, 0) if whose == "ours" else (False, 1))
