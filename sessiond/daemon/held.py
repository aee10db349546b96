"""The index in the daemon's hands: locked for each piece of work, and mended or made anew where it has to be."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Sequence

from sessiond import locks, paths
from sessiond.errors import ConfigurationError, DegradedError, IndexUnavailableError, SchemaError
from sessiond.notify import Notifier
from sessiond.provider import Provider
from sessiond.scan import Scanner
from sessiond.store.writer import Writer

log = logging.getLogger(__name__)

LOCK_SLICE_S = 0.5
RETRY_S = 1.0
RETRY_MAX_S = 60.0
FAILURES_MAX = 5
"""So many unexpected errors in a row, and the service manager may try its luck with a new process."""


class StoppedError(Exception):
    """A signal asked for the end while a scan was running; what was committed stays."""


class HeldIndex:
    def __init__(
        self, folder: str, notifier: Notifier, is_stopping: Callable[[], bool], when_opened: Callable[[], None]
    ) -> None:
        """`when_opened` is called when nothing is known any more of what is in the index."""
        self._folder = folder
        self._notifier = notifier
        self._is_stopping = is_stopping
        self._when_opened = when_opened
        self._providers: Sequence[Provider] = ()
        self._writer: Writer | None = None
        self._scanner: Scanner | None = None
        self._lock_identity = _identity(paths.daemon_lock(folder))
        self._write_lock = locks.Lock(paths.write_lock(folder))
        self._is_ready = False
        self._retry_s = RETRY_S
        self._damages = 0
        self._failures = 0

    def serve(self, providers: Sequence[Provider]) -> None:
        """From now on scan for these."""
        self._providers = providers
        self._scanner = None

    def use(self, work: Callable[[Scanner], None]) -> float | None:
        """Run one piece of work under `write.lock` on an index that is sound and is the one at its path.

        What comes back is for how many seconds to leave it alone, None when all went well. Raises DegradedError,
        ConfigurationError or SchemaError where waiting is no use, and the last of `FAILURES_MAX` unexpected errors.
        """
        self._require_folder()
        try:
            if not self._lock():
                return None
            try:
                work(self._opened())
            finally:
                self._write_lock.release()
        except StoppedError:
            return None
        except IndexUnavailableError as error:
            return self._recover(error)
        except (ConfigurationError, SchemaError):
            raise
        except Exception:  # a bug in one piece of work must not end the daemon, unless it happens all the time
            self._failures += 1
            if self._failures >= FAILURES_MAX:
                raise
            log.exception("internal error; everything is scanned again")
            self._close_writer()
            return self._pause_s()
        self._retry_s = RETRY_S
        self._damages = self._failures = 0
        return None

    def close(self) -> None:
        self._close_writer()
        self._write_lock.close()

    def _require_folder(self) -> None:
        """Raise DegradedError when our lock is gone from the state folder, with the folder or alone.

        Clients and other daemons then know nothing of us, and a sandbox cannot make the folder again: only a new start
        can. The exit code is one that the service manager answers by that.
        """
        if _identity(paths.daemon_lock(self._folder)) != self._lock_identity:
            raise DegradedError(f"{self._folder} was removed or emptied under the daemon; start it anew")

    def _lock(self) -> bool:
        while not self._is_stopping():
            if self._write_lock.acquire(LOCK_SLICE_S):
                return True
            self._notifier.ping()
        return False

    def _opened(self) -> Scanner:
        """The scanner over the open index; both are made anew when somebody replaced or changed the file."""
        if self._writer is not None and self._writer.is_replaced():
            log.warning("the index was removed or replaced; it is built anew")
            self._close_writer()
        if self._writer is None:
            self._writer = Writer(self._folder, damages=self._damages or int(not self._is_ready))
            self._scanner = None
        elif self._writer.is_changed_by_others():
            self._scanner = None
        if self._scanner is None:
            self._scanner = Scanner(self._providers, self._writer)
            self._when_opened()
        if not self._is_ready:
            self._is_ready = True
            self._notifier.ready()
        return self._scanner

    def _close_writer(self) -> None:
        writer, self._writer, self._scanner = self._writer, None, None
        if writer is not None:
            writer.close()

    def _recover(self, error: IndexUnavailableError) -> float:
        """Wait and try again with everything; a damaged index is opened anew, which mends it or sets it aside."""
        log.error("%s", error)
        self._notifier.status(str(error))
        self._scanner = None
        if error.damaged:
            self._damages += 1
            self._close_writer()
        elif not error.retry:
            raise error
        return self._pause_s()

    def _pause_s(self) -> float:
        pause_s, self._retry_s = self._retry_s, min(RETRY_MAX_S, self._retry_s * 2)
        return pause_s


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
