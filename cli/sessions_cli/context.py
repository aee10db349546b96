"""What every command needs: the environment, an index that is up to date, and one session by what was typed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

from sessiond import columns, paths
from sessiond.errors import (
    AmbiguousIdError,
    ConfigurationError,
    IndexUnavailableError,
    NoIndexError,
    NoSuchSessionError,
    SessiondError,
)
from sessiond.store.reader import Reader
from sessions_cli import when
from sessions_cli.output import is_talk_seen, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sessiond.model import Session

WAIT_S = 5.0
"""How long another process that brings the index up to date is waited for."""
PERIODS = 3
"""A daemon whose last full scan is so many rescan periods old is not trusted to know everything."""
MIN_PREFIX = 4
MIN_SUFFIX = 6


def environment() -> Mapping[str, str]:
    return os.environ


def fresh_reader(env: Mapping[str, str], *, refresh: bool = True) -> Reader:
    """The index, brought up to date when no daemon does that; what is doubtful about it is said on stderr.

    `doubtful` of what comes back tells whether it was. Raises NoIndexError and what else opening raises.
    """
    folder = paths.state_dir(env)
    if not refresh:
        reader = Reader(folder)
        _note_age(reader, env, daemon=False)
    elif daemon_runs(folder):
        reader = _of_daemon(folder)
        _note_age(reader, env, daemon=True)
    else:
        doubt = bring_up_to_date(env, folder)
        try:
            reader = Reader(folder)
        except SessiondError as error:
            raise doubt or error from error
        if doubt:
            say(f"answering from the index as it was: {doubt}")
            reader.doubtful = True
    return reader


def daemon_runs(folder: str) -> bool:
    """Whether a daemon holds its lock; probed shared and without waiting."""
    import fcntl  # noqa: PLC0415 - not where --no-refresh is given

    try:
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
        descriptor = os.open(paths.daemon_lock(folder), flags)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def _of_daemon(folder: str) -> Reader:
    """The running daemon's index; one that is only just being made is waited for."""
    import time  # noqa: PLC0415 - a builtin module

    deadline = time.monotonic() + WAIT_S
    while True:
        try:
            return Reader(folder)
        except NoIndexError as error:
            if time.monotonic() >= deadline:
                raise NoIndexError("the daemon has not made its index yet; see: sessions status") from error
        time.sleep(0.05)


def _note_age(reader: Reader, env: Mapping[str, str], *, daemon: bool) -> None:
    meta = reader.meta()
    state = str(meta.get("state", ""))
    age_ms = when.now_ms() - int(meta.get("last_full_scan_ms", 0))
    if state != "complete":
        progress = state.removeprefix("building ") or "not begun"
        say(f"the index is still being built ({progress}): the answer may be incomplete")
        reader.doubtful = True
    elif age_ms > PERIODS * int(meta.get("rescan_s", 60)) * 1000:
        ago = when.ago(when.now_ms() - age_ms, when.now_ms())
        say(f"the index was last brought up to date {ago}" + ("; see: sessions doctor" if daemon else ""))
        reader.doubtful = True
    if daemon:
        _note_unknown_homes(str(meta.get("homes", "")), env)


def _note_unknown_homes(lines: str, env: Mapping[str, str]) -> None:
    """Say which homes of this environment the daemon does not know, and how to add them."""
    known = {line.partition("\t")[2] for line in lines.splitlines()}
    for app, home in paths.named_homes(env):
        if home in known or os.path.realpath(home) in {os.path.realpath(k) for k in known}:
            continue
        file = paths.config_file(env)
        say(f"the daemon does not index {home}: add it to {app} below [homes] in {file},"
            " then run: sessions service restart")  # fmt: skip


