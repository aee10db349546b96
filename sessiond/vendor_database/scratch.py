"""A folder of this process for private copies, that leaves nothing behind: not even when the process is killed."""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import weakref
from collections.abc import Iterator

_PREFIX = "copy-"
_LOCK = "lock"


class Scratch:
    """Made when a file is asked for, removed by `leave` or at exit; making it removes what killed processes left.

    Each process has a folder of its own in which it holds a lock. A folder whose lock is free has no owner.
    """

    def __init__(self, parent: str | None) -> None:
        """`parent` is a folder that only its user can enter; None: a folder is made where temporary files go."""
        self._parent = parent
        self._folder: str | None = None
        self._discard: weakref.finalize[..., Scratch] | None = None
        self._numbers = itertools.count()

    def file(self) -> str:
        """The path of a file that does not exist yet, in a folder only its user can enter."""
        if self._folder is None or not os.path.isdir(self._folder):
            self._folder = self._make()
        return os.path.join(self._folder, f"{next(self._numbers)}.db")

    def leave(self) -> None:
        """Remove the folder and what is in it."""
        if self._discard is not None:
            self._discard()
        self._folder = None

    def _make(self) -> str:
        if self._parent is None:
            import tempfile  # noqa: PLC0415 - costs start-up, and the index names a folder of its own

            return self._own(tempfile.mkdtemp(prefix="sessiond-"))
        os.makedirs(self._parent, mode=0o700, exist_ok=True)
        with _alone(self._parent):
            sweep(self._parent)
            folder = os.path.join(self._parent, _PREFIX + os.urandom(8).hex())
            os.mkdir(folder, mode=0o700)
            return self._own(folder)

    def _own(self, folder: str) -> str:
        lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(lock, fcntl.LOCK_EX)
        self._discard = weakref.finalize(self, _discard, folder, lock, os.getpid())
        return folder


@contextlib.contextmanager
def _alone(parent: str) -> Iterator[None]:
    """Keep other processes from sweeping while a new folder has no lock yet."""
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def sweep(parent: str) -> None:
    """Remove the folders in `parent` whose owner is gone."""
    with os.scandir(parent) as entries:
        names = [entry.path for entry in entries if entry.name.startswith(_PREFIX)]
    for folder in names:
        try:
            lock = os.open(os.path.join(folder, _LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
            continue
        except OSError:
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            pass
        else:
            _remove(folder)
        finally:
            os.close(lock)


def _remove(folder: str) -> None:
    """Remove a scratch folder; there are only files in it."""
    with contextlib.suppress(OSError):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        os.rmdir(folder)


def _discard(folder: str, lock: int, owner: int) -> None:
    if os.getpid() == owner:
        _remove(folder)
        os.close(lock)
