"""What is due when: marks of changed paths go in, paths to look at come out. Pure: it is given the time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

BUSY_S = 0.1
"""A file that keeps changing is read at most this often,"""
BUSY_MAX_S = 0.8
"""and in the end this often,"""
BUSY_SHARE = 10
"""Looking at busy paths takes at most about one part in so many of the time."""
LONG_S = 5.0
"""once it has kept changing for this long: from then on each reading doubles the pause."""
DATABASE_S = 2.0
"""A database is copied at most this often."""


@dataclass(slots=True)
class _Pace:
    """How a path that was looked at lately may be looked at again."""

    since_s: float
    """When the changes began that still go on."""
    taken_s: float
    pause_s: float


class DirtySet:
    """Paths that changed. Its size is bounded by the number of paths, never by the number of events."""

    def __init__(self, least_pause_s: Callable[[str], float] = lambda _path: BUSY_S) -> None:
        self._least_pause_s = least_pause_s
        self._due: dict[str, float] = {}
        self._paces: dict[str, _Pace] = {}
        self._crowd_s = 0.0

    def __len__(self) -> int:
        return len(self._due)

    def mark(self, path: str, now_s: float) -> None:
        """The path changed: due at once when it was quiet, else when its pause is over."""
        if path in self._due:
            return
        pace = self._paces.get(path)
        self._due[path] = now_s if pace is None else max(now_s, pace.taken_s + max(pace.pause_s, self._crowd_s))

    def next_due_s(self) -> float:
        """When something will be due; infinity when nothing is marked."""
        return min(self._due.values(), default=float("inf"))

    def take(self, now_s: float) -> list[str]:
        """What is due, in the order it became so; it counts as looked at now."""
        due = sorted((path for path, due_s in self._due.items() if due_s <= now_s), key=self._due.__getitem__)
        for path in due:
            del self._due[path]
            self._paces[path] = self._next_pace(path, now_s)
        self._forget_quiet(now_s)
        return due

    def spent(self, seconds: float) -> None:
        """So long it took to look at what was taken last: the more files are busy, the longer each has to wait."""
        self._crowd_s = min(BUSY_MAX_S, BUSY_SHARE * seconds)

    def _next_pace(self, path: str, now_s: float) -> _Pace:
        pace = self._paces.get(path)
        if pace is None or _is_quiet(pace, now_s):
            return _Pace(now_s, now_s, self._least_pause_s(path))
        pause_s = pace.pause_s
        if now_s - pace.since_s >= LONG_S:
            pause_s = max(pause_s, min(BUSY_MAX_S, pause_s * 2))
        return _Pace(pace.since_s, now_s, pause_s)

    def _forget_quiet(self, now_s: float) -> None:
        for path in [p for p, pace in self._paces.items() if p not in self._due and _is_quiet(pace, now_s)]:
            del self._paces[path]

    def clear(self) -> list[str]:
        """Forget what is marked, and tell it: a full scan is about to look at everything."""
        marked = list(self._due)
        self._due.clear()
        return marked


def _is_quiet(pace: _Pace, now_s: float) -> bool:
    """Whether nothing was marked for so long that a change counts as the first one again."""
    return now_s - pace.taken_s > 2 * pace.pause_s
