"""Compiled programs that are kept between runs."""

import os
import subprocess
import sys
import zlib

from regretless.startup import remove_half_written


def test_half_written_programs_are_removed_once(tmp_path):
    """JAX writes them in place, never replaces them, and warns about a half one in every run."""
    whole = zlib.compress(os.urandom(1000))
    kept = {"whole-cache": whole, "other-cache": b"\x28\xb5\x2f\xfd and so on", "notes.txt": b""}
    for name, content in {**kept, "half-cache": whole[:500], "empty-cache": b"", "odd-cache": b"x\x9c..."}.items():
        (tmp_path / name).write_bytes(content)
    remove_half_written(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "checked"}
    old = tmp_path / "old-cache"
    old.write_bytes(whole[:500])
    os.utime(old, ns=(0, 0))
    (tmp_path / "new-cache").write_bytes(whole[:500])
    remove_half_written(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "checked", "old-cache"}


def test_a_cache_that_is_not_there_yet_stays_away(tmp_path):
    remove_half_written(tmp_path / "programs")
    assert not (tmp_path / "programs").exists()


KEPT = """
import os, jax
from regretless.startup import keep_programs
for place, own in (("off", None), (FOLDER, None), (FOLDER, None), (FOLDER, "/own")):
    os.environ["REGRETLESS_CACHE"] = place
    jax.config.update("jax_compilation_cache_dir", own)
    keep_programs.__wrapped__()
    print(jax.config.jax_compilation_cache_dir)
"""


def test_programs_are_kept_unless_that_is_switched_off(tmp_path):
    """The first start says where, no other does; a program that has a cache of its own keeps it."""
    words = [sys.executable, "-c", KEPT.replace("FOLDER", repr(str(tmp_path)))]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["None", *[str(tmp_path / "programs")] * 2, "/own"]
    assert done.stderr.count("REGRETLESS_CACHE=off") == 1
