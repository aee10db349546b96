"""`sessions show`: everything that is known of one session."""

from __future__ import annotations

import json
import os

import click

from sessiond import columns
from sessiond.model import Session
from sessiond.store.facts import unpacked
from sessiond.store.reader import Reader
from sessions_cli import completing, context, output, render, when


@click.command("show")
@click.argument("id", shell_complete=completing.ids)
@click.option("--sources", is_flag=True, help="What each file says of the session, side by side.")
@click.option("--json", "as_json", is_flag=True, help="A JSON object with every public column.")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(id: str, *, sources: bool, as_json: bool, no_refresh: bool) -> int:  # noqa: A002 - the argument's name
    """Show everything that is known of the session ID (see `sessions find --help` for how to find one).

    ID is a whole id, a unique beginning of 4 or more characters, a unique end of 6 or more, or @1 for the newest.
    """
    with context.fresh_reader(context.environment(), refresh=not no_refresh) as reader:
        session = context.find_one(reader, id)
        told = _sources(reader, session) if sources else None
    if as_json:
        output.write(_as_json(session, told))
        return 0
    lines = [(name, text) for name, text in facts(session) if text]
    widest = max(len(name) for name, _ in lines)
    output.write("".join(f"{name:<{widest}}  {render.printable(text)}\n" for name, text in lines))
    if told is not None:
        output.write(_side_by_side(told))
    return 0


def facts(session: Session) -> list[tuple[str, str]]:
    """(name, text) of every public column, times and flags in words."""
    now = when.now_ms()
    found = []
    for column, value in zip(columns.COLUMNS, session, strict=True):
        if value is None:
            text = ""
        elif column.kind == columns.TIME:
            text = f"{when.rfc3339(int(value))} ({when.ago(int(value), now)})"
        elif column.kind == columns.FLAG:
            text = "yes" if value else "no"
        elif column.kind == columns.SIZE:
            text = f"{value} ({render.size(int(value))})"
        else:
            text = str(value)
        found.append((column.name.removesuffix("_ms"), text))
    return found


def _sources(reader: Reader, session: Session) -> list[dict[str, object]]:
    told: list[dict[str, object]] = []
    for kind, path, facts, problem in reader.observations(session.app, session.id):
        shown = os.fsdecode(path) if isinstance(path, (bytes, str)) else path
        told.append({"kind": kind, "path": shown, "problem": problem, "facts": unpacked(facts)})
    return told


def _as_json(session: Session, told: list[dict[str, object]] | None) -> str:
    found: dict[str, object] = session._asdict()
    found["updated"] = when.rfc3339(session.updated_ms) or None
    found["created"] = when.rfc3339(session.created_ms) or None
    if told is not None:
        found["sources"] = told
    return render.json_safe(json.dumps(found, ensure_ascii=False)) + "\n"


def _side_by_side(told: list[dict[str, object]]) -> str:
    blocks = []
    for source in told:
        lines = [f"\n{source['kind']}: {render.printable(str(source['path']))}"]
        if source["problem"]:
            lines.append(f"  problem: {render.printable(str(source['problem']))}")
        said = source["facts"]
        assert isinstance(said, dict)
        for name, value in said.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            lines.append(f"  {render.printable(name)}: {render.printable(text)}")
        blocks.append("\n".join(lines) + "\n")
    return "".join(blocks)
