"""`sessions sql`: the index asked in SQL."""

from __future__ import annotations

import contextlib
import json
import math
import os
import threading
from collections.abc import Iterator, Sequence

import click

from sessiond.errors import RefusedError
from sessiond.store import guard
from sessions_cli import context, moment, output, render

GRACE_S = 1.0
"""How much longer than the deadline a query may run before the process is ended with it."""


@click.command("sql")
@click.argument("query", required=False)
@click.option("--json", "as_json", is_flag=True, help="A JSON array of objects.")
@click.option("--csv", "as_csv", is_flag=True, help="Comma-separated values with a header line.")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(query: str | None, *, as_json: bool, as_csv: bool, no_refresh: bool) -> int:
    """Ask the index one SQL QUERY, read only and for at most 5 seconds. docs/sql.md has the columns and examples.

    Without a query the sqlite3 shell is opened on it, where one is installed.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv exclude each other")
    with context.fresh_reader(context.environment(), refresh=not no_refresh) as reader:
        if query is None:
            return _shell(reader.path)
        try:
            with _bounded(guard.DEADLINE_S + GRACE_S):
                answer = guard.ask(reader, query)
        except guard.BadQueryError as error:
            raise click.UsageError(render.printable(str(error))) from error
    output.write(_as_text(answer, as_json=as_json, as_csv=as_csv))
    if answer.is_cut:
        output.say(f"the first {len(answer.rows)} rows; there are more")
        return 9
    return 0 if answer.rows else 9 if reader.doubtful else 1


@contextlib.contextmanager
def _bounded(most_s: float) -> Iterator[None]:
    """End the process where a single function of SQL runs on and on: SQLite looks at the clock only between its steps.

    Nothing is lost with it: the index is open for reading only, and no answer has been written yet.
    """

    def end() -> None:
        late = guard.late(guard.DEADLINE_S)
        output.say(str(late))
        os._exit(late.exit_code)

    timer = threading.Timer(most_s, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _as_text(answer: guard.Answer, *, as_json: bool, as_csv: bool) -> str:
    if as_json:
        return _as_json(answer)
    if as_csv:
        return _as_csv(answer)
    if output.is_terminal():
        return _as_table(answer)
    return render.tab_separated([[_text(v) for v in row] for row in answer.rows])


def _shell(path: str) -> int:
    program = moment.find_program("sqlite3", os.environ)
    if program is None:
        raise RefusedError("no sqlite3 on PATH to open; give a query: sessions sql 'SELECT * FROM session_list'")
    guard.shell(path, program)
    return 0


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "" if value is None else str(value)


def _as_json(answer: guard.Answer) -> str:
    return render.json_array(
        [
            json.dumps(dict(zip(answer.names, map(_json_value, row), strict=True)), ensure_ascii=False)
            for row in answer.rows
        ]
    )


def _json_value(value: object) -> object:
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _as_csv(answer: guard.Answer) -> str:
    return "".join([_csv_line(answer.names), *[_csv_line([_text(v) for v in row]) for row in answer.rows]])


def _csv_line(cells: Sequence[str]) -> str:
    """One record by RFC 4180, everything unprintable in it escaped as in the other forms."""
    safe = [render.printable(cell) for cell in cells]
    return ",".join(['"' + c.replace('"', '""') + '"' if '"' in c or "," in c else c for c in safe]) + "\n"


def _as_table(answer: guard.Answer) -> str:
    if not answer.names:
        return ""
    cells = [[render.printable(_text(row[at])) for row in answer.rows] for at in range(len(answer.names))]
    columns = [
        render.Column(render.printable(name), column, least=0 if name == "id" else 8)
        for name, column in zip(answer.names, cells, strict=True)
    ]
    return render.table(columns, output.terminal_columns(), color=False)
