"""The loop: wait for marks and timers, scan, and say how well things are going."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Mapping
from types import FrameType
from typing import Any

from sessiond import __version__, config, locks, logs, paths
from sessiond.dirty import BUSY_S, DATABASE_S, DirtySet
from sessiond.errors import (
    AlreadyRunningError,
    ConfigurationError,
    DegradedError,
    IndexUnavailableError,
    SchemaError,
    SessiondError,
)
from sessiond.model import DATABASE
from sessiond.notify import Notifier
from sessiond.providers import load_all
from sessiond.scan import SECOND_LOOK_MS, Outcome, Scanner, scan_all
from sessiond.store.connection import prepare_folder
from sessiond.store.writer import Writer
from sessiond.watch import Inbox, Watcher

log = logging.getLogger(__name__)

START_WAIT_S = 2.0
"""How long a starting daemon waits for another one to leave."""
GATHER_S = 0.01
"""After the first mark of a quiet path, wait this long for more of the same change."""
STOP_S = 1.5
"""After this long a stopping daemon leaves whatever it does; what is committed is safe."""
LOCK_SLICE_S = 0.5
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
GAP_BYTES_S = 32 << 20
GAP_BYTES_DAY = 4 << 30
GAP_IDLE_S = 2.0
DAY_S = 86_400.0
JUMP_S = 5.0
"""A wall clock that moved this much against the monotonic one: the machine slept, or somebody set it."""
RETRY_S = 1.0
RETRY_MAX_S = 60.0
FAILURES_MAX = 5
"""So many unexpected errors in a row, and the service manager may try its luck with a new process."""
NEVER = float("inf")


class _StoppedError(Exception):
    """A signal asked for the end while a scan was running; what was committed stays."""


def run(env: Mapping[str, str]) -> int:
    """Index until a signal ends it; raises AlreadyRunningError or what makes a start pointless."""
    folder = paths.state_dir(env)
    prepare_folder(folder)
    config.load(env)
    lock = locks.take(paths.daemon_lock(folder), START_WAIT_S)
    if lock is None:
        owner = locks.owner(paths.daemon_lock(folder))
        raise AlreadyRunningError(f"already running as pid {owner}; stop it with: sessions service stop")
    try:
        locks.note_owner(lock)
        os.umask(0o077)
        logs.set_up(folder)
        if sys.stderr is not None:
            faulthandler.enable()  # the watchdog ends a hung loop by SIGABRT: this tells where it hung
        daemon = Daemon(folder, env, Notifier(env.get("NOTIFY_SOCKET"), env.get("WATCHDOG_USEC")))
        daemon.catch_signals()
        daemon.run()
    finally:
        locks.release(lock)
    return 0


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
        self._writer: Writer | None = None
        self._scanner: Scanner | None = None
        self._lock_identity = _identity(paths.daemon_lock(folder))
        self._write_lock = locks.Lock(paths.write_lock(folder))
        self._stopping = False
        self._leave = -1
        self._reconfigure = False
        self._is_ready = False
        self._rescan_at = 0.0
        self._verify_at = 0.0
        self._recheck_at = NEVER
        self._cover_at = NEVER
        self._new_folders: set[str] = set()
        self._look_at = NEVER
        self._checkpoint_at = NEVER
        self._gap_at = NEVER
        self._blocked_until = 0.0
        self._retry_s = RETRY_S
        self._damages = 0
        self._failures = 0
        self._gap_day = (-NEVER, 0)
        self._last_scan_s = 0.0
        self._scanned_at = 0.0
        self._unreadable: Mapping[str, str] = {}
        self._clock_offset = _clock_offset()
        self._configure()

    def _configure(self) -> None:
        self._settings = config.load(self._env)
        self._homes = config.homes(self._settings, self._env)
        self._providers = load_all(self._homes)
        self._roots = [root for provider in self._providers for root in provider.roots()]
        self._scanner = None

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
            self._close_index()
            self._write_lock.close()
        log.info("sessiond ends")

    def turn(self) -> None:
        """Do the most pressing thing there is to do, or wait for one."""
        now = time.monotonic()
        self._notice(now)
        work = self._work(now)
        if work is None:
            self._notifier.ping()
            if self._inbox.wait(min(self._next_at(now) - now, self._notifier.silence_s)) and not self._stopping:
                time.sleep(GATHER_S)
            return
        self._with_index(work)
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
            self._rescan_at = min(self._rescan_at, max(now, self._scanned_at + ALARM_SHARE * self._last_scan_s))
            self._recheck_at = now + RECHECK_S
        offset = _clock_offset()
        if abs(offset - self._clock_offset) > JUMP_S:
            log.info("the clock jumped by %.0f s", offset - self._clock_offset)
            self._clock_offset = offset
            self._rescan_at = min(self._rescan_at, now)

    def _reload(self, now: float) -> None:
        try:
            self._configure()
        except SessiondError as error:  # a mistyped configuration must not end a running daemon
            log.error("the configuration was not reloaded: %s", error)  # noqa: TRY400 - its one line says all
        self._rescan_at = now
        self._verify_at = now

    def _work(self, now: float) -> Callable[[Scanner], None] | None:
        if now < self._blocked_until:
            return None
        if now >= self._rescan_at or now >= self._recheck_at:
            return self._rescan
        due = self._dirty.next_due_s()
        if due is not None and due <= now:
            return self._look_at_marked
        if now >= self._cover_at:
            return self._check_coverage
        if now >= self._look_at:
            return self._second_look
        if now >= self._checkpoint_at:
            return self._checkpoint
        if now >= self._gap_at:
            return self._fill_gap
        return None

    def _next_at(self, now: float) -> float:
        if now < self._blocked_until:
            return self._blocked_until
        due = self._dirty.next_due_s()
        return min(
            self._rescan_at,
            self._recheck_at,
            self._cover_at,
            self._look_at,
            self._checkpoint_at,
            self._gap_at,
            NEVER if due is None else due,
        )

    # -- the index ---------------------------------------------------------------------------------------------------

    def _with_index(self, work: Callable[[Scanner], None]) -> None:
        """Run one piece of work under `write.lock` on an index that is sound and is the one at its path."""
        self._require_folder()
        try:
            if not self._lock_index():
                return
            try:
                work(self._open_index())
            finally:
                self._write_lock.release()
        except _StoppedError:
            return
        except IndexUnavailableError as error:
            self._recover(error)
        except (ConfigurationError, SchemaError):
            raise
        except Exception:  # a bug in one piece of work must not end the daemon, unless it happens all the time
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                raise
            log.exception("internal error; everything is scanned again")
            self._close_index()
            self._back_off()
        else:
            self._retry_s = RETRY_S
            self._damages = self._failures = 0

    def _require_folder(self) -> None:
        """Raise DegradedError when our lock is gone from the state folder, with the folder or alone.

        Clients and other daemons then know nothing of us, and a sandbox cannot make the folder again: only a new start
        can. The exit code is one that the service manager answers by that.
        """
        if _identity(paths.daemon_lock(self._folder)) != self._lock_identity:
            raise DegradedError(f"{self._folder} was removed or emptied under the daemon; start it anew")

    def _lock_index(self) -> bool:
        while not self._stopping:
            if self._write_lock.acquire(LOCK_SLICE_S):
                return True
            self._notifier.ping()
        return False

    def _open_index(self) -> Scanner:
        """The scanner over the open index; both are made anew when somebody replaced or changed the file."""
        if self._writer is not None and self._writer.is_replaced():
            log.warning("the index was removed or replaced; it is built anew")
            self._close_index()
        if self._writer is None:
            self._writer = Writer(self._folder, damages=self._damages or int(not self._is_ready))
            self._scanner = None
        elif self._writer.is_changed_by_others():
            self._scanner = None
        if self._scanner is None:
            self._scanner = Scanner(self._providers, self._writer)
            self._rescan_at = 0.0
        if not self._is_ready:
            self._is_ready = True
            self._notifier.ready()
        return self._scanner

    def _close_index(self) -> None:
        writer, self._writer, self._scanner = self._writer, None, None
        if writer is not None:
            writer.close()

    def _recover(self, error: IndexUnavailableError) -> None:
        """Wait and try again with everything; a damaged index is opened anew, which mends it or sets it aside."""
        log.error("%s", error)
        self._notifier.status(str(error))
        self._scanner = None
        if error.damaged:
            self._damages += 1
            self._close_index()
        elif not error.retry:
            raise error
        self._back_off()

    def _back_off(self) -> None:
        now = time.monotonic()
        self._blocked_until = now + self._retry_s
        self._retry_s = min(RETRY_MAX_S, self._retry_s * 2)
        self._rescan_at = now

    # -- the work ----------------------------------------------------------------------------------------------------

    def _rescan(self, scanner: Scanner) -> None:
        started = time.monotonic()
        if started >= self._verify_at:
            scanner.writer.verify()
            self._verify_at = started + VERIFY_S
        in_time = self._last_scan_s > 0.0 and started < self._recheck_at and started - self._rescan_at < LATE_S
        self._watcher.follow(self._roots)
        told = {*self._dirty.clear(), *self._inbox.take_paths()}
        outcome = scan_all(scanner, self._homes, self._settings, self._report)
        now = time.monotonic()
        self._last_scan_s, self._scanned_at = now - started, now
        if in_time:
            self._watcher.missed(_untold(outcome, told, time.time() - (now - started)))
        if self._watcher.check(outcome.walk.directories) or self._watcher.retry():
            self._recheck_at = now + RECHECK_S
        elif started >= self._recheck_at:
            self._recheck_at = NEVER
        self._rescan_at = now + self._period_s()
        self._after_writing(scanner, now)
        self._gap_at = now + GAP_IDLE_S if scanner.files_with_gaps() else NEVER
        self._unreadable = outcome.walk.unreadable
        self._publish(scanner)
        del outcome
        _give_back_memory()

    def _report(self, done: int, total: int) -> None:
        self._notifier.ping()
        self._notifier.status(f"indexing {done}/{total}")
        if self._stopping:
            raise _StoppedError

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
            self._cover_at = min(self._cover_at, now + COVER_S)

    def _check_coverage(self, _scanner: Scanner) -> None:
        self._cover_at = NEVER
        if not self._watcher.covers(self._new_folders):
            self._rescan_at = 0.0
        self._new_folders.clear()

    def _second_look(self, scanner: Scanner) -> None:
        left = scanner.second_look()
        self._look_at = time.monotonic() + SECOND_LOOK_MS / 1000 if left else NEVER
        self._after_writing(scanner, time.monotonic())

    def _after_writing(self, scanner: Scanner, now: float) -> None:
        if scanner.has_missing and self._look_at == NEVER:
            self._look_at = now + SECOND_LOOK_MS / 1000 + 0.1
        if scanner.writer.wal_bytes():
            self._checkpoint_at = now + CHECKPOINT_S

    def _checkpoint(self, scanner: Scanner) -> None:
        scanner.writer.checkpoint()
        self._checkpoint_at = NEVER
        _give_back_memory()

    def _fill_gap(self, scanner: Scanner) -> None:
        now = time.monotonic()
        since, used = self._gap_day
        if now - since >= DAY_S:
            since, used = now, 0
        if used >= GAP_BYTES_DAY:
            self._gap_at = since + DAY_S
            return
        filled = scanner.fill_next_gap()
        now = time.monotonic()
        if filled is None:
            self._gap_at = NEVER
            self._publish(scanner)
            return
        self._gap_day = since, used + filled
        self._gap_at = now + filled / GAP_BYTES_S
        self._after_writing(scanner, now)

    # -- saying how it goes ------------------------------------------------------------------------------------------

    def _publish(self, scanner: Scanner) -> None:
        writer = scanner.writer
        health = {
            "pid": os.getpid(),
            "version": __version__,
            "started_ms": self._started_ms,
            "roots": [self._root_health(root) for root in self._watcher.health()],
            "overflows": self._watcher.overflows,
            "watch_restarts": self._watcher.restarts,
            "databases": writer.databases(),
            "gap_files": scanner.files_with_gaps(),
            "wal_bytes": writer.wal_bytes(),
        }
        with writer.transaction():
            writer.set_meta(health=json.dumps(health).encode("utf-8", "replace").decode())
        self._notifier.status(f"{writer.count()} sessions")

    def _root_health(self, root: dict[str, Any]) -> dict[str, Any]:
        """What the watcher says, unless the scan could not use the folder at all."""
        why = self._unreadable.get(root["path"])
        return root if why is None else {**root, "mode": "unavailable", "why": why}


def _leave_late(asked: int) -> None:
    """Wait until the process is asked to end, leave it some time, and end it."""
    os.read(asked, 1)
    time.sleep(STOP_S)
    os._exit(0)


def _untold(outcome: Outcome, told: set[str], scan_began_s: float) -> list[str]:
    """What a rescan found changed though no event had told of it in good time."""
    before_ns = int((scan_began_s - UNTOLD_S) * 1e9)
    return [path for path, fingerprint in outcome.changed if path not in told and fingerprint.ctime_ns < before_ns]


def _give_back_memory() -> None:
    """Return what scans have freed to the system; glibc keeps it otherwise, other C libraries need no such call."""
    import ctypes  # noqa: PLC0415 - the watching library has loaded it by now

    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _clock_offset() -> float:
    return time.time() - time.monotonic()
