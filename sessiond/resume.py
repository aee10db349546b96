"""What resuming a session amounts to: where, what stands against it, what has to be asked. Pure (docs/resume.md).

The vendors' own rules (which modes are safe, which flags say so) are in the providers' launch modules.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from sessiond import apps, paths
from sessiond.errors import FolderGoneError, RefusedError, SessiondError
from sessiond.model import Session

RECENT_MS = 120_000
"""A session written to within this time may be open in another terminal."""

_UUID = re.compile(r"[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9@_][!-~]{0,199}")


def is_uuid(text: str) -> bool:
    """Whether the text is a UUID, which no vendor's CLI reads as a name or a flag."""
    return _UUID.fullmatch(text) is not None


def is_word(text: str) -> bool:
    """Whether a mode or an effort can stand on a command line: one short word, no leading dash."""
    return _WORD.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a model's or a provider's name can stand on a command line: visible ASCII, no leading dash."""
    return _NAME.fullmatch(text) is not None


class Cli(NamedTuple):
    """A vendor's command line program."""

    program: str
    install: str
    """The command that installs it."""
    is_id: Callable[[str], bool] = is_uuid
    """Whether the program takes a text for an id, and for nothing else."""
    branch_is: str = "was last on"
    """What the recorded branch is: the session … it."""
    verbs: Mapping[str, tuple[str, ...]] = {}
    """What it can do to a session besides resuming -> the words that go before the id."""
    doubtful_approvals: frozenset[str] = frozenset()
    """Recorded values that some versions refuse, so that the help of the one installed has to be asked."""
    help_arguments: tuple[str, ...] = ("--help",)


class Branch(NamedTuple):
    """What the folder is on now."""

    name: str | None
    instead: str = ""
    """Without a name: what there is in its place, in words."""
    known: bool = True
    """False when it could not be found out; `instead` says why."""


NO_REPOSITORY = Branch(None, "in no git repository")


class Stated(NamedTuple):
    """What one source says, for a provider that has to know which of them says it."""

    kind: str
    facts: Mapping[str, Any]


class Moment(NamedTuple):
    """The facts of the moment."""

    now_ms: int
    user_home: str
    branch: Branch = NO_REPOSITORY
    folder_problem: str | None = None
    """Why the recorded folder cannot be entered."""
    written_ms: int | None = None
    """When the session's file was last written; None when it is not there."""
    program: str | None = None
    """The vendor's program as found on PATH, absolute."""
    cli_help: str = ""
    """What its help says, when it had to be asked."""
    stated: tuple[Stated, ...] = ()


class Choices(NamedTuple):
    """What the person asked for, for this one call."""

    model: str | None = None
    effort: str | None = None
    keep_model: bool = False
    fork: bool = False
    allow_recorded_approvals: bool = False
    show_only: bool = False
    """The plan is shown and nothing is started, so the program may be missing here."""


class Plan(NamedTuple):
    """The decision, before a vendor's argument list is made of it."""

    folder: str | None
    choices: Choices = Choices()
    user_home: str = ""
    cli_help: str = ""
    stated: tuple[Stated, ...] = ()
    questions: tuple[str, ...] = ()
    """What a person has to agree to first."""
    warnings: tuple[str, ...] = ()
    refusals: tuple[SessiondError, ...] = ()
    """What stands against it, the weightiest first."""


class Setting(NamedTuple):
    """What becomes of one recorded setting."""

    recorded: str | None
    passed: str | None
    """What is passed to the CLI, None when nothing is."""
    decision: str
    """`kept`, `chosen` by the person, `restored` by the CLI, `default` (nothing recorded), `nearest`, `withheld`."""
    why: str

    @property
    def notable(self) -> bool:
        """Whether the person has to be told: it is not what it was."""
        return self.decision in ("nearest", "withheld")


class Command(NamedTuple):
    """What is executed: no shell is involved."""

    argv: tuple[str, ...]
    environment: Mapping[str, str | None]
    """Changes to the environment; None unsets."""
    settings: Mapping[str, Setting] = {}
    """Column of the session -> what becomes of it."""


