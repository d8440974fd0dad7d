"""Files appear whole or not at all; nothing is left of writers that failed or were killed."""

import os
import resource
import signal
import stat
import subprocess
import sys
import threading

import pytest

from regretless import files
from regretless.errors import RegretlessError

KILLED = """
import sys, time
from regretless import files
with files.atomic(sys.argv[1]) as file:
    file.write(b"x" * 1000)
    file.flush()
    print("writing", flush=True)
    time.sleep(600)
"""


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture
def writer(tmp_path):
    """Another process in the middle of writing ``target``."""
    words = [sys.executable, "-c", KILLED, str(tmp_path / "target")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "writing\n"
        yield process
        process.kill()


def test_the_old_file_is_there_until_the_new_one_is_whole(tmp_path):
    path = tmp_path / "target"
    files.write_text(path, "old")
    with files.atomic(path, "w") as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
        (part,) = (name for name in names(tmp_path) if name != "target")
        assert part.startswith(f".target.{os.getpid()}-")
        assert part.endswith(".part")
    assert path.read_text() == "new"
    assert names(tmp_path) == ["target"]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "target"
    files.write_text(path, "old")

    def write():
        with files.atomic(path) as file:
            file.write(b"half")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert names(tmp_path) == ["target"]


def test_a_full_disk_is_one_sentence(tmp_path):
    """A limit on the size of files, which the operating system reports as it does a full disk."""
    path = tmp_path / "target"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(RegretlessError, match=r"cannot write .*target: File too large; nothing was written"):
            files.write_text(path, "x" * 20_000)
        files.write_text(path, "old")
        with pytest.raises(RegretlessError, match="File too large; the old file is unchanged"):
            files.write_text(path, "x" * 20_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert path.read_text() == "old"
    assert names(tmp_path) == ["target"]


def test_writers_that_want_a_path_get_one(tmp_path):
    with files.replacing(tmp_path / "target") as part:
        part.write_bytes(b"by path")
    assert (tmp_path / "target").read_bytes() == b"by path"
    assert names(tmp_path) == ["target"]


def test_what_a_killed_writer_left_is_removed_by_the_next(tmp_path, writer):
    writer.send_signal(signal.SIGKILL)
    writer.wait(timeout=30)
    assert len(names(tmp_path)) == 1, "the part is left behind"
    files.write_text(tmp_path / "other", "another target")
    assert len(names(tmp_path)) == 2, "parts of other targets are not touched"
    files.write_text(tmp_path / "target", "whole")
    assert names(tmp_path) == ["other", "target"]


def test_what_a_living_writer_is_writing_stays(tmp_path, writer):
    (part,) = names(tmp_path)
    files.write_text(tmp_path / "target", "whole")
    files.remove_left_behind(tmp_path)
    assert names(tmp_path) == [part, "target"]
    writer.kill()
    writer.wait(timeout=30)
    files.remove_left_behind(tmp_path)
    assert names(tmp_path) == ["target"]


def test_a_target_whose_name_begins_like_another_keeps_its_parts(tmp_path):
    (tmp_path / ".target.two.77-00000000.part").write_text("of target.two, by a dead writer")
    (tmp_path / ".target.notes-.part.txt").write_text("no part at all")
    files.write_text(tmp_path / "target", "whole")
    assert names(tmp_path) == [".target.notes-.part.txt", ".target.two.77-00000000.part", "target"]


def test_a_program_that_leaves_at_once_can_remove_its_parts(tmp_path):
    def write():
        with files.atomic(tmp_path / "target") as file:
            file.write(b"half")
            files.remove_unfinished()
            assert names(tmp_path) == []

    with pytest.raises(RegretlessError, match="cannot write"):
        write()
    assert names(tmp_path) == []


def test_many_threads_write_one_target(tmp_path):
    path = tmp_path / "target"
    texts = [str(number) * 5000 for number in range(8)]
    threads = [threading.Thread(target=files.write_text, args=(path, text)) for text in texts for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert path.read_text() in texts
    assert names(tmp_path) == ["target"]


def test_permissions_and_links_stay(tmp_path):
    files.write_text(tmp_path / "real", "old")
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o666 & ~umask()
    (tmp_path / "real").chmod(0o600)
    (tmp_path / "link").symlink_to("real")
    files.write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "real").stat().st_mode) == 0o600


def umask():
    before = os.umask(0)
    os.umask(before)
    return before


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "Is a directory"),
        ("nowhere/target", "No such file or directory"),
        ("x" * 300, "File name too long"),
        ("pipe", "it is a device or a pipe, not a file"),
    ],
)
def test_places_that_cannot_be_written_are_named_with_the_reason(tmp_path, name, reason):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RegretlessError, match=f"cannot write .*: {reason}; nothing was written"):
        files.write_text(tmp_path / name, "text")
    assert names(tmp_path) == ["pipe"]


def test_the_longest_name_a_file_can_have_works(tmp_path):
    path = tmp_path / ("ü" * 127)
    files.write_text(path, "whole")
    assert path.read_text() == "whole"
    assert len(names(tmp_path)) == 1
