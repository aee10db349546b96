"""The rows of `sessions` and the search tables that go with them, written together.

There are no triggers: a trigger makes SQLite open a statement journal, at which FTS5 writes out what it has gathered,
row by row. Storing took twice as long with them (docs/decisions/0071-no-triggers.md). `RETURNING` is one, too.
"""

from __future__ import annotations

import os
import sqlite3
from typing import Any

from sessiond import columns
from sessiond.model import Session
from sessiond.store.fold import fold

COLUMNS = columns.NAMES
_PATH = COLUMNS.index("path")
_INSERT = f"INSERT INTO sessions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
_UPDATE = f"UPDATE sessions SET {', '.join(f'{c} = ?' for c in COLUMNS[2:])} WHERE session_no = ?"  # noqa: S608
_FTS_INSERT = "INSERT INTO sessions_fts (rowid, title, cwd, branch) VALUES (?, ?, ?, ?)"
_FTS_DELETE = "INSERT INTO sessions_fts (sessions_fts, rowid, title, cwd, branch) VALUES ('delete', ?, ?, ?, ?)"


def stored_path(path: str) -> str | bytes:
    """A path as the index keeps it: text, or bytes where the name is no UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def real_path(stored: str | bytes) -> str:
    return stored if type(stored) is str else os.fsdecode(stored)


def put(connection: sqlite3.Connection, session: Session) -> None:
    """Insert or update one session; the search tables are written only where the folded text changed."""
    values: list[Any] = list(session)
    if session.path is not None:
        values[_PATH] = stored_path(session.path)
    texts = (fold(session.title or ""), fold(session.cwd or ""), fold(session.branch or ""))
    row = connection.execute(
        "SELECT t.session_no, t.title, t.cwd, t.branch FROM sessions s JOIN search_text t USING (session_no)"
        " WHERE s.id = ? AND s.app = ?",
        (session.id, session.app),
    ).fetchone()
    if row is None:
        number = connection.execute(_INSERT, values).lastrowid
        connection.execute("INSERT INTO search_text VALUES (?, ?, ?, ?)", (number, *texts))
        connection.execute(_FTS_INSERT, (number, *texts))
        connection.execute("INSERT INTO ids_fts (rowid, id) VALUES (?, ?)", (number, session.id))
        return
    number = row[0]
    connection.execute(_UPDATE, (*values[2:], number))
    if row[1:] != texts:
        connection.execute(_FTS_DELETE, row)
        connection.execute("REPLACE INTO search_text VALUES (?, ?, ?, ?)", (number, *texts))
        connection.execute(_FTS_INSERT, (number, *texts))
    connection.execute("DELETE FROM missing WHERE session_no = ?", (number,))


def drop(connection: sqlite3.Connection, number: int) -> None:
    """Take a session out of every table."""
    row = connection.execute(
        "SELECT t.session_no, t.title, t.cwd, t.branch, s.id FROM sessions s JOIN search_text t USING (session_no)"
        " WHERE session_no = ?",
        (number,),
    ).fetchone()
    if row is not None:
        connection.execute(_FTS_DELETE, row[:4])
        connection.execute("INSERT INTO ids_fts (ids_fts, rowid, id) VALUES ('delete', ?, ?)", (number, row[4]))
    for table in ("search_text", "missing", "sessions"):
        connection.execute(f"DELETE FROM {table} WHERE session_no = ?", (number,))  # noqa: S608
