"""Copies and snapshots: a learner that is opened again continues bit for bit, and forged files are harmless."""

import os
import sqlite3

import jax
import numpy as np
import pytest

import regretless as rg
from live.learners import DIM, FEATURES, ORACLE, build, digest, forge
from regretless import oracles, policies
from regretless.errors import RegretlessError, SettingsError, StoreError

NAN = float("nan")
MASK = np.array([True, True, True, False])


def play(learner, rounds, start=0):
    """Play rounds with feedback that is late, partly missing and sometimes never comes."""
    decisions = []
    for t in range(start, start + rounds):
        rng = np.random.default_rng(t)
        choice = learner.decide(rng.normal(size=FEATURES), instance=np.arange(DIM) != t % DIM, key=f"order-{t}")
        decisions.append(np.concatenate([choice.w, choice.cost_sample]))
        late = choice.id - 3
        if late >= 1 and late % 5:
            costs = np.random.default_rng(1000 + late).normal(size=DIM) + 2.0
            w = learner.state.find(late).w
            part = {i: costs[i] for i in np.flatnonzero(w)[: 1 if late % 7 == 0 else 2]}
            learner.learn(late, components=part)
    return np.array(decisions)


@pytest.mark.parametrize(
    "options",
    [
        {"policy": "adaptive"},
        {},
        {"offset": [1.0, 0.0, 2.0, 0.5], "scaling": False, "settings": {"forgetting": 0.01}},
        {
            "policy": "dfhpg",
            "settings": {"surrogate": "pairwise_diff", "baseline": "nuisance_induced"},
            "max_age": 20,
        },
        {"policy": "epsilon_greedy", "limit": 5},
    ],
    ids=["default", "thompson", "offset", "dfhpg", "few"],
)
def test_a_copy_continues_bit_for_bit(tmp_path, options):
    def fresh():
        return build(feedback="semi_bandit", seed=11, **options)

    whole, first = fresh(), fresh()
    expected = play(whole, 40)
    played = [play(first, 20)]
    first.save(tmp_path / "plant.db")
    second = rg.Learner.open(tmp_path / "plant.db", ORACLE)
    assert second.waiting == first.waiting
    played.append(play(second, 20, start=20))
    assert np.array_equal(np.concatenate(played), expected)
    for one, other in zip(jax.tree.leaves(second.state.policy), jax.tree.leaves(whole.state.policy), strict=True):
        assert np.array_equal(one, other)
    assert second.health() == whole.health()
    assert digest(second, tmp_path) == digest(whole, tmp_path)
    second.close()
    third = rg.Learner.open(tmp_path / "plant.db", ORACLE, read_only=True)
    assert digest(third, tmp_path) == digest(whole, tmp_path), "the copy and the records after it"


def test_the_file_is_plain_json_and_bytes(saved):
    connection = sqlite3.connect(saved)
    data, layout, blob = connection.execute("SELECT data, layout, arrays FROM snapshots").fetchone()
    connection.close()
    assert data.startswith('{"config":{"problem":{"oracle":{"kind":"TopK"')
    assert '"policy":{"name":"linear_thompson"' in data
    assert '"versions":{"regretless":' in data
    assert layout.startswith('[["state')
    assert isinstance(blob, bytes)


