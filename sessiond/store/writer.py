"""Writing the index: sources, observations, sessions, in transactions that the caller opens."""

import contextlib
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from sessiond import paths
from sessiond.model import DATABASE, Fingerprint, Observation, Previous, Reading, Session, Source
from sessiond.store import sessions
from sessiond.store.connection import open_writer, translated, verify
from sessiond.store.facts import packed, unpacked
from sessiond.store.reader import BUSY_MS
from sessiond.store.sessions import real_path, stored_path

Key = tuple[str, str]
"""(app, id)"""


class Known(NamedTuple):
    """What the index remembers of a source: a row as SQLite gives it, since a scan looks at a hundred thousand."""

    source_id: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int
    again: int
    """Not 0: it has to be read again even if it looks unchanged, `ANEW` from its start."""
    path: str | bytes

    def is_at(self, fingerprint: Fingerprint) -> bool:
        """Whether the file is as it was. A device number alone proves nothing: it may change with every mount."""
        return self[1:5] == fingerprint[1:]


ONCE_MORE = 1
"""It was too young to be sure of its times, or could not be read."""
ANEW = 2
"""Another reader version has read it."""


_SOURCE = ("app", "home", "kind", "dev", "ino", "size", "mtime_ns", "ctime_ns", "racy", "reader_version", "gap_bytes",
           "state", "problem")  # fmt: skip
_SOURCE_INSERT = f"INSERT INTO sources (path, {', '.join(_SOURCE)}) VALUES (?{', ?' * len(_SOURCE)})"  # noqa: S608
_SOURCE_UPDATE = f"UPDATE sources SET {', '.join(f'{c} = ?' for c in _SOURCE)} WHERE source_id = ?"  # noqa: S608
_OBSERVATION = "INSERT INTO observations (source_id, id, facts) VALUES (?, ?, ?)"
_OBSERVATION_UPDATE = "UPDATE observations SET facts = ? WHERE source_id = ? AND id = ? AND facts <> ?"

_BEYOND = 1 << 64
_CHECKPOINT_WAIT_MS = 200
"""A checkpoint waits this long for readers; the next one will do as well."""


