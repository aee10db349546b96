"""Watchdog's observer with its emitters wired straight to our handlers (docs/decisions/0042).

Watchdog puts each event into a queue, from which a third thread takes it. In a storm of ten thousand events a second
that costs a quarter of all the daemon does; our handlers only put a path into a dictionary and need no thread for it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Any

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
_WRITTEN = 0x00000002
"""IN_MODIFY alone: a file was written to."""

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
        def on_thread_start(self) -> None:
            super().on_thread_start()
            _shorten(self._inotify, handlers.get(self.watch.path, ()))

        def queue_event(self, event: FileSystemEvent) -> None:
            if type(event) in _WANTED:
                for handler in handlers.get(self.watch.path, ()):
                    handler.dispatch(event)

    return DirectEmitter


def _shorten(group: Any, told: Iterable[FileSystemEventHandler]) -> None:
    """Let plain writes, nearly all events of a storm, pass by the queue in which watchdog pairs moves."""
    standard = group.on_event
    folders = group._active_callbacks_by_watch  # noqa: SLF001 - watch descriptor -> folder; nothing public tells it

    def on_event(event: Any) -> None:
        folder = folders.get(event.wd) if event.mask == _WRITTEN else None
        if folder is None:
            standard(event)
            return
        written = FileModifiedEvent(os.fsdecode(folder + b"/" + event.name))
        for handler in told:
            handler.dispatch(written)

    group.on_event = on_event
