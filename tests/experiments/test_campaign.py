"""Campaigns: what is computed, what is not, what is shared, and what becomes of failures."""

import dataclasses
import functools
import threading
import time

import numpy as np
import pytest

from regretless.errors import SettingsError
from regretless.experiments import Cell, Experiment, Panel, Plan, ResultStore, Run, Scale, Study, campaign, carry_out
from regretless.experiments.campaign import LocalProcesses, make_batches, work
from regretless.experiments.extension import Listener
from regretless.experiments.runner import resolve
from regretless.results import Result


def plan_of(*experiments, **more):
    cells = tuple(Cell(str(i), experiment) for i, experiment in enumerate(experiments))
    return Plan([Study("mine", (Panel("", cells),), **more)], Scale())


SMALL = Experiment("topk", ["greedy", "thompson", "epsilon_greedy"], seeds=2, horizon=20)


@pytest.fixture(scope="module")
def plan():
    return plan_of(SMALL, SMALL.replace(settings={"benchmark.k": 3}))


@pytest.fixture
def store(tmp_path):
    return ResultStore(tmp_path / "store")


def invent(tasks, progress):
    """Return results that are the same for the same task."""
    progress("running", 1, 1)
    return [
        Result(
            task.label,
            np.random.default_rng(int(task.address[:8], 16)).random((len(task.seeds), task.horizon)),
            seeds=task.seeds,
        )
        for task in tasks
    ]


class Recorder(Listener):
    def __init__(self):
        self.begun, self.computed, self.elsewhere, self.failures = [], [], [], []

    def begin(self, tasks, finished):
        self.begun.append((len(tasks), finished))

    def finished(self, task, computed):
        (self.computed if computed else self.elsewhere).append(task.address)

    def failed(self, task, error):
        self.failures.append((task.address, error))


def test_finished_work_is_never_repeated_and_damage_is(store, plan):
    first, second, third = Recorder(), Recorder(), Recorder()
    engine = functools.partial(work, compute=invent)
    assert carry_out(plan, store, engine, first).computed == len(plan.tasks) == 6
    assert carry_out(plan, store, engine, second).computed == 0
    assert second.begun == [(0, 6)]
    damaged = list(plan.tasks)[1]
    digest = store.load(damaged).digest()
    content = bytearray(store.path(damaged).read_bytes())
    content[300] ^= 1
    store.path(damaged).write_bytes(bytes(content))
    assert carry_out(plan, store, engine, third).computed == 1
    assert third.computed == [damaged]
    assert store.load(damaged).digest() == digest


def test_arms_with_the_same_configuration_are_one_result():
    other = Experiment("topk", {"by another name": "greedy", "new": "dfhpg"}, seeds=2, horizon=20)
    shared = plan_of(SMALL, other)
    assert len(shared.tasks) == 4
    addresses = [dict(cell.arms) for cell in shared.studies[0].cells()]
    assert addresses[0]["greedy"] == addresses[1]["by another name"]


def test_numbers_do_not_depend_on_the_arms_that_run_together(store):
    pricing = Experiment("pricing", ["greedy", "epsilon_greedy", "thompson"], seeds=3, horizon=120)
    together = resolve(pricing)
    alone = resolve(pricing)[1].compute(lambda what, done, total: None)
    results = campaign.compute_batch(together, lambda what, done, total: None)
    np.testing.assert_array_equal(results[1].regret, alone.regret)
    assert results[1].references == alone.references


def test_a_failure_is_recorded_for_its_arm_alone_and_tried_again(store, plan):
    bad = list(plan.tasks.values())[2]

    def compute(tasks, progress):
        if any(task.address == bad.address for task in tasks):
            raise RuntimeError("the solver failed")
        return invent(tasks, progress)

    recorder = Recorder()
    summary = carry_out(plan, store, functools.partial(work, compute=compute), recorder)
    assert summary.computed == len(plan.tasks) - 1
    assert "the solver failed" in summary.failed[bad.name]
    assert [address for address, _ in recorder.failures] == [bad.address]
    again = carry_out(plan, store, functools.partial(work, compute=invent))
    assert (again.computed, again.failed) == (1, {})


