"""`sessions why`: why something is listed as a session, or is not."""

from __future__ import annotations

import os
from collections.abc import Sequence

import click

from sessiond import config
from sessiond.errors import AmbiguousIdError, NoSuchSessionError
from sessiond.model import Excluded, Session
from sessiond.provider import Provider, load_all
from sessiond.store.reader import Reader
from sessions_cli import context, output, render, verdict
from sessions_cli.verdict import Key, Look, Verdict

SHOWN_IDS = 5


@click.command("why")
@click.argument("id_or_path", metavar="ID|PATH")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(id_or_path: str, *, no_refresh: bool) -> int:
    """Tell why a session or a file is listed, or is not.

    The files in question are claimed, read and merged now, whatever the index says of them.
    """
    env = context.environment()
    homes = config.homes(config.load(env), env)
    apps = load_all(homes)
    with context.fresh_reader(env, refresh=not no_refresh) as reader:
        if "/" in id_or_path or os.path.lexists(id_or_path):
            output.write(_of_path(os.path.abspath(id_or_path), reader, apps))
        else:
            key = _key(reader, id_or_path)
            paths = verdict.known_paths(reader, key)
            output.write(_of_verdict(verdict.of_session(key, paths, apps), reader))
    return 0


def _key(reader: Reader, text: str) -> Key:
    """(app, id) of what is meant: a session, or something that is not listed but was read."""
    try:
        session = context.find_one(reader, text)
    except NoSuchSessionError:
        found = [(str(app), str(i)) for app, i in reader.observed(text, 10)] if len(text) >= context.MIN_PREFIX else []
        if not found:
            raise NoSuchSessionError(
                f"nothing that was read has the id {text!r}; if you know its file: sessions why PATH"
            ) from None
        if len(found) > 1:
            listed = "\n".join(f"  {i}  {app}" for app, i in found)
            raise AmbiguousIdError(f"{text!r} is the beginning of several ids:\n{listed}") from None
        return found[0]
    return session.app, session.id


def _of_path(path: str, reader: Reader, apps: Sequence[Provider]) -> str:
    if not os.path.lexists(path):
        raise NoSuchSessionError(f"no such file: {path}")
    looked = verdict.look(path, apps)
    if looked.source is None:
        return _unclaimed(path, apps)
    lines = _look(looked)
    keys = [(o.source.app, o.id) for o in looked.observations]
    for key in keys[:SHOWN_IDS]:
        paths = [path, *verdict.known_paths(reader, key)]
        lines += _conclusion(verdict.of_session(key, paths, apps), reader)
    if len(keys) > SHOWN_IDS:
        lines.append(f"and {len(keys) - SHOWN_IDS} more ids: ask for one by `sessions why ID`")
    if not keys:
        lines.append("not listed: nothing in it tells of a session")
    return _text(lines)


def _unclaimed(path: str, apps: Sequence[Provider]) -> str:
    roots = [root for app in apps for root in app.roots()]
    homes = dict.fromkeys(root.home for root in roots)
    around = [home for home in homes if path.startswith(home + "/")]
    reasons = [app.says(reason) for app in apps if (reason := app.passed_over(path)) is not None]
    if reasons:
        lines = [f"not listed: {reasons[0]}; it belongs to another session"]
    elif around:
        lines = [f"not listed: inside of {around[0]}, but not where sessions are kept there"]
        lines += [f"  sessions are kept in {root.path}" for root in roots if root.home == around[0]]
    else:
        lines = ["not listed: outside of every home that is indexed", *[f"  {home}" for home in homes]]
    return _text(lines)


def _of_verdict(found: Verdict, reader: Reader) -> str:
    lines = [line for looked in found.looks for line in _look(looked)]
    return _text(lines + _conclusion(found, reader))


def _look(looked: Look) -> list[str]:
    kind = looked.source.kind if looked.source else "unknown"
    told = f"tells of {len(looked.observations)} session" + ("" if len(looked.observations) == 1 else "s")
    lines = [f"{kind}: {looked.path}", f"  {told}" if looked.observations else "  tells of no session"]
    if looked.problem:
        lines.append(f"  problem: {looked.problem}")
    return lines


def _conclusion(found: Verdict, reader: Reader) -> list[str]:
    app, session_id = found.key
    row = reader.session(app, session_id)
    if isinstance(found.merged, Excluded):
        if row is not None:
            session = context.find_one(reader, session_id)
            return [f"{session_id}: {found.why_not}", *_listing(session)]
        return [f"{session_id}: not listed: {found.why_not}"]
    lines = [f"{session_id}: {app}, {found.merged.title or 'no title'}"]
    if row is None:
        return [*lines, "not in the index yet: run `sessions list`, or see `sessions doctor`"]
    return lines + _listing(found.merged)


def _listing(session: Session) -> list[str]:
    hidden = verdict.why_hidden(session)
    return [f"not in the default list: {why}" for why in hidden] or ["listed"]


def _text(lines: Sequence[str]) -> str:
    return "".join(f"{render.printable(line)}\n" for line in lines)
