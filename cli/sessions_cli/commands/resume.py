"""`sessions resume`: check, then become the vendor's program in the recorded folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import click

from sessiond import config, resume
from sessiond.errors import NoSuchSessionError, RefusedError, SessiondError
from sessiond.model import Session
from sessiond.provider import Provider, load
from sessiond.resume import Choices, Cli, Command, Moment, Plan, Stated
from sessiond.store.facts import unpacked
from sessiond.store.query import Filters, split
from sessiond.store.reader import Reader
from sessions_cli import consent, context, handover, moment, output, render, shell

RECORDED_COLUMNS = 60
"""A recorded setting can be a long policy; so much of it is said."""
MATCHES = 10
"""So many sessions are listed for a word that is no id."""


class Options(NamedTuple):
    """What was asked for on the command line."""

    choices: Choices = Choices()
    yes: bool = False
    print_line: bool = False
    as_json: bool = False


@click.command(name="resume")
@click.argument("id_text", metavar="[ID]", required=False)
@click.option("--print", "print_line", is_flag=True, help="Only print the command, as one line for a shell.")
@click.option("--json", "as_json", is_flag=True, help="Only print the plan, with the reasons for everything in it.")
@click.option("--fork", is_flag=True, help="Continue in a new session; the old one stays as it is.")
@click.option("--keep-model", is_flag=True, help="Pass the recorded model instead of leaving it to the app.")
@click.option("--model", metavar="NAME", help="Continue with another model.")
@click.option("--effort", metavar="LEVEL", help="Continue with another reasoning effort.")
@click.option(
    "--allow-recorded-approvals",
    is_flag=True,
    help="Keep recorded approval and sandbox settings that are looser than the safe ones, for this one call.",
)
@click.option("--yes", "-y", is_flag=True, help="Agree to what would be asked.")
@click.option("--no-refresh", is_flag=True, help="Answer from the index as it is.")
def command(
    *,
    id_text: str | None,
    print_line: bool,
    as_json: bool,
    fork: bool,
    keep_model: bool,
    model: str | None,
    effort: str | None,
    allow_recorded_approvals: bool,
    yes: bool,
    no_refresh: bool,
) -> int:
    """Continue a session in its recorded folder, with no more rights than it should have.

    ID is a whole id, a beginning of 4 or an end of 6 characters that only one session has, or @1 for the newest.
    Without it one is chosen from the list. The folder must still exist, nothing is checked out, and approval settings
    that are looser than the app's own defaults are not passed on.
    """
    if print_line and as_json:
        raise click.UsageError("--print and --json exclude each other")
    for name, value in (("--model", model), ("--effort", effort)):
        if value is not None and not resume.is_name(value):
            raise click.UsageError(f"{name} {render.printable(value)!r} is no name")
    choices = Choices(
        model=model,
        effort=effort,
        keep_model=keep_model,
        fork=fork,
        allow_recorded_approvals=allow_recorded_approvals,
        show_only=print_line or as_json,
    )
    options = Options(choices, yes, print_line, as_json)
    with context.fresh_reader(context.environment(), refresh=not no_refresh) as reader:
        if id_text is None:
            from sessions_cli.commands.pick import choose  # noqa: PLC0415 - only where one is to be chosen

            session = choose(reader, ())
            return 1 if session is None else resume_session(reader, session, options)
        return resume_session(reader, find(reader, id_text), options)


def find(reader: Reader, text: str) -> Session:
    """The session with the id; raises NoSuchSessionError that lists what the text matches instead."""
    try:
        return context.find_one(reader, text)
    except NoSuchSessionError as error:
        lines = [] if text.startswith("@") else _matches(reader, text)
        if not lines:
            raise
        listed = "\n".join(lines)
        raise NoSuchSessionError(f"{text!r} is no id; these match it, resume one by its id:\n{listed}") from error


def _matches(reader: Reader, text: str) -> list[str]:
    words = split(text)
    rows = reader.find(Filters(words=words), "s.id, s.title", limit=MATCHES + 1) if words else []
    lines = [f"  {reader.short_id(str(id_))}  {render.printable(str(title or ''))}".rstrip() for id_, title in rows]
    return lines if len(lines) <= MATCHES else [*lines[:MATCHES], "  …"]


def resume_session(reader: Reader, session: Session, options: Options = Options()) -> int:  # noqa: B008 - frozen
    """Show the plan and return 0, or become the vendor's program. Raises what stands against it."""
    env = context.environment()
    provider = provider_of(session, env)
    stated = _stated(reader, session)
    session = session._replace(cwd=provider.start_folder(session, stated))
    now = moment.gather(session, provider.cli, env, stated)
    plan = resume.plan(session, now, options.choices, provider.cli)
    made = provider.resume(session, plan)
    if options.as_json:
        output.write(_json(session, provider.cli, now, plan, made))
    if plan.refusals:
        raise _printable(plan.refusals[0])
    if options.as_json:
        return 0
    if options.print_line:
        _tell(plan, made)
        _print(plan, made)
        return 0
    reader.close()
    _tell(plan, made)
    if plan.questions:
        consent.agree(plan.questions, "Resume there all the same?", yes=options.yes)
    return handover.become(made, now.program or made.argv[0], plan.folder, env)


def _stated(reader: Reader, session: Session) -> tuple[Stated, ...]:
    rows = reader.observations(session.app, session.id)
    return tuple(Stated(str(kind), unpacked(facts)) for kind, _, facts, _ in rows)


def _tell(plan: Plan, made: Command) -> None:
    for warning in plan.warnings:
        output.say(warning)
    for name, setting in made.settings.items():
        if setting.notable:
            passed = "is not passed" if setting.passed is None else f"becomes {setting.passed}"
            recorded = render.cut(render.printable(setting.recorded or ""), RECORDED_COLUMNS)
            output.say(f"recorded {name} {recorded} {passed}: {setting.why}")


def _print(plan: Plan, made: Command) -> None:
    for question in plan.questions:
        output.say(question)
    line = shell.line(plan.folder, made.environment, made.argv)
    if line is None:
        raise RefusedError("the folder's name has a line break, so no one line can say it; resume without --print")
    output.write(line + "\n")


def _json(session: Session, cli: Cli, now: Moment, plan: Plan, made: Command) -> str:
    """The whole plan; the keys are a public interface (docs/resume.md)."""
    line = None if plan.refusals else shell.line(plan.folder, made.environment, made.argv)
    return _document(
        {
            "app": session.app,
            "id": session.id,
            "title": session.title,
            "home": session.home,
            "folder": plan.folder,
            "program": now.program,
            "argv": list(made.argv) if cli.is_id(session.id) else None,
            "environment": dict(made.environment),
            "shell": line,
            "branch": {"recorded": session.branch, "present": now.branch.name},
            "settings": {name: setting._asdict() for name, setting in made.settings.items()},
            "withheld": {name: setting.why for name, setting in made.settings.items() if setting.notable},
            "questions": list(plan.questions),
            "warnings": list(plan.warnings),
            "refusals": [{"exit_code": error.exit_code, "message": str(error)} for error in plan.refusals],
        }
    )


def _document(keys: Mapping[str, Any]) -> str:
    text = json.dumps(keys, ensure_ascii=False, indent=2)
    return "\n".join(map(render.json_safe, text.split("\n"))) + "\n"


def _printable(error: SessiondError) -> SessiondError:
    """The same error on one line, whatever a folder's name holds."""
    return type(error)(render.printable(str(error)))


def provider_of(session: Session, env: Mapping[str, str]) -> Provider:
    """The session's app over the configured homes."""
    return load(config.homes(config.load(env), env), session.app)
