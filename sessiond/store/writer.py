"""Writing the index: sources, observations, sessions, in transactions that the caller opens."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from sessiond import paths
from sessiond.model import Fingerprint, Observation, Previous, Reading, Session, Source
from sessiond.store.connection import open_writer, translated
from sessiond.store.fold import fold

Key = tuple[str, str]
"""(app, id)"""


class Known(NamedTuple):
    """What the index remembers of a source."""

    source_id: int
    fingerprint: Fingerprint
    reader_version: int
    racy: bool
    problem: str | None


COLUMNS = tuple(f.name for f in fields(Session))
_UPSERT = (
    f"INSERT INTO sessions ({', '.join(COLUMNS)}) VALUES ({', '.join('?' * len(COLUMNS))})"  # noqa: S608
    " ON CONFLICT (id, app) DO UPDATE SET "
    + ", ".join(f"{c} = excluded.{c}" for c in COLUMNS if c not in ("app", "id"))
    + " RETURNING session_no"
)
_SOURCE_UPSERT = (
    "INSERT INTO sources (path, app, home, kind, dev, ino, size, mtime_ns, ctime_ns, racy, reader_version,"
    " gap_bytes, state, problem) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (path) DO UPDATE SET home = excluded.home, kind = excluded.kind, dev = excluded.dev,"
    " ino = excluded.ino, size = excluded.size, mtime_ns = excluded.mtime_ns, ctime_ns = excluded.ctime_ns,"
    " racy = excluded.racy, reader_version = excluded.reader_version, gap_bytes = excluded.gap_bytes,"
    " state = excluded.state, problem = excluded.problem RETURNING source_id"
)


def stored_path(path: str) -> str | bytes:
    """A path as the index keeps it: text, or bytes where the name is no UTF-8."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return os.fsencode(path)
    return path


def _real_path(stored: str | bytes) -> str:
    return os.fsdecode(stored)