class Writer:
    """The index open for writing; the caller holds `write.lock`."""

    def __init__(self, folder: str, *, damages: int = 0) -> None:
        self.path = paths.index_file(folder)
        self._connection = open_writer(folder, damages=damages)
        self._identity = self._stat()
        self._data_version = self._pragma("data_version")

    def _pragma(self, name: str) -> int:
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def _stat(self) -> tuple[int, int] | None:
        try:
            status = os.stat(self.path)
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def is_replaced(self) -> bool:
        """Whether the file at the index's path is no longer the one that is open."""
        return self._stat() != self._identity

    def is_changed_by_others(self) -> bool:
        """Whether another connection has written since the last call: what is remembered of it is out of date."""
        with translated(self.path):
            before, self._data_version = self._data_version, self._pragma("data_version")
        return before != self._data_version

    def verify(self) -> None:
        """Raise IndexUnavailableError when the file has gone bad behind our back."""
        verify(self.path)

    def close(self) -> None:
        """Checkpoint and close."""
        self.checkpoint()
        self._connection.close()

    def checkpoint(self) -> None:
        """Put the write-ahead log into the file and empty it, unless a reader holds on to it."""
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute(f"PRAGMA busy_timeout = {_CHECKPOINT_WAIT_MS}")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")

    def wal_bytes(self) -> int:
        """The size of the write-ahead log."""
        try:
            return os.stat(self.path + "-wal").st_size
        except OSError:
            return 0

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """One batch: all of it or nothing; what the driver raises is translated."""
        with translated(self.path, expects_tables=True):
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    # -- sources -----------------------------------------------------------------------------------------------------

    def known(self, reader_versions: Mapping[str, int]) -> dict[str, Known]:
        """Every source by path; `reader_versions` by app tells which readings are out of date."""
        found: dict[Any, Known] = {}
        make = tuple.__new__
        with translated(self.path):
            for app, version in reader_versions.items():
                rows = self._connection.execute(
                    "SELECT source_id, ino, size, mtime_ns, ctime_ns, iif(reader_version = ?, racy, ?), path"
                    " FROM sources WHERE app = ?",
                    (version, ANEW, app),
                )
                found.update({row[6]: make(Known, row) for row in rows})
        for path in [path for path, known in found.items() if type(path) is bytes or known[1] < 0]:
            known = found.pop(path)
            found[real_path(path)] = known._replace(ino=known.ino % _BEYOND)
        return found

    def previous(self, source_id: int, *, facts: bool = True) -> Previous:
        """What the last reading of a source left; without its facts on demand."""
        state = self._connection.execute("SELECT state FROM sources WHERE source_id = ?", (source_id,)).fetchone()
        if not facts:
            return Previous(state[0] if state else b"", {})
        rows = self._connection.execute("SELECT id, facts FROM observations WHERE source_id = ?", (source_id,))
        return Previous(state[0] if state else b"", {i: unpacked(facts) for i, facts in rows})

    def replace_source(
        self,
        source: Source,
        fingerprint: Fingerprint,
        reading: Reading,
        reader_version: int,
        *,
        again: bool,
        known: Known | None,
    ) -> tuple[Known, set[Key]]:
        """Store a reading; what comes back is the source as known from now on, and the sessions it touches."""
        values = (
            source.app, source.home, source.kind, *_stored(fingerprint), again, reader_version, reading.gap_bytes,
            reading.state, reading.problem,
        )  # fmt: skip
        source_id = None if known is None else known.source_id
        if source_id is None or not self._connection.execute(_SOURCE_UPDATE, (*values, source_id)).rowcount:
            source_id = self._connection.execute(_SOURCE_INSERT, (stored_path(source.path), *values)).lastrowid
            assert source_id is not None
            for session_id, facts in reading.facts.items():
                self._connection.execute(_OBSERVATION, (source_id, session_id, packed(facts)))
            changed = set(reading.facts)
        else:
            changed = set() if reading.partial else self._replace_observations(source_id, reading)
        known = Known(source_id, *fingerprint[1:], ONCE_MORE if again else 0, source.path)
        return known, {(source.app, i) for i in changed}

    def _replace_observations(self, source_id: int, reading: Reading) -> set[str]:
        """The sessions told of in another way than before; the only one of a source counts always: its size changed."""
        execute = self._connection.execute
        old = {i for (i,) in execute("SELECT id FROM observations WHERE source_id = ?", (source_id,))}
        changed = old - reading.facts.keys() - reading.same
        for vanished in changed:
            execute("DELETE FROM observations WHERE source_id = ? AND id = ?", (source_id, vanished))
        is_the_only_one = len(reading.facts) + len(reading.same) == 1
        for session_id, said in reading.facts.items():
            data = packed(said)
            if session_id not in old:
                execute(_OBSERVATION, (source_id, session_id, data))
            elif not execute(_OBSERVATION_UPDATE, (data, source_id, session_id, data)).rowcount and not is_the_only_one:
                continue
            changed.add(session_id)
        return changed

    def note_source(self, known: Known, fingerprint: Fingerprint, problem: str) -> Known:
        """Remember that a source could not be read; what it said before stays, and it is tried again."""
        self._connection.execute(
            "UPDATE sources SET dev = ?, ino = ?, size = ?, mtime_ns = ?, ctime_ns = ?, racy = ?, problem = ?"
            " WHERE source_id = ?",
            (*_stored(fingerprint), True, problem, known.source_id),
        )
        return Known(known.source_id, *fingerprint[1:], max(known.again, ONCE_MORE), known.path)

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

    def gaps(self) -> Iterator[tuple[str, int]]:
        """(path, gap_bytes) of files whose middle nobody has looked at, newest first, one by one."""
        rows = self._connection.execute(
            "SELECT path, gap_bytes FROM sources WHERE gap_bytes > 0 ORDER BY mtime_ns DESC"
        )
        with contextlib.closing(rows):
            for path, size in rows:
                yield real_path(path), size

    def gap_count(self) -> int:
        """How many files have a middle that nobody has looked at."""
        (number,) = self._connection.execute("SELECT count(*) FROM sources WHERE gap_bytes > 0").fetchone()
        return int(number)

    # -- sessions ----------------------------------------------------------------------------------------------------

    def observations(self, key: Key) -> list[Observation]:
        """All that is said about one session."""
        rows = self._connection.execute(
            "SELECT s.app, s.home, s.path, s.kind, s.dev, s.ino, s.size, s.mtime_ns, s.ctime_ns, o.facts"
            " FROM observations o JOIN sources s USING (source_id) WHERE o.id = ? AND s.app = ? ORDER BY s.path",
            (key[1], key[0]),
        )
        return [
            Observation(Source(r[0], r[1], real_path(r[2]), r[3]), Fingerprint(*r[4:9]), key[1], unpacked(r[9]))
            for r in rows
        ]

    def count_observations(self, session_id: str) -> int:
        """How many sources tell of an id, of whatever app."""
        (number,) = self._connection.execute("SELECT count(*) FROM observations WHERE id = ?", (session_id,)).fetchone()
        return int(number)

    def put_session(self, session: Session) -> None:
        sessions.put(self._connection, session)

    def drop_session(self, key: Key) -> None:
        """Take a row out of the list: it turned out to be no session."""
        row = self._connection.execute("SELECT session_no FROM sessions WHERE id = ? AND app = ?", key[::-1]).fetchone()
        if row is not None:
            self._drop([row[0]])

    def _drop(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            sessions.drop(self._connection, number)

    def miss_session(self, key: Key, now_ms: int) -> bool:
        """The last source of a session vanished: not resumable from now on, gone at the second look.

        False when there is no such row, or it is gone already.
        """
        added = self._connection.execute(
            "INSERT INTO missing (session_no, since_ms) SELECT session_no, ? FROM sessions"
            " WHERE id = ? AND app = ? AND gone_ms IS NULL ON CONFLICT DO NOTHING",
            (now_ms, key[1], key[0]),
        ).rowcount
        self._connection.execute("UPDATE sessions SET resumable = 0 WHERE id = ? AND app = ?", key[::-1])
        return added > 0

    def settle_missing(self, now_ms: int, quiet_ms: int) -> int:
        """Mark those gone that have been missing for `quiet_ms`; how many are still to be looked at again."""
        ripe = "since_ms NOT BETWEEN ? AND ?"  # one later than now was noted before the clock was set back
        bounds = (now_ms - quiet_ms + 1, now_ms)
        self._connection.execute(
            f"UPDATE sessions SET gone_ms = ? WHERE session_no IN (SELECT session_no FROM missing WHERE {ripe})",  # noqa: S608
            (now_ms, *bounds),
        )
        self._connection.execute(f"DELETE FROM missing WHERE {ripe}", bounds)  # noqa: S608
        (left,) = self._connection.execute("SELECT count(*) FROM missing").fetchone()
        return int(left)

    def missing_paths(self) -> list[str]:
        """Where the sessions lay that wait for a second look."""
        rows = self._connection.execute(
            "SELECT path FROM missing JOIN sessions USING (session_no) WHERE path IS NOT NULL"
        )
        return [real_path(path) for (path,) in rows]

    def drop_gone(self, before_ms: int) -> None:
        rows = self._connection.execute("SELECT session_no FROM sessions WHERE gone_ms < ?", (before_ms,)).fetchall()
        self._drop(number for (number,) in rows)

    def count(self) -> int:
        """Rows of sessions that are on disk."""
        (number,) = self._connection.execute("SELECT count(*) FROM sessions WHERE gone_ms IS NULL").fetchone()
        return int(number)

    def databases(self) -> list[dict[str, str | None]]:
        """The vendors' databases and how their last reading went, for `sessions status`."""
        rows = self._connection.execute("SELECT path, problem FROM sources WHERE kind = ? ORDER BY path", (DATABASE,))
        return [
            {
                "path": real_path(path).encode("utf-8", "replace").decode(),
                "state": "ok" if problem is None else "corrupt" if problem.startswith("corrupt") else "stale",
                "why": problem,
            }
            for path, problem in rows
        ]

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


def _stored(fingerprint: Fingerprint) -> tuple[int, ...]:
    """What SQLite's signed 64 bits can hold of it.

    Numbers of devices and inodes have 64 bits without a sign, and some file systems use them all: those come back. A
    time after the year 2262 does not, so such a file is read at every scan.
    """
    dev, ino, size, *times = fingerprint
    half = _BEYOND >> 1
    return (
        dev - _BEYOND if dev >= half else dev,
        ino - _BEYOND if ino >= half else ino,
        size,
        *[max(-half, min(time, half - 1)) for time in times],
    )
