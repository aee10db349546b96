"""Reading the index: the client's side. Imported by the fast path, so it takes `_sqlite3` and returns plain tuples."""

from __future__ import annotations

import _sqlite3
import os

from sessiond import paths
from sessiond.errors import IndexUnavailableError, NoIndexError, SchemaError
from sessiond.store import query
from sessiond.store.query import Condition, Filters

APPLICATION_ID = 0x53455353
SCHEMA_VERSION = 1
BUSY_MS = 5000
FEW = 3000
"""So many candidates are looked at one by one; with more, the newest sessions are searched first."""
NEWEST = 3000
"""How many of the newest sessions are searched for a common word before the whole index is."""
MANY_LISTED = 10_000
COUNT_LIMIT = 1000
"""Hidden sessions are counted up to this."""
_MMAP_BYTES = 256 << 20

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Row = tuple[object, ...]


class Reader:
    """The index open for reading only."""

    def __init__(self, folder: str) -> None:
        """Raises NoIndexError, SchemaError or IndexUnavailableError."""
        self.path = paths.index_file(folder)
        self.connection = _open(self.path)
        self.doubtful = False
        """Whether the client has reason to think that the index does not hold everything."""

    def __enter__(self) -> Reader:
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
            raise _translated(self.path, error) from error

    def meta(self) -> dict[str, str | int]:
        """Everything the index says of itself."""
        return dict(self.rows("SELECT key, value FROM meta"))  # type: ignore[arg-type]

    # -- search --------------------------------------------------------------------------------------------------------

    def find(self, filters: Filters, columns: str, *, order: str = "updated", limit: int | None = None) -> list[Row]:
        """The sessions asked for, in order; `columns` is SQL over `sessions s`."""
        search = _Search(self, filters)
        return search.find(columns, order, -1 if limit is None else limit)

    def hidden(self, filters: Filters, *, truncated: bool) -> int | None:
        """How many more there would be without the conditions of the default list, counted up to COUNT_LIMIT + 1.

        None when that is not worth the time: a common word of which not even the listed sessions are all shown.
        """
        if filters.all:
            return 0
        search = _Search(self, filters.unhidden())
        if truncated and search.selects and not search.are_few:
            return None
        return search.count_outside(query.scope(filters))

    # -- single sessions -----------------------------------------------------------------------------------------------

    def by_prefix(self, prefix: str, limit: int) -> list[Row]:
        """(app, id) of sessions whose id starts so, in order of id."""
        end = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        return self.rows(
            "SELECT app, id FROM sessions WHERE id >= ? AND id < ? ORDER BY id, app LIMIT ?", (prefix, end, limit)
        )

    def by_suffix(self, suffix: str, limit: int) -> list[Row]:
        """(app, id) of sessions whose id ends so."""
        return self.rows(
            "SELECT app, id FROM sessions WHERE substr(id, -length(?1)) = ?1 AND length(id) >= length(?1)"
            " ORDER BY id, app LIMIT ?2",
            (suffix, limit),
        )

    def session(self, app: str, session_id: str) -> Row | None:
        """The public columns of one session."""
        found = self.rows(
            f"SELECT {', '.join(query.COLUMNS)} FROM sessions WHERE id = ? AND app = ?",  # noqa: S608
            (session_id, app),
        )
        return found[0] if found else None

    def observations(self, app: str, session_id: str) -> list[Row]:
        """(kind, path, facts as JSON, problem) of every source that tells of a session."""
        return self.rows(
            "SELECT s.kind, s.path, o.facts, s.problem FROM observations o JOIN sources s USING (source_id)"
            " WHERE o.id = ? AND s.app = ? ORDER BY s.path",
            (session_id, app),
        )

    def short_id(self, session_id: str) -> str:
        """The shortest prefix of 8 or more characters that no other session shares."""
        neighbours = self.rows(
            "SELECT max(id) FROM sessions WHERE id < ?1 UNION ALL SELECT min(id) FROM sessions WHERE id > ?1"
            " UNION ALL SELECT id FROM sessions WHERE id = ?1 LIMIT 4",
            (session_id,),
        )
        if len(neighbours) > 3:
            return session_id
        length = 8
        for (other,) in neighbours[:2]:
            if isinstance(other, str):
                length = max(length, _common(session_id, other) + 1)
        return session_id[:length]


