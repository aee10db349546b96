"""Keeps watches on the roots: missing, recreated, replaced and linked ones too, and says how well they are covered."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from watchdog.observers.api import BaseObserver, ObservedWatch

from sessiond.provider import Root
from sessiond.watch import coverage
from sessiond.watch.direct import EVENTS, DirectObserver
from sessiond.watch.handler import Handler, OverflowHook
from sessiond.watch.inbox import Inbox
from sessiond.watch.watched import Identity, Watched, advice

log = logging.getLogger(__name__)

LINKS_MAX = 64
"""So many symlinked folders are watched; each is a thread. More of them are left to the rescans."""
RETRY_S = 60.0
RETRY_MAX_S = 3600.0
DEATHS_MAX = 3
DEATHS_S = 60.0


class Watcher:
    """All watches of the daemon. Every method is called by the working loop."""

    def __init__(self, inbox: Inbox, observer: Callable[[], BaseObserver] = DirectObserver) -> None:
        self._inbox = inbox
        self._new_observer = observer
        self._observer: BaseObserver | None = None
        self._roots: dict[str, Watched] = {}
        self._links: dict[str, tuple[ObservedWatch, Identity]] = {}
        self._guards: dict[str, tuple[ObservedWatch, Handler]] = {}
        self._checked: tuple[str, ...] | None = None
        self._retry_s = RETRY_S
        self._retry_at_s = 0.0
        self._deaths: list[float] = []
        self._died = False
        self.overflows = 0
        self.restarts = 0
        self._hook = OverflowHook(self._overflowed)
        self._watchdog_log = logging.getLogger("watchdog.observers.inotify_c")
        self._watchdog_log.addHandler(self._hook)
        self._previous_excepthook = threading.excepthook
        threading.excepthook = self._thread_died

    # -- what the threads report -------------------------------------------------------------------------------------

    def _overflowed(self) -> None:
        self.overflows += 1
        self._inbox.alarm("events were lost in an overflow")

    def _thread_died(self, args: Any) -> None:
        log.error("a watching thread died: %s: %s", getattr(args.exc_type, "__name__", "?"), args.exc_value)
        self._died = True
        self._inbox.alarm("a watching thread died")

    # -- keeping the watches -----------------------------------------------------------------------------------------

    def follow(self, roots: Sequence[Root]) -> None:
        """Make the watches stand for these roots as they are on disk now. Scan afterwards, never before."""
        self._supervise()
        wanted = {root.path: root for root in roots}
        for path in [path for path in self._roots if path not in wanted]:
            self._unwatch(self._roots.pop(path))
        for path, root in wanted.items():
            watched = self._roots.setdefault(path, Watched(root))
            watched.root = root
            self._follow_root(watched)
        self._follow_guards()

    def _supervise(self) -> None:
        """Replace the observer when one of its threads has died; after too many deaths leave it for a while."""
        observer = self._observer
        if observer is not None and (self._died or not observer.is_alive()):
            now_s = time.monotonic()
            self._deaths = [s for s in self._deaths if now_s - s < DEATHS_S] + [now_s]
            self.restarts += 1
            self._drop_observer()
            if len(self._deaths) >= DEATHS_MAX:
                log.error("watching failed %d times in a minute; the folders are polled for a while", len(self._deaths))
                self._back_off()
        self._died = False
        if self._observer is None and time.monotonic() >= self._retry_at_s:
            try:
                self._observer = self._new_observer()
                self._observer.start()
            except OSError as error:
                self._observer = None
                log.warning("cannot watch folders: %s; they are polled", advice(error))
                self._back_off()

    def _back_off(self) -> None:
        self._retry_at_s = time.monotonic() + self._retry_s
        self._retry_s = min(RETRY_MAX_S, self._retry_s * 2)

    def _drop_observer(self) -> None:
        observer, self._observer = self._observer, None
        for watched in self._roots.values():
            watched.watch = None
        self._links.clear()
        self._guards.clear()
        self._checked = None
        if observer is not None:
            with contextlib.suppress(Exception):
                observer.stop()
                observer.join(1.0)

    def _follow_root(self, watched: Watched) -> None:
        identity, why = _identity(watched.root.path)
        if identity != watched.identity or not self._is_alive(watched.watch):
            self._unwatch(watched)
            watched.identity = identity
            watched.missed = 0
        watched.why = why
        if identity is None:
            return
        watched.seen = True
        if watched.watch is None:
            watched.mute = coverage.is_mute(watched.root.path)
            watched.handler = Handler(self._inbox, watched.root.path, watched.root)
            watched.watch, watched.why = self._schedule(
                watched.handler, watched.root.path, recursive=watched.root.recursive
            )

    def _schedule(self, handler: Handler, path: str, *, recursive: bool) -> tuple[ObservedWatch | None, str | None]:
        """A watch on `path`, or why there is none."""
        if self._observer is None:
            return None, "the system gives no watches now"
        real = os.path.realpath(path)
        if isinstance(self._observer, DirectObserver):
            self._observer.handlers.setdefault(real, []).append(handler)
        try:
            return self._observer.schedule(handler, real, recursive=recursive, event_filter=EVENTS), None
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                self._back_off()
            return None, advice(error)

    def _is_alive(self, watch: ObservedWatch | None) -> bool:
        if watch is None or self._observer is None:
            return watch is None
        return any(emitter.watch == watch and emitter.is_alive() for emitter in list(self._observer.emitters))

    def _unwatch(self, watched: Watched) -> None:
        if watched.watch is not None:
            self._unschedule(watched.watch)
        watched.watch = None
        self._checked = None

    def _unschedule(self, watch: ObservedWatch) -> None:
        if isinstance(self._observer, DirectObserver):
            self._observer.handlers.pop(watch.path, None)
        if self._observer is not None:
            with contextlib.suppress(KeyError, OSError):
                self._observer.unschedule(watch)

    def _follow_guards(self) -> None:
        """Watch the folder above each root that is missing or could be swapped, for that one name."""
        wanted: dict[str, set[str]] = {}
        for watched in self._roots.values():
            folder, name = os.path.split(watched.root.path)
            if watched.identity is None:
                while not os.path.isdir(folder) and len(folder) > 1:
                    folder, name = os.path.split(folder)
            elif folder != watched.root.home:
                continue
            if os.path.isdir(folder):
                wanted.setdefault(folder, set()).add(name)
        for watched in self._roots.values():
            if watched.handler is not None:
                names = wanted.pop(watched.root.path, set()) if watched.watch is not None else set()
                watched.handler.guarded = frozenset(names)
        for folder in [f for f, (watch, _) in self._guards.items() if f not in wanted or not self._is_alive(watch)]:
            self._unschedule(self._guards.pop(folder)[0])
        for folder, names in wanted.items():
            if folder not in self._guards:
                handler = Handler(self._inbox, folder, None)
                watch, _ = self._schedule(handler, folder, recursive=False)
                if watch is None:
                    continue
                self._guards[folder] = watch, handler
            self._guards[folder][1].guarded = frozenset(names)

    # -- coverage ----------------------------------------------------------------------------------------------------

    def check(self, directories: Iterable[str]) -> bool:
        """Compare the directories that a scan has listed with those the kernel watches; whether more are covered now.

        A folder reached through a link gets a watch of its own.
        """
        listed = tuple(directories)
        if listed == self._checked:
            return False
        watched_inodes = coverage.watched_inodes()
        gained = False
        for watched in self._roots.values():
            inside = watched.root.path + "/"
            below = [d for d in listed if d == watched.root.path or (watched.root.recursive and d.startswith(inside))]
            watched.present = len(below)
            watched.uncovered = [] if watched_inodes is None else [d for d in below if _ino(d) not in watched_inodes]
            if watched.watch is not None:
                gained |= self._follow_links(watched)
            watched.watched = watched.present - len(watched.uncovered)
        is_whole = not gained and not any(w.uncovered for w in self._roots.values())
        self._checked = listed if is_whole else None
        if is_whole and self._observer is not None:
            self._retry_s = RETRY_S
        return gained

    def _follow_links(self, watched: Watched) -> bool:
        gained = False
        for directory in list(watched.uncovered):
            identity, _ = _identity(directory)
            if not os.path.islink(directory) or identity is None or len(self._links) >= LINKS_MAX:
                continue
            old = self._links.pop(directory, None)
            if old is not None:
                self._unschedule(old[0])
            watch, _ = self._schedule(Handler(self._inbox, directory, watched.root), directory, recursive=True)
            if watch is not None:
                self._links[directory] = watch, identity
                watched.uncovered.remove(directory)
                gained = True
        return gained

    def retry(self) -> bool:
        """Try anew, from time to time, to watch what could not be watched; whether a scan has to follow."""
        lacking = [w for w in self._roots.values() if w.identity is not None and (w.watch is None or w.uncovered)]
        if not lacking or time.monotonic() < self._retry_at_s:
            return False
        self._back_off()
        for watched in lacking:
            self._unwatch(watched)
        self.follow([w.root for w in self._roots.values()])
        return True

    def missed(self, paths: Iterable[str]) -> None:
        """A rescan found these changed, long enough after the change for an event to have come."""
        found = list(paths)
        for watched in self._roots.values():
            if watched.mode == "events" and not watched.uncovered:
                inside = watched.root.path + "/"
                watched.missed += any(path.startswith(inside) for path in found)

    def covers(self, directories: Iterable[str]) -> bool:
        """Whether directories that have just been found are watched; a look that costs little."""
        inodes = coverage.watched_inodes()
        return inodes is None or all(_ino(directory) in inodes for directory in directories if os.path.isdir(directory))

    def is_degraded(self) -> bool:
        """Whether some folder that is there is not fully covered by events, so that rescans must come more often."""
        return any(w.identity is not None and (w.mode == "polling" or bool(w.uncovered)) for w in self._roots.values())

    def health(self) -> list[dict[str, Any]]:
        """Per root, for `sessions status`."""
        return [watched.health() for watched in self._roots.values()]

    def stop(self) -> None:
        self._drop_observer()
        self._watchdog_log.removeHandler(self._hook)
        threading.excepthook = self._previous_excepthook


def _identity(path: str) -> tuple[Identity | None, str | None]:
    """(dev, ino) of a folder, or why there is none."""
    try:
        status = os.stat(path)
        if not os.path.isdir(path):
            return None, "not a folder"
        os.scandir(path).close()
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, error.strerror
    return (status.st_dev, status.st_ino), None


def _ino(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return -1
