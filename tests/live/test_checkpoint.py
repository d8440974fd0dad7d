"""Checkpoints: exact, whole or not at all, and harmless whoever wrote them."""

import json
import os
import zipfile

import jax
import numpy as np
import pytest

from regretless import checkpoint, feedback, oracles, policies
from regretless.errors import CheckpointError, RegretlessError, SettingsError
from regretless.live.learner import Learner
from regretless.problem import Problem

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)


def play(learner, rounds, start=0):
    """Some rounds with feedback that is late, partly missing and sometimes never comes."""
    decisions = []
    for t in range(start, start + rounds):
        rng = np.random.default_rng(t)
        choice = learner.decide(rng.normal(size=FEATURES), instance=np.arange(DIM) != t % DIM)
        decisions.append(np.concatenate([choice.w, choice.cost_sample]))
        late = choice.id - 3
        if late >= 1 and late % 5:
            costs = np.random.default_rng(1000 + late).normal(size=DIM) + 2.0
            w = learner._books.pending.get(late).w
            part = {i: costs[i] for i in np.flatnonzero(w)[: 1 if late % 7 == 0 else 2]}
            learner.learn(late, components=part)
    return np.array(decisions)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"policy": "linear_thompson"},
        {
            "policy": "linear_thompson",
            "offset": [1.0, 0.0, 2.0, 0.5],
            "scaling": False,
            "settings": {"forgetting": 0.01},
        },
        {
            "policy": "dfhpg",
            "surrogate": "pairwise_diff",
            "settings": {"baseline": "nuisance_induced"},
            "max_age": 20,
        },
        {"policy": "epsilon_greedy", "max_pending": 5},
    ],
    ids=lambda options: (
        options.get("policy", "default") + options.get("surrogate", "") + ("offset" if "offset" in options else "")
    ),
)
def test_saved_and_loaded_goes_on_bit_for_bit(tmp_path, options):
    def fresh():
        return Learner(ORACLE, context_dim=FEATURES, feedback="semi_bandit", seed=11, **options)

    whole, first = fresh(), fresh()
    expected = play(whole, 40)
    played = [play(first, 20)]
    first.save(tmp_path / "plant.rgl")
    second = Learner.load(tmp_path / "plant.rgl", ORACLE)
    assert second.waiting == first.waiting
    played.append(play(second, 20, start=20))
    assert np.array_equal(np.concatenate(played), expected)
    for one, other in zip(jax.tree.leaves(second._books.state), jax.tree.leaves(whole._books.state), strict=True):
        assert np.array_equal(one, other)
    assert second.health() == whole.health()
    second.save(tmp_path / "again.rgl")
    whole.save(tmp_path / "whole.rgl")
    one, other = (checkpoint.read(tmp_path / name) for name in ("again.rgl", "whole.rgl"))
    assert one[1] == other[1]
    assert one[0].keys() == other[0].keys()
    assert all(np.array_equal(one[0][name], other[0][name], equal_nan=True) for name in one[0])


def test_file_is_plain_arrays_and_json(saved):
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        assert manifest["format"] == "regretless checkpoint"
        assert manifest["config"]["policy"] == "linear_thompson"
        assert {"regretless", "jax", "numpy"} <= manifest["config"]["versions"].keys()
        for entry in manifest["arrays"].values():
            with archive.open(entry["file"]) as file:
                assert np.load(file, allow_pickle=False).shape == tuple(entry["shape"])