class _Search:
    """One question to the index, with what is known of its cost."""

    def __init__(self, reader: Reader, filters: Filters) -> None:
        self._reader = reader
        self.filters = filters
        self.selects = query.candidates(filters)
        self._words = query.word_conditions(filters)
        self._conditions = query.conditions(filters)
        self.are_few = bool(self.selects) and self._count_candidates() <= FEW

    def _count_candidates(self) -> int:
        total = 0
        for select in self.selects:
            rows = self._reader.rows(
                f"SELECT count(*) FROM (SELECT 1 FROM ({select.sql}) LIMIT {FEW + 1})",  # noqa: S608
                select.parameters,
            )
            total += _count(rows)
        return total

    def find(self, columns: str, order: str, limit: int) -> list[Row]:
        if self.are_few:
            return self._among_candidates(columns, order, limit)
        if order == "updated" and limit > 0:
            found = self._newest_first(columns, limit)
            if found is not None:
                return found
        if self.selects and not self._is_short_walk():
            return self._among_candidates(columns, order, limit)
        return self._everywhere(columns, order, limit)

    def _is_short_walk(self) -> bool:
        """Whether looking at every row of the default list costs less than collecting the candidates."""
        if not self.filters.is_default_list:
            return False
        rows = self._reader.rows(
            f"SELECT count(*) FROM (SELECT 1 FROM sessions s WHERE {query.LISTED} LIMIT {MANY_LISTED + 1})"  # noqa: S608
        )
        return _count(rows) <= MANY_LISTED

    def _among_candidates(self, columns: str, order: str, limit: int) -> list[Row]:
        source, where = self._candidate_source(self._conditions)
        return self._select(columns, source, where, order, limit)

    def _candidate_source(self, where: list[Condition]) -> tuple[Condition, list[Condition]]:
        """The candidates joined to their rows, and what is still to be checked of them."""
        union = Condition(
            " UNION ".join([s.sql for s in self.selects]), *[p for s in self.selects for p in s.parameters]
        )
        exact = len(self.selects) == 1
        words = [w for w, text in zip(self._words, self._relevant(), strict=True) if not exact or len(text) < 3]
        joined = "CROSS JOIN search_text t ON t.session_no = c.rowid" if words else ""
        return (
            Condition(f"({union.sql}) c CROSS JOIN sessions s ON s.session_no = c.rowid {joined}", *union.parameters),
            where + words,
        )

    def _relevant(self) -> list[str]:
        return [w for w in self.filters.words if query.matters(w)]

    def _everywhere(self, columns: str, order: str, limit: int) -> list[Row]:
        return self._select(columns, self._table(), self._conditions + self._words, order, limit)

    def _table(self, index: str = "") -> Condition:
        joined = "CROSS JOIN search_text t ON t.session_no = s.session_no" if self._words else ""
        return Condition(f"sessions s {index} {joined}")

    def _index(self) -> str:
        if self.filters.is_default_list:
            return "sessions_listed"
        return "sessions_by_app" if self.filters.app is not None else "sessions_by_update"

    def _newest_first(self, columns: str, limit: int) -> list[Row] | None:
        """The first `limit` hits when the newest sessions hold so many, or hold all there are; else None."""
        index = self._index()
        bounds = [c for c in self._conditions if c.sql.startswith(("s.updated_ms", "s.app", "s.interactive"))]
        boundary = self._reader.rows(
            f"SELECT s.updated_ms FROM sessions s INDEXED BY {index} WHERE {_and(bounds)}"  # noqa: S608
            f" ORDER BY s.updated_ms DESC LIMIT 1 OFFSET {NEWEST}",
            _parameters(bounds),
        )
        if not self._conditions[1:] and not self._words:
            boundary = []
        newest = [] if not boundary or boundary[0][0] is None else [Condition("s.updated_ms >= ?", boundary[0][0])]
        found = self._select(
            columns,
            self._table(f"INDEXED BY {index}"),
            self._conditions + newest + self._words,
            "updated",
            limit,
        )
        return found if len(found) == limit or not newest else None

    def count_outside(self, scope: str) -> int:
        """How many answers there are outside of a scope, up to COUNT_LIMIT + 1."""
        outside = Condition(f"NOT ({scope})")
        if self.selects:
            source, where = self._candidate_source([*self._conditions, outside])
        else:
            source, where = self._table(), [*self._conditions, outside, *self._words]
        rows = self._reader.rows(
            f"SELECT count(*) FROM (SELECT 1 FROM {source.sql} WHERE {_and(where)} LIMIT {COUNT_LIMIT + 1})",  # noqa: S608
            (*source.parameters, *_parameters(where)),
        )
        return _count(rows)

    def _select(self, columns: str, source: Condition, where: list[Condition], order: str, limit: int) -> list[Row]:
        return self._reader.rows(
            f"SELECT {columns} FROM {source.sql} WHERE {_and(where)} ORDER BY {query.ORDERS[order]} LIMIT ?",  # noqa: S608
            (*source.parameters, *_parameters(where), limit),
        )


def _count(rows: list[Row]) -> int:
    """The one number of a counting query; 0 when its parameters could not be asked for at all."""
    return rows[0][0] if rows and isinstance(rows[0][0], int) else 0


def _and(where: list[Condition]) -> str:
    return " AND ".join([c.sql for c in where]) or "1"


def _parameters(where: list[Condition]) -> tuple[object, ...]:
    return tuple([p for c in where for p in c.parameters])


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
    try:
        connection = _sqlite3.connect(
            f"file:{_uri(path)}?mode=ro", uri=True, timeout=BUSY_MS / 1000, isolation_level=None
        )
        try:
            _check(connection, path)
        except BaseException:
            connection.close()
            raise
    except _sqlite3.DatabaseError as error:
        if not os.path.exists(path):
            raise NoIndexError(f"no index at {path}; run: sessiond --once") from None
        raise _translated(path, error) from error
    return connection


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


def _translated(path: str, error: _sqlite3.DatabaseError) -> Exception:
    """What the user can do about an error of the driver; the error itself when it is a bug of ours."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in (_sqlite3.SQLITE_BUSY, _sqlite3.SQLITE_LOCKED):
        return IndexUnavailableError(f"{path} is locked by another program; close it or wait", retry=True)
    if code in (_sqlite3.SQLITE_CORRUPT, _sqlite3.SQLITE_NOTADB):
        return IndexUnavailableError(f"{path} is damaged; `sessiond --once` builds it anew", retry=False, damaged=True)
    if code in (_sqlite3.SQLITE_CANTOPEN, _sqlite3.SQLITE_READONLY, _sqlite3.SQLITE_PERM, _sqlite3.SQLITE_IOERR):
        return IndexUnavailableError(f"cannot read {path}: {error}; check the permissions of its folder", retry=False)
    return error


def _uri(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
