"""Where the watching threads leave changed paths for the working loop."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from collections.abc import Iterable


class Inbox:
    """Changed paths, each once, and alarms: reasons to look at everything. Safe from threads and signal handlers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._paths: dict[str, None] = {}
        self._alarms: dict[str, None] = {}
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        self._poll = select.poll()
        self._poll.register(self._reader, select.POLLIN)

    def put(self, paths: Iterable[str]) -> None:
        with self._lock:
            was_empty = not self._paths
            self._paths.update(dict.fromkeys(paths))
        if was_empty:
            self.wake()

    def alarm(self, reason: str) -> None:
        """Something was or may have been missed."""
        with self._lock:
            self._alarms[reason] = None
        self.wake()

    def wake(self) -> None:
        """End a `wait` now. Takes no lock, so a signal handler may call it."""
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"x")

    def wait(self, timeout_s: float) -> bool:
        """Sleep until something is put, or for `timeout_s`; whether it was something."""
        if not self._poll.poll(max(0.0, timeout_s) * 1000):
            return False
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, 4096)
        return True

    def take_paths(self) -> list[str]:
        """The paths alone; alarms stay for the next `take`."""
        with self._lock:
            paths, self._paths = list(self._paths), {}
        return paths

    def take(self) -> tuple[list[str], list[str]]:
        """What has come in since: paths and alarms."""
        with self._lock:
            paths, self._paths = list(self._paths), {}
            alarms, self._alarms = list(self._alarms), {}
        return paths, alarms

    def close(self) -> None:
        os.close(self._reader)
        os.close(self._writer)
