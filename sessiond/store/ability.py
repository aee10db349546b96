"""Whether this SQLite can do what the index needs."""

from __future__ import annotations

import sqlite3

VERSION = sqlite3.sqlite_version
OLDEST = (3, 37, 0)
"""STRICT tables came with it."""


def what_is_missing() -> str:
    """What is missing, in words; empty when nothing is."""
    if sqlite3.sqlite_version_info < OLDEST:
        return f"older than {'.'.join(map(str, OLDEST))}"
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE t USING fts5(x, tokenize = 'trigram')")
        connection.execute("SELECT json_object('a', json('true'))").fetchone()
    except sqlite3.OperationalError as error:
        return str(error)
    finally:
        connection.close()
    return ""
