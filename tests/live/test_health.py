"""A live learner's health: what it says of decisions and changes, from whom it hides nothing, and that it is kept."""

import json
import re
import time
from types import SimpleNamespace

import numpy as np
import pytest

from regretless import checkpoint, oracles
from regretless.errors import CheckpointError, SettingsError
from regretless.live import archive
from regretless.live.health_record import OPENING, WINDOW, Recorder
from regretless.live.health_solver import Bystander
from regretless.live.learner import Learner
from regretless.live.process import Turns

DIM, FEATURES = 6, 2
COSTS = np.array([5.0, 1.0, 6.0, 2.0, 7.0, 4.0])


def make(oracle=None, **options):
    options = {"policy": "linear_thompson", **options}
    return Learner(oracle or oracles.top_k(DIM, 2), context_dim=FEATURES, **options)


def play(learner, rounds, costs=COSTS, seed=0, told=1):
    rng = np.random.default_rng(seed)
    for t in range(rounds):
        choice = learner.decide(rng.normal(size=FEATURES))
        if t % told == 0:
            sign = -1.0 if learner._core.sign < 0 else 1.0
            learner.learn(choice.id, total=sign * float(costs @ choice.w + 0.3 * rng.normal()))
    return learner.health()


def digest(learner):
    kernel, _, state = learner._books.snapshot()
    return archive.digest(kernel, state)


@pytest.fixture(scope="module")
def changed():
    """A learner whose costs turned around after 150 decisions, and its health before and after."""
    learner = make()
    return learner, play(learner, 150), play(learner, 60, 10.0 - COSTS, seed=1)


def test_tells_what_decisions_cost_beside_others(changed):
    _, before, _ = changed
    assert before.random.high < 0
    assert before.random.low < before.paid.mean - 2 * COSTS.mean() < before.random.high
    assert before.paid.low < before.paid.mean < before.paid.high
    assert before.best_fixed.cost == pytest.approx(3.0, abs=0.8)
    assert before.paid_since_start.rounds == 150
    assert "cheaper than random by" in before.verdict
    assert before.drift is None


def test_tells_that_the_world_has_changed_and_judges_by_the_new_one(changed):
    learner, _, after = changed
    assert 150 < after.drift.noticed < 200
    assert abs(after.drift.since - 151) < 8
    assert after.verdict.startswith(f"the world has changed since about decision {after.drift.since}; ")
    assert len(learner._books.recorder.opening) == 210 - after.drift.noticed


def test_all_of_it_is_in_a_checkpoint(changed, tmp_path):
    learner, _, after = changed
    learner.save(tmp_path / "plant.rgl")
    again = Learner.load(tmp_path / "plant.rgl", learner.problem.oracle)
    assert again.health() == after
    for each in (learner, again):
        each.learn(each.decide(np.ones(FEATURES)).id, total=3.0)
    assert digest(again) == digest(learner)
    arrays, config = checkpoint.read(tmp_path / "plant.rgl")
    for name, change in (("world", [10**6, 0]), ("drift/alarm", [-1, 0, 0]), ("opening", np.zeros((999, 3)))):
        forged = {**arrays, f"health/{name}": np.asarray(change)}
        checkpoint.write(tmp_path / "forged.rgl", forged, config)
        with pytest.raises(CheckpointError):
            Learner.load(tmp_path / "forged.rgl", learner.problem.oracle)


def test_rewards_are_told_as_rewards():
    told = play(make(sense="maximise"), 120)
    assert told.paid.low < told.paid.mean < told.paid.high < 0
    assert told.random.low > 0
    assert told.random.cost < 0
    assert "earns more than random by" in told.verdict


def test_an_incumbent_is_judged_beside_the_learner():
    learner = make(incumbent=[1.0, 0.0, 0.0, 1.0, 0.0, 0.0], budget=0.5)
    told = play(learner, 250).incumbent
    assert told.cost == pytest.approx(7.0, abs=0.5)
    assert told.low < told.difference < told.high < 0
    assert "cheaper than the incumbent by" in learner.health().verdict


