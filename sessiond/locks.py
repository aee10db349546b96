"""The two locks of the state folder, kept by the kernel (flock) on files that are never unlinked.

`daemon.lock` is held by a daemon for life; clients only probe it. `write.lock` is held by whoever scans, for the scan.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Iterator

from sessiond.errors import ConfigurationError, IndexUnavailableError

_POLL_S = 0.02
PASSING = (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
"""Errors that say nothing about the file: no space, too many open files, no memory."""


def _open(path: str) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        if error.errno in PASSING:
            raise IndexUnavailableError(f"cannot open {path}: {error.strerror}; try again", retry=True) from error
        raise ConfigurationError(f"cannot open {path}: {error.strerror}; make it a file of yours") from error


def _lock(descriptor: int, wait_s: float | None) -> bool:
    """Lock an open file; False when `wait_s` passed, None waits without end."""
    if wait_s is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return True
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(_POLL_S)
        else:
            return True


def take(path: str, wait_s: float | None) -> int | None:
    """A descriptor that holds the lock while it is open, or None when `wait_s` passed; None waits without end.

    Raises ConfigurationError when the lock file cannot be opened, IndexUnavailableError when the disk is full.
    """
    descriptor = _open(path)
    try:
        if _lock(descriptor, wait_s):
            return descriptor
    except BaseException:
        os.close(descriptor)
        raise
    os.close(descriptor)
    return None


class Lock:
    """A lock that is taken again and again, on a file that stays open."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self, wait_s: float) -> bool:
        """Whether it was had within `wait_s`. A file that somebody removed or replaced meanwhile is opened anew."""
        if self._descriptor is not None and not self._is_same():
            self.close()
        if self._descriptor is None:
            self._descriptor = _open(self._path)
        return _lock(self._descriptor, wait_s)

    def release(self) -> None:
        if self._descriptor is not None:
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _is_same(self) -> bool:
        try:
            return self._descriptor is not None and os.path.samestat(os.stat(self._path), os.fstat(self._descriptor))
        except FileNotFoundError:
            return False


def release(descriptor: int) -> None:
    os.close(descriptor)


@contextlib.contextmanager
def held(path: str, wait_s: float | None) -> Iterator[bool]:
    """Whether the lock was had; it is let go at the end of the block."""
    descriptor = take(path, wait_s)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None:
            release(descriptor)


def is_held(path: str) -> bool:
    """Whether somebody holds the lock now. Shared and non-blocking, so that probes never stand in each other's way."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    else:
        return False
    finally:
        os.close(descriptor)


def note_owner(descriptor: int) -> None:
    """Write our pid into the lock file: for people to read, never trusted."""
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)


def owner(path: str) -> str:
    """The pid that the last holder noted, or an empty string."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return ""
    try:
        return os.read(descriptor, 32).decode("ascii", "replace").strip()
    finally:
        os.close(descriptor)
