"""The loop: wait for marks and timers, scan, and say how well things are going."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType

from sessiond import __version__, config, memory
from sessiond.daemon import health
from sessiond.daemon.gaps import GapBudget
from sessiond.daemon.held import HeldIndex, StoppedError
from sessiond.daemon.timetable import NEVER, Task, Timetable
from sessiond.dirty import BUSY_S, DATABASE_S, DirtySet
from sessiond.errors import SessiondError
from sessiond.model import DATABASE
from sessiond.notify import Notifier
from sessiond.provider import load_all
from sessiond.scan import SECOND_LOOK_MS, Outcome, Scanner, scan_all
from sessiond.watch import Inbox, Watcher

log = logging.getLogger(__name__)

GATHER_S = 0.01
"""After the first mark of a quiet path, wait this long for more of the same change."""
STOP_S = 1.5
"""After this long a stopping daemon leaves whatever it does; what is committed is safe."""
SHORT_RESCAN_S = 5.0
"""Rescans of folders that events do not cover come at least this far apart,"""
RESCAN_SHARE = 20
"""and take at most one part in so many of the time."""
CHECKPOINT_S = 5.0
ALARM_SHARE = 4
"""Alarms that come all the time leave so many times a scan's length between two scans."""
RECHECK_S = 2.0
"""After an alarm everything is scanned at once, and again this much later, when watches have been mended."""
COVER_S = 1.0
"""So long after a new folder was found it must be watched, or everything is scanned."""
LATE_S = 5.0
"""A rescan that begins so late says nothing about events: the process stood still."""
VERIFY_S = 600.0
"""The index file is checked with the first rescan after so long, and on SIGHUP."""
UNTOLD_S = 1.0
"""An event that has not come this long after its change will not come."""
GAP_IDLE_S = 2.0
JUMP_S = 5.0
"""A wall clock that moved this much against the monotonic one: the machine slept, or somebody set it."""


