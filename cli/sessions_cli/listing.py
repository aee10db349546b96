"""`find` and `list`: the question from the options, the answer in the form that fits where it goes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sessiond.store import query
from sessiond.store.query import Filters
from sessiond.store.reader import Reader
from sessiond.store.search import COUNT_LIMIT, Row, Search
from sessions_cli import context, output, render, when

TERMINAL_ROWS = 50

Values = Mapping[str, object]
"""Option key -> converted value; what was not given is missing, None or False."""


def run(words: Sequence[str], values: Values, repos: tuple[tuple[str, ...], tuple[str, ...]] | None = None) -> int:
    """Print the sessions asked for; 0 when there are any, 1 when there are none, 9 when that is not certain.

    `repos` are the folders and the main checkouts of the present repository, for --repo.
    """
    env = context.environment()
    with context.fresh_reader(env, refresh=not values.get("no_refresh")) as reader:
        found = _answer(reader, _filters(words, values, reader, repos), values)
    if found:
        return 0
    return 9 if reader.doubtful else 1


def _answer(reader: Reader, filters: Filters, values: Values) -> int:
    """Print the answer and what is left of it; how many sessions were shown."""
    order = str(values.get("sort") or "updated")
    color = str(values.get("color") or "auto")
    as_table = output.is_terminal() and not values.get("json")
    limit = values.get("limit")
    if limit is None and as_table:
        limit = TERMINAL_ROWS
    most = limit if isinstance(limit, int) and limit > 0 else None
    columns = query.JSON if values.get("json") else query.TABLE if as_table else query.LINE
    search = Search(reader, filters, order=order, limit=None if most is None else most + 1)
    rows = search.find(columns)
    truncated = most is not None and len(rows) > most
    rows = rows[:most]
    if values.get("json"):
        output.write(render.json_array([str(r[0]) for r in rows]))
    elif not as_table:
        output.write(_lines(rows, filters, color))
    elif rows:
        output.write(_table(reader, rows, filters, order, color))
    _say_what_is_left(reader, search, len(rows), most, truncated=truncated)
    return len(rows)


def _filters(
    words: Sequence[str], values: Values, reader: Reader, repos: tuple[tuple[str, ...], tuple[str, ...]] | None
) -> Filters:
    folders, checkouts = repos or ((), ())
    if values.get("here"):
        folders += spellings(".")
    elif values.get("cwd") is not None:
        folders += spellings(str(values["cwd"]))
    return Filters(
        words=query.split(" ".join(words)),
        app=_text(values.get("app")),
        folders=folders,
        repos=checkouts,
        branch=_text(values.get("branch")),
        since_ms=_number(values.get("since")),
        until_ms=_number(values.get("until")),
        expiring=_expiring(_number(values.get("expiring")), reader),
        archived=bool(values.get("archived")),
        gone=bool(values.get("gone")),
        all=bool(values.get("all")),
    )


def _expiring(within_ms: int | None, reader: Reader) -> tuple[tuple[str, int], ...] | None:
    """For each app that deletes sessions itself: before what time those were last used that it deletes soon."""
    if within_ms is None:
        return None
    lines = [line.partition("\t") for line in str(reader.meta().get("retention_days", "")).splitlines()]
    return tuple([(app, when.now_ms() + within_ms - int(days) * when.DAY_MS + 1) for app, _, days in lines])


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _number(value: object) -> int | None:
    return value if isinstance(value, int) else None


def spellings(folder: str) -> tuple[str, ...]:
    """A folder as its name is given, and as it is with symbolic links followed: either may be recorded."""
    try:
        present = os.getcwd()
    except FileNotFoundError:
        present = os.environ.get("PWD", "/")
    logical = os.environ.get("PWD", "")
    found = [os.path.normpath(os.path.join(present, folder))]
    if logical.startswith("/") and os.path.realpath(logical) == present:
        found.append(os.path.normpath(os.path.join(logical, folder)))
    found.append(os.path.realpath(os.path.join(present, folder)))
    return tuple(dict.fromkeys(found))


def _table(reader: Reader, rows: Sequence[Row], filters: Filters, order: str, color: str) -> str:
    return render.sessions_table(
        rows,
        [reader.short_id(str(r[1])) for r in rows],
        order=order,
        terminal_columns=output.terminal_columns(),
        color=output.is_colored(color),
        words=filters.words,
        user_home=os.environ.get("HOME", "").rstrip("/"),
        now=when.now_ms(),
    )


def _lines(rows: Sequence[Row], filters: Filters, color: str) -> str:
    text = render.tab_separated(rows)  # type: ignore[arg-type]  # all columns of query.LINE are text
    return render.marked(text, filters.words) if output.is_colored(color) else text


def _say_what_is_left(reader: Reader, search: Search, shown: int, most: int | None, *, truncated: bool) -> None:
    if truncated:
        output.say(f"the first {most}; all of them with --limit 0")
    hidden = search.hidden(truncated=truncated)
    if hidden:
        count = f"more than {COUNT_LIMIT}" if hidden > COUNT_LIMIT else str(hidden)
        output.say(f"{count} more with --all")
    elif not shown:
        output.say("nothing found" if reader.count() else "there are no sessions; see: sessions doctor")
