"""Campaigns with invented results: what is computed, what is not, and what becomes of failures."""

import threading
import time

import jax.numpy as jnp
import pytest

import invented
from regretless.simulation import programs
from regretless.studies import campaign
from regretless.studies.campaign import InProcess, carry_out
from regretless.studies.definitions import study
from regretless.studies.estimate import TimeLeft, cost
from regretless.studies.plan import Plan
from regretless.studies.store import Store
from regretless.studies.study import QUICK, Scale
from regretless.studies.verdicts import verdict


class Log:
    def __init__(self):
        self.events = []

    def begin(self, planned, finished):
        self.events.append(("begin", len(planned), finished))

    def started(self, item):
        self.events.append(("started", item.key))

    def progress(self, item, what, done, total):
        pass

    def finished(self, item):
        self.events.append(("finished", item.key))

    def failed(self, item, error):
        self.events.append(("failed", item.key, error))

    def count(self, kind):
        return sum(event[0] == kind for event in self.events)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture(scope="module")
def plan():
    """Made when a test needs it, not when tests are collected: its keys take three seconds."""
    return Plan([study("main", QUICK), study("alpha", QUICK)], QUICK)


def test_finished_work_is_never_redone_and_damage_is(store, plan):
    first, second, third = Log(), Log(), Log()
    engine = InProcess(invented.invent)
    assert carry_out(plan, store, engine, first).computed == len(plan.cells)
    assert first.count("started") == first.count("finished") == len(plan.cells)
    assert carry_out(plan, store, engine, second).computed == 0
    assert second.events == [("begin", 0, len(plan.cells))]
    spoilt = list(plan.cells)[1]
    digest = store.load(spoilt).digest()
    content = bytearray(store.path(spoilt).read_bytes())
    content[300] ^= 1
    store.path(spoilt).write_bytes(bytes(content))
    assert carry_out(plan, store, engine, third).computed == 1
    assert third.events[1] == ("started", spoilt)
    assert store.load(spoilt).digest() == digest


def test_a_failure_is_recorded_and_tried_again(store, plan):
    bad = list(plan.cells.values())[2]

    def player(cell, progress):
        if cell == bad:
            raise RuntimeError("the solver fell over")
        return invented.invent(cell, progress)

    log = Log()
    summary = carry_out(plan, store, InProcess(player), log)
    assert summary.computed == len(plan.cells) - 1, "what failed was not computed"
    assert list(summary.failed) == [bad.name]
    assert "the solver fell over" in summary.failed[bad.name]
    assert log.count("failed") == 1
    assert log.count("finished") == len(plan.cells) - 1
    again = carry_out(plan, store, InProcess(invented.invent), Log())
    assert (again.computed, again.failed) == (1, {})


def test_two_workers_share_a_store_and_do_nothing_twice(store, monkeypatch, plan):
    monkeypatch.setattr(campaign, "PATIENCE", 0.01)
    store.create()
    played = []

    def player(cell, progress):
        played.append(cell.name)
        time.sleep(0.02)
        return invented.invent(cell, progress)

    logs = [Log(), Log()]
    threads = [threading.Thread(target=InProcess(player).run, args=(plan.planned(), store, log)) for log in logs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert len(played) == len(set(played)) == len(plan.cells)
    assert all(log.count("finished") == len(plan.cells) for log in logs)
    assert list(store.claims.iterdir()) == []


@pytest.mark.parametrize("offset", [-1e6, 1e6])
def test_a_cell_that_failed_is_tried_again_whatever_the_clock_said(store, monkeypatch, offset, plan):
    def broken(cell, progress):
        raise RuntimeError("the solver fell over")

    truth = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: truth() + offset)
        first = Log()
        assert carry_out(plan, store, InProcess(broken), first).computed == 0
        assert first.count("started") == first.count("failed") == len(plan.cells), "each is tried once"
    log = Log()
    summary = carry_out(plan, store, InProcess(invented.invent), log)
    assert (summary.computed, summary.failed) == (len(plan.cells), {})
    assert log.count("failed") == 0


def test_what_another_process_failed_at_in_the_meantime_is_not_tried_again(store, plan):
    items = plan.planned()
    store.create()

    def player(cell, progress):
        store.fail(items[-1].key, items[-1].cell.name, "by somebody else")
        return invented.invent(cell, progress)

    log = Log()
    InProcess(player).run(items, store, log)
    assert log.events[-1] == ("failed", items[-1].key, "by somebody else")
    assert log.count("started") == log.count("finished") == len(items) - 1


def test_what_another_process_computed_in_the_meantime_is_not_counted(store, plan):
    items = plan.planned()

    def player(cell, progress):
        store.put(items[-1].key, invented.invent(items[-1].cell))
        return invented.invent(cell, progress)

    log = Log()
    summary = carry_out(plan, store, InProcess(player), log)
    assert summary.computed == len(items) - 1
    assert log.count("finished") == len(items)


def far(cell, progress):
    """Results with one policy far from its published value, as long as the seeds are the first thirty."""
    result = invented.invent(cell, progress)
    if cell.seeds[0] == 0 and "dfhpg" in result.traces:
        result.traces["dfhpg"].regret[:] *= 9.0
    return result


def test_a_cell_far_from_its_published_value_is_run_on_a_second_range(store):
    plan = Plan([study("main", Scale())], Scale())
    summary = carry_out(plan, store, InProcess(far), Log())
    assert summary.cells == 2 * len(plan.cells)
    for key in plan.cells:
        record, second = store.record(key), store.record(plan.second[key].key)
        found = verdict(record, "dfhpg", second)
        assert found.z > 3
        assert abs(found.second_z) <= 3
        assert found.word == "reproduced on the second range"
        assert verdict(record, "greedy", second).second_z is None, "its first range was near enough"
        assert verdict(record, "dfhpg").word == "second range to come"


def test_a_cell_far_on_both_ranges_is_not_reproduced(store):
    def farther(cell, progress):
        result = invented.invent(cell, progress)
        result.traces["dfhpg"].regret[:] *= 9.0
        return result

    plan = Plan([study("main", Scale())], Scale())
    carry_out(plan, store, InProcess(farther), Log())
    key = next(iter(plan.cells))
    assert verdict(store.record(key), "dfhpg", store.record(plan.second[key].key)).word == "not reproduced"


def test_short_runs_have_no_verdict(store, plan):
    carry_out(plan, store, InProcess(far), Log())
    record = store.record(next(iter(plan.cells)))
    assert verdict(record, "dfhpg") is None


def test_estimate_follows_the_machine(plan):
    assert all(part >= 0 for cell in plan.cells.values() for part in cost(cell))
    assert sum(cost(next(iter(plan.cells.values())))) > 1
    estimate = TimeLeft(100.0, now=0.0)
    assert estimate.left(now=0.0) == 100.0
    estimate.done = 50.0
    assert estimate.left(now=200.0) == pytest.approx(200.0), "half of it took 200 s"


def test_compiled_programs_are_dropped_when_memory_maps_run_short():
    """Every program takes hundreds of the 65,530 maps that Linux allows; a long campaign would end in a crash."""
    replicas = programs.Replicas(2)
    replicas.run(lambda shared, own: shared + own, jnp.float32(1), replicas.place(jnp.zeros(2)))
    assert programs._cache
    assert not programs.make_room(used=0.4)
    assert programs._cache
    assert programs.make_room(used=0.6)
    assert not programs._cache
    assert 0 <= programs._maps_in_use() < 1
