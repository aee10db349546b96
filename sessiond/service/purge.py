"""Removing what the daemon left in the state folder: only names that are ours, whatever else lies there."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator

from sessiond import locks, paths
from sessiond.errors import AlreadyRunningError, ConfigurationError, IndexUnavailableError

LOGS = ("sessiond.log", "launchd.log")
OURS = ("index.db", "daemon.lock", "write.lock", "copies", *LOGS)
"""How the names begin that the daemon and the client give to files and folders in the state folder."""
_WAIT_S = 5.0


def traces(state: str) -> None:
    """Remove the logs, and the folder for copies of databases when no program has one there."""
    with _translated():
        _remove(state, LOGS)
    with contextlib.suppress(OSError):
        os.rmdir(os.path.join(state, "copies"))


def index(state: str) -> list[str]:
    """Remove the index and, when nothing else lies in it, its folder; lines that say so.

    Raises AlreadyRunningError while a daemon lives, IndexUnavailableError while a client refreshes.
    """
    if not os.path.isdir(state):
        return [f"no index in {state}"]
    lock = paths.daemon_lock(state)
    if locks.is_held(lock):
        raise AlreadyRunningError(f"a daemon is running (pid {locks.owner(lock)}); stop it, then purge again")
    with _translated(), locks.held(paths.write_lock(state), _WAIT_S) as mine:
        if not mine:
            raise IndexUnavailableError(f"{state} is being written by a client; try again", retry=True)
        _remove(state, OURS)
    with contextlib.suppress(OSError):
        os.rmdir(state)
        return [f"removed {state}"]
    return [f"removed the index; {state} also holds {', '.join(sorted(os.listdir(state)))}, which was left alone"]


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ConfigurationError(f"cannot remove {error.filename}: {error.strerror}; remove it by hand") from error


def _remove(state: str, ours: tuple[str, ...]) -> None:
    with contextlib.suppress(FileNotFoundError), os.scandir(state) as entries:
        for entry in list(entries):
            if not entry.name.startswith(ours):
                continue
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path)
            else:
                os.unlink(entry.path)
