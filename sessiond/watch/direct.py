"""Watchdog's observer with its emitters wired straight to our handlers.

Watchdog puts each event into a queue, from which a third thread takes it. In a storm of ten thousand events a second
that costs a quarter of all the daemon does; our handlers only put a path into a dictionary and need no thread for it.
"""

from __future__ import annotations

import sys

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileModifiedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers import Observer
from watchdog.observers.api import EventEmitter

EVENTS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileModifiedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
]
"""No open and close events: our own reading would raise them. No DirModifiedEvent: it brings close events with it."""
_WANTED = frozenset(EVENTS)

Handlers = dict[str, list[FileSystemEventHandler]]
"""Watched path -> who is told."""


class DirectObserver(Observer):  # type: ignore[misc, valid-type]
    """On Linux events go straight to the handler noted in `handlers`; elsewhere they take watchdog's own way."""

    def __init__(self) -> None:
        super().__init__()
        self.handlers: Handlers = {}
        """Noted before the path is scheduled."""
        if sys.platform.startswith("linux"):
            self._emitter_class: type[EventEmitter] = _direct(self._emitter_class, self.handlers)


def _direct(emitter: type[EventEmitter], handlers: Handlers) -> type[EventEmitter]:
    """The platform's emitter, except that it hands its events on at once."""

    class DirectEmitter(emitter):  # type: ignore[misc, valid-type]
        def queue_event(self, event: FileSystemEvent) -> None:
            if type(event) in _WANTED:
                for handler in handlers.get(self.watch.path, ()):
                    handler.dispatch(event)

    return DirectEmitter
