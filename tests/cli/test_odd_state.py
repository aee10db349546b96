"""A state folder or a configuration that holds what should not be there: told at once, with what to do."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import pytest

from sessiond import config, paths
from sessiond.errors import ConfigurationError, IndexUnavailableError
from sessiond.model import Session
from sessiond.store import connection
from sessions_cli import checks


def make_folder(path):
    os.mkdir(path)


def make_link(path):
    os.symlink("/etc/passwd", path)


@pytest.mark.parametrize("make", [make_folder, os.mkfifo, make_link])
def test_an_index_that_is_no_file_of_ours_is_to_be_removed(home, lone_client, process, make):
    os.makedirs(lone_client.state, mode=0o700)
    path = paths.index_file(lone_client.state)
    make(path)
    done = process("list")
    assert done.returncode == 11
    assert done.stderr == f"sessions: {path} is not a file of yours; remove it\n"


@pytest.mark.parametrize("make", [make_folder, os.mkfifo])
@pytest.mark.parametrize("arguments", [("list", "--no-refresh"), ("status",)])
def test_an_index_that_is_no_file_is_not_waited_for(lone_client, process, make, arguments):
    os.makedirs(lone_client.state, mode=0o700)
    path = paths.index_file(lone_client.state)
    make(path)
    done = process(*arguments)
    assert (done.returncode, done.stderr) == (9, f"sessions: {path} is not a file; remove it\n")


def test_damage_that_a_query_meets_is_told_as_damage(client):
    client.fill(*[Session("codex", f"{n:08}", "/h", title="word " * 30, updated_ms=n) for n in range(300)])
    path = paths.index_file(client.state)
    with sqlite3.connect(path) as index:
        (root,) = index.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'").fetchone()
        (page_bytes,) = index.execute("PRAGMA page_size").fetchone()
        index.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    index.close()
    with open(path, "r+b") as file:
        file.seek((root - 1) * page_bytes)
        file.write(b"\xff" * page_bytes)
    answer = client("sql", "SELECT title FROM sessions")
    assert answer.code == 9
    assert "is damaged; run: sessiond --once" in answer.err


def test_a_configuration_that_is_a_pipe_is_not_waited_for(home):
    file = paths.config_file(os.environ)
    os.makedirs(os.path.dirname(file))
    os.mkfifo(file)
    assert config.load(os.environ) == config.Config()


def test_a_folder_for_everybody_is_not_to_be_closed_to_everybody(tmp_path):
    folder = tmp_path / "tmp"
    folder.mkdir()
    folder.chmod(0o1777)
    with pytest.raises(ConfigurationError, match="set SESSIOND_HOME to one of yours"):
        connection.prepare_folder(str(folder))


def test_doctor_tells_a_fault_once(home):
    file = Path(paths.config_file(os.environ))
    file.parent.mkdir(parents=True)
    file.write_text("nonsense = 1\n", encoding="utf-8")
    told = [f.text for f in checks.run_all(os.environ) if "nonsense" in f.text]
    assert len(told) == 1


def test_doctor_counts_no_watches_without_a_daemon(lone_client):
    lone_client.fill()
    assert list(checks.watch_limits(os.environ)) == []


def test_doctor_calls_a_home_that_is_a_file_no_folder(home):
    (home / ".codex").write_text("", encoding="utf-8")
    assert [f.text for f in checks.homes(os.environ) if f.level == checks.WRONG] == [f"home {home}/.codex is no folder"]


def test_an_index_without_one_of_its_tables_is_built_anew(home, lone_client, process):
    lone_client.fill(Session("codex", "aaaaaaaa", "/h"))
    with sqlite3.connect(paths.index_file(lone_client.state)) as index:
        index.execute("DROP TABLE meta")
    index.close()
    without = process("status")
    assert (without.returncode, without.stderr.count("\n")) == (9, 1)
    assert "is damaged; run: sessiond --once --gaps" in without.stderr
    process("list")
    assert process("status").returncode == 0


@pytest.mark.parametrize("lock", [paths.daemon_lock, paths.write_lock])
def test_a_lock_that_is_a_pipe_is_not_waited_for(lone_client, process, lock):
    lone_client.fill()
    path = lock(lone_client.state)
    if os.path.exists(path):
        os.unlink(path)
    os.mkfifo(path)
    assert process("list").returncode == 1
    assert process("doctor").stdout.startswith("ok ")


def test_what_keeps_the_first_index_from_being_made_is_told(home, lone_client, process, monkeypatch):
    os.makedirs(lone_client.state, mode=0o700)
    Path(paths.index_file(lone_client.state)).touch(mode=0o600)

    def full(*_, **__):
        raise IndexUnavailableError("the disk is full; free some disk space", retry=True)

    monkeypatch.setattr("sessiond.scan.refresh", full)
    answer = lone_client("list")
    assert (answer.code, answer.err) == (9, "sessions: the disk is full; free some disk space\n")


def test_doctor_opens_a_folder_that_cannot_be_read(client):
    client.fill(unreadable="/h/.codex\tPermission denied")
    assert [(f.text, f.mend) for f in checks.index(os.environ) if f.level == checks.WRONG] == [
        ("/h/.codex cannot be read: Permission denied", "chmod u+rx /h/.codex")
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read everywhere")
def test_doctor_opens_a_state_folder_that_cannot_be_read(lone_client):
    lone_client.fill()
    os.chmod(lone_client.state, 0)
    try:
        found = [(f.text, f.mend) for f in checks.state_folder(os.environ)]
        answer = lone_client("list", "--no-refresh")
    finally:
        os.chmod(lone_client.state, 0o700)
    assert found == [(f"{lone_client.state} cannot be read", f"chmod 700 {lone_client.state}")]
    assert (answer.code, "Permission denied" in answer.err) == (9, True)
