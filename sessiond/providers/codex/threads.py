"""Rows of a state database as facts: every column is optional, and text is cut before it leaves SQLite.

Facts of a row, all optional: `path` (as recorded), `created_ms`, `updated_ms`, `source`, `hidden`, `provider`, `cwd`,
`branch`, `version`, `origin`, `model`, `effort`, `approval`, `sandbox`, `archived`, `prompt`; `preview` and `title`
where they differ from the prompt; `titled`: 1 when the title is a name that a person chose, 0 when the row cannot tell;
`name` and `paginated` for threads with paginated history. `git_origin_url` can hold a credential and is never selected.
Columns by migration: docs/formats/codex.md, the state database.
"""

import json
import os
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from sessiond.model import Previous, Reading
from sessiond.provider import one_line, plain
from sessiond.providers.codex.header import hidden_by, read_source
from sessiond.providers.codex.layout import is_thread_id
from sessiond.providers.codex.settings import SETTING_CHARS, sandbox_of_row
from sessiond.vendor_database.scratch import Scratch
from sessiond.vendor_database.snapshot import Connection, SnapshotError, Snapshots, rows

_MILLISECONDS = 1_577_836_800_000
"""From here on a time is in milliseconds, below it in seconds, whatever its column is called."""
_TITLE = 500
"""Characters of a title or prompt that are looked at; white space in it is collapsed, 200 are kept."""
_PATH = 4096
_WORD = 200
_COLUMNS = {
    "rollout_path": _PATH,
    "cwd": _PATH,
    "source": SETTING_CHARS,
    "thread_source": _WORD,
    "model_provider": _WORD,
    "title": _TITLE,
    "first_user_message": _TITLE,
    "preview": _TITLE,
    "name": _TITLE,
    "sandbox_policy": SETTING_CHARS + 1,
    "approval_mode": SETTING_CHARS + 1,
    "git_branch": 1000,
    "cli_version": _WORD,
    "originator": _WORD,
    "model": _WORD,
    "reasoning_effort": _WORD,
    "history_mode": _WORD,
    "created_at": 0,
    "created_at_ms": 0,
    "updated_at": 0,
    "updated_at_ms": 0,
    "archived": 0,
    "tokens_used": 0,
}
"""Column -> how many characters of it are of use; 0 for a number."""
_SPACES = "char(9, 10, 11, 12, 13, 32, 133, 160)"


class Rows(NamedTuple):
    facts: dict[str, dict[str, Any]]
    """Thread id -> facts."""
    same: frozenset[str]
    """Ids of rows that are what they were."""


def has_threads(connection: Connection) -> bool:
    return bool(_columns(connection))


def read_threads(connection: Connection, seen: dict[str, int] | None = None) -> Rows:
    """Every row: as facts, or as the same when it is one that was `seen`; `seen` is brought up to date."""
    present = _columns(connection)
    chosen = [name for name in _COLUMNS if name in present]
    expressions = [_expression(name, present) for name in chosen]
    if {"title", "first_user_message"} <= present:
        chosen.append("titled")
        expressions.append(f"trim(title, {_SPACES}) <> trim(first_user_message, {_SPACES})")
    columns = ", ".join(["id", *expressions])
    before = {} if seen is None else seen
    now: dict[str, int] = {}
    facts: dict[str, dict[str, Any]] = {}
    same: list[str] = []
    for row in rows(connection, f"SELECT {columns} FROM threads"):  # noqa: S608 - names from the table above
        thread_id = row[0].lower() if isinstance(row[0], str) else ""
        if not is_thread_id(thread_id):
            continue
        now[thread_id] = mark = hash(row)
        if before.get(thread_id) == mark:
            same.append(thread_id)
        else:
            facts[thread_id] = _facts(dict(zip(chosen, row[1:], strict=True)))
    before.clear()
    before.update(now)
    return Rows(facts, frozenset(same))


def _expression(name: str, present: set[str]) -> str:
    """A column as it is selected; a preview or title that repeats the prompt comes as an empty text."""
    length = _COLUMNS[name]
    text = f"substr({name}, 1, {length})" if length else name
    if name in ("preview", "title") and "first_user_message" in present:
        return f"CASE WHEN {name} = first_user_message THEN '' ELSE {text} END"
    return text


