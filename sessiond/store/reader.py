"""Reading the index: the client's side. Imported by the fast path, so it takes `_sqlite3` and returns plain tuples."""

from __future__ import annotations

import _sqlite3
import os
import stat

from sessiond import columns, paths
from sessiond.errors import IndexUnavailableError, NoIndexError, SchemaError
from sessiond.store.query import Filters
from sessiond.store.search import Row, Search

APPLICATION_ID = 0x53455353
"""`SESS`: marks the file as ours."""
SCHEMA_VERSION = 2
"""Raised with every change of schema.sql, of the columns or of another stored form; an older index is built anew."""
BUSY_MS = 5000
LAST_CHARACTER = "\U0010ffff"
"""Sorts behind everything that can follow a prefix."""
_MMAP_BYTES = 256 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self


class Reader:
    """The index open for reading only."""

    def __init__(self, folder: str) -> None:
        """Raises NoIndexError, SchemaError or IndexUnavailableError."""
        self.path = paths.index_file(folder)
        self.connection = _open(self.path)
        self.doubtful = False
        """Whether the client has reason to think that the index does not hold everything."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.connection.close()

    def rows(self, sql: str, parameters: Any = ()) -> list[Row]:
        """All rows of a query; raises IndexUnavailableError when the index is damaged or locked."""
        try:
            try:
                return self.connection.execute(sql, parameters).fetchall()
            except _sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
            self.connection.text_factory = _lossless
            try:
                return self.connection.execute(sql, parameters).fetchall()
            finally:
                self.connection.text_factory = str
        except UnicodeEncodeError:
            return []
        except _sqlite3.DatabaseError as error:
            raise translated(self.path, error) from error

    def meta(self) -> dict[str, str | int]:
        """Everything the index says of itself."""
        return dict(self.rows("SELECT key, value FROM meta"))  # type: ignore[arg-type]

    def find(self, filters: Filters, columns: str, *, order: str = "updated", limit: int | None = None) -> list[Row]:
        """The sessions asked for, in order; `columns` is SQL over `sessions s`."""
        return Search(self, filters, order=order, limit=limit).find(columns)

    # -- single sessions -----------------------------------------------------------------------------------------------

    def by_prefix(self, prefix: str, limit: int) -> list[Row]:
        """(app, id) of sessions whose id starts so, in order of id."""
        end = prefix + LAST_CHARACTER
        return self.rows(
            "SELECT app, id FROM sessions WHERE id >= ? AND id < ? ORDER BY id, app LIMIT ?", (prefix, end, limit)
        )

    def by_suffix(self, suffix: str, limit: int) -> list[Row]:
        """(app, id) of sessions whose id ends so."""
        return self.rows(
            "SELECT app, id FROM sessions WHERE substr(id, -length(?)) = ? AND length(id) >= length(?)"
            " ORDER BY id, app LIMIT ?",
            (suffix, suffix, suffix, limit),
        )

    def session(self, app: str, session_id: str) -> Row | None:
        """The public columns of one session."""
        found = self.rows(
            f"SELECT {', '.join(columns.NAMES)} FROM sessions WHERE id = ? AND app = ?",  # noqa: S608
            (session_id, app),
        )
        return found[0] if found else None

    def observations(self, app: str, session_id: str) -> list[Row]:
        """(kind, path, facts as `facts.unpacked` takes them, problem) of every source that tells of a session."""
        return self.rows(
            "SELECT s.kind, s.path, o.facts, s.problem FROM observations o JOIN sources s USING (source_id)"
            " WHERE o.id = ? AND s.app = ? ORDER BY s.path",
            (session_id, app),
        )

    def observed(self, prefix: str, limit: int) -> list[Row]:
        """(app, id) of everything that some source tells of, listed or not, whose id starts so."""
        end = prefix + LAST_CHARACTER
        return self.rows(
            "SELECT DISTINCT s.app, o.id FROM observations o JOIN sources s USING (source_id)"
            " WHERE o.id >= ? AND o.id < ? ORDER BY o.id LIMIT ?",
            (prefix, end, limit),
        )

    def branches(self, prefix: str, limit: int) -> list[Row]:
        """(branch) of all branches that begin so, the one last worked on first."""
        return self.rows(
            "SELECT branch FROM sessions WHERE substr(branch, 1, length(?)) = ? GROUP BY branch"
            " ORDER BY max(updated_ms) DESC LIMIT ?",
            (prefix, prefix, limit),
        )

    def problems(self) -> list[Row]:
        """(app, path, problem) of the sources that could not be read as they should."""
        return self.rows("SELECT app, path, problem FROM scan_problems")

    def gap_files(self) -> int:
        """Files whose middle nobody has looked through for names."""
        ((number,),) = self.rows("SELECT count(*) FROM sources WHERE gap_bytes > 0")
        return number if isinstance(number, int) else 0

    def count(self) -> int:
        """All sessions, listed or not."""
        ((number,),) = self.rows("SELECT count(*) FROM sessions")
        return number if isinstance(number, int) else 0

    def is_sound(self) -> bool:
        """Whether SQLite finds the file consistent; takes 20 ms for 100,000 sessions."""
        return self.rows("PRAGMA quick_check(1)") == [("ok",)]

    def short_id(self, session_id: str) -> str:
        """The shortest prefix of 8 or more characters that no other session shares."""
        neighbours = self.rows(
            "SELECT max(id) FROM sessions WHERE id < ? UNION ALL SELECT min(id) FROM sessions WHERE id > ?"
            " UNION ALL SELECT id FROM sessions WHERE id = ? LIMIT 4",
            (session_id,) * 3,
        )
        if len(neighbours) > 3:
            return session_id
        length = 8
        for (other,) in neighbours[:2]:
            if isinstance(other, str):
                length = max(length, _common(session_id, other) + 1)
        return session_id[:length]


def _common(one: str, other: str) -> int:
    """How many characters two ids share at their beginning."""
    length = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        length += 1
    return length


def _lossless(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _open(path: str) -> _sqlite3.Connection:
    _look(path)
    try:
        try:
            connection = _connect(path, "mode=ro")
        except _sqlite3.OperationalError as error:
            if not _is_sealed(path, error):
                raise
            connection = _connect(path, "mode=ro&immutable=1")
    except _sqlite3.DatabaseError as error:
        raise translated(path, error) from error
    return connection


def _look(path: str) -> None:
    """Raise what stands against opening: SQLite would wait for ever for a pipe, and does not say what is denied."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise NoIndexError(f"no index at {path}; run: sessiond --once") from None
    except OSError as error:
        mend = "check the permissions of its folder"
        raise IndexUnavailableError(f"cannot read {path}: {error.strerror}; {mend}", retry=False) from error
    if not stat.S_ISREG(mode):
        raise IndexUnavailableError(f"{path} is not a file; remove it", retry=False)