class Writer:
    """The index open for writing; the caller holds `write.lock`."""

    def __init__(self, folder: str) -> None:
        self.path = paths.index_file(folder)
        self._connection = open_writer(folder)
        self._identity = self._stat()

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def is_replaced(self) -> bool:
        """Whether the file at the index's path is no longer the one that is open."""
        return self._stat() != self._identity

    def close(self) -> None:
        """Checkpoint and close."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._connection.close()

    def checkpoint(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One batch: all of it or nothing; what the driver raises is translated."""
        with translated(self.path):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    # -- sources -----------------------------------------------------------------------------------------------------

    def known(self) -> dict[str, Known]:
        """Every source by path."""
        rows = self._connection.execute(
            "SELECT path, source_id, dev, ino, size, mtime_ns, ctime_ns, reader_version, racy, problem FROM sources"
        )
        return {_real_path(r[0]): Known(r[1], Fingerprint(*r[2:7]), r[7], bool(r[8]), r[9]) for r in rows}

    def previous(self, source_id: int) -> Previous:
        """What the last reading of a source left."""
        state = self._connection.execute("SELECT state FROM sources WHERE source_id = ?", (source_id,)).fetchone()
        rows = self._connection.execute("SELECT id, facts FROM observations WHERE source_id = ?", (source_id,))
        return Previous(state[0] if state else b"", {i: json.loads(facts) for i, facts in rows})

    def replace_source(
        self, source: Source, fingerprint: Fingerprint, reading: Reading, reader_version: int, *, racy: bool
    ) -> tuple[Known, set[Key]]:
        """Store a reading; what comes back is the source as known from now on, and the sessions it touches."""
        (source_id,) = self._connection.execute(
            _SOURCE_UPSERT,
            (
                stored_path(source.path), source.app, source.home, source.kind, *fingerprint, racy, reader_version,
                reading.gap_bytes, reading.state, reading.problem,
            ),
        ).fetchone()  # fmt: skip
        known = Known(source_id, fingerprint, reader_version, racy, reading.problem)
        if reading.partial:
            return known, set()
        old = {i for (i,) in self._connection.execute("SELECT id FROM observations WHERE source_id = ?", (source_id,))}
        for vanished in old - reading.facts.keys():
            self._connection.execute("DELETE FROM observations WHERE id = ? AND source_id = ?", (vanished, source_id))
        changed = old - reading.facts.keys()
        for session_id, facts in reading.facts.items():
            written = self._connection.execute(
                "INSERT INTO observations (id, source_id, facts) VALUES (?, ?, ?)"
                " ON CONFLICT (id, source_id) DO UPDATE SET facts = excluded.facts WHERE facts <> excluded.facts",
                (session_id, source_id, json.dumps(facts, ensure_ascii=False, separators=(",", ":"))),
            ).rowcount
            if written or len(reading.facts) == 1:
                changed.add(session_id)
        return known, {(source.app, i) for i in changed}

    def note_source(self, known: Known, fingerprint: Fingerprint, problem: str | None, *, racy: bool) -> Known:
        """Remember a source's state without a new reading."""
        self._connection.execute(
            "UPDATE sources SET dev = ?, ino = ?, size = ?, mtime_ns = ?, ctime_ns = ?, racy = ?, problem = ?"
            " WHERE source_id = ?",
            (*fingerprint, racy, problem, known.source_id),
        )
        return known._replace(fingerprint=fingerprint, racy=racy, problem=problem)

    def forget_source(self, source_id: int) -> set[Key]:
        """Drop a source and its observations; the sessions that lose one come back."""
        touched = {
            (app, i)
            for app, i in self._connection.execute(
                "SELECT s.app, o.id FROM sources s JOIN observations o USING (source_id) WHERE source_id = ?",
                (source_id,),
            )
        }
        self._connection.execute("DELETE FROM observations WHERE source_id = ?", (source_id,))
        self._connection.execute("DELETE FROM sources WHERE source_id = ?", (source_id,))
        return touched

    def gaps(self) -> list[tuple[str, int, int]]:
        """(path, source_id, gap_bytes) of files whose middle nobody has looked at, newest first."""
        rows = self._connection.execute(
            "SELECT path, source_id, gap_bytes FROM sources WHERE gap_bytes > 0 ORDER BY mtime_ns DESC"
        )
        return [(_real_path(path), source_id, size) for path, source_id, size in rows]

    # -- sessions ----------------------------------------------------------------------------------------------------

    def observations(self, key: Key) -> list[Observation]:
        """All that is said about one session."""
        rows = self._connection.execute(
            "SELECT s.app, s.home, s.path, s.kind, s.dev, s.ino, s.size, s.mtime_ns, s.ctime_ns, o.facts"
            " FROM observations o JOIN sources s USING (source_id) WHERE o.id = ? AND s.app = ? ORDER BY s.path",
            (key[1], key[0]),
        )
        return [
            Observation(Source(r[0], r[1], _real_path(r[2]), r[3]), Fingerprint(*r[4:9]), key[1], json.loads(r[9]))
            for r in rows
        ]

    def put_session(self, session: Session) -> None:
        values: list[Any] = [getattr(session, name) for name in COLUMNS]
        if session.path is not None:
            values[3] = stored_path(session.path)
        (number,) = self._connection.execute(_UPSERT, values).fetchone()
        self._connection.execute(
            "INSERT INTO search_text (session_no, title, cwd, branch) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (session_no) DO UPDATE"
            " SET title = excluded.title, cwd = excluded.cwd, branch = excluded.branch"
            " WHERE title <> excluded.title OR cwd <> excluded.cwd OR branch <> excluded.branch",
            (number, fold(session.title or ""), fold(session.cwd or ""), fold(session.branch or "")),
        )
        self._connection.execute("DELETE FROM missing WHERE session_no = ?", (number,))

    def drop_session(self, key: Key) -> None:
        """Take a row out of the list: it turned out to be no session."""
        row = self._connection.execute("SELECT session_no FROM sessions WHERE id = ? AND app = ?", key[::-1]).fetchone()
        if row is not None:
            self._drop([row[0]])

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            for table in ("search_text", "missing", "sessions"):
                self._connection.execute(f"DELETE FROM {table} WHERE session_no = ?", (number,))  # noqa: S608

    def miss_session(self, key: Key, now_ms: int) -> None:
        """The last source of a session vanished: not resumable from now on, gone at the second look."""
        self._connection.execute(
            "INSERT INTO missing (session_no, since_ms) SELECT session_no, ? FROM sessions"
            " WHERE id = ? AND app = ? AND gone_ms IS NULL ON CONFLICT DO NOTHING",
            (now_ms, key[1], key[0]),
        )
        self._connection.execute("UPDATE sessions SET resumable = 0 WHERE id = ? AND app = ?", key[::-1])

    def settle_missing(self, now_ms: int, quiet_ms: int) -> int:
        """Mark those gone that have been missing for `quiet_ms`; how many are still to be looked at again."""
        self._connection.execute(
            "UPDATE sessions SET gone_ms = ? WHERE session_no IN (SELECT session_no FROM missing WHERE since_ms <= ?)",
            (now_ms, now_ms - quiet_ms),
        )
        self._connection.execute("DELETE FROM missing WHERE since_ms <= ?", (now_ms - quiet_ms,))
        (left,) = self._connection.execute("SELECT count(*) FROM missing").fetchone()
        return int(left)

    def missing_paths(self) -> list[str]:
        """Where the sessions lay that wait for a second look."""
        rows = self._connection.execute(
            "SELECT path FROM missing JOIN sessions USING (session_no) WHERE path IS NOT NULL"
        )
        return [_real_path(path) for (path,) in rows]

    def drop_gone(self, before_ms: int) -> None:
        rows = self._connection.execute("SELECT session_no FROM sessions WHERE gone_ms < ?", (before_ms,)).fetchall()
        self._drop(number for (number,) in rows)

    # -- meta --------------------------------------------------------------------------------------------------------

    def meta(self, key: str) -> str | int | None:
        row = self._connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def set_meta(self, **values: str | int | None) -> None:
        for key, value in values.items():
            if value is None:
                self._connection.execute("DELETE FROM meta WHERE key = ?", (key,))
            else:
                self._connection.execute(
                    "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
                    " WHERE value <> excluded.value",
                    (key, value),
                )