def _columns(connection: Connection) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(threads)")}


def _facts(row: dict[str, Any]) -> dict[str, Any]:
    source, hidden = _source(row.get("source"))
    prompt = one_line(row.get("first_user_message"))
    preview = one_line(row.get("preview"))
    title = one_line(row.get("title"))
    facts = {
        "path": plain(row.get("rollout_path")),
        "created_ms": time_of(row, "created_at"),
        "updated_ms": time_of(row, "updated_at"),
        "source": source,
        "hidden": hidden or hidden_by(row.get("thread_source")),
        "provider": plain(row.get("model_provider")),
        "cwd": plain(row.get("cwd")),
        "branch": plain(row.get("git_branch")),
        "version": plain(row.get("cli_version")),
        "origin": plain(row.get("originator")),
        "model": plain(row.get("model")),
        "effort": plain(row.get("reasoning_effort")),
        "approval": _setting(row.get("approval_mode")),
        "sandbox": _sandbox(row.get("sandbox_policy"), plain(row.get("cwd"))),
        "prompt": prompt,
        "preview": None if preview == prompt else preview,
        "title": None if title == prompt else title,
        "titled": 1 if row.get("titled") else None if "titled" in row else 0,
        "name": one_line(row.get("name")),
        "paginated": 1 if row.get("history_mode") == "paginated" and "name" in row else None,
        "archived": 1 if row.get("archived") == 1 else None,
        "talk": 1 if prompt is None and isinstance(row.get("tokens_used"), int) and row["tokens_used"] > 0 else None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def time_of(row: dict[str, Any], name: str) -> int | None:
    """A time in milliseconds from the column in milliseconds, else from the one in seconds."""
    for value in (row.get(name + "_ms"), row.get(name)):
        if isinstance(value, int | float) and 0 < value < 1 << 53:
            return int(value if value >= _MILLISECONDS else value * 1000)
    return None


def _setting(value: object) -> str | None:
    text = plain(value)
    return None if text is None or len(text) > SETTING_CHARS else text


def _sandbox(value: object, folder: str | None) -> str | None:
    text = _setting(value)
    return None if text is None else sandbox_of_row(text, folder)


def _source(text: object) -> tuple[str | None, str | None]:
    if not isinstance(text, str) or not text.lstrip().startswith("{"):
        return read_source(text)
    try:
        return read_source(json.loads(text))
    except (ValueError, RecursionError):
        return read_source({key: True for key in ("subagent", "internal") if text.lstrip().startswith(f'{{"{key}"')})


class Databases:
    """The state databases of one process, read by private copies; remembers what each row was."""

    def __init__(self, scratch: str | None) -> None:
        self._snapshots = Snapshots(Scratch(scratch))
        self._seen: dict[str, _Seen] = {}

    def observe(self, newest_first: Sequence[str], previous: Previous | None) -> Reading:
        """The rows of the newest generation that has a table of threads.

        When none can be read, the facts known before stay.
        """
        problem = None
        for path in newest_first:
            seen = self._known_rows(path, previous)
            try:
                found = self._snapshots.read(path, partial(_rows, seen=seen))
            except SnapshotError as error:
                problem = problem or str(error)
                continue
            if found is not None:
                state = os.urandom(8)
                self._seen[path] = _Seen(state, seen)
                return Reading(found.facts, state, problem=problem, same=found.same)
        return Reading({}, problem=problem or "it has no table named threads", partial=problem is not None)

    def _known_rows(self, path: str, previous: Previous | None) -> dict[str, int]:
        """What the rows were, if the index holds exactly what was read of this file then."""
        last = self._seen.get(path)
        return dict(last.rows) if last and previous and previous.state == last.state else {}


class _Seen(NamedTuple):
    state: bytes
    """With which the reading was stored."""
    rows: dict[str, int]


def _rows(connection: Connection, seen: dict[str, int]) -> Rows | None:
    return read_threads(connection, seen) if has_threads(connection) else None
