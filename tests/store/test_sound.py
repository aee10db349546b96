"""The note that an index was sound when it was closed, and what makes it worthless."""

import contextlib
import os
import sqlite3
import sys
import time

import pytest

from sessiond.config import Config, Homes
from sessiond.errors import IndexUnavailableError
from sessiond.scan import refresh
from sessiond.store import sound
from sessiond.store.connection import open_writer


@pytest.fixture
def index(tmp_path):
    open_writer(str(tmp_path)).close()
    return str(tmp_path / "index.db")


def looked_through(index):
    """Whether opening reads the index as a whole."""
    found = []
    connect = sqlite3.connect

    def traced(*args, **kwargs):
        connection = connect(*args, **kwargs)
        connection.set_trace_callback(found.append)
        return connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sessiond.store.connection.sqlite3.connect", traced)
        open_writer(os.path.dirname(index)).close()
    return any("quick_check" in statement for statement in found)


def test_a_noted_index_is_not_looked_through(index):
    assert looked_through(index)
    sound.note(index)
    assert not looked_through(index)


def test_one_that_turned_out_damaged_in_use_is_looked_through_all_the_same(index, tmp_path):
    sound.note(index)
    with open(index, "r+b") as file:
        file.seek(4096)
        file.write(b"\xff" * 4096)
    sound.note(index)
    open_writer(str(tmp_path), damages=1).close()
    assert os.path.exists(index + ".damaged")


def written(index):
    with contextlib.closing(sqlite3.connect(index)) as connection:
        connection.execute("INSERT INTO meta VALUES ('a', 1)")
        connection.commit()


def flipped_with_its_times_put_back(index):
    status = os.stat(index)
    with open(index, "r+b") as file:
        file.seek(5000)
        file.write(b"\xff")
    os.utime(index, ns=(status.st_atime_ns, status.st_mtime_ns))


def replaced_by_a_copy(index):
    status = os.stat(index)
    with open(index, "rb") as file:
        data = file.read()
    with open(index + ".new", "wb") as file:
        file.write(data)
    os.utime(index + ".new", ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(index + ".new", index)


def with_a_log_left(index):
    with open(index + "-wal", "wb") as file:
        file.write(b"left by a crash")


def removed(index):
    os.unlink(index)


def with_a_torn_note(index):
    os.truncate(index + "-sound", 10)


def without_a_note(index):
    os.unlink(index + "-sound")


@pytest.mark.parametrize(
    "change",
    [
        written,
        flipped_with_its_times_put_back,
        replaced_by_a_copy,
        with_a_log_left,
        removed,
        with_a_torn_note,
        without_a_note,
    ],
)
def test_the_note_holds_for_the_very_file_alone(index, change):
    sound.note(index)
    assert sound.is_noted(index)
    until_the_clock_of_files_moves(index)
    change(index)
    assert not sound.is_noted(index)


def until_the_clock_of_files_moves(index):
    """Times of files come from a clock that ticks every few milliseconds."""
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        with open(index + ".tick", "wb"):
            pass
        if os.stat(index + ".tick").st_ctime_ns > os.stat(index).st_ctime_ns:
            return
    pytest.fail("the clock of the file system stands still")


def test_no_note_is_left_where_none_can_be(index):
    os.mkdir(index + "-sound")
    sound.note(index)
    assert not sound.is_noted(index)


def test_a_pipe_in_its_place_is_not_waited_for(index):
    os.mkfifo(index + "-sound")
    assert not sound.is_noted(index)
    sound.note(index)
    assert sound.is_noted(index)


def test_another_name_of_a_file_in_its_place_is_not_written_to(index, tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    os.link(tmp_path / "target", index + "-sound")
    sound.note(index)
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_a_link_in_its_place_is_not_followed(index, tmp_path):
    (tmp_path / "target").write_bytes(b"precious")
    os.symlink(tmp_path / "target", index + "-sound")
    sound.note(index)
    assert (tmp_path / "target").read_bytes() == b"precious"


def test_it_is_for_the_user_alone(index):
    before = os.umask(0)
    try:
        sound.note(index)
    finally:
        os.umask(before)
    assert os.stat(index + "-sound").st_mode & 0o777 == 0o600


def test_a_refresh_that_fails_leaves_none(tmp_path, monkeypatch):
    def fail(*_):
        raise IndexUnavailableError("damaged", retry=False, damaged=True)

    monkeypatch.setattr(sys.modules["sessiond.scan.refresh"], "scan_all", fail)
    with pytest.raises(IndexUnavailableError):
        refresh(str(tmp_path), Homes(), Config(), wait_s=0)
    assert not sound.is_noted(str(tmp_path / "index.db"))
