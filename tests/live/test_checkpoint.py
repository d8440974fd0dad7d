"""Checkpoints: exact, whole or not at all, and harmless whoever wrote them."""

import hashlib
import io
import json
import os
import zipfile

import jax
import numpy as np
import pytest

from regretless import feedback, oracles, policies
from regretless.errors import CheckpointError, RegretlessError
from regretless.live import checkpoint
from regretless.live.learner import Learner
from regretless.settings import Settings

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
            w = learner._pending.get(late).w
            part = {i: costs[i] for i in np.flatnonzero(w)[: 1 if late % 7 == 0 else 2]}
            learner.learn(late, components=part)
    return np.array(decisions)


@pytest.mark.parametrize(
    "options",
    [
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
    ids=lambda options: options["policy"] + options.get("surrogate", "") + ("offset" if "offset" in options else ""),
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
    for one, other in zip(jax.tree.leaves(second._state), jax.tree.leaves(whole._state), strict=True):
        assert np.array_equal(one, other)
    assert second.health() == whole.health()
    second.save(tmp_path / "again.rgl")
    whole.save(tmp_path / "whole.rgl")
    one, other = (checkpoint.read(tmp_path / name) for name in ("again.rgl", "whole.rgl"))
    assert one[1] == other[1]
    assert one[0].keys() == other[0].keys()
    assert all(np.array_equal(one[0][name], other[0][name], equal_nan=True) for name in one[0])


@pytest.fixture
def saved(tmp_path):
    learner = Learner(ORACLE, context_dim=FEATURES)
    for _ in range(3):
        learner.learn(learner.decide(np.ones(FEATURES)).id, total=2.0)
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "plant.rgl"
    learner.save(path)
    return path


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


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, c: a.pop("state.theta"), "expected an array 'state.theta'"),
        (lambda a, c: a.update({"state.theta": np.zeros((1, 3))}), r"'state.theta': expected shape \(1, 16\)"),
        (lambda a, c: a.update({"state.extra": np.zeros(1)}), "expected no array 'state.extra'"),
        (lambda a, c: a.update({"state.theta": np.full((1, 16), np.nan)}), "not finite"),
        (lambda a, c: a.update({"ids/waiting": np.array([9])}), "contradict each other"),
        (lambda a, c: a.update({"ids/waiting": np.array([1])}), "contradict each other"),
        (lambda a, c: c.update(policy="greedy"), "belongs to another policy"),
        (lambda a, c: c.update(policy="nonsense"), "its configuration cannot be used: unknown policy"),
        (lambda a, c: c.pop("options"), "cannot be understood"),
        (lambda a, c: c["options"].update(context_shape=[10**12]), "expected at most 1000000 numbers"),
        (lambda a, c: c["options"].update(max_pending=-1), "its configuration cannot be used"),
        (lambda a, c: c["settings"].update(posterior_scale=0.5), "a policy of other numbers"),
        (lambda a, c: c.update(instances={"array": [[10**9, 10**9], "<f8"]}), "shape of its instances"),
        (lambda a, c: c.update(instances={"array": [[3], "|O"]}), "shape of its instances"),
    ],
)
def test_refuses_what_does_not_fit_together(saved, change, message):
    rewritten(saved, change)
    with pytest.raises(CheckpointError, match=message):
        Learner.load(saved, ORACLE)


def test_refuses_foreign_and_newer_files_and_other_oracles(saved, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match="No such file"):
        Learner.load(tmp_path / "none.rgl", ORACLE)
    (tmp_path / "text").write_text("hello")
    with pytest.raises(CheckpointError, match="is no checkpoint, or a damaged one"):
        Learner.load(tmp_path / "text", ORACLE)
    with zipfile.ZipFile(tmp_path / "foreign.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(CheckpointError, match=r"it has no manifest.json"):
        Learner.load(tmp_path / "foreign.zip", ORACLE)
    with pytest.raises(CheckpointError, match="expected the oracle that it was saved with"):
        Learner.load(saved, oracles.top_k(DIM, 3))
    monkeypatch.setattr(checkpoint, "VERSION", 2)
    rewritten(saved, lambda arrays, config: None)
    monkeypatch.undo()
    with pytest.raises(CheckpointError, match="written in format 2, this program knows formats up to 1: update"):
        Learner.load(saved, ORACLE)


def test_never_unpacks_pickles_or_compressed_members(tmp_path):
    trap = np.array([object()], dtype=object)
    with zipfile.ZipFile(tmp_path / "bomb.rgl", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", "{}" + " " * 10**6)
    with pytest.raises(CheckpointError, match="is compressed, which no checkpoint is"):
        checkpoint.read(tmp_path / "bomb.rgl")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        checkpoint.write(tmp_path / "pickle.rgl", {"a": trap}, {})
    assert not (tmp_path / "pickle.rgl").exists()


def tampered(path, change):
    """The file with its manifest changed and the checksum to match."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    manifest = json.loads(members["manifest.json"])
    change(manifest, members)
    members["manifest.json"] = json.dumps(manifest).encode()
    members["manifest.sha256"] = hashlib.sha256(members["manifest.json"]).hexdigest().encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def promise_too_much(manifest, members):
    entry = manifest["arrays"]["state.theta"]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    members[entry["file"]] = header.getvalue()
    entry.update(shape=[10**13], sha256=hashlib.sha256(header.getvalue()).hexdigest())


def share_files(manifest, members):
    manifest["arrays"]["more"] = manifest["arrays"]["state.theta"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (promise_too_much, "'state.theta' cannot be read: it is not what the manifest says"),
        (share_files, "its arrays share files"),
        (lambda manifest, members: manifest.update(format="other"), "expected a regretless checkpoint, got 'other'"),
        (lambda manifest, members: manifest.update(arrays=3), "cannot be understood"),
        (lambda manifest, members: manifest["arrays"].update(a=3), "cannot be understood"),
        (lambda manifest, members: manifest["arrays"]["state.theta"].update(file="../x"), r"it has no \.\./x"),
    ],
)
def test_forged_files_are_refused_before_memory_is_taken(saved, change, message):
    tampered(saved, change)
    with pytest.raises(CheckpointError, match=message):
        Learner.load(saved, ORACLE)


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
    policy = policies.build("greedy", Settings(), policies.Problem(ORACLE, (FEATURES,), feedback.Bandit()))
    learner = Learner(ORACLE, context_dim=FEATURES, policy=policy, feedback=feedback.Bandit())
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "own.rgl"
    learner.save(path)
    with pytest.raises(CheckpointError, match="saved with a feedback of your own"):
        Learner.load(path, ORACLE, policy=policy)
    with pytest.raises(CheckpointError, match="expected a policy of type"):
        Learner.load(
            path,
            ORACLE,
            policy=policies.build(
                "linear_thompson", Settings(), policies.Problem(ORACLE, (FEATURES,), feedback.Bandit())
            ),
            feedback=feedback.Bandit(),
        )
    assert Learner.load(path, ORACLE, policy=policy, feedback=feedback.Bandit()).waiting == [1]
    plain = Learner(ORACLE, context_dim=FEATURES)
    plain.save(path)
    with pytest.raises(CheckpointError, match="give no policy="):
        Learner.load(path, ORACLE, policy=policy)