def test_every_damaged_byte_is_noticed(saved):
    """Bytes turned over all through the file: loading is refused or, in zip's own padding, gives the very same learner."""
    data = saved.read_bytes()
    undamaged = checkpoint.read(saved)[0]
    for place in range(0, len(data), max(1, len(data) // 300)):
        saved.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            arrays = checkpoint.read(saved)[0]
        except CheckpointError:
            continue
        assert all(np.array_equal(arrays[name], undamaged[name], equal_nan=True) for name in undamaged)
    for length in (0, 10, len(data) // 2, len(data) - 1):
        saved.write_bytes(data[:length])
        with pytest.raises(CheckpointError):
            Learner.load(saved, ORACLE)


def rewritten(path, change):
    """The checkpoint with its arrays and configuration changed, checksums and all."""
    arrays, config = checkpoint.read(path)
    change(arrays, config)
    checkpoint.write(path, arrays, config)


def test_refuses_foreign_newer_and_older_files(saved, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="No such file"):
        Learner.load(tmp_path / "none.rgl", ORACLE)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CheckpointError, match="is no checkpoint, or a damaged one"):
        Learner.load(tmp_path / "text", ORACLE)
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(CheckpointError, match=r"it has no manifest.json"):
        Learner.load(tmp_path / "foreign.zip", ORACLE)
    with pytest.raises(SettingsError, match="expected an oracle"):
        Learner.load(saved, None)
    for version, message in (
        (3, "written in format 3, this program knows format 2 only: update"),
        (
            1,
            r"written in format 1 by regretless 0\.1, .* cannot be continued: go on with regretless 0\.1, or make a new",
        ),
    ):
        monkeypatch.setattr(checkpoint, "VERSION", 2)
        arrays, config = checkpoint.read(saved)
        monkeypatch.setattr(checkpoint, "VERSION", version)
        checkpoint.write(tmp_path / "other.rgl", arrays, config)
        monkeypatch.undo()
        with pytest.raises(CheckpointError, match=message):
            Learner.load(tmp_path / "other.rgl", ORACLE)


def milp(limit=6.0, **options):
    return oracles.milp(A_ub=[[3.0, 4.0, 2.0]], b_ub=[limit], integrality=1, **options)


def external(**options):
    options = {"batched": False, **options}
    two = lambda costs: np.eye(DIM)[np.argmin(costs, axis=-1)]  # noqa: E731
    return oracles.external(two, DIM, **options)


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        (ORACLE, oracles.top_k(DIM, 3), "expected the oracle that it was saved with: k 2, got 3"),
        (ORACLE, milp(), "expected the oracle that it was saved with: kind 'TopK', got 'Milp'"),
        (milp(), milp(7.0), "expected the oracle that it was saved with: program"),
        (milp(), milp(workers=1, time_limit=5.0), None),
        (external(), external(batched=True), None),
        (external(), external(batched=True, time_limit=3.0), None),
        (external(), external(aux=np.zeros(2)), "expected the oracle that it was saved with: aux"),
    ],
)
def test_the_feasible_set_must_be_the_same_but_not_how_it_is_solved(tmp_path, made, given, message):
    learner = Learner(made, context_dim=FEATURES, policy="linear_thompson")
    learner.learn(learner.decide(np.ones(FEATURES)).id, total=2.0)
    path = tmp_path / "plant.rgl"
    learner.save(path)
    if message is None:
        again = Learner.load(path, given)
        assert np.array_equal(again.decide(np.ones(FEATURES)).w, learner.decide(np.ones(FEATURES)).w)
    else:
        with pytest.raises(CheckpointError, match=message):
            Learner.load(path, given)


def test_a_crash_while_writing_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()

    def crash(*arguments):
        raise OSError("power cut")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(RegretlessError, match=r"cannot write .*plant\.rgl: power cut; the old file is as it was"):
        rewritten(saved, lambda arrays, config: None)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["plant.rgl"]


def test_what_killed_writers_left_is_removed_by_the_next_save(saved):
    for number in range(5):
        (saved.parent / f".plant.rgl.99999-0000000{number}.part").write_bytes(b"half a checkpoint")
    rewritten(saved, lambda arrays, config: None)
    assert [path.name for path in saved.parent.iterdir()] == ["plant.rgl"]


def test_objects_have_to_be_given_again(tmp_path):
    rule = feedback.Bandit()
    problem = Problem(ORACLE, (FEATURES,), rule, may_miss=True)
    policy = policies.parse("greedy").build(problem)
    learner = Learner(ORACLE, context_dim=FEATURES, policy=policy, feedback=rule)
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "own.rgl"
    learner.save(path)
    with pytest.raises(CheckpointError, match="saved with a feedback of your own"):
        Learner.load(path, ORACLE, policy=policy)
    with pytest.raises(CheckpointError, match="expected a policy of type"):
        Learner.load(path, ORACLE, policy=policies.parse("linear_thompson").build(problem), feedback=rule)
    with pytest.raises(CheckpointError, match="a policy of other numbers"):
        Learner.load(path, ORACLE, policy=policies.parse("greedy", {"clip": 3.0}).build(problem), feedback=rule)
    assert Learner.load(path, ORACLE, policy=policy, feedback=rule).waiting == [1]
    plain = Learner(ORACLE, context_dim=FEATURES, policy="linear_thompson")
    plain.save(path)
    with pytest.raises(CheckpointError, match="give no policy="):
        Learner.load(path, ORACLE, policy=policy)


def test_a_learner_that_did_nothing_yet_and_one_that_did(tmp_path):
    """Saved before the first decision, the form of instances is still open; afterwards it is not."""
    path = tmp_path / "fresh.rgl"
    Learner(ORACLE, context_dim=FEATURES, policy="linear_thompson", seed=4).save(path)
    fresh = Learner.load(path, ORACLE)
    whole = Learner(ORACLE, context_dim=FEATURES, policy="linear_thompson", seed=4)
    mask = np.array([True, True, True, False])
    assert np.array_equal(
        fresh.decide(np.ones(FEATURES), instance=mask).cost_sample,
        whole.decide(np.ones(FEATURES), instance=mask).cost_sample,
    )
    fresh.learn(1, total=3.0)
    fresh.save(path)
    again = Learner.load(path, ORACLE)
    assert again.explain(1).residual == fresh.explain(1).residual is not None
    with pytest.raises(SettingsError, match="expected the form of earlier ones"):
        again.decide(np.ones(FEATURES))
