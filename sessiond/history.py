"""Whole logs as a library: which session files there are, and what is in one (docs/history.md).

for log in history.sessions("codex", after=date(2026, 8, 1)):
    for entry in history.read(log.path).entries:
        ...
"""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Iterator
from datetime import date
from itertools import islice
from typing import Any

from sessiond import apps, config
from sessiond.config import Homes
from sessiond.errors import UnreadableLogError
from sessiond.provider import Dialogue, Entry, Git, LogFile, Metadata, Said, load, load_dialogue

__all__ = ["Entry", "Git", "Log", "LogFile", "Metadata", "Said", "UnreadableLogError", "read", "sessions"]

_OPENING_RECORDS = 64
"""How many records may stand before the one that says whose log it is."""
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC

Day = date | str
"""A local date, as a `date` or as `YYYY-MM-DD`."""


def sessions(
    app: str, home: str | None = None, *, after: Day | None = None, before: Day | None = None
) -> Iterator[LogFile]:
    """The session files of an app, newest first, known without opening one.

    `home` is one home of the app; None: the homes of this environment. Days are local: `after` is inclusive, `before`
    exclusive.
    """
    if home is None:
        settings = config.load(os.environ)
        homes = config.homes(settings, os.environ)
    else:
        homes = Homes({apps.named(app).name: (os.path.abspath(home),)})
    return load(homes, app).logs(_iso(after), _iso(before))


def _iso(day: Day | None) -> str | None:
    return None if day is None else date.fromisoformat(str(day)).isoformat()


def read(path: str, app: str | None = None) -> Log:
    """One log of any generation, plain or compressed; raises UnreadableLogError when it cannot be read.

    `app` is told by the file's place and name when it is not given, else by what the file opens with.
    """
    if app is None:
        app = next((name for name in apps.NAMES if load_dialogue(name).is_log_path(path)), None) or _by_opening(path)
    log = Log(path, apps.named(app).name)
    with log.opened():
        return log


def _by_opening(path: str) -> str:
    """Of several apps that take a file for theirs the one declared last: it is the younger relative of the others."""
    for name in reversed(apps.NAMES):
        if Log(path, name).meta is not None:
            return name
    raise UnreadableLogError(f"{path} does not tell which app wrote it; say so, or restore its name")


class Log:
    """A session's whole log; it is read anew, as a stream, each time one goes through it."""

    def __init__(self, path: str, app: str) -> None:
        self.path = path
        self.app = app
        self._dialogue: Dialogue = load_dialogue(app)

    @property
    def meta(self) -> Metadata | None:
        """What the log opens with; None when nothing in it says so."""
        for record in islice(self._records(), _OPENING_RECORDS):
            found = self._dialogue.opening(record)
            if found is not None:
                return found
        return None

    @property
    def entries(self) -> Iterator[Entry]:
        """Every record, in order."""
        return map(self._dialogue.entry, self._records())

    @property
    def said(self) -> Iterator[Said]:
        """What the person and the assistant said, in order; a message that is recorded twice comes once."""
        last: tuple[str, str] | None = None
        for entry in self.entries:
            found = self._dialogue.said(entry)
            if found is not None and (found.role, found.text.strip()) != last:
                last = (found.role, found.text.strip())
                yield found

    def _records(self) -> Iterator[dict[str, Any]]:
        with self.opened() as file:
            yield from self._dialogue.records(file)

    def opened(self) -> io.FileIO:
        """The file, open to be read; raises UnreadableLogError when it cannot be."""
        try:
            file = io.FileIO(os.open(self.path, _FLAGS))
        except OSError as error:
            raise UnreadableLogError(f"cannot read {self.path}: {error.strerror}") from error
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            file.close()
            raise UnreadableLogError(f"{self.path} is not a regular file")
        return file
