"""What runs in watchdog's threads: it marks, raises alarms, and never raises an exception."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable

from watchdog.events import FileModifiedEvent, FileSystemEvent, FileSystemEventHandler

from sessiond.provider import Root
from sessiond.watch.inbox import Inbox

log = logging.getLogger(__name__)


class Handler(FileSystemEventHandler):
    """Marks what an event names. Runs in watchdog's thread, where an exception would end all watching."""

    def __init__(self, inbox: Inbox, folder: str, root: Root | None) -> None:
        self._inbox = inbox
        self._folder = folder
        self._real = os.path.realpath(folder)
        self._root = root
        self.guarded: frozenset[str] = frozenset()
        """Names in the folder whose coming and going matters: a root lies there or will."""

    def dispatch(self, event: FileSystemEvent) -> None:
        try:
            paths = [os.fsdecode(event.src_path)]
            if event.dest_path:
                paths.append(os.fsdecode(event.dest_path))
            if not isinstance(event, FileModifiedEvent) and any(self._is_landmark(path) for path in paths):
                self._inbox.alarm("a watched folder came or went")
            if self._root is not None:
                wanted = self._root.wanted
                named = [self._named(path) for path in paths if wanted is None or wanted(os.path.basename(path))]
                if named:
                    self._inbox.put(named)
        except Exception:  # the thread must live
            log.exception("cannot handle an event")
            self._inbox.alarm("an event could not be handled")

    def _is_landmark(self, path: str) -> bool:
        return path == self._real or (bool(self.guarded) and os.path.basename(path) in self.guarded)

    def _named(self, path: str) -> str:
        """The path as the provider spells it, where the folder was reached through a link."""
        if self._real != self._folder and path.startswith(self._real):
            return self._folder + path[len(self._real) :]
        return path


class OverflowHook(logging.Handler):
    """Watchdog tells nobody but its log that the kernel dropped events."""

    def __init__(self, overflowed: Callable[[], None]) -> None:
        super().__init__(logging.WARNING)
        self._overflowed = overflowed

    def emit(self, record: logging.LogRecord) -> None:
        if "overflow" in str(record.msg).lower():
            self._overflowed()