def bring_up_to_date(env: Mapping[str, str], folder: str) -> SessiondError | None:
    """Scan the homes now; why that could not be done, None when it was. Raises what is wrong with the configuration."""
    from sessiond import config  # noqa: PLC0415 - only without a daemon
    from sessiond.scan import refresh  # noqa: PLC0415

    settings = config.load(env)
    homes = config.homes(settings, env)
    progress = _Progress()
    try:
        done = refresh(folder, homes, settings, wait_s=WAIT_S, progress=progress)
    except (IndexUnavailableError, ConfigurationError) as error:
        return error
    except OSError as error:
        return ConfigurationError(f"cannot write {error.filename or folder}: {error.strerror}")
    finally:
        progress.end()
    return None if done else NoIndexError("another process is still bringing the index up to date; try again")


class _Progress:
    """`indexing 40/1200` on a terminal, once it takes long enough for a person to wonder."""

    def __init__(self) -> None:
        self._begun_ms = when.now_ms()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        if not is_talk_seen():
            return
        if self._shown or when.now_ms() - self._begun_ms > 200:
            sys.stderr.write(f"\rindexing {done}/{total} ")
            sys.stderr.flush()
            self._shown = True

    def end(self) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")


# -- one session -------------------------------------------------------------------------------------------------------


def find_one(reader: Reader, text: str) -> Session:
    """The session meant by a full id, a unique prefix or suffix, or `@1` (the newest), `@2`, …

    Raises NoSuchSessionError, or AmbiguousIdError with the candidates.
    """
    if text.startswith("@"):
        return _nth(reader, text)
    found = reader.by_prefix(text, 11) if len(text) >= MIN_PREFIX else []
    exact = [key for key in found if key[1] == text]
    if not found and text != text.lower():
        return find_one(reader, text.lower())
    if not found and len(text) >= MIN_SUFFIX:
        found = reader.by_suffix(text, 11)
    keys = exact or found
    if not keys:
        raise NoSuchSessionError(_unknown(text))
    if len(keys) > 1:
        raise AmbiguousIdError(f"{text!r} is the beginning or end of several ids:\n{_candidates(reader, keys)}")
    return _session(reader, str(keys[0][0]), str(keys[0][1]))


def _unknown(text: str) -> str:
    if len(text) < MIN_PREFIX:
        return f"no session {text!r}: give at least {MIN_PREFIX} characters of its id"
    return f"no session {text!r}; search for it with: sessions find --all"


def _nth(reader: Reader, text: str) -> Session:
    from sessiond.store.query import Filters  # noqa: PLC0415

    number = text[1:]
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < 10**6):
        raise NoSuchSessionError(f"no session {text!r}: @1 is the newest, @2 the one before")
    rows = reader.find(Filters(), "s.app, s.id, s.title", limit=int(number))
    if len(rows) < int(number):
        raise NoSuchSessionError(f"no session {text}: the list holds {len(rows)}")
    app, session_id, title = rows[-1]
    say(f"{text} is {session_id} {title or ''}".rstrip())
    return _session(reader, str(app), str(session_id))


def _candidates(reader: Reader, keys: list[tuple[object, ...]]) -> str:
    from sessions_cli.render import cut, printable  # noqa: PLC0415

    lines = []
    for app, session_id in keys[:10]:
        session = _session(reader, str(app), str(session_id))
        lines.append(f"  {printable(session.id)}  {app}  {cut(printable(session.title or ''), 60)}".rstrip())
    if len(keys) > 10:
        lines.append("  …")
    return "\n".join(lines)


def _session(reader: Reader, app: str, session_id: str) -> Session:
    from sessiond.model import Session  # noqa: PLC0415 - `typing` stays off the fast path

    row = reader.session(app, session_id)
    if row is None:
        raise NoSuchSessionError(f"{session_id} has just left the index; try again")
    values = dict(zip(columns.NAMES, row, strict=True))
    values.update({flag: bool(values[flag]) for flag in columns.FLAGS})
    if isinstance(values["path"], bytes):
        values["path"] = os.fsdecode(values["path"])
    return Session(**values)  # type: ignore[arg-type]