class Daemon:
    """One working loop over one index. All time inside is monotonic, in seconds."""

    def __init__(
        self,
        folder: str,
        env: Mapping[str, str],
        notifier: Notifier,
        watcher: Callable[[Inbox], Watcher] = Watcher,
    ) -> None:
        self._folder = folder
        self._env = env
        self._notifier = notifier
        self._started_ms = time.time_ns() // 1_000_000
        self._inbox = Inbox()
        self._watcher = watcher(self._inbox)
        self._dirty = DirtySet(self._least_pause_s)
        self._times = Timetable()
        self._gaps = GapBudget()
        self._index = HeldIndex(folder, notifier, lambda: self._stopping, self._scan_everything)
        self._stopping = False
        self._leave = -1
        self._reconfigure = False
        self._verify_at = 0.0
        self._new_folders: set[str] = set()
        self._last_scan_s = 0.0
        self._scanned_at = 0.0
        self._unreadable: Mapping[str, str] = {}
        self._clock_offset = _clock_offset()
        self._tasks: dict[Task, Callable[[Scanner], None]] = {
            Task.RESCAN: self._rescan,
            Task.MARKED: self._look_at_marked,
            Task.COVERAGE: self._check_coverage,
            Task.SECOND_LOOK: self._second_look,
            Task.CHECKPOINT: self._checkpoint,
            Task.GAP: self._fill_gap,
        }
        self._configure()

    def _configure(self) -> None:
        self._settings = config.load(self._env)
        self._homes = config.homes(self._settings, self._env)
        self._providers = load_all(self._homes)
        self._roots = [root for provider in self._providers for root in provider.roots()]
        self._index.serve(self._providers)

    def _least_pause_s(self, path: str) -> float:
        for provider in self._providers:
            source = provider.claim(path)
            if source is not None:
                return DATABASE_S if source.kind == DATABASE else BUSY_S
        return BUSY_S

    # -- signals -----------------------------------------------------------------------------------------------------

    def catch_signals(self) -> None:
        """The thread that ends a blocked process waits from the start: a signal handler must not start threads."""
        reader, self._leave = os.pipe()
        threading.Thread(target=_leave_late, args=(reader,), name="leave", daemon=True).start()
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        signal.signal(signal.SIGHUP, self._hang_up)

    def _stop(self, _number: int, _frame: FrameType | None) -> None:
        if not self._stopping:
            self._stopping = True
            os.write(self._leave, b"x")
        self._inbox.wake()

    def _hang_up(self, _number: int, _frame: FrameType | None) -> None:
        self._reconfigure = True
        self._inbox.wake()

    # -- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> None:
        log.info("sessiond %s starts, pid %d, index in %s", __version__, os.getpid(), self._folder)
        try:
            self._watcher.follow(self._roots)
            while not self._stopping:
                self.turn()
        finally:
            self._notifier.stopping()
            self._watcher.stop()
            self._index.close()
        log.info("sessiond ends")

    def turn(self) -> None:
        """Do the most pressing thing there is to do, or wait for one."""
        now = time.monotonic()
        self._notice(now)
        marked_at = self._dirty.next_due_s()
        task = self._times.due(now, marked_at)
        if task is None:
            self._notifier.ping()
            wait_s = min(self._times.next_at(marked_at) - now, self._notifier.silence_s)
            if self._inbox.wait(wait_s) and not self._stopping:
                time.sleep(GATHER_S)
            return
        pause_s = self._index.use(self._tasks[task])
        if pause_s is not None:
            now = time.monotonic()
            self._times.blocked_until = now + pause_s
            self._times.rescan_at = now
        self._notifier.ping()

    def _notice(self, now: float) -> None:
        """Take in what has happened meanwhile: signals, marks, alarms, a jumped clock."""
        if self._reconfigure:
            self._reconfigure = False
            self._reload(now)
        marked, alarms = self._inbox.take()
        for path in marked:
            self._dirty.mark(path, now)
        for reason in alarms:
            log.warning("scanning everything: %s", reason)
            self._times.rescan_at = min(
                self._times.rescan_at, max(now, self._scanned_at + ALARM_SHARE * self._last_scan_s)
            )
            self._times.recheck_at = now + RECHECK_S
        offset = _clock_offset()
        if abs(offset - self._clock_offset) > JUMP_S:
            log.info("the clock jumped by %.0f s", offset - self._clock_offset)
            self._clock_offset = offset
            self._times.rescan_at = min(self._times.rescan_at, now)

    def _reload(self, now: float) -> None:
        try:
            self._configure()
        except SessiondError as error:  # a mistyped configuration must not end a running daemon
            log.error("the configuration was not reloaded: %s", error)  # noqa: TRY400 - its one line says all
        self._times.rescan_at = now
        self._verify_at = now

    def _scan_everything(self) -> None:
        self._times.rescan_at = 0.0

    # -- the work ----------------------------------------------------------------------------------------------------

    def _rescan(self, scanner: Scanner) -> None:
        started = time.monotonic()
        if started >= self._verify_at:
            scanner.writer.verify()
            self._verify_at = started + VERIFY_S
        in_time = (
            self._last_scan_s > 0.0 and started < self._times.recheck_at and started - self._times.rescan_at < LATE_S
        )
        self._watcher.follow(self._roots)
        told = {*self._dirty.clear(), *self._inbox.take_paths()}
        outcome = scan_all(scanner, self._homes, self._settings, self._report)
        now = time.monotonic()
        self._last_scan_s, self._scanned_at = now - started, now
        if in_time:
            self._watcher.missed(_untold(outcome, told, time.time() - (now - started)))
        if self._watcher.check(outcome.walk.directories) or self._watcher.retry():
            self._times.recheck_at = now + RECHECK_S
        elif started >= self._times.recheck_at:
            self._times.recheck_at = NEVER
        self._times.rescan_at = now + self._period_s()
        self._after_writing(scanner, now)
        self._times.gap_at = now + GAP_IDLE_S if scanner.files_with_gaps() else NEVER
        self._unreadable = outcome.walk.unreadable
        self._publish(scanner)
        del outcome
        memory.give_back()

    def _report(self, done: int, total: int) -> None:
        self._notifier.ping()
        self._notifier.status(f"indexing {done}/{total}")
        if self._stopping:
            raise StoppedError

    def _period_s(self) -> float:
        period_s = float(self._settings.rescan_s)
        if self._watcher.is_degraded():
            period_s = min(period_s, max(SHORT_RESCAN_S, RESCAN_SHARE * self._last_scan_s))
        return period_s * random.uniform(0.75, 1.25)  # noqa: S311 - jitter

    def _look_at_marked(self, scanner: Scanner) -> None:
        began = time.monotonic()
        outcome = scanner.changed(self._dirty.take(began))
        now = time.monotonic()
        self._dirty.spent(now - began)
        self._after_writing(scanner, now)
        if outcome.walk.directories:
            self._new_folders.update(outcome.walk.directories)
            self._times.cover_at = min(self._times.cover_at, now + COVER_S)

    def _check_coverage(self, _scanner: Scanner) -> None:
        self._times.cover_at = NEVER
        if not self._watcher.covers(self._new_folders):
            self._scan_everything()
        self._new_folders.clear()

    def _second_look(self, scanner: Scanner) -> None:
        left = scanner.second_look()
        self._times.second_look_at = time.monotonic() + SECOND_LOOK_MS / 1000 if left else NEVER
        self._after_writing(scanner, time.monotonic())

    def _after_writing(self, scanner: Scanner, now: float) -> None:
        if scanner.has_missing and self._times.second_look_at == NEVER:
            self._times.second_look_at = now + SECOND_LOOK_MS / 1000 + 0.1
        if scanner.writer.wal_bytes():
            self._times.checkpoint_at = now + CHECKPOINT_S

    def _checkpoint(self, scanner: Scanner) -> None:
        scanner.writer.checkpoint()
        self._times.checkpoint_at = NEVER
        memory.give_back()

    def _fill_gap(self, scanner: Scanner) -> None:
        now = time.monotonic()
        self._times.gap_at = self._gaps.wait_until(now)
        if self._times.gap_at > now:
            return
        filled = scanner.fill_next_gap()
        now = time.monotonic()
        if filled is None:
            self._times.gap_at = NEVER
            self._publish(scanner)
            return
        self._times.gap_at = self._gaps.spend(filled, now)
        self._after_writing(scanner, now)

    # -- saying how it goes ------------------------------------------------------------------------------------------

    def _publish(self, scanner: Scanner) -> None:
        writer = scanner.writer
        with writer.transaction():
            writer.set_meta(health=health.report(self._watcher, scanner, self._unreadable, self._started_ms))
        self._notifier.status(f"{writer.count()} sessions")


def _leave_late(asked: int) -> None:
    """Wait until the process is asked to end, leave it some time, and end it."""
    os.read(asked, 1)
    time.sleep(STOP_S)
    os._exit(0)


def _untold(outcome: Outcome, told: set[str], scan_began_s: float) -> list[str]:
    """What a rescan found changed though no event had told of it in good time."""
    before_ns = int((scan_began_s - UNTOLD_S) * 1e9)
    return [path for path, fingerprint in outcome.changed if path not in told and fingerprint.ctime_ns < before_ns]


def _clock_offset() -> float:
    return time.time() - time.monotonic()
