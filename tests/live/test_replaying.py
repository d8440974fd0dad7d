"""The log of a learner: every call that returned is in it, and it gives the learner back bit for bit."""

import os
import shutil

import numpy as np
import pytest

from live.logs import DIM, FEATURES, ORACLE, digest, make, play
from regretless import oracles
from regretless.errors import LogError, RegretlessError
from regretless.live.history import History
from regretless.live.learner import Learner
from regretless.live.log import Reader


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    """A learner that did everything there is to do, saved half-way; its log lies in several files."""
    folder = tmp_path_factory.mktemp("plant")
    learner = make(log=folder / "log", log_size=9000, max_age=7, max_age_seconds=1e6, seed=3)
    play(learner, 9)
    learner.learn_from(History(np.ones((3, FEATURES)), np.eye(DIM)[:3], costs=np.ones((3, DIM))))
    learner.update(forgetting=0.01)
    learner.save(folder / "half.rgl")
    half = learner._books.position.records
    learner.decide(np.ones((10, FEATURES)))
    play(learner, 6, seed=1)
    return folder, learner, half


def kinds(path):
    return [record.kind for _, record in Reader(path)]


def test_replay_is_the_learner_bit_for_bit(plant, tmp_path):
    folder, learner, half = plant
    assert set(kinds(folder / "log")) == {"start", "decide", "override", "feedback", "piece", "history", "settings"}
    assert (folder / "log.1").exists()
    whole = digest(learner, tmp_path)
    again = Learner.replay(folder / "log", ORACLE)
    assert digest(again, tmp_path) == whole
    assert again.explain(1).residual == learner.explain(1).residual is not None
    assert digest(Learner.replay(folder / "log", ORACLE, checkpoint=folder / "half.rgl"), tmp_path) == whole
    Learner.replay(folder / "log", ORACLE, until=half).save(tmp_path / "half.rgl")
    assert (tmp_path / "half.rgl").read_bytes() == (folder / "half.rgl").read_bytes()
    later = [each.decide(np.ones(FEATURES)).cost_sample for each in (again, Learner.replay(folder / "log", ORACLE))]
    assert np.array_equal(*later)


def test_a_rejected_call_leaves_no_record(plant, tmp_path):
    _, learner, _ = plant
    before = learner._books.position
    for bad in (
        lambda: learner.decide([1.0]),
        lambda: learner.learn(learner.waiting[0], total=1.0),
        lambda: learner.learn(999, total=1.0),
        lambda: learner.record(np.ones(FEATURES), np.ones(DIM)),
        lambda: learner.record(np.ones(FEATURES), [1.0]),
        lambda: learner.record(np.ones((2, FEATURES)), np.eye(DIM)[0]),
        lambda: learner.update(forgetting=2.0),
        lambda: learner.learn_from(History(np.ones((1, FEATURES)), np.eye(DIM)[:1], totals=[1.0])),
    ):
        with pytest.raises(RegretlessError):
            bad()
    assert not learner.learn(1, components=told(learner, 1)).new
    assert learner._books.position == before


def told(learner, id):
    """What decision ``id`` was learnt from."""
    values = learner._books.pending.learnt[id].signature[:DIM]
    return {int(i): values[i] for i in np.flatnonzero(learner._books.pending.learnt[id].decision.w)}


def test_a_log_that_cannot_be_written_changes_nothing(tmp_path, monkeypatch):
    learner = make(log=tmp_path / "log")
    choice = learner.decide(np.ones(FEATURES))
    before, size = digest(learner, tmp_path), (tmp_path / "log").stat().st_size

    def full(*arguments):
        raise OSError(28, "No space left on device")

    calls = (
        lambda: learner.decide(np.ones(FEATURES)),
        lambda: learner.learn(choice.id, costs=np.ones(DIM)),
        lambda: learner.learn(choice.id, components={int(np.argmax(choice.w)): 1.0}, final=False),
        lambda: learner.record(np.ones(FEATURES), np.eye(DIM)[0]),
        lambda: learner.update(forgetting=0.02),
        lambda: learner.learn_from(History(np.ones((1, FEATURES)), np.eye(DIM)[:1], costs=np.ones((1, DIM)))),
    )
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        for call in calls:
            with pytest.raises(LogError, match="No space left on device; nothing was changed"):
                call()
    assert digest(learner, tmp_path) == before
    assert (tmp_path / "log").stat().st_size == size
    for call in calls:
        if call is not calls[2]:
            call()
    assert digest(Learner.replay(tmp_path / "log", ORACLE), tmp_path) == digest(learner, tmp_path)


