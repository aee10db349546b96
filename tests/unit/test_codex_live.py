"""What happens to a thread while a daemon looks on: every change updates its one row, and it never flickers."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import time

import pytest

from sessiond import paths
from sessiond.config import Config, Homes
from sessiond.scan import Scanner, scan_all
from sessiond.store.writer import Writer
from tests.kit import codex_databases
from tests.kit.codex_home import CodexHome, answer, conversation, lines, uid

A, B = uid(1), uid(2)
zstd = pytest.importorskip("backports.zstd" if os.sys.version_info < (3, 14) else "compression.zstd")


class Place:
    """A Codex home, an index of it, and a database that Codex has open."""

    def __init__(self, folder):
        self.codex = CodexHome(folder / "codex")
        self.state = str(folder / "state")
        self.writer = Writer(self.state)
        self.scanner = Scanner([self.codex.provider], self.writer)
        self.database = sqlite3.connect(self.codex.path / "state_5.sqlite", isolation_level=None)
        self.database.execute("PRAGMA journal_mode=WAL")
        self.database.execute("PRAGMA wal_autocheckpoint=0")
        codex_databases.create(self.database, 50)

    def scan(self):
        scan_all(self.scanner, Homes({"codex": (str(self.codex.path),)}), Config())

    def changed(self, *changed):
        self.scanner.changed([str(path) for path in changed])

    def row(self, columns, thread_id=A):
        with contextlib.closing(sqlite3.connect(paths.index_file(self.state))) as connection:
            return connection.execute(f"SELECT {columns} FROM sessions WHERE id = ?", (thread_id,)).fetchone()

    @property
    def wal(self):
        return self.codex.path / "state_5.sqlite-wal"

    def close(self):
        self.database.close()
        self.writer.close()


@pytest.fixture
def place(tmp_path):
    place = Place(tmp_path)
    yield place
    place.close()


def test_a_commit_in_the_wal_updates_the_row(place):
    place.codex.rollout(A, conversation(A))
    place.scan()
    codex_databases.insert(place.database, A, title="Named in the TUI", first_user_message="Fix the build")
    place.changed(place.wal)
    assert place.row("title") == ("Named in the TUI",)
    place.database.execute("UPDATE threads SET title = 'Named again'")
    place.changed(place.wal)
    assert place.row("title") == ("Named again",)


def test_a_full_scan_sees_a_commit_in_the_wal(place):
    codex_databases.insert(place.database, A, first_user_message="One")
    place.scan()
    place.database.execute("UPDATE threads SET first_user_message = 'Two'")
    place.scan()
    assert place.row("title") == ("Two",)


def test_a_checkpoint_and_a_clean_close_lose_nothing(place):
    codex_databases.insert(place.database, A, first_user_message="One")
    place.scan()
    place.database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    place.changed(place.codex.path / "state_5.sqlite", place.wal)
    assert place.row("title, gone_ms") == ("One", None)
    place.database.close()
    place.changed(place.codex.path / "state_5.sqlite", place.wal)
    assert place.row("title, gone_ms") == ("One", None)


def test_a_deleted_row_leaves(place):
    codex_databases.insert(place.database, A, first_user_message="One")
    place.scan()
    place.database.execute("DELETE FROM threads")
    place.changed(place.wal)
    assert place.row("resumable") == (0,)
    place.scanner.second_look(time.time_ns() // 1_000_000 + 10_000)
    assert place.row("gone_ms IS NOT NULL") == (1,)


def test_a_rename_line_updates_the_row_at_once(place):
    place.codex.rollout(A, conversation(A))
    index = place.codex.path / "session_index.jsonl"
    place.scan()
    for name in ("First name", "Second name"):
        with open(index, "ab") as file:
            file.write(lines([{"id": A, "thread_name": name, "updated_at": "2026-09-01T11:00:00Z"}]))
        place.changed(index)
        assert place.row("title, title_from") == (name, "custom")


def test_an_append_updates_the_row(place):
    path = place.codex.rollout(A, conversation(A))
    place.scan()
    with open(path, "ab") as file:
        file.write(lines([answer("more", "2026-09-03T00:00:00.000Z")]))
    place.changed(path)
    assert place.row("updated_ms") == (1_788_393_600_000,)


def test_archiving_and_back_move_one_row(place):
    path = place.codex.rollout(A, conversation(A))
    place.scan()
    archived = place.codex.path / "archived_sessions" / path.name
    path.rename(archived)
    place.changed(path, archived)
    assert place.row("archived, resumable, gone_ms, path") == (1, 0, None, str(archived))
    archived.rename(path)
    place.changed(archived, path)
    assert place.row("archived, resumable, gone_ms, path") == (0, 1, None, str(path))


@pytest.mark.parametrize("order", [1, -1])
def test_in_whatever_order_the_two_ends_of_a_move_are_noticed_the_row_stays(place, order):
    path = place.codex.rollout(A, conversation(A))
    place.scan()
    archived = place.codex.path / "archived_sessions" / path.name
    path.rename(archived)
    for one in (path, archived)[::order]:
        place.changed(one)
        assert place.row("gone_ms, title") == (None, "Fix the build")
    assert place.row("archived") == (1,)


def test_compression_swaps_the_file_below_the_row(place):
    path = place.codex.rollout(A, conversation(A))
    place.scan()
    temporary = path.with_name("." + path.name + ".zst.tmp")
    packed = path.with_name(path.name + ".zst")
    temporary.write_bytes(zstd.compress(path.read_bytes()))
    place.changed(temporary)
    temporary.rename(packed)
    place.changed(packed)
    assert place.row("path, resumable") == (str(path), 1)
    path.unlink()
    place.changed(path)
    assert place.row("path, resumable, gone_ms, title, bytes") == (
        str(packed), 1, None, "Fix the build", packed.stat().st_size,
    )  # fmt: skip


def test_resuming_a_compressed_thread_swaps_it_back(place):
    packed = place.codex.rollout(A, zstd.compress(lines(conversation(A))), ending=".jsonl.zst")
    place.scan()
    path = place.codex.rollout(A, conversation(A))
    place.changed(path)
    packed.unlink()
    place.changed(packed)
    assert place.row("path, resumable, gone_ms") == (str(path), 1, None)


def test_a_database_that_turns_unreadable_keeps_its_last_rows(place):
    codex_databases.insert(place.database, A, first_user_message="One")
    place.scan()
    place.database.close()
    (place.codex.path / "state_5.sqlite").write_bytes(b"damaged" * 1000)
    place.changed(place.codex.path / "state_5.sqlite")
    assert place.row("title, gone_ms") == ("One", None)
    with contextlib.closing(sqlite3.connect(paths.index_file(place.state))) as connection:
        ((problem,),) = connection.execute("SELECT problem FROM sources WHERE kind = 'database'")
    assert problem.startswith("corrupt: ")


def test_a_newer_generation_beside_the_old_one_takes_over(place):
    codex_databases.insert(place.database, A, first_user_message="Old")
    place.scan()
    codex_databases.make(place.codex.path / "state_6.sqlite", {B: {"first_user_message": "New"}})
    place.scan()
    assert place.row("title", B) == ("New",)
    assert place.row("resumable") == (0,)
    place.database.execute("UPDATE threads SET title = 'x'")
    place.changed(place.wal)
    assert place.row("resumable") == (0,)


def test_another_change_of_the_database_rewrites_only_the_rows_it_touched(place):
    for number in range(1, 50):
        codex_databases.insert(place.database, uid(number), first_user_message="One")
    place.scan()
    put = []
    store = place.writer.put_session
    place.writer.put_session = lambda session: (put.append(session.id), store(session))
    place.database.execute("UPDATE threads SET first_user_message = 'Two' WHERE id = ?", (A,))
    place.changed(place.wal)
    assert put == [A]
