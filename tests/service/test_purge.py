"""Purging takes what is ours and nothing else, and never from under a running program."""

from __future__ import annotations

import os

import pytest

from sessiond import locks, paths
from sessiond.errors import AlreadyRunningError
from sessiond.service import purge

OURS = ("index.db", "index.db-sound", "index.db-wal", "index.db-shm", "index.db.damaged", "daemon.lock", "write.lock",
        "sessiond.log", "sessiond.log.1", "launchd.log")  # fmt: skip


@pytest.fixture
def state(tmp_path):
    folder = tmp_path / "state"
    folder.mkdir()
    for name in OURS:
        (folder / name).write_text("")
    return folder


def test_purging_removes_the_folder_with_all_that_is_ours(state):
    assert purge.index(str(state)) == [f"removed {state}"]
    assert not state.exists()


def test_what_is_not_ours_is_left_and_named(state):
    (state / "notes.txt").write_text("mine")
    (state / "keep").mkdir()
    assert purge.index(str(state)) == [f"removed the index; {state} also holds keep, notes.txt, which was left alone"]
    assert sorted(os.listdir(state)) == ["keep", "notes.txt"]


def test_a_link_among_ours_is_removed_and_not_followed(state, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "file").write_text("")
    (state / "sessiond.log.2").symlink_to(tmp_path / "precious")
    purge.index(str(state))
    assert (tmp_path / "precious" / "file").exists()


def test_nothing_to_purge_is_said(tmp_path):
    assert purge.index(str(tmp_path / "none")) == [f"no index in {tmp_path / 'none'}"]


def test_under_a_running_daemon_nothing_is_purged(state):
    lock = locks.take(paths.daemon_lock(str(state)), 0)
    try:
        with pytest.raises(AlreadyRunningError, match="a daemon is running"):
            purge.index(str(state))
    finally:
        locks.release(lock)
    assert sorted(os.listdir(state)) == sorted(OURS)


def test_removing_the_traces_leaves_the_index(state):
    purge.traces(str(state))
    assert sorted(os.listdir(state)) == [
        "daemon.lock", "index.db", "index.db-shm", "index.db-sound", "index.db-wal", "index.db.damaged", "write.lock",
    ]  # fmt: skip


def test_removing_traces_where_there_is_no_folder_is_no_error(tmp_path):
    purge.traces(str(tmp_path / "none"))