@pytest.mark.parametrize("offset", [-1e6, 1e6])
def test_a_task_that_failed_is_tried_again_whatever_the_clock_said(store, monkeypatch, offset, plan):
    def broken(tasks, progress):
        raise RuntimeError("the solver failed")

    truth = time.time
    with monkeypatch.context() as patch:
        patch.setattr(time, "time", lambda: truth() + offset)
        recorder = Recorder()
        assert carry_out(plan, store, functools.partial(work, compute=broken), recorder).computed == 0
        assert len(recorder.failures) == len(plan.tasks), "each is tried once"
    assert carry_out(plan, store, functools.partial(work, compute=invent)).computed == len(plan.tasks)


def test_two_workers_share_a_store_and_compute_nothing_twice(store, monkeypatch, plan):
    monkeypatch.setattr(campaign, "PATIENCE_SECONDS", 0.01)
    store.create()
    played = []

    def compute(tasks, progress):
        played.extend(task.address for task in tasks)
        time.sleep(0.02)
        return invent(tasks, progress)

    recorders = [Recorder(), Recorder()]
    batches = make_batches(plan.tasks.values(), 1)
    threads = [
        threading.Thread(target=campaign.work, args=(batches, store, recorder, compute)) for recorder in recorders
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(played) == sorted(plan.tasks)
    assert all(len(recorder.computed + recorder.elsewhere) == len(plan.tasks) for recorder in recorders)
    assert list(store.claims.iterdir()) == []


def test_what_another_process_failed_at_in_the_meantime_is_not_tried_again(store, plan):
    store.create()
    *_, last = plan.tasks.values()

    def compute(tasks, progress):
        store.fail(last.address, last.name, "by another process")
        return invent(tasks, progress)

    recorder = Recorder()
    campaign.work(make_batches(plan.tasks.values(), 1), store, recorder, compute)
    assert recorder.failures in ([(last.address, "by another process")], [])


def test_an_arm_far_from_its_published_value_is_run_on_a_second_range(store):
    main = Experiment("topk", ["greedy", "dfhpg"], seeds=3)
    plan = plan_of(main, second_seeds=1000)
    assert len(plan.second) == 2

    def far(tasks, progress):
        """Return greedy near its published value of 6.94e5, DFHPG far from its 1.68e5 on the first range."""
        level = {"greedy": 6.94e5, "dfhpg": 1.68e5}
        return [
            dataclasses.replace(
                result,
                config=task.configuration,
                extra={"standard": task.standard},
                regret=result.regret * 1e-6
                + level[task.label] / task.horizon * (9 if task.label == "dfhpg" and task.seeds[0] == 0 else 1),
            )
            for task, result in zip(tasks, invent(tasks, progress), strict=True)
        ]

    summary = carry_out(plan, store, functools.partial(work, compute=far))
    assert (summary.tasks, summary.computed) == (3, 3), "greedy is near enough"
    (cell,) = store.read_campaigns()[0].studies[0].cells()
    assert [label for label, address in cell.second if store.has(address)] == ["dfhpg"]


def test_processes_compute_the_same_and_refuse_what_they_cannot_be_given(store, tmp_path):
    plan = plan_of(Experiment("topk", ["greedy"], seeds=2, horizon=20))
    carry_out(plan, store, LocalProcesses(2, "cpu"))
    other = ResultStore(tmp_path / "other")
    carry_out(plan, other, work)
    (address,) = plan.tasks
    assert store.load(address).digest() == other.load(address).digest()
    (run,) = resolve(Experiment("topk", ["greedy"], seeds=2, horizon=20))
    broken = dataclasses.replace(run, policy=lambda: None)
    with pytest.raises(SettingsError, match="it cannot be handed to another process"):
        LocalProcesses(2, "cpu")([[broken]], store, Listener())


def test_a_campaign_comes_back_as_it_was(store, plan):
    store.create()
    store.write_campaign(plan.campaign())
    (known,) = store.read_campaigns()
    assert known.names == {address: task.name for address, task in plan.tasks.items()}
    assert [cell.arms for study in known.studies for cell in study.cells()] == [
        cell.arms for study in plan.studies for cell in study.cells()
    ]
    assert isinstance(next(iter(plan.tasks.values())), Run)
