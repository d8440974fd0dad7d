"""Forged checkpoints: whoever wrote them, whatever they say, nothing but a CheckpointError, and no memory for a small file."""

import hashlib
import io
import json
import resource
import zipfile

import numpy as np
import pytest

from regretless import checkpoint, oracles
from regretless.errors import CheckpointError
from regretless.live.learner import Learner

DIM, FEATURES = 4, 3
ORACLE = oracles.top_k(DIM, 2)
NAN = float("nan")


def rewritten(path, change):
    """The checkpoint with its arrays and configuration changed, checksums and all."""
    arrays, config = checkpoint.read(path)
    change(arrays, config)
    checkpoint.write(path, arrays, config)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a, c: a.pop("state.inner.posterior.mean"), "expected an array 'state.inner.posterior.mean'"),
        (
            lambda a, c: a.update({"state.inner.posterior.mean": np.zeros((1, 3))}),
            r"'state.inner.posterior.mean': expected shape \(1, 16\)",
        ),
        (lambda a, c: a.update({"state.inner.extra": np.zeros(1)}), "expected no array 'state.inner.extra'"),
        (lambda a, c: a.update({"state.inner.posterior.mean": np.full((1, 16), np.nan)}), "not finite"),
        (lambda a, c: a.update({"ids/waiting": np.array([9])}), "contradict each other"),
        (lambda a, c: a.update({"ids/waiting": np.array([4.0])}), "'ids/waiting': expected .* type int64, got"),
        (lambda a, c: a.update({"ids/learnt": np.array([2, 1, 3])}), "contradict each other"),
        (lambda a, c: a.update(counts=np.array([9, 0, 3])), "contradict each other"),
        (lambda a, c: a.update(counts=np.array([4, -3, 6])), "contradict each other"),
        (lambda a, c: a.update(counts=np.array([2**40, 2**40 - 4, 3])), "contradict each other"),
        (lambda a, c: a["health/steps"].fill(1.0), "contradict each other"),
        (
            lambda a, c: a["health/steps"].__setitem__((0, 0), np.inf),
            "'health/steps' holds numbers that are not finite",
        ),
        (
            lambda a, c: a["state.contexts.spread"].fill(NAN),
            "'state.contexts.spread' holds numbers that are not finite",
        ),
        (lambda a, c: a["state.costs.spread"].fill(np.inf), "'state.costs.spread' holds numbers that are not finite"),
        (lambda a, c: a["waiting.w"].fill(NAN), "'waiting.w' holds numbers that are not finite"),
        (lambda a, c: a["waiting.context"].fill(np.inf), "'waiting.context' holds numbers that are not finite"),
        (lambda a, c: a["waiting.log_density"].fill(np.inf), "'waiting.log_density' holds numbers that are not finite"),
        (lambda a, c: a["learnt.signature"].fill(NAN), "'learnt.signature' holds numbers that are not finite"),
        (lambda a, c: c.update(settings={"posterior_scale": "much"}), "its configuration cannot be used: setting"),
        (lambda a, c: c.update(settings=[1]), "cannot be"),
        (lambda a, c: c.update(oracle=3), "cannot be understood"),
        (lambda a, c: c.update(offset=[NAN] * 4), "its configuration cannot be used: .*offset"),
        (lambda a, c: c["options"].update(colour=1), "its configuration cannot be used: .*'colour'"),
        (lambda a, c: c.update(feedback={"object": 3}), "a feedback of your own"),
        (lambda a, c: a.update({"ids/waiting": np.array([1])}), "contradict each other"),
        (lambda a, c: c.update(policy="greedy", settings={}), "belongs to another policy"),
        (lambda a, c: c.update(policy="greedy"), "its configuration cannot be used: policy 'greedy' has no setting"),
        (lambda a, c: c.update(policy="nonsense"), "its configuration cannot be used: unknown policy"),
        (lambda a, c: c.pop("options"), "cannot be understood"),
        (lambda a, c: c.update(context_shape=[10**12]), "expected at most 1000000 numbers"),
        (lambda a, c: c.update(context_shape=["3"]), "expected at most 1000000 numbers"),
        (lambda a, c: c["options"].update(max_pending=-1), "its configuration cannot be used"),
        (lambda a, c: c["settings"].update(posterior_scale=0.5), "a policy of other numbers"),
        (lambda a, c: c.update(instances={"array": [[10**9, 10**9], "<f8"]}), "form of its instances"),
        (lambda a, c: c.update(instances={"array": [[3], "|O"]}), "form of its instances"),
    ],
)
def test_refuses_what_does_not_fit_together(saved, change, message):
    rewritten(saved, change)
    with pytest.raises(CheckpointError, match=message):
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
    entry = manifest["arrays"]["state.inner.posterior.mean"]
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    members[entry["file"]] = header.getvalue()
    entry.update(shape=[10**13], sha256=hashlib.sha256(header.getvalue()).hexdigest())


