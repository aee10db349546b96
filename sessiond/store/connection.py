"""Opening the index to write: create, check, rebuild; and the border where driver errors become ours."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
from collections.abc import Iterable, Iterator
from typing import Any

from sessiond import columns, paths
from sessiond.errors import ConfigurationError, IndexUnavailableError, SchemaError
from sessiond.locks import PASSING
from sessiond.model import Session
from sessiond.store import sound
from sessiond.store.reader import APPLICATION_ID, BUSY_MS, SCHEMA_VERSION
from sessiond.store.sessions import put, real_path

_JOURNAL_LIMIT_BYTES = 8 << 20
_CACHE_KIB = 1000
"""Half of SQLite's default: a first index is no faster with more."""


@contextlib.contextmanager
def translated(path: str, *, expects_tables: bool = False) -> Iterator[None]:
    """Turns what the driver raises about the index into an error that says what the user can do.

    With `expects_tables` a statement that the schema should have allowed means damage: somebody changed the tables.
    """
    try:
        yield
    except sqlite3.OperationalError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise IndexUnavailableError(f"{path} is locked by another program; close it or wait", retry=True) from error
        if code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            raise IndexUnavailableError(f"cannot write {path}: {error}; free some disk space", retry=True) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN) and _is_writable(path):
            raise IndexUnavailableError(f"cannot open {path} now: {error}; it is tried again", retry=True) from error
        if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM):
            raise ConfigurationError(f"cannot write {path}: {error}; make its folder writable") from error
        if code == sqlite3.SQLITE_ERROR and expects_tables:
            raise IndexUnavailableError(
                f"{path} is not as it should be: {error}; it is checked", retry=False, damaged=True
            ) from error
        raise
    except sqlite3.DatabaseError as error:
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        if code == sqlite3.SQLITE_CONSTRAINT and expects_tables:
            raise IndexUnavailableError(
                f"{path} contradicts itself: {error}; it is checked", retry=False, damaged=True
            ) from error
        if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            raise IndexUnavailableError(
                f"{path} is damaged; run: sessiond --once --gaps (with a daemon: sessions service restart)",
                retry=False,
                damaged=True,
            ) from error
        raise


def _is_writable(path: str) -> bool:
    """Whether permissions allow to write the index: then only the moment is wrong, too many open files for one."""
    folder_allows = os.access(os.path.dirname(path), os.W_OK | os.X_OK)
    return folder_allows and (not os.path.lexists(path) or os.access(path, os.R_OK | os.W_OK))


def prepare_folder(folder: str) -> None:
    """The state folder, 0700; raises ConfigurationError when it cannot be trusted or made."""
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        status = os.stat(folder)
    except OSError as error:
        raise ConfigurationError(
            f"cannot create {folder}: {error.strerror}; set SESSIOND_HOME to a folder of yours"
        ) from error
    if status.st_uid != os.geteuid():
        raise ConfigurationError(f"{folder} belongs to another user; set SESSIOND_HOME to a folder of yours")
    if stat.S_IMODE(status.st_mode) & 0o022:
        mend = "set SESSIOND_HOME to one of yours" if status.st_mode & stat.S_ISVTX else f"run: chmod 700 {folder}"
        raise ConfigurationError(f"{folder} can be written by others; {mend}")


