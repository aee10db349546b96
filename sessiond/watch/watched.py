"""One root, how well it is watched, and what its user can do for more."""

from __future__ import annotations

import errno
from dataclasses import dataclass, field
from typing import Any

from watchdog.observers.api import ObservedWatch

from sessiond.provider import Root
from sessiond.watch import coverage
from sessiond.watch.handler import Handler

Identity = tuple[int, int]
"""(dev, ino)"""


@dataclass(slots=True)
class Watched:
    """One root and how it is watched."""

    root: Root
    identity: Identity | None = None
    watch: ObservedWatch | None = None
    handler: Handler | None = None
    seen: bool = False
    """It was there once: missing now means unavailable, not waiting."""
    mute: bool = False
    missed: int = 0
    """How often a rescan found there what no event had told."""
    present: int = 0
    watched: int = 0
    uncovered: list[str] = field(default_factory=list)
    why: str | None = None

    @property
    def mode(self) -> str:
        if self.identity is None:
            return "unavailable" if self.seen else "waiting"
        return "polling" if self.watch is None or self.mute or self.missed > 1 else "events"

    @property
    def reason(self) -> str | None:
        """Why it is not simply watched."""
        if self.uncovered and self.mode == "events":
            return _raise_limit("max_user_watches", max(524_288, 2 * coverage.watch_limit(), 2 * self.present))
        if self.mode == "polling" and self.why is None:
            return "its file system reports no changes" if self.mute else "changes there raised no events"
        return self.why

    def health(self) -> dict[str, Any]:
        """For `sessions status`."""
        return {
            "app": self.root.app,
            "home": self.root.home,
            "path": self.root.path,
            "mode": self.mode,
            "watched": self.watched,
            "present": self.present,
            "why": self.reason,
        }


def advice(error: OSError) -> str:
    """Why there is no watch, with the command that would help if one does."""
    if error.errno == errno.ENOSPC:
        return _raise_limit("max_user_watches", max(524_288, 2 * coverage.watch_limit()))
    if error.errno == errno.EMFILE:
        return _raise_limit("max_user_instances", 1024)
    return error.strerror or str(error)


def _raise_limit(name: str, number: int) -> str:
    return f"the watch limit is reached; run: sudo sysctl fs.inotify.{name}={number}"
