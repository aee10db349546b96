"""Running SQL that somebody typed: reading only, one statement, with a deadline and bounds on what comes back.

`mode=ro` alone is not enough: ATTACH and VACUUM INTO write other files. So an authorizer allows what reading needs and
nothing else, and statements that SQLite would carry out without asking it never get that far.
"""

import _sqlite3
import os
import time
from typing import NamedTuple

from sessiond.errors import RefusedError
from sessiond.store.reader import Reader, translated
from sessiond.store.search import Row

DEADLINE_S = 5.0
MAX_ROWS = 100_000
MAX_BYTES = 64 << 20
_MAX_VALUE_BYTES = 8 << 20
_MAX_SQL_BYTES = 1 << 20
_STEPS = 20_000
"""Virtual machine steps between looks at the clock: about a millisecond."""
_ACTIONS = frozenset(
    {_sqlite3.SQLITE_SELECT, _sqlite3.SQLITE_READ, _sqlite3.SQLITE_FUNCTION, _sqlite3.SQLITE_RECURSIVE}
)
_FUNCTIONS_REFUSED = frozenset({"load_extension", "fts3_tokenizer"})
_PRAGMAS = frozenset(
    {
        "application_id", "data_version", "database_list", "function_list", "index_info", "index_list", "index_xinfo",
        "pragma_list", "table_info", "table_list", "table_xinfo", "user_version",
    }
)  # fmt: skip
_PRAGMAS_WITH_ARGUMENT = frozenset(
    {"index_info", "index_list", "index_xinfo", "table_info", "table_list", "table_xinfo"}
)


_TABLES = (
    "sessions_fts", "ids_fts", "json_each('[]')", "json_tree('[]')", "pragma_index_list('sessions')",
    "pragma_table_info('sessions')", "pragma_table_list('sessions')", "pragma_table_xinfo('sessions')",
)  # fmt: skip
"""Virtual tables touched before the authorizer is set: to be set up they need what it forbids."""


class BadQueryError(ValueError):
    """The text is no SQL, not one statement, or names what is not there."""


class Answer(NamedTuple):
    names: tuple[str, ...]
    rows: list[Row]
    is_cut: bool
    """Whether there was more than MAX_ROWS or MAX_BYTES."""


def ask(reader: Reader, text: str, *, deadline_s: float = DEADLINE_S, max_rows: int = MAX_ROWS) -> Answer:
    """The answer to one SELECT (or EXPLAIN, or one of a few PRAGMAs that read).

    Raises BadQueryError for what is no query, RefusedError for one that would write or takes too long.
    """
    connection = reader.connection
    for table in _TABLES:
        connection.execute(f"SELECT 1 FROM {table} LIMIT 0").fetchall()  # noqa: S608 - names from this file
    connection.text_factory = lambda data: data.decode("utf-8", "surrogateescape")
    connection.setlimit(_sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    connection.setlimit(_sqlite3.SQLITE_LIMIT_SQL_LENGTH, _MAX_SQL_BYTES)
    connection.setlimit(_sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    deadline = time.monotonic() + deadline_s
    connection.set_authorizer(_authorize)
    connection.set_progress_handler(lambda: time.monotonic() > deadline, _STEPS)
    try:
        cursor = connection.execute(text)
        rows, is_cut = _bounded(cursor, max_rows)
        names = tuple(column[0] for column in cursor.description or ())
    except UnicodeEncodeError as error:
        raise BadQueryError("the query is no valid text") from error
    except MemoryError as error:
        raise RefusedError("the answer is too large; ask for less") from error
    except (_sqlite3.DatabaseError, _sqlite3.DataError, _sqlite3.Warning) as error:
        raise _refusal(reader, error, deadline_s, is_late=time.monotonic() > deadline) from error
    return Answer(names, rows, is_cut)


def _bounded(cursor: _sqlite3.Cursor, max_rows: int) -> tuple[list[Row], bool]:
    rows: list[Row] = []
    size = 0
    for row in cursor:
        size += sum([len(value) if isinstance(value, (str, bytes)) else 8 for value in row])
        if len(rows) >= max_rows or size > MAX_BYTES:
            return rows, True
        rows.append(row)
    return rows, False


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    if action == _sqlite3.SQLITE_FUNCTION and second in _FUNCTIONS_REFUSED:
        return _sqlite3.SQLITE_DENY
    if action in _ACTIONS:
        return _sqlite3.SQLITE_OK
    if action == _sqlite3.SQLITE_PRAGMA and first in _PRAGMAS and (second is None or first in _PRAGMAS_WITH_ARGUMENT):
        return _sqlite3.SQLITE_OK
    return _sqlite3.SQLITE_DENY


def late(deadline_s: float) -> RefusedError:
    return RefusedError(f"stopped after {deadline_s:g} s; ask for less, or open the index with: sqlite3 -readonly")


def _refusal(
    reader: Reader, error: _sqlite3.Error | _sqlite3.Warning, deadline_s: float, *, is_late: bool
) -> Exception:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == _sqlite3.SQLITE_INTERRUPT or (is_late and "interrupted" in str(error)):
        return late(deadline_s)
    if code in (_sqlite3.SQLITE_AUTH, _sqlite3.SQLITE_READONLY) or "not authorized" in str(error):
        return RefusedError(f"only reading is allowed here: {error}; see docs/sql.md")
    if code == _sqlite3.SQLITE_TOOBIG:
        return RefusedError(f"a value is larger than {_MAX_VALUE_BYTES >> 20} MiB; ask for less")
    if isinstance(error, _sqlite3.DatabaseError) and code != _sqlite3.SQLITE_ERROR:
        about_index = translated(reader.path, error)
        if about_index is not error:
            return about_index
    return BadQueryError(str(error))


def shell(path: str, program: str) -> None:
    """Become the `sqlite3` shell on the index, reading only."""
    os.execv(program, [program, "-readonly", path])  # noqa: S606 - no shell, an absolute path