def _create_file(path: str) -> None:
    """An empty file, 0600 whatever the umask, that nobody planted; an existing one is left alone if it is ours."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        status = os.lstat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            raise ConfigurationError(f"{path} is not a file of yours; remove it") from None
    except OSError as error:
        if error.errno in PASSING:
            raise IndexUnavailableError(f"cannot create {path}: {error.strerror}; try again", retry=True) from error
        raise ConfigurationError(f"cannot create {path}: {error.strerror}; make its folder writable") from error


def _connect(path: str) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None, cached_statements=64)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_LIMIT_BYTES}")
    return connection


def open_writer(folder: str, *, damages: int = 0) -> sqlite3.Connection:
    """The index in `folder`, made or made anew where needed. The caller holds `write.lock`.

    An index of an older schema is rebuilt in place, a damaged one is set aside (one such copy is kept), one of a newer
    schema raises SchemaError. `damages` is how often in a row it has turned out damaged in use though it looked sound:
    after the first time the search tables are checked and mended, after the second everything is built anew.
    """
    prepare_folder(folder)
    path = paths.index_file(folder)
    with translated(path):
        try:
            return _open_checked(path, damages)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            gone = _salvaged(path)
            _set_aside(path)
            connection = _open_checked(path, 0)
            _put_back(connection, gone)
            return connection


def verify(path: str) -> None:
    """Check the file itself, past all that an open connection remembers of it; raises what `translated` makes of it."""
    with translated(path), contextlib.closing(sqlite3.connect(f"file:{_uri(path)}?mode=ro", uri=True)) as connection:
        if connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
            raise _damaged()


def _is_damage(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _open_checked(path: str, damages: int) -> sqlite3.Connection:
    _create_file(path)
    is_sound = not damages and sound.is_noted(path)
    connection = _connect(path)
    try:
        if _version(connection, path, is_sound=is_sound) < SCHEMA_VERSION or damages > 1:
            _create_schema(connection)
        elif damages:
            _mend_search(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, path: str, *, is_sound: bool) -> int:
    """The schema version of an index of ours, 0 for an empty file; one not known to be sound is looked through."""
    (objects,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not objects:
        return 0
    if connection.execute("PRAGMA application_id").fetchone()[0] != APPLICATION_ID:
        raise SchemaError(f"{path} is a database of another program; move it away")
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version > SCHEMA_VERSION:
        raise SchemaError(f"{path} was made by a newer sessiond (schema {version}); upgrade sessiond")
    if not is_sound and connection.execute("PRAGMA quick_check(1)").fetchone()[0] != "ok":
        raise _damaged()
    return version


def _mend_search(connection: sqlite3.Connection) -> None:
    """Build a search table anew that is out of step with the rows it is made from."""
    for table, *_ in connection.execute("SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE VIRTUAL%'").fetchall():
        try:
            connection.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('integrity-check', 1)")  # noqa: S608
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise
            connection.execute(f"INSERT INTO {table} ({table}) VALUES ('rebuild')")  # noqa: S608


def _damaged() -> sqlite3.DatabaseError:
    error = sqlite3.DatabaseError("quick_check failed")
    error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    return error


def schema() -> str:
    """The script that makes all tables: schema.sql with the public columns put in."""
    with open(os.path.join(os.path.dirname(__file__), "schema.sql"), encoding="utf-8") as file:
        script = file.read()
    return script.replace("    -- the public columns\n", "".join(f"    {c.sql},\n" for c in columns.COLUMNS))


def _create_schema(connection: sqlite3.Connection) -> None:
    """Drop whatever an older version left and create the tables, in one transaction."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        gone = _gone_rows(connection)
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE type IN ('view', 'trigger', 'table')"
            " AND name NOT LIKE 'sqlite_%' ORDER BY type = 'table', sql NOT LIKE 'CREATE VIRTUAL%'"
        ).fetchall():
            connection.execute(f'DROP {kind.upper()} IF EXISTS "{name}"')
        for statement in _statements(schema()):
            connection.execute(statement)
        _insert_gone(connection, gone)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _gone_rows(connection: sqlite3.Connection) -> list[dict[str, Any]]:
    """The rows of vanished sessions in an older index: the one thing that cannot be read from disk again."""
    cursor = connection.cursor()
    cursor.row_factory = sqlite3.Row
    try:
        return [dict(row) for row in cursor.execute("SELECT * FROM sessions WHERE gone_ms IS NOT NULL")]
    except sqlite3.OperationalError:
        return []


def _insert_gone(connection: sqlite3.Connection, gone: Iterable[dict[str, Any]]) -> None:
    """Rows of vanished sessions, with the columns that are still known, and findable."""
    for row in gone:
        session = Session(**{name: value for name, value in row.items() if name in columns.NAMES})
        path = session.path
        put(connection, session._replace(path=real_path(path)) if path is not None else session)


def _salvaged(path: str) -> list[dict[str, Any]] | None:
    """The rows of vanished sessions in a damaged index; None when they cannot be read."""
    connection = sqlite3.connect(path, timeout=BUSY_MS / 1000, isolation_level=None)
    with contextlib.closing(connection):
        try:
            connection.execute("SELECT count(*) FROM sessions").fetchone()
            return _gone_rows(connection)
        except sqlite3.Error:
            return None


def _put_back(connection: sqlite3.Connection, gone: list[dict[str, Any]] | None) -> None:
    """The salvaged rows into the new index, and a note for `sessions status`."""
    note = "a damaged index was set aside; rows of vanished sessions are lost" if gone is None else None
    connection.execute("BEGIN IMMEDIATE")
    try:
        for row in gone or []:
            with contextlib.suppress(sqlite3.IntegrityError, TypeError):
                _insert_gone(connection, [row])
        if note is not None:
            connection.execute("INSERT INTO meta (key, value) VALUES ('rebuilt', ?)", (note,))
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; `executescript` would commit the transaction it runs in."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _set_aside(path: str) -> None:
    """Keep a damaged index under another name, with its side files gone; nobody has it open: we hold `write.lock`."""
    os.replace(path, path + ".damaged")
    for suffix in ("-wal", "-shm", "-journal"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + suffix)


def _uri(path: str) -> str:
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
