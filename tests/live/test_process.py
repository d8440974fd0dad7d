"""Threads and processes: nothing is lost between threads, and a forked child says what to do."""

import os
import threading

import numpy as np
import pytest

from regretless import oracles
from regretless.errors import RegretlessError
from regretless.live.learner import Learner

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)
SOLVER = oracles.external(lambda cost: np.eye(DIM)[np.argmin(cost)], DIM)


@pytest.mark.parametrize("oracle", [ORACLE, SOLVER], ids=["jax", "host"])
def test_threads_do_not_lose_or_mix_decisions(oracle):
    learner = Learner(oracle, context=FEATURES, policy="linear_thompson")
    learner.learn(learner.decide(np.zeros(FEATURES)).id, total=0.0)
    seen, errors, watched = [], [], []
    done = threading.Event()

    def work(seed):
        rng = np.random.default_rng(seed)
        try:
            for _ in range(25):
                choice = learner.decide(rng.normal(size=FEATURES))
                seen.append(choice.id)
                learner.learn(choice.id, total=float(rng.normal()))
                learner.explain(choice.id)
        except Exception as error:
            errors.append(error)

    def watch():
        while not done.is_set():
            health = learner.health()
            watched.append(health.decisions == health.learned + health.waiting + health.expired)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    watcher = threading.Thread(target=watch)
    for thread in (*threads, watcher):
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    watcher.join()
    assert not errors
    assert watched
    assert all(watched)
    assert sorted(seen) == list(range(2, 102))
    assert int(learner.state.policy.version) == 101
    assert learner.health().learned == 101


@pytest.mark.parametrize(
    "call",
    [
        lambda learner, path: learner.decide(np.ones(FEATURES)),
        lambda learner, path: learner.learn(1, total=1.0),
        lambda learner, path: learner.explain(1),
        lambda learner, path: learner.health(),
        lambda learner, path: learner.waiting,
        lambda learner, path: learner.save(path),
        lambda learner, path: Learner.open(path, ORACLE, read_only=True),
        lambda learner, path: Learner(ORACLE, context=FEATURES, policy="linear_thompson"),
    ],
    ids=["decide", "learn", "explain", "health", "waiting", "save", "load", "make"],
)
@pytest.mark.filterwarnings("ignore:os.fork")
def test_a_forked_child_says_what_to_do(tmp_path, call):
    """Every call raises in the child, without touching JAX or a lock that is never released."""
    learner = Learner(ORACLE, context=FEATURES, policy="linear_thompson")
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "learner.db"
    learner.save(path)
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            call(learner, path)
            os.write(write, b"it went on")
        except RegretlessError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        message = pipe.read().decode()
    os.waitpid(child, 0)
    assert "a forked child" in message
    assert "'spawn'" in message
    assert learner.health().decisions == 1