def test_a_call_interrupted_after_its_record_is_taken_back(tmp_path, monkeypatch):
    learner = make(log=tmp_path / "log")
    with monkeypatch.context() as patched:
        patched.setattr(learner._books, "keep", lambda *arguments: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            learner.decide(np.ones(FEATURES))
    assert learner.decide(np.zeros(FEATURES)).id == 1
    assert kinds(tmp_path / "log") == ["start", "decide"]
    assert digest(Learner.replay(tmp_path / "log", ORACLE), tmp_path) == digest(learner, tmp_path)


def test_going_on_after_a_restart(tmp_path):
    log, new = tmp_path / "log", tmp_path / "new"
    learner = make(log=log)
    play(learner, 4)
    learner.save(tmp_path / "old.rgl")
    learner.decide(np.ones(FEATURES))
    with pytest.raises(LogError, match="is being written by another learner"):
        Learner.replay(log, ORACLE, append=True)
    learner.close()
    with pytest.raises(LogError, match="was closed"):
        learner.decide(np.ones(FEATURES))
    for fresh in (lambda: make(log=log), lambda: Learner.load(tmp_path / "old.rgl", ORACLE, log=log)):
        with pytest.raises(LogError, match=r"did not write to its end: go on with Learner\.replay"):
            fresh()
    with log.open("ab") as file:
        file.write(b"rgl\x01torn")
    with pytest.warns(UserWarning, match="the tail was torn off by a crash"):
        again = Learner.replay(log, ORACLE, append=True)
    again.decide(np.zeros(FEATURES))
    again.save(tmp_path / "end.rgl")
    again.close()
    loaded = Learner.load(tmp_path / "end.rgl", ORACLE, log=log, settings={"forgetting": 0.02})
    loaded.decide(np.ones(FEATURES))
    assert digest(Learner.replay(log, ORACLE), tmp_path) == digest(loaded, tmp_path)
    other = tmp_path / "other"
    play(make(log=other, seed=9), 9)
    plain = make(seed=5)
    plain.decide(np.ones(FEATURES))
    plain.save(tmp_path / "plain.rgl")
    moved = Learner.load(tmp_path / "end.rgl", ORACLE, log=new)
    moved.decide(np.ones(FEATURES))
    assert digest(Learner.replay(new, ORACLE, checkpoint=tmp_path / "end.rgl"), tmp_path) == digest(moved, tmp_path)
    for call, message in (
        (lambda: Learner.replay(new, ORACLE), "give it as checkpoint="),
        (lambda: Learner.replay(new, ORACLE, checkpoint=tmp_path / "old.rgl"), "saved after the last record"),
        (lambda: Learner.replay(other, ORACLE, checkpoint=tmp_path / "old.rgl"), "belongs to another log"),
        (
            lambda: Learner.replay(other, ORACLE, checkpoint=tmp_path / "plain.rgl"),
            "was not saved by the learner of this log",
        ),
        (
            lambda: Learner.replay(log, oracles.top_k(DIM, 3), append=False),
            "expected the oracle that it was saved with",
        ),
        (lambda: Learner.replay(log, ORACLE, until=2, append=True), "append=True or until="),
        (lambda: Learner.replay(log, ORACLE, until=2, checkpoint=tmp_path / "end.rgl"), "saved after the last record"),
        (lambda: Learner.replay(tmp_path / "none", ORACLE), "no such file"),
    ):
        with pytest.raises(LogError, match=message):
            call()


def test_a_damaged_log_says_how_far_it_is_good(plant, tmp_path):
    folder, _, _ = plant
    for path in folder.glob("log*"):
        shutil.copy(path, tmp_path)
    data = bytearray((tmp_path / "log.1").read_bytes())
    data[-5] ^= 1
    (tmp_path / "log.1").write_bytes(data)
    with pytest.raises(LogError, match=r"log\.1: the log is damaged at byte .* until=(\d+) goes on") as caught:
        Learner.replay(tmp_path / "log", ORACLE)
    good = int(str(caught.value).rpartition("until=")[2].split()[0])
    assert Learner.replay(tmp_path / "log", ORACLE, until=good)._books.position.records == good
    with pytest.raises(LogError, match="the log is damaged"):
        History.from_log(tmp_path / "log")
    assert len(History.from_log(tmp_path / "log", until=good)) > 5
