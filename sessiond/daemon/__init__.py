"""The daemon: one of them over a state folder, until a signal ends it."""

from __future__ import annotations

import faulthandler
import os
import sys
from collections.abc import Mapping

from sessiond import config, locks, logs, paths
from sessiond.daemon.loop import Daemon
from sessiond.errors import AlreadyRunningError
from sessiond.notify import Notifier
from sessiond.store.connection import prepare_folder

__all__ = ["Daemon", "run"]

START_WAIT_S = 2.0
"""How long a starting daemon waits for another one to leave."""


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