def test_a_solver_on_the_host_is_asked_only_while_it_is_free():
    asked = []

    def solve(cost):
        asked.append(cost)
        return np.eye(DIM)[np.argmin(cost)] + np.eye(DIM)[np.argsort(cost)[1]]

    learner = make(oracles.external(solve, DIM))
    play(learner, 60, told=1)
    assert len(asked) == 60 + 32 + 1  # random decisions once, and the best fixed one
    assert learner.health().random is not None
    assert len(asked) == 60 + 32 + 2
    with learner._core.turns.taken():
        assert learner.health().best_fixed is not None  # the best of those that were made
    assert len(asked) == 60 + 32 + 2


def test_a_solver_that_takes_long_is_asked_once_and_a_failing_one_is_no_news():
    def late(cost):
        time.sleep(0.6)
        return np.eye(DIM)[0]

    for solver in (late, lambda cost: None):
        kernel = SimpleNamespace(oracle=oracles.external(solver, DIM), problem=SimpleNamespace(dim=DIM))
        bystander = Bystander(Turns())
        assert bystander.solver(kernel)(None, None) is None
        assert bystander.slow
        assert bystander.solver(kernel)(np.ones((1, DIM)), None) is None


def test_where_the_feasible_set_changes_random_decisions_are_those_of_the_last_rounds():
    kernel = SimpleNamespace(oracle=oracles.top_k(DIM, 2), problem=SimpleNamespace(dim=DIM))
    free = [np.arange(DIM) % 3 != t % 3 for t in range(40)]
    drawn = Bystander(Turns()).solver(kernel)(None, free)
    assert drawn.shape == (32, DIM)
    assert all(w[~own].sum() == 0 for w, own in zip(drawn, free[-32:], strict=True))
    assert Bystander(Turns()).solver(kernel)(None, free[:5]).shape == (5, DIM)


def test_is_exported_as_data_and_for_prometheus(changed):
    _, _, health = changed
    told = json.loads(json.dumps(health.as_dict()))
    assert told["drift"] == {"noticed": health.drift.noticed, "since": health.drift.since}
    assert told["random"]["difference"] == health.random.difference if health.random else told["random"] is None
    text = health.prometheus({"plant": 'no"rth\n'})
    assert '# TYPE regretless_learnt_total counter\nregretless_learnt_total{plant="no\\"rth\\n"} 210\n' in text
    assert 'regretless_drift{plant="no\\"rth\\n"} 1\n' in text
    names = re.findall(r"^# TYPE (\S+) (?:counter|gauge)$", text, re.MULTILINE)
    assert len(names) == len(set(names)) > 8
    sample = re.compile(r'(regretless_\w+)(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[\d.]+(e[+-]\d+)?')
    lines = [line for line in health.prometheus().splitlines() if not line.startswith("#")]
    assert all(sample.fullmatch(line) and sample.fullmatch(line)[1] in names for line in lines)
    for bad in ("9a", "a-b", "__a", "who", ""):
        with pytest.raises(SettingsError, match="expected labels"):
            health.prometheus({bad: "x"})


def test_a_recorder_is_quick_and_bounded():
    recorder = Recorder((6,), 144)
    rng = np.random.default_rng(0)
    form = make().problem.example_decision()
    decision = type(form)(
        **{
            **vars(form),
            "context": rng.normal(size=6),
            "w": np.ones(144),
            "cost_sample": np.ones(144),
            "member": np.int32(0),
        }
    )
    began = time.process_time()
    for id in range(1, 1001):
        recorder.learn({"residual": rng.normal(), "total": 5.0 + rng.normal()}, id, decision)
    assert (time.process_time() - began) / 1000 < 0.3e-3
    sizes = {name: len(np.atleast_1d(array)) for name, array in recorder.arrays().items()}
    assert (sizes["opening"], sizes["steps"]) == (OPENING, WINDOW)
    assert recorder.paid_since_start().rounds == 1000
    for id in range(1001, 1022):
        recorder.learn({"residual": 1e308, "total": 1e308 * (-1) ** id}, id, decision)
    assert all(np.all(np.isfinite(array)) for array in recorder.arrays().values())
