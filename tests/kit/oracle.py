"""The slow truth: an index built from nothing in another folder. `index == oracle` once things are quiet."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import tempfile

from tests.kit.world import PUBLIC, until


def oracle_rows(world):
    """The public rows that a first scan of the same homes yields."""
    folder = tempfile.mkdtemp(dir=world.folder)
    try:
        world.once(SESSIOND_HOME=folder)
        return _rows(os.path.join(folder, "index.db"))
    finally:
        shutil.rmtree(folder)


def index_rows(world):
    return _rows(world.index)


def _rows(index):
    with contextlib.closing(sqlite3.connect(f"file:{index}?mode=ro", uri=True, timeout=5)) as connection:
        here = "gone_ms IS NULL AND session_no NOT IN (SELECT session_no FROM missing)"
        return sorted(connection.execute(f"SELECT {PUBLIC} FROM sessions WHERE {here}"), key=repr)


def equals_oracle(world, within_s=10.0):
    """Wait until the index says what a scan from nothing says, and prove the search tables consistent."""
    expected = oracle_rows(world)
    last = []

    def same():
        last[:] = [index_rows(world)]
        return last[0] == expected

    try:
        until(same, "the index equals one built from nothing", within_s)
    except AssertionError:
        assert last[0] == expected
        raise
    assert_sound(world.index)


def assert_sound(index):
    """The index passes SQLite's own checks, the search tables included; before its first commit it is empty."""
    with contextlib.closing(sqlite3.connect(index, timeout=5)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,):
            return
        for table in ("sessions_fts", "ids_fts"):
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")
        connection.rollback()