def test_damaged_bytes_are_noticed_or_harmless(saved, tmp_path):
    """Bytes turned over all through the file: opening is refused, or gives the very same learner."""
    data = saved.read_bytes()
    expected = digest(rg.Learner.open(saved, ORACLE, read_only=True), tmp_path)
    refused = 0
    for place in range(0, len(data), max(1, len(data) // 150)):
        saved.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        try:
            learner = rg.Learner.open(saved, ORACLE, read_only=True)
        except StoreError:
            refused += 1
        else:
            assert digest(learner, tmp_path) == expected
    assert refused > 20
    for length in (0, 10, len(data) // 2, len(data) - 4096):
        saved.write_bytes(data[:length])
        with pytest.raises(StoreError):
            rg.Learner.open(saved, ORACLE, read_only=True)


def test_refuses_foreign_newer_and_older_files(saved, tmp_path):
    with pytest.raises(StoreError, match="No such file"):
        rg.Learner.open(tmp_path / "none.db", ORACLE)
    with pytest.raises(StoreError, match="expected a file, got a folder"):
        rg.Learner.open(tmp_path, ORACLE)
    for content, message in (
        ("hello " * 500, "not a learner's store"),
        ("PK\x03\x04" + "x" * 5000, r"checkpoint of version 0\.2, which this version cannot read"),
        ("rgl\x01" + "x" * 5000, r"log or checkpoint of version 0\.2"),
        ("", "got an empty file"),
    ):
        (tmp_path / "text").write_text(content)
        for read_only in (True, False):
            with pytest.raises(StoreError, match=message):
                rg.Learner.open(tmp_path / "text", ORACLE, read_only=read_only)
        assert (tmp_path / "text").read_text() == content
    other = sqlite3.connect(tmp_path / "other.db")
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(StoreError, match="a database of another program"):
        rg.Learner(ORACLE, context=3, store=tmp_path / "other.db")
    newer = sqlite3.connect(saved)
    newer.execute("PRAGMA user_version = 2")
    newer.close()
    with pytest.raises(StoreError, match="has format 2, this program reads format 1: update regretless"):
        rg.Learner.open(saved, ORACLE)
    with pytest.raises(SettingsError, match="expected a Problem or an oracle"):
        rg.Learner.open(saved, None)


def milp(limit=6.0, **options):
    return oracles.milp(A_ub=[[3.0, 4.0, 2.0]], b_ub=[limit], integrality=1, **options)


def external(**options):
    options = {"batched": False, **options}
    two = lambda costs: np.eye(DIM)[np.argmin(costs, axis=-1)]  # noqa: E731
    return oracles.external(two, DIM, **options)


@pytest.mark.parametrize(
    ("made", "given", "message"),
    [
        (ORACLE, oracles.top_k(DIM, 3), "expected the oracle that it was stored with: {'k': 2}, got {'k': 3}"),
        (ORACLE, milp(), "expected the oracle that it was stored with: {'kind': 'TopK'"),
        (milp(), milp(7.0), "expected the oracle that it was stored with: {'program"),
        (milp(), milp(workers=1, time_limit=5.0), None),
        (external(), external(batched=True), None),
        (external(), external(batched=True, time_limit=3.0), None),
        (external(), external(aux=np.zeros(2)), "expected the oracle that it was stored with: {'aux'"),
    ],
)
def test_the_feasible_set_must_be_the_same_but_not_how_it_is_solved(tmp_path, made, given, message):
    learner = build(made)
    learner.learn(learner.decide(np.ones(FEATURES)).id, total=2.0)
    path = tmp_path / "plant.db"
    learner.save(path)
    if message is None:
        again = rg.Learner.open(path, given)
        assert np.array_equal(again.decide(np.ones(FEATURES)).w, learner.decide(np.ones(FEATURES)).w)
    else:
        with pytest.raises(StoreError, match=message):
            rg.Learner.open(path, given)


def test_a_crash_while_copying_leaves_the_old_file(saved, monkeypatch):
    before = saved.read_bytes()
    learner = rg.Learner.open(saved, ORACLE, read_only=True)

    def crash(*arguments):
        raise OSError("power cut")

    monkeypatch.setattr(os, "replace", crash)
    with pytest.raises(RegretlessError, match=r"cannot write .*plant\.db: power cut"):
        learner.save(saved)
    monkeypatch.undo()
    assert saved.read_bytes() == before
    for number in range(5):  # left by killed writers
        (saved.parent / f".plant.db.99999-0000000{number}.part").write_bytes(b"half a copy")
    learner.save(saved)
    assert [path.name for path in saved.parent.iterdir()] == ["plant.db"]


def test_a_copy_never_replaces_a_store_that_is_written(tmp_path):
    path = tmp_path / "plant.db"
    learner = build(store=path)
    learner.decide(np.ones(FEATURES))
    with pytest.raises(StoreError, match="is the learner's own store"):
        learner.save(path)
    with pytest.raises(StoreError, match="a learner writes that file"):
        build().save(path)
    with pytest.raises(StoreError, match="expected a path, because this learner has no store"):
        build().save()
    learner.save()
    assert learner.decide(np.ones(FEATURES)).id == 2


def test_objects_have_to_be_given_again(tmp_path):
    problem = rg.Problem(ORACLE, FEATURES, may_miss=True)
    policy = policies.parse("greedy").build(problem)
    learner = rg.Learner(problem, policy=policy)
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "own.db"
    learner.save(path)
    open_with = lambda policy: rg.Learner.open(path, ORACLE, policy=policy, read_only=True)  # noqa: E731
    for other in (None, "greedy", policies.parse("linear_thompson").build(problem)):
        with pytest.raises(StoreError, match=r"stored with a policy object \(.*RegressionPolicy\): give it as policy="):
            open_with(other)
    with pytest.raises(StoreError, match="a policy of other numbers"):
        open_with(policies.parse("greedy", {"clip": 3.0}).build(problem))
    assert open_with(policy).waiting == [1]
    build().save(path)
    with pytest.raises(StoreError, match="stored with the policy 'linear_thompson', got"):
        open_with(policy)
    assert open_with("linear_thompson").waiting == []
    with pytest.warns(UserWarning, match=r"settings stay those of the store \(forgetting: 0.0, not 0.5\)"):
        open_with(policies.LinearThompson(forgetting=0.5))


def test_a_learner_that_did_nothing_yet_and_one_that_did(tmp_path):
    """Saved before the first decision, the form of instances is still open; afterwards it is not."""
    path = tmp_path / "fresh.db"
    build(seed=4).save(path)
    fresh, whole = rg.Learner.open(path, ORACLE, read_only=True), build(seed=4)
    assert np.array_equal(
        fresh.decide(np.ones(FEATURES), instance=MASK).cost_sample,
        whole.decide(np.ones(FEATURES), instance=MASK).cost_sample,
    )
    fresh.learn(1, total=3.0)
    fresh.save(path)
    again = rg.Learner.open(path, ORACLE)
    assert again.explain(1).residual == fresh.explain(1).residual is not None
    with pytest.raises(SettingsError, match="expected the form of earlier ones"):
        again.decide(np.ones(FEATURES))


def put(name, change):
    """Return a change of one array of a snapshot."""

    def apply(data, arrays):
        array = np.array(arrays[name])
        arrays[name] = change(array)

    return apply


def setting(*path, value):
    """Return a change of one entry of a snapshot's configuration."""

    def apply(data, arrays):
        place = data["config"]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return apply


MEAN = "state.inner.posterior.mean"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d, a: a.pop(MEAN), f"expected an array '{MEAN}'"),
        (put(MEAN, lambda a: np.zeros((1, 3))), f"'{MEAN}': expected shape"),
        (lambda d, a: a.update({"state.inner.extra": np.zeros(1)}), "expected no array 'state.inner.extra'"),
        (put(MEAN, lambda a: np.full_like(a, NAN)), "not finite"),
        (put("ids/waiting", lambda a: np.array([9])), "contradict each other"),
        (put("ids/waiting", lambda a: np.array([4.0])), "'ids/waiting': expected .* type int64, got"),
        (put("ids/learned", lambda a: np.array([2, 1, 3])), "contradict each other"),
        (put("counts", lambda a: np.array([9, 0, 0])), "contradict each other"),
        (put("counts", lambda a: np.array([4, -3, 0])), "contradict each other"),
        (put("counts", lambda a: np.array([2**40, 2**40 - 4, 0])), "contradict each other"),
        (put("health/steps", np.ones_like), "contradict each other"),
        (put("health/steps", lambda a: np.full_like(a, np.inf)), "'health/steps' holds numbers that are not finite"),
        (put("state.contexts.spread", lambda a: np.full_like(a, NAN)), "'state.contexts.spread' holds numbers"),
        (put("waiting.w", lambda a: np.full_like(a, NAN)), "'waiting.w' holds numbers that are not finite"),
        (put("waiting.context", lambda a: np.full_like(a, np.inf)), "'waiting.context' holds numbers"),
        (put("waiting.log_density", lambda a: np.full_like(a, np.inf)), "'waiting.log_density' holds numbers"),
        (put("learned.signature", lambda a: np.full_like(a, NAN)), "'learned.signature' holds numbers"),
        (setting("policy", "settings", "posterior_scale", value="much"), "posterior_scale"),
        (setting("policy", "settings", value=[1]), "cannot be understood"),
        (setting("problem", "oracle", value=3), "expected the oracle that it was stored with"),
        (setting("problem", "offset", value=[NAN] * 4), "offset"),
        (setting("problem", "feedback", value={"object": "my.rule"}), r"a measurement of your own \(my.rule\)"),
        (setting("policy", "name", value="greedy"), "policy 'greedy'"),
        (setting("policy", "name", value="nonsense"), "stored with the policy 'nonsense': give it as policy="),
        (lambda d, a: d["config"].pop("pending"), "cannot be understood"),
        (setting("problem", "context", value=[10**12]), "expected at most 1000000 numbers"),
        (setting("problem", "context", value=["3"]), "expected at most 1000000 numbers"),
        (setting("pending", "limit", value=-1), "pending: limit"),
        (setting("policy", "settings", "posterior_scale", value=0.5), "a policy of other numbers"),
        (lambda d, a: d.update(instances={"array": [[10**9, 10**9], "<f8"]}), "form of its instances"),
        (lambda d, a: d.update(instances={"array": [[3], "|O"]}), "form of its instances"),
    ],
)
def test_refuses_forged_files_that_do_not_fit_together(saved, tmp_path, change, message):
    with pytest.raises(StoreError, match=message):
        rg.Learner.open(forge(saved, tmp_path / "forged.db", change), ORACLE)


JUNK = [None, True, -1, 0, 3.5, 10**30, NAN, "", "x", "../x", [], [0], [None], {}, {"": 1}, {"array": 3}, {"object": 3}]


def places(data, path=()):
    for key, value in data.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def test_any_value_in_the_place_of_any_other_is_refused_or_harmless(saved, tmp_path):
    """Every entry of a snapshot's data, replaced by junk: a StoreError, or a learner that works."""
    found: list = []
    forge(saved, tmp_path / "forged.db", lambda data, arrays: found.extend(places(data)))
    refused = tried = 0
    for place in found:
        for junk in JUNK[len(place) % 4 :: 4]:

            def change(data, arrays, place=place, junk=junk):
                for key in place[:-1]:
                    data = data[key]
                data[place[-1]] = junk

            tried += 1
            try:
                rg.Learner.open(forge(saved, tmp_path / "forged.db", change), ORACLE, read_only=True).health()
            except StoreError:
                refused += 1
    assert refused > 0.6 * tried
