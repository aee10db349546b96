"""`sessions sql`: everything that reads, nothing that writes, and an end to all of it."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import stat
import time
from pathlib import Path

import pytest

from sessiond import paths
from sessiond.errors import RefusedError
from sessiond.model import Session
from sessiond.store import guard
from sessiond.store.reader import Reader


@pytest.fixture
def asked(client):
    client.fill(
        Session("claude-code", "aaaaaaaa", "/h", title='Fix, "it"', branch="fix/retry", updated_ms=2),
        Session("codex", "bbbbbbbb", "/h", title="a\x1bb", updated_ms=1),
    )

    def ask(*arguments):
        return client("sql", *arguments)

    ask.state = client.state
    return ask


def tree(folder):
    """Names and contents, but for the shared memory that any reader of a WAL database makes."""
    return {
        name: hashlib.sha256(Path(folder, name).read_bytes()).hexdigest()
        for name in sorted(os.listdir(folder))
        if not name.endswith(("-shm", "-wal"))
    }


def test_a_query_answers_in_lines_for_a_pipe(asked):
    assert asked("SELECT id, title FROM sessions ORDER BY id").out == 'aaaaaaaa\tFix, "it"\nbbbbbbbb\ta^[b\n'


def test_json(asked):
    assert json.loads(asked("SELECT id, NULL AS missing, x'ff' AS bytes, 1e999 AS large FROM sessions", "--json").out)[
        0
    ] == {"id": "aaaaaaaa", "missing": None, "bytes": "ff", "large": None}


def test_csv_reads_back(asked):
    rows = list(csv.reader(io.StringIO(asked("SELECT id, title FROM sessions ORDER BY id", "--csv").out)))
    assert rows == [["id", "title"], ["aaaaaaaa", 'Fix, "it"'], ["bbbbbbbb", "a^[b"]]


def test_json_and_csv_exclude_each_other(asked):
    assert asked("SELECT 1", "--json", "--csv").code == 2


def test_no_row_is_1(asked):
    assert asked("SELECT 1 WHERE 0").code == 1


@pytest.mark.parametrize("query", ["garbage", "SELECT 1; SELECT 2", "SELECT nothing", "SELECT '\udcff'"])
def test_what_is_no_query_is_a_usage_error(asked, query):
    assert asked(query).code == 2


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM session_list", "SELECT * FROM project_list", "SELECT * FROM scan_problems",
        "SELECT * FROM sessions_fts WHERE sessions_fts MATCH 'branch : retry'",
        "SELECT value FROM json_each('[1, 2]')", "SELECT name FROM pragma_table_info('sessions')",
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 3) SELECT x FROM c",
        "PRAGMA table_info(sessions)", "PRAGMA user_version", "EXPLAIN QUERY PLAN SELECT 1 FROM sessions",
        "SELECT row_number() OVER (ORDER BY id) FROM sessions", "VALUES (1)",
    ],
)  # fmt: skip
def test_reading_is_allowed(asked, query):
    assert asked(query).code in (0, 1), asked(query).err


@pytest.mark.parametrize(
    "query",
    [
        "ATTACH '{folder}/new.db' AS x", "ATTACH ':memory:' AS x", "VACUUM INTO '{folder}/new.db'", "VACUUM",
        "PRAGMA query_only = 0", "PRAGMA writable_schema = 1", "PRAGMA journal_mode = DELETE",
        "PRAGMA user_version = 9",
        "PRAGMA wal_checkpoint(TRUNCATE)", "PRAGMA temp_store_directory = '/tmp'", "PRAGMA mmap_size = 0",
        "SELECT * FROM pragma_journal_mode('delete')", "SELECT load_extension('x')",
        "INSERT INTO sessions_fts (sessions_fts) VALUES ('rebuild')", "DELETE FROM sessions",
        "INSERT INTO meta VALUES ('a', 'b')", "UPDATE sessions SET title = ''", "DROP TABLE sessions",
        "CREATE TABLE x (y)", "CREATE TEMP TABLE x (y)", "CREATE VIRTUAL TABLE x USING fts5(y)", "REINDEX", "ANALYZE",
        "BEGIN IMMEDIATE", "SAVEPOINT x", "DETACH main",
    ],
)  # fmt: skip
def test_writing_is_refused_and_leaves_no_trace(asked, query):
    asked("SELECT 1")
    before = tree(asked.state)
    assert asked(query.format(folder=asked.state)).code == 10
    assert tree(asked.state) == before


def test_an_endless_query_is_stopped(asked):
    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
    with Reader(asked.state) as opened, pytest.raises(RefusedError, match="stopped after"):
        guard.ask(opened, endless, deadline_s=0.1)


@pytest.mark.parametrize("query", ["SELECT zeroblob(1000000000)", "SELECT hex(zeroblob(7000000))"])
def test_a_huge_value_is_refused(asked, query):
    assert asked(query).code == 10


def test_a_long_answer_is_cut_and_said_to_be(asked):
    counting = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT 50) SELECT x FROM c"
    with Reader(asked.state) as opened:
        answer = guard.ask(opened, counting, max_rows=10)
    assert (len(answer.rows), answer.is_cut) == (10, True)


def test_an_answer_too_large_for_memory_is_cut(asked, monkeypatch):
    monkeypatch.setattr(guard, "MAX_BYTES", 1000)
    with Reader(asked.state) as opened:
        answer = guard.ask(opened, "SELECT printf('%.300c', 'x') FROM sessions, sessions, sessions")
    assert answer.is_cut
    assert len(answer.rows) == 3


def test_without_a_query_the_sqlite3_shell_opens_the_index_for_reading(client, process, tmp_path):
    client.fill(last_full_scan_ms=2**53)
    shell = tmp_path / "sqlite3"
    shell.write_text('#!/bin/sh\necho "$@"\n')
    shell.chmod(shell.stat().st_mode | stat.S_IXUSR)
    done = process("sql", PATH=f"{tmp_path}:{os.environ['PATH']}")
    assert done.stdout == f"-readonly {paths.index_file(client.state)}\n"


def test_without_a_query_and_without_sqlite3_it_is_refused(client, process, tmp_path):
    client.fill(last_full_scan_ms=2**53)
    done = process("sql", PATH=str(tmp_path))
    assert done.returncode == 10
    assert "session_list" in done.stderr


def test_a_single_function_that_runs_on_and_on_is_ended_too(asked, process):
    """`%.*c` loops inside of one step of SQLite, which looks at the clock only between steps."""
    took = -time.monotonic()
    done = process("sql", "SELECT printf('%.*c', 2147483647, 'x') || printf('%.*c', 2147483646, 'y')", "--no-refresh")
    took += time.monotonic()
    assert (done.returncode, done.stdout) == (10, "")
    assert "stopped after 5 s" in done.stderr
    assert took < 15