def _connect(path: str, mode: str) -> _sqlite3.Connection:
    connection = _sqlite3.connect(f"file:{_uri(path)}?{mode}", uri=True, timeout=BUSY_MS / 1000, isolation_level=None)
    try:
        _check(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _is_sealed(path: str, error: _sqlite3.OperationalError) -> bool:
    """Whether SQLite only failed to make its side files in a folder that we may not write, and nobody writes there.

    Without a `-wal` the file holds everything, so it can be read as it lies.
    """
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code not in (_sqlite3.SQLITE_CANTOPEN, _sqlite3.SQLITE_READONLY):
        return False
    return not os.access(os.path.dirname(path), os.W_OK) and not os.path.exists(path + "-wal") and os.path.exists(path)


def _check(connection: _sqlite3.Connection, path: str) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version == SCHEMA_VERSION:
        (owner,) = connection.execute("PRAGMA application_id").fetchone()
        if owner != APPLICATION_ID:
            raise SchemaError(f"{path} is a database of another program; move it away")
        connection.execute(f"PRAGMA mmap_size = {_MMAP_BYTES}")
        return
    if version == 0:
        raise NoIndexError(f"the index at {path} is not built yet; run: sessiond --once")
    if version > SCHEMA_VERSION:
        raise SchemaError(f"{path} was made by a newer sessiond (schema {version}); upgrade sessiond")
    raise SchemaError(f"{path} was made by an older sessiond (schema {version}); run: sessiond --once")


def translated(path: str, error: _sqlite3.DatabaseError) -> Exception:
    """What the user can do about an error of the driver; the error itself when it is a bug of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    is_foreign = code == _sqlite3.SQLITE_ERROR and str(error).startswith("no such ")
    if code in (_sqlite3.SQLITE_BUSY, _sqlite3.SQLITE_LOCKED):
        return IndexUnavailableError(f"{path} is locked by another program; close it or wait", retry=True)
    if code in (_sqlite3.SQLITE_CORRUPT, _sqlite3.SQLITE_NOTADB) or is_foreign:
        mend = "run: sessiond --once --gaps (with a daemon: sessions service restart)"
        return IndexUnavailableError(f"{path} is damaged; {mend}", retry=False, damaged=True)
    if code in (_sqlite3.SQLITE_CANTOPEN, _sqlite3.SQLITE_READONLY, _sqlite3.SQLITE_PERM, _sqlite3.SQLITE_IOERR):
        return IndexUnavailableError(f"cannot read {path}: {error}; check the permissions of its folder", retry=False)
    return error


def _uri(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
