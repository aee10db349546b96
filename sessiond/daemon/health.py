"""How well the daemon does, as `sessions status` reads it from the index (docs/cli.md)."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping

from sessiond import __version__
from sessiond.scan import Scanner
from sessiond.watch import Watcher


def report(watcher: Watcher, scanner: Scanner, unreadable: Mapping[str, str], started_ms: int) -> str:
    """One JSON object. `unreadable` are folders that the last scan could not use, and why."""
    roots = [
        {**root, "mode": "unavailable", "why": unreadable[root["path"]]} if root["path"] in unreadable else root
        for root in watcher.health()
    ]
    health = {
        "pid": os.getpid(),
        "version": __version__,
        "started_ms": started_ms,
        "roots": roots,
        "overflows": watcher.overflows,
        "watch_restarts": watcher.restarts,
        "databases": scanner.writer.databases(),
        "gap_files": scanner.files_with_gaps(),
        "wal_bytes": scanner.writer.wal_bytes(),
    }
    return json.dumps(health).encode("utf-8", "replace").decode()
