"""What a vendor's own program can do to a session besides resuming it. Its files are never touched by us."""

from __future__ import annotations

import shlex

from sessiond import config, paths, provider, resume
from sessiond.errors import NoSuchSessionError, RefusedError
from sessiond.model import Session
from sessiond.resume import Cli, Command
from sessiond.store.reader import Reader
from sessions_cli import consent, context, handover, moment, when

EFFECTS = {
    "archive": "it leaves the list, and `sessions unarchive` brings it back",
    "unarchive": "it comes back into the list and can be resumed",
    "delete": "its conversation is deleted for good",
}


def carry_out(verb: str, id_text: str, *, yes: bool, refresh: bool) -> int:
    """Show what will happen, ask, and become the vendor's program. Raises what stands against it."""
    env = context.environment()
    with context.fresh_reader(env, refresh=refresh) as reader:
        session = _find(reader, id_text)
    cli = provider.load(config.homes(config.load(env), env), session.app).cli
    _check(verb, session, cli)
    program = moment.find_program(cli.program, env)
    if program is None:
        raise RefusedError(f"{cli.program} is not on PATH; install it with `{cli.install}`, or add its folder to PATH")
    home = resume.home_change(session.app, session.home, paths.user_home(env))
    command = Command((cli.program, *cli.verbs[verb], session.id), home)
    facts = [
        f"{session.title or 'untitled'}, in {session.cwd or 'no folder'}",
        f"{shlex.join(command.argv)} in {session.home}: {EFFECTS[verb]}",
    ]
    recent = resume.written_recently(moment.written_ms(session.path), when.now_ms())
    if recent:
        facts.append(recent)
    consent.agree(facts, f"{verb.capitalize()} it?", yes=yes)
    return handover.become(command, program, None, env)


def _find(reader: Reader, text: str) -> Session:
    """The session by its whole id or the beginning of it, which cannot mean another one tomorrow."""
    session = None if text.startswith("@") else context.find_one(reader, text)
    if session is None or not session.id.startswith(text.lower()):
        raise NoSuchSessionError(f"{text!r} is no beginning of an id; only a whole id or its beginning is taken here")
    return session


def _check(verb: str, session: Session, cli: Cli) -> None:
    if verb not in cli.verbs:
        raise RefusedError(f"{cli.program} has no command to {verb} a session, and sessiond never touches its files")
    if not cli.is_id(session.id):
        raise RefusedError(f"{session.id!r} is no id that {session.app} gives; it is not put on a command line")
    if session.gone_ms is not None:
        raise RefusedError(f"session {session.id} is gone already: its file was deleted")
    if verb == "archive" and session.archived:
        raise RefusedError(f"session {session.id} is archived already")
    if verb == "unarchive" and not session.archived:
        raise RefusedError(f"session {session.id} is not archived")
