"""`sessions log`: the conversation of one session, as a stream."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator
from typing import TypeVar

import click

from sessiond import history
from sessiond.errors import UnreadableLogError
from sessiond.model import Session
from sessions_cli import context, output, render

T = TypeVar("T")


@click.command("log")
@click.argument("id")
@click.option(
    "--last", type=click.IntRange(min=1), metavar="N", help="Only the last N messages, or entries with --json."
)
@click.option("--json", "as_json", is_flag=True, help="Every entry of the log, one JSON object a line.")
@click.option("--no-refresh", is_flag=True, help="Look the session up in the index as it is.")
def command(id: str, *, last: int | None, as_json: bool, no_refresh: bool) -> int:  # noqa: A002 - the argument's name
    """Print the conversation of the session ID: what was asked and answered, from the first message on.

    What tools did is left out; --json has everything that was recorded. ID is as in `sessions show`.
    """
    with context.fresh_reader(context.environment(), refresh=not no_refresh) as reader:
        session = context.find_one(reader, id)
    log = history.read(_file_of(session), session.app)
    lines = map(_entry, _newest(log.entries, last)) if as_json else map(_message, _newest(log.said, last))
    return 0 if _printed(lines) else 1


def _printed(lines: Iterable[str]) -> bool:
    """Print the lines as they come; whether there were any."""
    any_printed = False
    for line in lines:
        output.write(line)
        any_printed = True
    return any_printed


def _file_of(session: Session) -> str:
    if session.path is None:
        raise UnreadableLogError(f"{session.id} is known from a database alone: its log is not on disk")
    if session.gone_ms is not None:
        raise UnreadableLogError(f"{session.path} is gone; restore it from a backup to read it")
    return session.path


def _newest(items: Iterable[T], last: int | None) -> Iterator[T]:
    """All items as they come, or the last ones once all have gone by."""
    return iter(items) if last is None else iter(deque(items, maxlen=last))


def _entry(entry: history.Entry) -> str:
    return render.json_safe(json.dumps(entry._asdict(), ensure_ascii=False, separators=(",", ":"))) + "\n"


def _message(said: history.Said) -> str:
    time = f"  {said.timestamp}" if said.timestamp else ""
    body = "\n".join(render.printable(line.expandtabs(8)) for line in said.text.strip("\n").split("\n"))
    return f"{said.role}{render.printable(time)}\n{body}\n\n"
