"""Where the daemon's log goes: the journal or the terminal through stderr, else a file that cannot grow without end."""

from __future__ import annotations

import logging
import os
import sys
import time

from sessiond.errors import ConfigurationError

FILE_BYTES = 1_000_000
FILES = 3
SAME_MAX = 10
"""So many messages of one kind pass"""
SAME_S = 60.0
"""in so many seconds; the next one that passes says how many did not."""


class RateLimit(logging.Filter):
    """Lets only so many messages of the same kind through. A kind is the message before its arguments are put in."""

    def __init__(self) -> None:
        super().__init__()
        self._seen: dict[str, tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        kind = str(record.msg)
        now_s = time.monotonic()
        since_s, count = self._seen.get(kind, (now_s, 0))
        if now_s - since_s >= SAME_S:
            if count > SAME_MAX:
                record.msg = f"{kind} ({count - SAME_MAX} more like this were left out)"
            since_s, count = now_s, 0
        if len(self._seen) > 1000:
            self._seen.clear()
        self._seen[kind] = since_s, count + 1
        return count < SAME_MAX


class RotatingFile(logging.StreamHandler):  # type: ignore[type-arg]
    """`path`, moved to `path.1` when it is full; the oldest of `FILES` is dropped. Readable by the owner only."""

    def __init__(self, path: str) -> None:
        self._path = path
        super().__init__(self._open())

    def _open(self) -> object:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.fdopen(os.open(self._path, flags, 0o600), "a", encoding="utf-8", errors="backslashreplace")

    def emit(self, record: logging.LogRecord) -> None:
        try:
            if self.stream.tell() >= FILE_BYTES:
                self.stream.close()
                for number in range(FILES - 1, 0, -1):
                    older = f"{self._path}.{number - 1}" if number > 1 else self._path
                    if os.path.lexists(older):
                        os.replace(older, f"{self._path}.{number}")
                self.stream = self._open()
        except (OSError, ValueError):
            self.handleError(record)
            return
        super().emit(record)

    def close(self) -> None:
        self.stream.close()
        super().close()


def set_up(folder: str) -> None:
    """Send the program's log where it belongs; `folder` is the state folder.

    Raises ConfigurationError when the file there cannot be written.
    """
    root = logging.getLogger()
    root.setLevel(logging.INFO)
    logging.raiseExceptions = False
    under_journal = "JOURNAL_STREAM" in os.environ
    handlers: list[logging.Handler] = []
    if under_journal or sys.stderr.isatty():
        handlers.append(logging.StreamHandler())
    if not under_journal:
        path = os.path.join(folder, "sessiond.log")
        try:
            handlers.append(RotatingFile(path))
        except OSError as error:
            raise ConfigurationError(f"cannot write {path}: {error.strerror}; make it a file of yours") from error
    pattern = "%(message)s" if under_journal else "%(asctime)s %(levelname)s %(message)s"
    for handler in handlers:
        handler.setFormatter(logging.Formatter(pattern))
        handler.addFilter(RateLimit())
        root.addHandler(handler)