def share_files(manifest, members):
    manifest["arrays"]["more"] = manifest["arrays"]["state.inner.posterior.mean"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (promise_too_much, "'state.inner.posterior.mean' cannot be read: it is not what the manifest says"),
        (share_files, "its arrays share files"),
        (lambda manifest, members: manifest.update(format="other"), "expected a regretless checkpoint, got 'other'"),
        (lambda manifest, members: manifest.update(arrays=3), "cannot be understood"),
        (lambda manifest, members: manifest["arrays"].update(a=3), "cannot be understood"),
        (
            lambda manifest, members: manifest["arrays"]["state.inner.posterior.mean"].update(file="../x"),
            r"it has no \.\./x",
        ),
    ],
)
def test_forged_files_are_refused_before_memory_is_taken(saved, change, message):
    tampered(saved, change)
    with pytest.raises(CheckpointError, match=message):
        Learner.load(saved, ORACLE)


def header(text):
    """Replaces the header of an array by this text."""

    def change(manifest, members):
        entry = manifest["arrays"]["state.inner.posterior.mean"]
        data = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\x00" * 128
        members[entry["file"]] = data
        entry["sha256"] = hashlib.sha256(data).hexdigest()

    return change


@pytest.mark.parametrize(
    "text",
    [
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 16",
        b"{'descr': '<f8', 'fortran_order': False, 'shape': ('a', 16), }\n",
        b"{'descr': 'O', 'fortran_order': False, 'shape': (1, 16), }\n",
        b"{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (1, 16), }\n",
        b"{'descr': '<f8', 'fortran_order': 3, 'shape': (1, 16), }\n",
        b"\xff\xfe\x00",
        b'"""',
        b"[" * 5000,
        b"",
    ],
    ids=range(9),
)
def test_headers_that_no_array_has(saved, text):
    tampered(saved, header(text))
    with pytest.raises(CheckpointError, match=r"'state\.inner\.posterior\.mean' cannot be read"):
        Learner.load(saved, ORACLE)


@pytest.mark.parametrize(
    "data",
    [
        b"\xff\xfe{}",
        b"[" * 100_000,
        b"null",
        b"3",
        b'"text"',
        b"{}",
        b'{"format": "regretless checkpoint", "version": []}',
    ],
    ids=range(7),
)
def test_manifests_that_no_learner_writes(saved, data):
    with zipfile.ZipFile(saved, "w") as archive:
        archive.writestr("manifest.json", data)
        archive.writestr("manifest.sha256", hashlib.sha256(data).hexdigest())
    with pytest.raises(CheckpointError):
        Learner.load(saved, ORACLE)


JUNK = [None, True, -1, 0, 3.5, 10**30, NAN, "", "x", "../x", [], [0], [None], {}, {"": 1}, {"array": 3}, {"object": 3}]


def places(config, path=()):
    for key, value in config.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, (*path, key))


def test_any_value_in_the_place_of_any_other_is_refused_or_harmless(saved):
    """Every entry of the configuration and of the listing, replaced by junk: a CheckpointError, or a learner that works."""
    with zipfile.ZipFile(saved) as archive:
        manifest = json.loads(archive.read("manifest.json"))
    original, refused = saved.read_bytes(), 0
    for place in places(manifest):
        for junk in JUNK[len(place) % 4 :: 4]:

            def change(manifest, members, place=place, junk=junk):
                for key in place[:-1]:
                    manifest = manifest[key]
                manifest[place[-1]] = junk

            saved.write_bytes(original)
            tampered(saved, change)
            try:
                Learner.load(saved, ORACLE).health()
            except CheckpointError:
                refused += 1
    assert refused > 250


def test_a_small_file_gets_no_large_memory(tmp_path):
    """A nuisance network of gigabytes, in a file that does not hold it."""
    learner = Learner(ORACLE, context_dim=FEATURES, policy="dfhpg")
    learner.decide(np.ones(FEATURES))
    path = tmp_path / "large.rgl"
    learner.save(path)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    rewritten(path, lambda a, c: c["settings"].update({"nuisance.width": 30_000}))
    with pytest.raises(CheckpointError, match="expected shape"):
        Learner.load(path, ORACLE)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200_000, "KiB"


def test_members_that_promise_more_than_the_file_has(saved):
    data = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("arrays/0000.npy")
    size, large = info.file_size.to_bytes(4, "little"), (2**31 - 1).to_bytes(4, "little")
    directory = data.index(b"PK\x01\x02")
    entry = data.index(size + size, directory)
    saved.write_bytes(data[:entry] + large + large + data[entry + 8 :])
    with pytest.raises(CheckpointError, match="its members promise more than"):
        Learner.load(saved, ORACLE)