def plan(session: Session, moment: Moment, choices: Choices, cli: Cli) -> Plan:
    """What stands against resuming the session now, what has to be asked, and what to warn of."""
    warnings = list(_warnings(session, moment))
    refusals = [*_not_resumable(session, moment, cli), *_folder_gone(session, moment)]
    if moment.program is None:
        missing = f"{cli.program} is not on PATH; install it with `{cli.install}`, or add its folder to PATH"
        if choices.show_only:
            warnings.append(missing)
        else:
            refusals.append(RefusedError(missing))
    return Plan(
        folder=session.cwd,
        choices=choices,
        user_home=moment.user_home,
        cli_help=moment.cli_help,
        stated=moment.stated,
        questions=tuple(_questions(session, moment, cli)),
        warnings=tuple(warnings),
        refusals=tuple(refusals),
    )


def _not_resumable(session: Session, moment: Moment, cli: Cli) -> list[SessiondError]:
    if not cli.is_id(session.id):
        return [RefusedError(f"{session.id!r} is no id that {session.app} gives; it is not put on a command line")]
    if session.gone_ms is not None:
        return [RefusedError(f"session {session.id} is gone: its file was deleted, and nothing is left to continue")]
    if session.archived:
        return [RefusedError(f"session {session.id} is archived; first `sessions unarchive {session.id}`")]
    if session.path is None:
        return [RefusedError(f"session {session.id} has no file, only an entry, so nothing can be continued")]
    if not session.resumable:
        why = f"`sessions why {session.id}` says more"
        return [RefusedError(f"session {session.id} is in a form that its CLI cannot continue; {why}")]
    if moment.written_ms is None:
        return [RefusedError(f"session {session.id}: {session.path} cannot be found; `sessions list` looks again")]
    return []


def _folder_gone(session: Session, moment: Moment) -> list[SessiondError]:
    if not session.cwd:
        return [FolderGoneError(f"session {session.id} records no folder, and it is resumed nowhere else")]
    if not os.path.isabs(session.cwd):
        return [FolderGoneError(f"session {session.id} records {session.cwd!r}, which is no absolute folder")]
    if moment.folder_problem:
        then = "bring it back first, the session is resumed nowhere else"
        return [FolderGoneError(f"folder {session.cwd}: {moment.folder_problem}; {then}")]
    return []


def _questions(session: Session, moment: Moment, cli: Cli) -> list[str]:
    branch = moment.branch
    if session.branch is None or not branch.known or branch.name == session.branch or moment.folder_problem:
        return []
    now = f"on {branch.name}" if branch.name is not None else f"{branch.instead}"
    return [f"the session {cli.branch_is} branch {session.branch}, its folder is {now}"]


def _warnings(session: Session, moment: Moment) -> list[str]:
    recent = written_recently(moment.written_ms, moment.now_ms)
    found = [recent] if recent else []
    if session.branch is not None and not moment.branch.known and not moment.folder_problem:
        found.append(f"the session's branch {session.branch} could not be compared: {moment.branch.instead}")
    return found


def written_recently(written_ms: int | None, now_ms: int) -> str | None:
    """What to warn of when a session's file was written to a moment ago."""
    if written_ms is None or now_ms - written_ms > RECENT_MS:
        return None
    return f"written to {max(0, now_ms - written_ms) // 1000} s ago: it may be open in another terminal"


def home_change(app: str, home: str, user_home: str) -> dict[str, str | None]:
    """The home as a change to the environment; for the vendor's default the variable is unset.

    Set to its own default it still changes things: some programs then keep their account file elsewhere. Raises
    RefusedError where the variable names the folder above, and the home is not called as the program wants it.
    """
    declared = apps.named(app)
    variable, inside = declared.home_variables[0]
    home = os.path.normpath(home)
    if home == os.path.normpath(paths.usual_home(declared, user_home)):
        return {variable: None}
    if inside and not home.endswith(f"/{inside}"):
        raise RefusedError(f"{declared.label} cannot be told to use {home}: {variable} names the folder of a {inside}")
    return {variable: home.removesuffix(f"/{inside}") if inside else home}


def chosen_or_kept(recorded: str | None, chosen: str | None) -> Setting:
    """A model, provider or effort that is passed on: the person's choice, else the recorded one."""
    if chosen is not None:
        return Setting(recorded, chosen, "chosen", "asked for")
    if recorded is None:
        return Setting(None, None, "default", "none is recorded")
    if not is_name(recorded):
        return Setting(recorded, None, "withheld", "it does not look like a name")
    return Setting(recorded, recorded, "kept", "as recorded")
