"""What the index and the daemon say of themselves, as one value for `status` and `doctor`."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sessiond.store.reader import Reader
from sessions_cli import context, when


class Health(NamedTuple):
    """The state of the index, and of the daemon where one runs. Times are milliseconds UTC."""

    path: str
    state: str
    """`complete`, or `building n/m`."""
    sessions: int
    last_full_scan_ms: int | None
    rescan_s: int
    daemon: bool
    """Whether one holds its lock now."""
    details: dict[str, Any]
    """What the daemon last said of itself; empty without one."""
    unreadable: dict[str, str]
    """Folder -> why."""
    gap_files: int
    """Files whose middle is still to be looked through for names."""
    problems: int
    """Files that could not be read as they should."""
    note: str | None
    """What was lost when the index was rebuilt."""

    def faults(self) -> list[str]:
        """What is not as it should be, in words; empty when all is well."""
        found = []
        if self.state != "complete":
            found.append(f"the index is still being built ({self.state.removeprefix('building ') or 'not begun'})")
        if self.daemon and self._is_late():
            found.append(f"the last full scan was {when.ago(self.last_full_scan_ms, when.now_ms())}")
        if not self.daemon:
            return found + [self.denied(folder) for folder in self.unreadable]
        for root in self.details.get("roots", []):
            if root["mode"] in ("polling", "unavailable"):
                found.append(f"{root['path']} is {root['mode']}: {root.get('why') or 'no reason given'}")
            elif root["mode"] == "events" and root["watched"] < root["present"]:
                found.append(f"{root['path']}: {root['watched']} of {root['present']} folders are watched")
        found += [
            f"{database['path']} is {database['state']}: {database.get('why') or 'no reason given'}"
            for database in self.details.get("databases", [])
            if database["state"] != "ok"
        ]
        named = {root["path"] for root in self.details.get("roots", []) if root["mode"] == "unavailable"}
        return found + [self.denied(folder) for folder in self.unreadable if folder not in named]

    def denied(self, folder: str) -> str:
        return f"{folder} cannot be read: {self.unreadable[folder]}"

    def _is_late(self) -> bool:
        age_ms = when.now_ms() - (self.last_full_scan_ms or 0)
        return age_ms > context.PERIODS * self.rescan_s * when.SECOND_MS


def of(reader: Reader, *, daemon: bool) -> Health:
    """Read it from the index; `daemon` tells whether one runs now."""
    meta = reader.meta()
    scanned = meta.get("last_full_scan_ms")
    lines = [line.partition("\t") for line in str(meta.get("unreadable", "")).splitlines()]
    return Health(
        path=reader.path,
        state=str(meta.get("state", "")),
        sessions=reader.count(),
        last_full_scan_ms=scanned if isinstance(scanned, int) else None,
        rescan_s=int(meta.get("rescan_s", 60)),
        daemon=daemon,
        details=json.loads(str(meta.get("health", "{}"))) if daemon else {},
        unreadable={folder: why for folder, _, why in lines},
        gap_files=reader.gap_files(),
        problems=len(reader.problems()),
        note=str(meta["rebuilt"]) if "rebuilt" in meta else None,
    )
