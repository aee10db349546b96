"""What is due next, and when. Pure: it is given the time. All times are monotonic, in seconds."""

import enum
from dataclasses import dataclass

NEVER = float("inf")


class Task(enum.Enum):
    """What the daemon does, the most pressing first."""

    RESCAN = enum.auto()
    MARKED = enum.auto()
    COVERAGE = enum.auto()
    SECOND_LOOK = enum.auto()
    CHECKPOINT = enum.auto()
    GAP = enum.auto()


@dataclass(slots=True)
class Timetable:
    blocked_until: float = 0.0
    """Before this nothing is done at all."""
    rescan_at: float = 0.0
    """Everything is looked at."""
    recheck_at: float = NEVER
    """Everything is looked at once more after an alarm."""
    cover_at: float = NEVER
    """New folders must be watched by then."""
    second_look_at: float = NEVER
    """Sessions without a file are looked for once more."""
    checkpoint_at: float = NEVER
    """The write-ahead log is emptied."""
    gap_at: float = NEVER
    """The middle of one more large file is looked through."""

    def due(self, now: float, marked_at: float) -> Task | None:
        """The most pressing task whose time has come; `marked_at` is when a marked path is due."""
        if now < self.blocked_until:
            return None
        for at, task in self._tasks(marked_at):
            if at <= now:
                return task
        return None

    def next_at(self, marked_at: float) -> float:
        """When there will be something to do."""
        return max(self.blocked_until, min(at for at, _ in self._tasks(marked_at)))

    def _tasks(self, marked_at: float) -> tuple[tuple[float, Task], ...]:
        return (
            (min(self.rescan_at, self.recheck_at), Task.RESCAN),
            (marked_at, Task.MARKED),
            (self.cover_at, Task.COVERAGE),
            (self.second_look_at, Task.SECOND_LOOK),
            (self.checkpoint_at, Task.CHECKPOINT),
            (self.gap_at, Task.GAP),
        )
